"""A project's settings: where the project is, and the contents of `dbt_project.yml` or `[tool.sqlmesh_like]`.

Owns the settings file and the config by folder under `models:`, `seeds:` etc.; `properties` reads properties YAML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import cast

from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.project.config import (
    HOOKS,
    canonical,
    check_setting,
    is_config_key,
    merge_config,
    refuse_both_spellings,
)
from sqlmesh_like.project.keys.config_values import ConfigFault, UnknownSetting
from sqlmesh_like.project.keys.settings_keys import DISPATCH, FLAGS, OLD_PATHS, PATH_DEFAULTS, PROJECT_SETTINGS
from sqlmesh_like.project.nodes import ProjectFlags, ReleaseMode
from sqlmesh_like.project.paths import leads_out
from sqlmesh_like.project.reading.file_dependencies import record_file
from sqlmesh_like.project.reading.files import read_text
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.reading.values import ValueRenderer, YamlWords, has_jinja
from sqlmesh_like.project.reading.yaml_node import YamlNode, parse_toml, parse_yaml
from sqlmesh_like.project.testing.data_test_config import merge_settings, setting_by_folder
from sqlmesh_like.regular_files import MAX_TEXT, read_followed

DBT_FILE = "dbt_project.yml"
OWN_FILE = "pyproject.toml"
OWN_TABLE = "sqlmesh_like"

_OTHERS = ("unit_tests", "sources", "exposures", "metrics", "semantic-models", "saved-queries")
_TREES = ("models", "seeds", "snapshots", "tests", "data_tests", *_OTHERS)
"""Settings of nodes by folder. They are rendered for each node: only those that apply to it are."""
_EMPTY = YamlNode({}, Location(OWN_FILE), Location(OWN_FILE))


@dataclass(frozen=True)
class Settings:
    """The contents of the settings file, with defaults filled in; `models`, `seeds` etc. are config by folder."""

    name: str
    file: str
    profile: str | None
    model_paths: tuple[str, ...]
    seed_paths: tuple[str, ...]
    test_paths: tuple[str, ...]
    macro_paths: tuple[str, ...]
    analysis_paths: tuple[str, ...]
    function_paths: tuple[str, ...]
    docs_paths: tuple[str, ...]
    target_path: str
    clean_targets: tuple[str, ...]
    vars: Mapping[str, object]
    models: YamlNode = field(default=_EMPTY)
    seeds: YamlNode = field(default=_EMPTY)
    snapshots: YamlNode = field(default=_EMPTY)
    data_tests: YamlNode = field(default=_EMPTY)
    others: Mapping[str, YamlNode] = field(default_factory=dict)  # the trees of `_OTHERS`
    snapshot_paths: tuple[str, ...] = ()
    packages_path: str = "dbt_packages"
    is_package: bool = False
    dispatch: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    on_run_start: tuple[str, ...] = ()
    on_run_end: tuple[str, ...] = ()
    flags: ProjectFlags = field(default_factory=ProjectFlags)
    target: Mapping[str, object] | None = None  # `target` of templates in YAML
    version: str | None = None
    release: ReleaseMode | None = None
    paths: Mapping[str, YamlNode] = field(default_factory=dict)  # the settings that name folders, as far as given
    is_absent: bool = False  # there is no settings file
    asked: dict[int, set[tuple[str, ...]]] = field(default_factory=dict, compare=False, repr=False)
    """The fqns whose settings were read, by the identity of the tree: what is in no tree's way is unused."""

    @property
    def trees(self) -> Mapping[str, YamlNode]:
        """The settings by folder, by their key."""
        own = {"models": self.models, "seeds": self.seeds, "snapshots": self.snapshots, "data_tests": self.data_tests}
        return {**own, **self.others}

    @property
    def words(self) -> YamlWords:
        """What templates in the project's YAML can read."""
        return YamlWords(self.vars, self.target, self.is_package)

    @property
    def is_dbt(self) -> bool:
        """Whether dbt's own defaults apply (views, schemas with a prefix)."""
        return self.file.endswith(DBT_FILE)

    def folder_config(self, kind: YamlNode, fqn: tuple[str, ...], values: ValueRenderer) -> dict[str, object]:
        """The checked config that the settings give a node, from the outermost folder to its own name.

        `fqn` is (project, folder, …, name); for a package's node these are the root project's settings for the package.
        Raises ProjectError for a wrong value.
        """
        config: dict[str, object] = {}
        for level in self._levels(kind, fqn):
            own: dict[str, object] = {}
            refuse_hooks_twice(level)
            for key, node in level.items():
                if key.startswith("+") or is_config_key(key):
                    own[canonical(key)] = check_setting_at(
                        canonical(key), node if key.lstrip("+") in HOOKS else values.render(node)
                    )
                elif not isinstance(node.value, dict):
                    own[canonical(key)] = check_setting_at(canonical(key), values.render(node))
            config = merge_config(config, own)
        return config

    def place_of(self, kind: YamlNode, fqn: tuple[str, ...], key: str) -> Location | None:
        """Where the settings give a node a config key; None where they do not."""
        levels = self._levels(kind, fqn)
        places = [node.key_location for level in levels for name, node in level.items() if canonical(name) == key]
        return places[-1] if places else None

    def templates_of(self, kind: YamlNode, fqn: tuple[str, ...]) -> dict[str, str]:
        """The settings that `folder_config` renders, as they are written: the text is the same for every target."""
        texts: dict[str, str] = {}
        for level in self._levels(kind, fqn):
            given = {canonical(key): node.value for key, node in level.items() if not isinstance(node.value, dict)}
            texts = {key: text for key, text in texts.items() if key not in given}
            texts |= {key: str(value) for key, value in given.items() if has_jinja(value) and key not in HOOKS}
        return texts

    def test_config(self, fqn: tuple[str, ...], values: ValueRenderer) -> dict[str, object]:
        """Like `folder_config`, for a data test."""
        levels = self._levels(self.data_tests, fqn)
        return merge_settings(*(_test_config(level, values) for level in levels))

    def is_off(self, kind: str, fqn: tuple[str, ...], values: ValueRenderer) -> bool:
        """Whether the settings have `+enabled: false` for a source table, an exposure or a unit test."""
        enabled = [level["enabled"] for level in self.plain_config(kind, fqn) if "enabled" in level]
        return bool(enabled) and values.render(enabled[-1]).value in (False, "false", "False")

    def plain_config(self, kind: str, fqn: tuple[str, ...]) -> list[dict[str, YamlNode]]:
        """The settings of a node other than a table or data test, as written; the outermost folder first."""
        return [
            {
                canonical(k): child
                for k, child in level.items()
                if k.startswith("+") or not isinstance(child.value, dict)
            }
            for level in self._levels(self.others.get(kind, _EMPTY), fqn)
        ]

    def _levels(self, tree: YamlNode, fqn: tuple[str, ...]) -> Iterator[YamlNode]:
        """The mappings that apply to a node, outermost first; that it was asked for is recorded."""
        self.asked.setdefault(id(tree), set()).add(fqn)
        return _levels(tree, fqn, is_own=fqn[0] == self.name)


