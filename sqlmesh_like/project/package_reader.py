"""One project's files → its nodes. Owns the search for files and the joining of models with their properties.

It reads the root project and each package. `settings` reads settings, `properties` YAML entries; `render` renders the
Jinja inside SQL.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sqlmesh_like.errors import Location, ProjectError, SqlError, as_sql_error, nearest
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.project.config import merge_config
from sqlmesh_like.project.doc_blocks import Descriptions, Docs
from sqlmesh_like.project.folder_config import FolderConfig
from sqlmesh_like.project.functions.declarations import FunctionFile
from sqlmesh_like.project.functions.reading import read_functions
from sqlmesh_like.project.nodes import MacroFile, ModelFile, SeedFile, TestFile
from sqlmesh_like.project.properties import NodeProperties, Properties, node_tests, parse_properties
from sqlmesh_like.project.reading.files import files_under, read_text, relative
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.reading.values import ValueRenderer
from sqlmesh_like.project.reading.yaml_node import parse_yaml
from sqlmesh_like.project.settings import Settings
from sqlmesh_like.project.snapshots import SnapshotText, relation_text, snapshot_blocks
from sqlmesh_like.project.testing.generic_tests import Tested
from sqlmesh_like.project.versions import Version, by_file


@dataclass(frozen=True)
class PackageFiles:
    """What the files of one project declare."""

    settings: Settings
    properties: Properties
    models: tuple[ModelFile, ...]
    seeds: tuple[SeedFile, ...]
    tests: tuple[TestFile, ...]
    macros: tuple[MacroFile, ...]
    analyses: tuple[ModelFile, ...]
    functions: tuple[FunctionFile, ...]
    warnings: tuple[str, ...]


def read_package(
    root: Path, settings: Settings, docs: Mapping[str, Mapping[str, str]], over: Settings | None = None
) -> PackageFiles:
    """Read one project; paths of its settings start at `root`. `docs`: the doc blocks of all packages.

    `over`: for a package, the root project's settings. Raises ProjectError at the first error.
    """
    words, doc = settings.words, Docs(settings.name, docs)
    tests = FolderConfig(settings, words.values(), words.descriptions(doc), over)
    properties = _properties(root, settings, doc, tests)
    values = settings.words.values()
    paths = _model_paths(root, settings)
    versions = by_file((v for one in properties.models.values() if (v := one.version)), {p.stem for p, _ in paths})
    models = tuple(_model(file, root, settings, properties, values, over, versions) for file in paths)
    models += _snapshots(root, settings, properties, values, over)
    csv_files = files_under(root, settings.seed_paths, (".csv",))
    seeds = tuple(_seed(path, root, settings, properties, values, over) for path in csv_files)
    data_tests, broken = _tests(root, settings, properties, (*models, *seeds), tests)
    return PackageFiles(
        settings,
        properties,
        tuple(replace(model, error=model.error or broken.get(model.unique_id)) for model in models),
        tuple(replace(seed, error=seed.error or broken.get(seed.unique_id)) for seed in seeds),
        data_tests,
        _macros(root, settings, settings.name if over else None),
        _analyses(root, settings, properties),
        read_functions(
            properties.functions, root, settings.function_paths, settings.name, values, Descriptions(words, doc)
        ),
        _unknown_node_warnings(properties, (*models, *seeds)),
    )


def _properties(root: Path, settings: Settings, docs: Docs, tests: FolderConfig) -> Properties:
    paths = files_under(root, _property_paths(settings), (".yml", ".yaml"))
    # As dbt reads them: without trailing whitespace, so the last block of text does not end in a newline.
    files = tuple(parse_yaml(read_text(path, root).rstrip(), relative(path, root)) for path in paths)
    return parse_properties(files, settings.name, settings.words, docs, tests)


def _property_paths(settings: Settings) -> tuple[str, ...]:
    """Folders whose YAML files describe nodes."""
    folders = (*settings.model_paths, *settings.seed_paths, *settings.macro_paths, *settings.analysis_paths)
    # Folders of data tests with properties. A default `tests/` may hold Python tests, with YAML of other kinds.
    return (
        *folders,
        *settings.function_paths,
        *settings.snapshot_paths,
        *(settings.test_paths if settings.is_dbt or settings.test_paths != ("tests",) else ()),
    )


def _model_paths(root: Path, settings: Settings) -> list[tuple[Path, tuple[str, ...]]]:
    """Each model file with its fqn: project, folders below its model path, name."""
    paths: dict[Path, tuple[str, ...]] = {}
    for folder in settings.model_paths:
        for path in files_under(root, [folder], (".sql", ".py")):
            paths[path] = (settings.name, *path.relative_to(root / folder).with_suffix("").parts)
    return list(paths.items())


def _model(
    file: tuple[Path, tuple[str, ...]],
    root: Path,
    settings: Settings,
    properties: Properties,
    values: ValueRenderer,
    over: Settings | None,
    versions: Mapping[str, Version],
) -> ModelFile:
    path, fqn = file
    where, version = relative(path, root), versions.get(path.stem)
    name = version.name if version else path.stem
    fqn = (*fqn[:-1], version.of, f"v{version.v}") if version else fqn
    _check_name("model", name, where)
    described = properties.models.get(name)
    default = {"materialized": _default_materialization(path, settings)}
    config = merge_config(default, settings.folder_config(settings.models, fqn, values))
    root_config = over.folder_config(over.models, fqn, values) if over else {}
    stronger = (described.config if described else {}).keys() | root_config.keys()
    templates = settings.templates_of(settings.models, fqn)
    text = read_text(path, root)
    if path.suffix == ".sql" and not text.strip() and root_config.get("enabled") is not False:
        warn(Location(where, 1, 1), "the file is empty: its model is left out, as in dbt", "write one SELECT")
        root_config = {**root_config, "enabled": False}
    return ModelFile(
        unique_id=NodeId("model", settings.name, *((version.of, f"v{version.v}") if version else (name,))),
        name=name,
        path=where,
        raw_sql=text,
        yaml_config=merge_config(config, described.config if described else {}),
        columns=described.columns if described else (),
        description=described.description if described else "",
        declared_at=Location(where, 1, 1),
        config_places=described.config_places if described and described.error is None else {},
        column_places=described.column_places if described and described.error is None else {},
        fqn=fqn,
        root_config=root_config,
        column_docs=described.column_docs if described else {},
        described_in=described.declared_at.path if described else None,
        version=version,
        time_spine=described.time_spine if described else None,
        error=described.error if described else None,
        templates={key: text for key, text in templates.items() if key not in stronger},
    )


def _default_materialization(path: Path, settings: Settings) -> str:
    """As in dbt a Python model is a table."""
    if path.suffix.lower() == ".py":
        return "table"
    return "view" if settings.is_dbt else "incremental"


def _seed(
    path: Path,
    root: Path,
    settings: Settings,
    properties: Properties,
    values: ValueRenderer,
    over: Settings | None,
) -> SeedFile:
    name, where = path.stem, relative(path, root)
    _check_name("seed", name, where)
    described = properties.seeds.get(name)
    fqn = (settings.name, *_folders(path, root, settings.seed_paths), name)
    config = merge_config(settings.folder_config(settings.seeds, fqn, values), described.config if described else {})
    config = merge_config(config, over.folder_config(over.seeds, fqn, values)) if over else config
    if config.get("frozen_before") is not None and config.get("enabled") is not False:
        by_settings = settings.place_of(settings.seeds, fqn, "frozen_before")
        by_root = over.place_of(over.seeds, fqn, "frozen_before") if over else None
        place = (described.config_places.get("frozen_before") if described else None) or by_settings or by_root
        hint = "leave it out; a model over the seed can have them"
        message = f"frozen_before of the seed {name}: its table is its file's rows, none of which are frozen"
        raise ProjectError(message, location=place or Location(where, 1, 1), hint=hint)
    declared = {c.name: c.type for c in (described.columns if described else ()) if c.type is not None}
    return SeedFile(
        unique_id=NodeId("seed", settings.name, name),
        name=name,
        path=where,
        config=config,
        column_types={**declared, **seed_column_types(config)},
        description=described.description if described else "",
        declared_types=declared,
        fqn=fqn,
        column_docs=described.column_docs if described else {},
        described_in=described.declared_at.path if described else None,
        error=described.error if described else None,
    )


def seed_column_types(config: Mapping[str, object]) -> dict[str, str]:
    """`column_types` of a seed."""
    types = config.get("column_types")
    return {str(name): str(kind) for name, kind in types.items()} if isinstance(types, Mapping) else {}


def _analyses(root: Path, settings: Settings, properties: Properties) -> tuple[ModelFile, ...]:
    """Queries that are rendered and never run."""
    paths = files_under(root, settings.analysis_paths, (".sql",))
    refuse_duplicates([(path.stem, relative(path, root)) for path in paths])
    return tuple(_analysis(path, root, settings, properties.analyses.get(path.stem)) for path in paths)


def _analysis(path: Path, root: Path, settings: Settings, described: NodeProperties | None) -> ModelFile:
    where = relative(path, root)
    return ModelFile(
        unique_id=NodeId("analysis", settings.name, path.stem),
        name=path.stem,
        path=where,
        raw_sql=read_text(path, root),
        yaml_config=described.config if described else {},
        columns=described.columns if described else (),
        description=described.description if described else "",
        declared_at=Location(where, 1, 1),
        fqn=(settings.name, "analysis", *_folders(path, root, settings.analysis_paths), path.stem),
        column_docs=described.column_docs if described else {},
        described_in=described.declared_at.path if described else None,
        error=described.error if described else None,
    )


def refuse_duplicates(named: list[tuple[str, str]]) -> None:
    """Raise ProjectError if two names, given with their files, are the same."""
    seen: dict[str, str] = {}
    for name, path in named:
        if name in seen:
            hint = "rename one; ref() must find exactly one node"
            raise ProjectError(f"`{name}` is also {seen[name]}", location=Location(path, 1, 1), hint=hint)
        seen[name] = path


def _folders(path: Path, root: Path, bases: Iterable[str]) -> tuple[str, ...]:
    for base in bases:
        if path.is_relative_to(root / base):
            return path.relative_to(root / base).parts[:-1]
    return ()


def _check_name(kind: str, name: str, path: str) -> None:
    if not TableName("s", name).is_path_safe():
        hint = "a name is letters, digits, _ and -; it becomes the table's name"
        raise ProjectError(f"{kind} name {name!r} cannot be a table's name", location=Location(path), hint=hint)


def _tests(
    root: Path,
    settings: Settings,
    properties: Properties,
    nodes: tuple[ModelFile | SeedFile, ...],
    of_tests: FolderConfig,
) -> tuple[tuple[TestFile, ...], dict[str, SqlError]]:
    """The data tests, and the errors of those that nodes declare, by the node's unique id."""
    tests, broken = list(properties.source_tests), dict[str, SqlError]()
    for node, described in _nodes_with_properties(properties, nodes):
        tested = Tested(settings.name, node.unique_id, node.name, _reference(node), None)
        try:
            tests += node_tests(described.node, tested, of_tests) if described.error is None else []
        except ProjectError as error:
            broken[node.unique_id] = as_sql_error(error)
    tests += [_singular_test(path, root, settings, properties, of_tests) for path in _singular_paths(root, settings)]
    return _with_distinct_ids(tests), broken


