"""`profiles.yml` → `Target`. Owns where the file is searched for and what an output may contain.

Values may be secrets: no message of this module repeats one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from sqlmesh_like import secrets
from sqlmesh_like.errors import Location, ProjectError, UsageError, nearest
from sqlmesh_like.project.keys.profile_keys import CATALOG, CATALOGS, OUTPUT, PROFILE, STORE
from sqlmesh_like.project.nodes import DeltaEngine, OnUnproven, ParsedProject, Target
from sqlmesh_like.project.paths import is_address
from sqlmesh_like.project.publishing import read_destinations
from sqlmesh_like.project.reading.files import read_text
from sqlmesh_like.project.reading.hudi_options import read_hudi_options
from sqlmesh_like.project.reading.session_settings import FIXED, LOCALE_HINT, changed_setting, foreign_locale
from sqlmesh_like.project.reading.store_settings import StoreSettings, read_store_settings
from sqlmesh_like.project.reading.values import ValueRenderer
from sqlmesh_like.project.reading.yaml_node import YamlNode, parse_yaml

PROFILES_FILE = "profiles.yml"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?")


@dataclass(frozen=True)
class ProfileRequest:
    """What determines a project's profile, known before the rest of its files is read."""

    root: Path
    vars: Mapping[str, object]
    profile_name: str | None


def target_words(target: Target) -> dict[str, object]:
    """`target` of templates, without anything that may be a secret."""
    return {
        "name": target.name,
        "target_name": target.name,
        "profile_name": target.profile,
        "type": target.type,
        "schema": target.schema,
        "database": None,
        "threads": target.threads,
        "warehouse": target.warehouse,
    }


class TargetWords(Mapping[str, object]):
    """`target` of templates in YAML: the profile is read when one of them first uses it."""

    def __init__(self, find: Callable[[], Target]) -> None:
        self._find = find
        self._found: dict[str, object] | None = None

    def _words(self) -> dict[str, object]:
        if self._found is None:
            self._found = target_words(self._find())
        return self._found

    def __getitem__(self, name: str) -> object:
        return self._words()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._words())

    def __len__(self) -> int:
        return len(self._words())


def load_target(
    project: ParsedProject | ProfileRequest,
    profiles_dir: Path | None,
    profile: str | None,
    target: str | None,
    cli_vars: Mapping[str, object],
) -> Target:
    """The chosen output of the project's profile.

    Profile: the argument, else the settings' `profile`, else the only profile of the file. Target: the argument, else
    the profile's `target`, else the only output, else `default`. Raises ProjectError or UsageError that
    lists the known names.
    """
    path = find_profiles(project.root, profiles_dir)
    text = read_text(path, project.root)
    node = parse_yaml(text, _display_path(path, project.root)).private().mapping(PROFILES_FILE)
    secrets.learn_settings(node.value)
    profiles = {name: child for name, child in node.items() if name != "config"}
    values = ValueRenderer({**project.vars, **cli_vars}, secrets=True)
    place = None if profile else _place_of_setting(project.root)
    name = _profile_name(profiles, profile or project.profile_name, path, place)
    body = profiles[name].mapping(f"profile {name!r}")
    return _choose(name, body, target, values, project.root)


def find_profiles(root: Path, profiles_dir: Path | None) -> Path:
    """`profiles.yml` in the given folder, else in `DBT_PROFILES_DIR`, else in the project, else in `~/.dbt`.

    Raises ProjectError if there is none.
    """
    from_environment = os.environ.get("DBT_PROFILES_DIR")
    if profiles_dir is not None or from_environment:
        folders = [profiles_dir or Path(str(from_environment))]
    else:
        folders = [root, Path.home() / ".dbt"]
    for folder in folders:
        if (folder / PROFILES_FILE).is_file():
            return folder / PROFILES_FILE
    looked = " and ".join(_display_path(folder, root) or "." for folder in folders)
    raise ProjectError(f"no {PROFILES_FILE} in {looked}", hint=f"a minimal one, in the project's folder:\n{_MINIMAL}")


_MINIMAL = """    lake:
      target: local
      outputs:
        local: {type: spark, schema: dws, warehouse: warehouse}"""


def _display_path(path: Path, root: Path) -> str:
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else path.as_posix()


def _place_of_setting(root: Path) -> Location | None:
    """Where the project's settings name the profile; None if they do not."""
    for file in ("dbt_project.yml", "pyproject.toml"):
        text = read_text(root / file, root) if (root / file).is_file() else ""
        if setting := re.search(r"(?m)^profile\s*[:=]\s*", text):
            return Location.at(file, text, setting.end())
    return None


def _profile_name(profiles: Mapping[str, YamlNode], wanted: str | None, path: Path, place: Location | None) -> str:
    known = ", ".join(profiles) or "none"
    if wanted is None:
        if len(profiles) != 1:
            raise UsageError(
                f"{path.name} has {len(profiles)} profiles ({known}) and the project names none",
                hint="set profile: in the project's settings, or give --profile",
            )
        return next(iter(profiles))
    if wanted not in profiles:
        hint = nearest(wanted, profiles) or "set profile: in the project's settings, or give --profile"
        raise UsageError(f"profile {wanted!r} is not in {path.name}; it has: {known}", location=place, hint=hint)
    return wanted


