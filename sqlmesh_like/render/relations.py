"""What `ref()`, `source()` and `this` stand for. Owns finding a node by name; schemas are `naming`'s matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlmesh_like.errors import nearest
from sqlmesh_like.names import TableName
from sqlmesh_like.project.versions import Version
from sqlmesh_like.render.rendered import InputRef, RefCall
from sqlmesh_like.render.templates import TemplateFault
from sqlmesh_like.sql_text import spark_identifier


class TemplateRelation(Mapping[str, object]):
    """A table in a template: prints as its quoted name, and has dbt's attributes, also as a mapping of them."""

    def __init__(self, table: TableName) -> None:
        self._table = table
        self.database = None
        self.schema = table.schema
        self.identifier = self.name = self.table = table.identifier
        self.type = "table"
        self.is_table, self.is_view, self.is_cte = True, False, False
        self.metadata = {"type": "SparkRelation"}

    def __str__(self) -> str:
        return self._table.sql()

    def render(self) -> str:
        return str(self)

    def include(self, database: bool = True, schema: bool = True, identifier: bool = True) -> str:
        """Those parts of the name that are asked for; a warehouse has no databases."""
        del database
        parts = [*([self.schema] if schema else []), *([self.identifier] if identifier else [])]
        return ".".join(map(spark_identifier, parts))

    def quote(self, **_parts: bool) -> TemplateRelation:
        return self

    def incorporate(self, path: Mapping[str, str] | None = None, **_more: object) -> TemplateRelation:
        given = path or {}
        made = TableName(given.get("schema", self.schema), given.get("identifier", self.identifier))
        return TemplateRelation(made)

    def without_identifier(self) -> str:
        return self.include(identifier=False)

    def __getitem__(self, name: str) -> object:
        if name not in _RELATION_KEYS:
            raise KeyError(name)
        value: object = getattr(self, name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(_RELATION_KEYS)

    def __len__(self) -> int:
        return len(_RELATION_KEYS)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class RelationSince(TemplateRelation):
    """A table without its rows from before a moment: what a microbatch model reads, as dbt cuts its inputs."""

    def __init__(self, table: TableName, event_time: str, begin: str) -> None:
        super().__init__(table)
        self._filter = f"{event_time} >= '{begin}'"

    def __str__(self) -> str:
        return f"(select * from {self._table.sql()} where {self._filter})"


_RELATION_KEYS = ("database", "schema", "identifier", "name", "type", "metadata")


class DisabledReference(TemplateFault):
    """`ref()` names a node that is disabled. As in dbt a data test that does is left out."""


@dataclass(frozen=True)
class RelationRegistry:
    """All nodes that a template can name: models and seeds by name, source tables by source and name."""

    project: str
    nodes: Mapping[str, InputRef]
    sources: Mapping[tuple[str, str], InputRef]
    disabled: Mapping[str, str]  # name → file
    packages: tuple[str, ...] = ()
    versions: Mapping[str, tuple[Version, ...]] = field(default_factory=dict)  # of models that have some
    event_times: Mapping[str, str] = field(default_factory=dict)  # by unique id

    def ref(self, *names: str, version: object = None) -> InputRef:
        """The model or seed of `ref('name')` or `ref('project', 'name')`; of a model with versions the latest one
        unless `version` names another. Raises TemplateFault where there is none."""
        if not 1 <= len(names) <= 2 or not all(isinstance(name, str) for name in names):
            unquoted = next((word for name in names if (word := getattr(name, "_undefined_name", None))), None)
            hint = None if unquoted is None else f"quote it: ref('{unquoted}')"
            shown = repr(names) if unquoted is None else unquoted
            raise TemplateFault(f"ref takes a name, or a project and a name, not {shown}", r"\bref\s*\(", hint)
        name, pattern = names[-1], _call("ref", *names)
        if version is not None or name in self.versions:
            name = self._version(name, version, pattern)
        if len(names) == 2 and names[0] not in (self.project, *self.packages):
            known = nearest(names[0], self.packages) or f"this project is {self.project!r}"
            raise TemplateFault(f"ref names package {names[0]!r}, which is not installed", pattern, known)
        if name in self.nodes and (len(names) == 1 or self.nodes[name].unique_id.split(".")[1] == names[0]):
            asked = RefCall(names[-1], names[0] if len(names) == 2 else None, version)
            return replace(self.nodes[name], asked=asked)
        if name in self.disabled:
            hint = f"enable it in {self.disabled[name]}, or drop the reference"
            raise DisabledReference(f"ref names {name!r}, which is disabled", pattern, hint)
        hint = nearest(name, self.nodes) or f"known: {', '.join(sorted(self.nodes)[:20]) or 'none'}"
        raise TemplateFault(f"no model or seed is named {name!r}", pattern, hint)

    def _version(self, name: str, wanted: object, pattern: str) -> str:
        known = self.versions.get(name, ())
        if not known:
            raise TemplateFault(f"model {name!r} has no versions", pattern, "ref it by its name alone")
        matches = [one for one in known if (one.is_latest if wanted is None else one.v == str(wanted))]
        if not matches:
            versions = ", ".join(one.v for one in known)
            raise TemplateFault(f"model {name!r} has no version {wanted}", pattern, f"its versions: {versions}")
        return matches[0].name

    def source(self, source: str, name: str) -> InputRef:
        """The table of `source('source', 'name')`. Raises TemplateFault where there is none."""
        source_table = self.sources.get((source, name))
        if source_table is not None:
            return source_table
        pattern = _call("source", source, name)
        sources = {known for known, _ in self.sources}
        if source not in sources:
            hint = nearest(source, sources) or f"known sources: {', '.join(sorted(sources)) or 'none'}"
            raise TemplateFault(f"no source is named {source!r}", pattern, hint)
        tables = [table for known, table in self.sources if known == source]
        hint = nearest(name, tables) or f"its tables: {', '.join(tables)}"
        raise TemplateFault(f"source {source!r} has no table {name!r}", pattern, hint)


def _call(function: str, *names: str) -> str:
    quoted = r"\s*,\s*".join(rf"['\"]{re.escape(str(name))}['\"]" for name in names)
    return rf"\b{function}\s*\(\s*{quoted}"