def _reference(node: ModelFile | SeedFile) -> str:
    version = node.version if isinstance(node, ModelFile) else None
    return f"ref({node.name!r})" if version is None else f"ref({version.of!r}, version={version.v!r})"


def _nodes_with_properties(
    properties: Properties, nodes: tuple[ModelFile | SeedFile, ...]
) -> list[tuple[ModelFile | SeedFile, NodeProperties]]:
    """Nodes with their YAML entries. As in dbt, an entry under the key of another kind adds its data tests too."""
    names = {kind: _names(nodes, kind) for kind in _KEYS}
    distinct = {node.unique_id: node for node in nodes}.values()  # if two files share a name, one is disabled
    return [
        (node, described)
        for node in distinct
        for kind, entries in _by_kind(properties).items()
        if (described := entries.get(node.name)) is not None
        and (kind == node.unique_id.kind or node.name not in names[kind])
    ]


def _snapshots(
    root: Path, settings: Settings, properties: Properties, values: ValueRenderer, over: Settings | None
) -> tuple[ModelFile, ...]:
    """Snapshots are models whose table keeps versions."""
    texts = list(snapshot_blocks(root, settings.snapshot_paths))
    for name, described in properties.snapshots.items():
        relation = described.node.get("relation")
        if relation is not None:
            texts.append(relation_text(name, relation.text("relation"), described.declared_at))
    return tuple(_snapshot(text, root, settings, properties.snapshots.get(text.name), values, over) for text in texts)