def _choose(profile: str, body: YamlNode, wanted: str | None, values: ValueRenderer, root: Path) -> Target:
    replace(PROFILE, what=f"profile {profile!r}").check(body)
    outputs = body.get("outputs")
    if outputs is None or not outputs.mapping("outputs").children:
        raise body.error(f"profile {profile!r} has no outputs", "add outputs: {local: {type: spark, schema: dws}}")
    name = wanted or _default_target(body, outputs, values)
    if name not in outputs.children:
        known = ", ".join(outputs.children)
        hint = nearest(name, outputs.children) or "choose one by -t, or set target: in the profile"
        shown = repr(wanted) if wanted else "of the name under `target:`"
        place = None if wanted else body.children["target"].key_location if "target" in body.children else None
        raise UsageError(f"profile {profile!r} has no target {shown}; it has: {known}", location=place, hint=hint)
    output = values.render(outputs.children[name].mapping(f"output {name!r}"))
    secrets.learn_settings(output.value)
    return _target(profile, name, output, root)


def _default_target(body: YamlNode, outputs: YamlNode, values: ValueRenderer) -> str:
    chosen = body.get("target")
    if chosen is not None:
        return values.render(chosen).text("target")
    return next(iter(outputs.children)) if len(outputs.children) == 1 else "default"


def _target(profile: str, name: str, output: YamlNode, root: Path) -> Target:
    kind = output.get("type")
    if kind is None:
        raise output.error(f"output {name!r} has no type", "add type: spark (or duckdb)")
    OUTPUT.check(output)
    return Target(
        profile=profile,
        name=name,
        type=cast(Literal["spark", "duckdb"], OUTPUT.value(output, "type")),
        schema=str(OUTPUT.value(output, "schema")),
        warehouse=_warehouse(output, root),
        master=str(OUTPUT.value(output, "master")),
        threads=cast(int, OUTPUT.value(output, "threads")),
        catalog=_catalog(output.get("catalog")),
        spark=_spark_settings(output),
        hudi=read_hudi_options(output.get("hudi")),
        options={key: child.value for key, child in output.items() if key not in OUTPUT.keys or key == "catalog"},
        publish=read_destinations(output.get("publish"), root),
        delta_engine=cast(DeltaEngine, OUTPUT.value(output, "delta_engine")),
        on_unproven=_on_unproven(output),
        retention_days=cast(int, OUTPUT.value(output, "retention_days")),
        driver_max_bytes=cast(int, OUTPUT.value(output, "driver_max_bytes")),
        store=_store(output, root),
    )


def _settings(node: YamlNode, key: str) -> Mapping[str, str]:
    child = node.get(key)
    return {} if child is None else child.settings(key)


def _spark_settings(output: YamlNode) -> Mapping[str, str]:
    settings = _settings(output, "spark")
    if name := changed_setting(settings):
        place = output.children["spark"].children[name]
        raise place.error(f"the Spark setting {name} is fixed to {FIXED[name]!r}", "remove it from `spark:`")
    if found := foreign_locale(settings):
        place = output.children["spark"].children[found[0]]
        raise place.error(f"{found[1]}: Java's locale is fixed to en-US", LOCALE_HINT)
    return settings


def _store(output: YamlNode, root: Path) -> StoreSettings:
    node = output.get("store")
    if node is not None:
        STORE.check(node)
    given = {} if node is None else {key: STORE.value(node, key) for key in node.children}
    warehouse = _warehouse(output, root)
    return read_store_settings(given, _settings(output, "spark"), warehouse)


def _on_unproven(output: YamlNode) -> OnUnproven:
    node = output.get("on_unproven")
    if node is not None and output.children["type"].value != "duckdb":
        raise node.error("on_unproven is for outputs of type duckdb", "leave it out: Spark computes every query")
    return cast(OnUnproven, OUTPUT.value(output, "on_unproven"))


def _catalog(node: YamlNode | None) -> str:
    if node is None:
        return "none"
    if isinstance(node.value, dict):
        CATALOG.check_keys(node)
        for name, child in node.items():
            uris = str(child.value.get("uri") or "") if isinstance(child.value, dict) else ""
            if not all(map(is_address, uris.split(","))):
                raise child.error(f"uri of {name} is not an address", "write it as thrift://host:9083")
        return next(iter(node.children), "none")
    return node.choice("catalog", CATALOGS)


def _warehouse(output: YamlNode, root: Path) -> str:
    """A URI unchanged; a path as an absolute one, resolved against the project's folder."""
    text = str(OUTPUT.value(output, "warehouse"))
    if "\0" in text or not is_address(text):
        raise output.children["warehouse"].error("warehouse is not an address or a path")
    # Not Path.expanduser, which raises RuntimeError for a user that is not there.
    return text if _URI.match(text) else str(root / os.path.expanduser(text))  # noqa: PTH111
