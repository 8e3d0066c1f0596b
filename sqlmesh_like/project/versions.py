"""Versions of models: `versions:` of properties YAML. Owns spelling them out, each as the entry of a model of its own.

As in dbt: https://docs.getdbt.com/docs/mesh/govern/model-versions. Version `v` of the model `m` is the file
`m_v<v>.sql`, or what `defined_in` names; the latest one may be `m.sql`. Here it is known as `m_v<v>`; so is its table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlmesh_like.project.reading.yaml_node import YamlNode

_OVER = ("description", "access", "docs")
_NOT_KEPT = ("versions", "latest_version", "columns", "config")


@dataclass(frozen=True)
class Version:
    """One version of a model."""

    of: str
    v: str
    latest: str
    defined_in: str

    @property
    def name(self) -> str:
        """The name of its node, and of its table unless it has an alias.

        >>> Version("dim", "1.1", "2", "dim_v1").name
        'dim_v1_1'
        """
        return f"{self.of}_v{self.v.replace('.', '_')}"

    @property
    def is_latest(self) -> bool:
        return self.v == self.latest

    @property
    def is_after_latest(self) -> bool:
        """Whether it is a prerelease: newer than the latest version."""
        return rank(self.v) > rank(self.latest)


def rank(v: str) -> tuple[int, float, str]:
    """The order of versions: numbers by size, before all others.

    >>> sorted(["10", "9", "beta"], key=rank)
    ['9', '10', 'beta']
    """
    try:
        return (0, float(v), v)
    except ValueError:
        return (1, 0.0, v)


def expand_versions(node: YamlNode) -> list[tuple[YamlNode, Version]]:
    """The entry of each version of a model. Raises ProjectError at a wrong key or value."""
    name, listed = node.children["name"].text("name"), node.children["versions"].sequence("versions")
    for one in listed:
        if one.get("v") is None:
            raise one.error(f"a version of {name!r} has no v", "write - v: 1")
    known = [one.children["v"].text("v") for one in listed]
    if twice := [one for one, v in zip(listed, known, strict=True) if known.count(v) > 1]:
        raise twice[1].error(f"version {twice[1].children['v'].value} of {name!r} is there twice")
    given = node.get("latest_version")
    latest = max(known, key=rank) if given is None else given.text("latest_version")
    if given is not None and latest not in known:
        raise given.error(f"latest_version {latest} of {name!r} is none of its versions: {', '.join(known)}")
    return [(_entry(node, one), _version(name, one, latest)) for one in listed]


def _version(name: str, one: YamlNode, latest: str) -> Version:
    v, file = one.children["v"].text("v"), one.get("defined_in")
    return Version(name, v, latest, f"{name}_v{v}" if file is None else file.text("defined_in"))


def by_file(versions: Iterable[Version], stems: Collection[str]) -> Mapping[str, Version]:
    """The version that each file holds, by the file's name without suffix."""
    versions_by_file: dict[str, Version] = {}
    for version in versions:
        bare = version.defined_in not in stems and version.is_latest and version.of in stems
        versions_by_file[version.of if bare else version.defined_in] = version
    return versions_by_file


def _entry(node: YamlNode, version: YamlNode) -> YamlNode:
    children = {key: child for key, child in node.items() if key not in _NOT_KEPT}
    children |= {key: child for key, child in version.items() if key in _OVER}
    tests = {key: child for key, child in version.items() if key in ("tests", "data_tests")}
    if tests:
        children = {**{key: child for key, child in children.items() if key not in ("tests", "data_tests")}, **tests}
    configs = [config for one in (node, version) if (config := one.get("config")) is not None]
    if configs:
        merged = {key: child for config in configs for key, child in config.mapping("config").items()}
        children["config"] = _mapping(merged, configs[-1])
    listed = version.elements_of("columns")
    rules = [one for one in listed if "include" in one.children or "exclude" in one.children]
    if len(rules) > 1:
        raise rules[1].error("columns of a version have more than one include or exclude", "put them in one entry")
    said = {_name(one): one for one in listed if one not in rules}
    taken = [one for one in node.elements_of("columns") if _is_taken(_name(one), rules)]
    columns = (*(said.pop(_name(one), one) for one in taken), *said.values())
    if columns:
        children["columns"] = YamlNode([one.value for one in columns], node.location, node.key_location, {}, columns)
    return _mapping(children, version)


def _is_taken(name: str, rules: list[YamlNode]) -> bool:
    if not rules:
        return True
    wanted, left_out = rules[0].texts_of("include", ("all",)), rules[0].texts_of("exclude")
    return (name in wanted or bool({"all", "*"} & set(wanted))) and name not in left_out


def _name(column: YamlNode) -> str:
    child = column.mapping("a column").get("name")
    if child is None:
        raise column.error("a column needs 'name'", "add name: …")
    return child.text("name")


def _mapping(children: Mapping[str, YamlNode], place: YamlNode) -> YamlNode:
    value = {key: child.value for key, child in children.items()}
    return YamlNode(value, place.location, place.key_location, children)