def _snapshot(
    text: SnapshotText,
    root: Path,
    settings: Settings,
    described: NodeProperties | None,
    values: ValueRenderer,
    over: Settings | None,
) -> ModelFile:
    _check_name("snapshot", text.name, text.path)
    path = root / text.path
    block = () if path.suffix in (".yml", ".yaml") else (path.stem,)
    fqn = (settings.name, *_folders(path, root, _property_paths(settings)), *block, text.name)
    config = merge_config({"materialized": "snapshot"}, settings.folder_config(settings.snapshots, fqn, values))
    return ModelFile(
        unique_id=NodeId("snapshot", settings.name, text.name),
        name=text.name,
        path=text.path,
        raw_sql=text.raw,
        yaml_config=merge_config(config, described.config if described else {}),
        columns=described.columns if described else (),
        description=described.description if described else "",
        declared_at=text.declared_at,
        config_places=_snapshot_places(described, settings, fqn),
        fqn=fqn,
        root_config=over.folder_config(over.snapshots, fqn, values) if over else {},
        column_docs=described.column_docs if described else {},
        described_in=described.declared_at.path if described else None,
        error=described.error if described else None,
    )


def _snapshot_places(
    described: NodeProperties | None, settings: Settings, fqn: tuple[str, ...]
) -> Mapping[str, Location]:
    """Where properties YAML, or else the settings by folder, have the keys that no snapshot may have."""
    place = settings.place_of(settings.snapshots, fqn, "frozen_before")
    by_settings = {} if place is None else {"frozen_before": place}
    return {**by_settings, **(described.config_places if described and described.error is None else {})}


