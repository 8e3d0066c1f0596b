"""dbt packages of a project: what `packages.yml` requests, and what is installed. Owns both; `sml deps` fetches them.

Format: https://docs.getdbt.com/docs/build/packages, its local, git and tarball forms. A package is a project of its
own: it keeps its name, its folder config and its variables, over which those of the root project win.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sqlmesh_like import secrets as secret_values
from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.project.keys.package_keys import PACKAGE, PACKAGES
from sqlmesh_like.project.paths import is_address, leads_out
from sqlmesh_like.project.reading.file_dependencies import record_file, record_folder
from sqlmesh_like.project.reading.files import read_text
from sqlmesh_like.project.reading.values import ValueRenderer
from sqlmesh_like.project.reading.yaml_node import YamlNode, parse_yaml
from sqlmesh_like.project.settings import DBT_FILE, Settings, load_settings

PACKAGE_FILES = ("packages.yml", "dependencies.yml")
_KINDS = ("local", "git", "tarball")


@dataclass(frozen=True)
class WantedPackage:
    """One entry of `packages.yml`. `where` is a path, an address of a repository or tarball, or a name of the hub."""

    kind: Literal["local", "git", "tarball", "hub"]
    where: str
    declared_at: Location
    revision: str | None = None
    subdirectory: str | None = None

    @property
    def hub_name(self) -> str:
        """The package's own name, from its name in the hub: `dbt-labs/dbt_utils`."""
        return self.where.rpartition("/")[2]


def wanted_packages(
    folder: Path, root: Path, variables: Mapping[str, object], *, secrets: bool = True
) -> tuple[WantedPackage, ...]:
    """The packages that the project in `folder` requests, in order. Raises ProjectError at a wrong entry.

    `secrets`: whether its file may use secrets. That of a package may not, since others choose its addresses.
    """
    for name in PACKAGE_FILES:
        record_file(folder / name)
    path = next((folder / name for name in PACKAGE_FILES if (folder / name).is_file()), None)
    if path is None:
        return ()
    shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    node = parse_yaml(read_text(path, root), shown).mapping(path.name)
    replace(PACKAGES, what=path.name).check(node)
    listed = node.get("packages")
    values = ValueRenderer(variables, secrets=secrets)
    entries = [values.render(entry) for entry in (listed.sequence("packages") if listed else ())]
    for entry in entries:
        secret_values.learn_settings(entry.value)
    return tuple(map(_parse_package, entries))


def installed_packages(root: Path, settings: Settings, cli_vars: Mapping[str, object]) -> tuple[Settings, ...]:
    """Settings of the packages in the install folder, by name; their paths start at the root project.

    Raises ProjectError if fewer packages are installed than `packages.yml` requests.
    """
    folder = root / settings.packages_path
    record_folder(folder)
    folders = sorted(path for path in folder.iterdir() if (path / DBT_FILE).is_file()) if folder.is_dir() else []
    wanted = wanted_packages(root, root, settings.vars)
    if len(folders) < len(wanted):
        hint = f"`sml deps` fetches them into {settings.packages_path}/"
        raise ProjectError("the packages of this project are not installed", location=wanted[0].declared_at, hint=hint)
    if not folders:
        return ()
    packages = tuple(_package_settings(path, settings, cli_vars) for path in folders)
    for package in packages:
        if package.name == settings.name:
            raise ProjectError(f"package {package.name!r} has the project's own name", location=Location(package.file))
    return packages


def _parse_package(node: YamlNode) -> WantedPackage:
    PACKAGE.check(node)
    kinds = [kind for kind in _KINDS if kind in node.children]
    if "package" in node.children:
        return WantedPackage("hub", node.children["package"].text("package"), node.children["package"].location)
    if len(kinds) != 1:
        raise node.error("a package is one of local, git and tarball", "e.g. - local: ../shared")
    kind = kinds[0]
    address = node.children[kind]
    texts = {key: child.text(key) for key, child in node.items() if key in ("revision", "subdirectory")}
    for key, text in {kind: address.text(kind), **texts}.items():
        if "\0" in text:  # no path has one, and no argument of git
            raise node.children[key].error(f"{key} must not contain NUL")
    if not is_address(address.text(kind)):
        raise address.error(f"{kind} is not an address or a path")
    inside = texts.get("subdirectory")
    if inside is not None and leads_out(inside):
        raise node.children["subdirectory"].error("subdirectory leads out of the package")
    match kind:
        case "git":
            return WantedPackage("git", address.text("git"), node.location, texts.get("revision"), inside)
        case "tarball":
            return WantedPackage("tarball", address.text("tarball"), node.location)
        case _:
            return WantedPackage("local", address.text("local"), node.location)


def _package_settings(path: Path, settings: Settings, cli_vars: Mapping[str, object]) -> Settings:
    own = load_settings(path, {}, shown=f"{settings.packages_path}/{path.name}/{DBT_FILE}")
    given = settings.vars.get(own.name)
    above = given if isinstance(given, Mapping) else {}
    prefix = f"{settings.packages_path}/{path.name}"
    return replace(
        own,
        is_package=True,
        model_paths=_below(prefix, own.model_paths),
        snapshot_paths=_below(prefix, own.snapshot_paths),
        seed_paths=_below(prefix, own.seed_paths),
        test_paths=_below(prefix, own.test_paths),
        macro_paths=_below(prefix, own.macro_paths),
        function_paths=_below(prefix, own.function_paths),
        docs_paths=_below(prefix, own.docs_paths),
        analysis_paths=(),  # those are for the package's author
        vars={**own.vars, **settings.vars, **above, **cli_vars},
    )


def _below(prefix: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{prefix}/{path}" for path in paths)