def find_project(start: Path) -> Path:
    """The nearest folder from `start` upwards that is a project. Raises ProjectError if there is none."""
    for folder in (start, *start.parents):
        if (folder / DBT_FILE).is_file() or has_own_table(folder):
            return folder
    if (start / "models").is_dir():
        return start
    message = f"no project in {start} or above it: no {DBT_FILE}, no [tool.{OWN_TABLE}] in {OWN_FILE}"
    raise ProjectError(message, hint="go to a project's folder, name one by --project-dir, or make one: sml init NAME")


def has_own_table(folder: Path) -> bool:
    """Whether the folder's pyproject.toml has settings of a project."""
    path = folder / OWN_FILE
    # Only search the text: a broken pyproject.toml of some outer folder does not concern us.
    try:
        return f"[tool.{OWN_TABLE}".encode() in read_followed(path, MAX_TEXT)
    except OSError:
        return False


def load_settings(root: Path, cli_vars: Mapping[str, object], shown: str = DBT_FILE) -> Settings:
    """The settings of the project at `root`. Raises ProjectError for a file that cannot be read or an unknown key.

    `shown` is the path of a package's settings as messages name it.
    """
    for name in (DBT_FILE, OWN_FILE):
        record_file(root / name)
    if (root / DBT_FILE).is_file():
        node = parse_yaml(read_text(root / DBT_FILE, root), shown).mapping(DBT_FILE)
        return _parse_settings(node, shown, root, cli_vars)
    if has_own_table(root):
        tool = parse_toml(read_text(root / OWN_FILE, root), OWN_FILE).children["tool"]
        return _parse_settings(tool.children[OWN_TABLE], OWN_FILE, root, cli_vars)
    return _parse_settings(_EMPTY, OWN_FILE, root, cli_vars)