def _singular_paths(root: Path, settings: Settings) -> list[Path]:
    others = [root / folder / kind for folder in settings.test_paths for kind in ("generic", "fixtures")]
    paths = files_under(root, settings.test_paths, (".sql",))
    return [path for path in paths if not any(path.is_relative_to(folder) for folder in others)]


def _singular_test(
    path: Path, root: Path, settings: Settings, properties: Properties, of_tests: FolderConfig
) -> TestFile:
    where = relative(path, root)
    described = properties.singular_tests.get(path.stem)
    fqn = (settings.name, *of_tests.folders(where), path.stem)
    return TestFile(
        unique_id=NodeId("test", settings.name, path.stem),
        name=path.stem,
        path=where,
        raw_sql=read_text(path, root),
        attached_to=None,
        declared_at=Location(where, 1, 1),
        config=described.config if described else {},
        weaker=of_tests.test_config(fqn),
        fqn=fqn,
        description=described.description if described else "",
        described_in=described.declared_at.path if described else None,
    )


def _with_distinct_ids(tests: list[TestFile]) -> tuple[TestFile, ...]:
    """Add a hash of the call to the id of a test declared again with other settings, and to a short name that is taken.

    Raises ProjectError for a test that is declared twice.
    """
    seen: dict[str, TestFile] = {}
    files: set[tuple[str, str]] = set()
    for test in tests:
        if test.unique_id in seen:
            if test.test_type == "singular" or test.raw_sql == seen[test.unique_id].raw_sql:
                hint = f"the first is declared at {seen[test.unique_id].declared_at}"
                raise ProjectError(f"data test {test.name!r} is declared twice", location=test.declared_at, hint=hint)
            test = replace(test, unique_id=NodeId("test", test.unique_id.package, test.name, _hash_of_call(test)))
        if (test.path, test.short_name) in files and test.test_type == "generic":
            test = replace(test, short_name=f"{test.short_name}_{_hash_of_call(test)}")
        seen[test.unique_id] = test
        files.add((test.path, test.short_name))
    return tuple(seen.values())


def _hash_of_call(test: TestFile) -> str:
    return hashlib.md5(test.raw_sql.encode(), usedforsecurity=False).hexdigest()[:10]


def _macros(root: Path, settings: Settings, package: str | None) -> tuple[MacroFile, ...]:
    folders = (*settings.macro_paths, *(f"{folder}/generic" for folder in settings.test_paths))
    paths = files_under(root, folders, (".sql",))
    return tuple(MacroFile(relative(path, root), read_text(path, root), package) for path in paths)


_KEYS = {"model": "models", "snapshot": "snapshots", "seed": "seeds"}
"""Kinds of nodes and the key of properties files that describes them."""


def _by_kind(properties: Properties) -> Mapping[str, Mapping[str, NodeProperties]]:
    return {"model": properties.models, "snapshot": properties.snapshots, "seed": properties.seeds}


def _names(nodes: Iterable[ModelFile | SeedFile], kind: str) -> set[str]:
    return {node.name for node in nodes if node.unique_id.kind == kind}


def _unknown_node_warnings(properties: Properties, nodes: tuple[ModelFile | SeedFile, ...]) -> tuple[str, ...]:
    """Warnings for properties of nodes that do not exist: dbt only warns, and existing projects must keep working."""
    kinds = {node.name: node.unique_id.kind for node in nodes}
    warnings: list[str] = []
    for kind, entries in _by_kind(properties).items():
        known = _names(nodes, kind)
        for name, entry in entries.items():
            if name in known:
                continue
            if name in kinds:
                what = f"{name!r} is a {kinds[name]}: here it gets its data tests only"
                hint: str | None = f"describe it under {_KEYS[kinds[name]]}:"
            else:
                what = f"there is no {kind} {name!r}; its properties are not used"
                hint = nearest(name, sorted(known))
            warnings.append(f"{entry.declared_at}: {what}" + (f" ({hint})" if hint else ""))
    return tuple(warnings)