def _parse_settings(node: YamlNode, file: str, root: Path, cli_vars: Mapping[str, object]) -> Settings:
    PROJECT_SETTINGS.check_keys(node)
    node = _with_new_names(node)
    variables = {**_vars(node), **cli_vars}
    comment = node.get("query-comment")
    if comment is not None and comment.value != "":
        warn(comment.key_location, "query-comment is ignored: statements get no comment")
    trees = frozenset({*_TREES, "vars", "on-run-start", "on-run-end", "query-comment"})
    node = ValueRenderer(variables, secrets=False).render(node, skip=trees)
    PROJECT_SETTINGS.check(node)
    target_path = node.text_of("target-path") or "target"
    paths = {key: node.texts_of(key, (default,)) for key, default in PATH_DEFAULTS.items()}
    _refuse_ways_out(node)
    everywhere = tuple(path for folders in paths.values() for path in folders)
    return Settings(
        name=node.text_of("name") or _plain_name(root),
        file=file,
        profile=node.text_of("profile"),
        model_paths=paths["model-paths"],
        seed_paths=paths["seed-paths"],
        test_paths=paths["test-paths"],
        macro_paths=paths["macro-paths"],
        analysis_paths=paths["analysis-paths"],
        function_paths=paths["function-paths"],
        docs_paths=node.texts_of("docs-paths", everywhere),
        target_path=target_path,
        clean_targets=node.texts_of("clean-targets", (target_path,)),
        vars=variables,
        models=_tree(node, "models"),
        seeds=_tree(node, "seeds"),
        snapshots=_tree(node, "snapshots"),
        data_tests=_tree(node, "data_tests" if "data_tests" in node.children else "tests"),
        others={key: _tree(node, key) for key in _OTHERS},
        snapshot_paths=paths["snapshot-paths"],
        packages_path=node.text_of("packages-install-path") or "dbt_packages",
        dispatch=_dispatch(node),
        on_run_start=node.texts_of("on-run-start"),
        on_run_end=node.texts_of("on-run-end"),
        flags=_flags(node),
        version=_version(node),
        release=cast(ReleaseMode | None, PROJECT_SETTINGS.value(node, "release")),
        paths={key: child for key in (*PATH_DEFAULTS, "docs-paths") if (child := node.get(key)) is not None},
        is_absent=node.location.line is None,
    )


def _with_new_names(node: YamlNode) -> YamlNode:
    """The settings with folders of SQL under the names used since dbt 1.0."""
    children = dict(node.items())
    for old, new in OLD_PATHS.items():
        if old not in children:
            continue
        if new in children:
            raise node.children[old].error(f"{old} and {new} are both given", f"leave {old} out: {new} is its name now")
        warn(node.children[old].key_location, f"{old} is an old name", f"write {new}")
        children[new] = children.pop(old)
    return replace(node, children=children)


def _refuse_ways_out(node: YamlNode) -> None:
    """Raise ProjectError unless the project's files, and what commands write and remove, are below its root."""
    for key in (*PATH_DEFAULTS, "docs-paths", "clean-targets"):
        child = node.get(key)
        for path in () if child is None else child.texts(key):
            if child is not None and leads_out(path):
                raise child.error(f"{key}: {path!r} is not a folder inside the project", "name one below its root")
    for key in ("target-path", "packages-install-path"):
        child = node.get(key)
        path = "x" if child is None else child.text(key)
        if child is not None and (leads_out(path) or not PurePosixPath(path).parts):
            raise child.error(f"{key}: {path!r} is not a folder inside the project", "name one below its root")


def _dispatch(node: YamlNode) -> dict[str, tuple[str, ...]]:
    """For each namespace, the packages in which `adapter.dispatch` searches for macros, in order."""
    orders: dict[str, tuple[str, ...]] = {}
    for entry in node.elements_of("dispatch"):
        DISPATCH.check(entry)
        space, order = entry.get("macro_namespace"), entry.get("search_order")
        if space is None or order is None:
            raise entry.error("dispatch needs macro_namespace and search_order")
        orders[space.text("macro_namespace")] = order.texts("search_order")
    return orders


def _flags(node: YamlNode) -> ProjectFlags:
    """The flags of the project; those of dbt without effect here are ignored."""
    flags = node.get("flags")
    if flags is None:
        return ProjectFlags()
    FLAGS.check(flags)
    return ProjectFlags(
        strict_undefined=FLAGS.value(flags, "strict_undefined") is True,
        python_model_packages=flags.texts_of("python_model_packages"),
        behavior=frozenset(name for name, flag in flags.items() if flag.value is True),
    )


def _vars(node: YamlNode) -> dict[str, object]:
    """Project variables; those under the project's own name win over the common ones, as in dbt."""
    child = node.get("vars")
    if child is None:
        return {}
    common = {key: value.value for key, value in child.mapping("vars").items()}
    own = common.get(node.text_of("name") or "")
    return {**common, **own} if isinstance(own, dict) else common


def _version(node: YamlNode) -> str | None:
    """The project's version as text: YAML may read it as a number."""
    child = node.get("version")
    return None if child is None or child.value is None else str(child.value)


def _tree(node: YamlNode, key: str) -> YamlNode:
    child = node.get(key)
    return _EMPTY if child is None else child.mapping(key)


def _plain_name(root: Path) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in root.resolve().name) or "project"


def _levels(tree: YamlNode, fqn: tuple[str, ...], *, is_own: bool) -> Iterator[YamlNode]:
    """The mappings that apply to a node, outermost first. The own project's name as first folder may be left out."""
    yield tree
    project, *parts = fqn
    start = tree.children.get(project)
    for level in [level for level in (tree if is_own else None, start) if level is not None]:
        if level is start:
            yield level
        for part in parts:
            child = level.children.get(part)
            if child is None or not isinstance(child.value, dict):
                break
            yield child
            level = child


def _test_config(level: YamlNode, values: ValueRenderer) -> dict[str, object]:
    settings = (setting_by_folder(key, node, values) for key, node in level.items())
    return dict(setting for setting in settings if setting is not None)


def refuse_hooks_twice(level: YamlNode) -> None:
    """Raise ProjectError, at the second one, where a mapping has both spellings of a hook."""
    try:
        refuse_both_spellings(level.children)
    except ConfigFault as fault:
        place = [node.key_location for key, node in level.items() if canonical(key) == fault.key][-1]
        raise ProjectError(fault.message, location=place, hint=fault.hint) from fault


def check_setting_at(key: str, node: YamlNode) -> object:
    """The normal form of a config value. Raises ProjectError at the key of a wrong one; warns about an unknown key."""
    try:
        return check_setting(key, node.value)
    except UnknownSetting as unknown:
        warn(node.key_location, unknown.message, unknown.hint, once=unknown.once)
        return node.value if unknown.kept else None
    except ConfigFault as fault:
        raise ProjectError(fault.message, location=node.key_location, hint=fault.hint) from fault
