"""The relations that `ref()`, `source()` and `this` mean. Owns finding a node by name; `naming` owns schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlmesh_like.errors import nearest
from sqlmesh_like.names import TableName
from sqlmesh_like.project.versions import Version
from sqlmesh_like.render.jinja.template_errors import TemplateFault
from sqlmesh_like.render.rendered import InputRef, RefCall
from sqlmesh_like.sql_text import spark_identifier


class MissingNode(TemplateFault):
    """A `ref` or `source` names a node that does not exist."""


class DisabledNode(MissingNode):
    """A `ref` names a node that is disabled."""


@dataclass(frozen=True)
class _Shown:
    """Which parts of a relation's name are printed, and which of them with quotes."""

    schema: bool = True
    identifier: bool = True
    quotes_schema: bool = True
    quotes_identifier: bool = True


class TemplateRelation(Mapping[str, object]):
    """A table in a template: prints as its quoted name, and has dbt's attributes, also as a mapping of them.

    As in dbt, only relations that a query to the lake returned have a type: that of `ref()`, `source()` and `this` is
    None. A warehouse has no databases above schemas.
    """

    def __init__(self, table: TableName, type: str | None = None, shown: _Shown | None = None) -> None:
        self._table, self._shown = table, shown or _Shown()
        self.database = None
        self.schema = table.schema
        self.identifier = self.name = self.table = table.identifier or None
        self.type = None if type is None else str(type)
        self.is_table, self.is_view, self.is_cte = (self.type == kind for kind in ("table", "view", "cte"))
        self.metadata = {"type": "SparkRelation"}

    @property
    def path(self) -> TemplateRelation:
        """Its parts by name."""
        return self

    def __str__(self) -> str:
        shown = self._shown
        schema = spark_identifier(self.schema) if shown.quotes_schema else self.schema
        identifier = self.identifier or ""
        quoted = spark_identifier(identifier) if shown.quotes_identifier and identifier else identifier
        parts = [schema if shown.schema and self.schema else "", quoted if shown.identifier else ""]
        return ".".join(filter(None, parts))

    def render(self) -> str:
        return str(self)

    def include(self, database: bool = True, schema: bool = True, identifier: bool = True) -> TemplateRelation:
        """The relation with only the requested parts of its name."""
        del database
        return self._with(replace(self._shown, schema=schema, identifier=identifier))

    def quote(self, database: bool = True, schema: bool = True, identifier: bool = True) -> TemplateRelation:
        """The relation with quotes around only the requested parts of its name."""
        del database
        return self._with(replace(self._shown, quotes_schema=schema, quotes_identifier=identifier))

    def replace_path(self, database: object = None, **parts: str | None) -> TemplateRelation:
        """The relation with these parts of its name replaced."""
        del database
        table = TableName(parts.get("schema", self.schema) or "", parts.get("identifier", self.identifier) or "")
        return TemplateRelation(table, self.type, self._shown)

    def incorporate(
        self, path: Mapping[str, str] | None = None, type: str | None = None, **_more: object
    ) -> TemplateRelation:
        other = self.replace_path(**{key: value for key, value in (path or {}).items() if value is not None})
        return TemplateRelation(other._table, self.type if type is None else type, self._shown)

    def without_identifier(self) -> TemplateRelation:
        return self.include(identifier=False).replace_path(identifier=None)

    def matches(self, database: object = None, schema: str | None = None, identifier: str | None = None) -> bool:
        """Whether the given parts are those of its name, whatever their case."""
        del database
        pairs = ((schema, self.schema), (identifier, self.identifier or ""))
        return all(given is None or str(given).lower() == own.lower() for given, own in pairs)

    def information_schema(self, view_name: str | None = None) -> str:
        """The name of the information schema, which only queries by templates can read."""
        return ".".join(["INFORMATION_SCHEMA", *([view_name] if view_name else [])])

    def _with(self, shown: _Shown) -> TemplateRelation:
        return TemplateRelation(self._table, self.type, shown)

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
    """A table without its rows before `begin`: what a microbatch model reads, as dbt filters its inputs."""

    def __init__(self, table: TableName, event_time: str, begin: str) -> None:
        super().__init__(table)
        self._filter = f"{event_time} >= '{begin}'"

    def __str__(self) -> str:
        return f"(select * from {self._table.sql()} where {self._filter})"


_RELATION_KEYS = ("database", "schema", "identifier", "name", "type", "metadata")


class RelationClass:
    """`api.Relation` of templates."""

    Table, View, CTE, External = "table", "view", "cte", "external"

    def create(
        self,
        database: object = None,
        schema: str | None = None,
        identifier: str | None = None,
        type: str | None = None,
        **_more: object,
    ) -> TemplateRelation:
        del database
        return TemplateRelation(TableName(schema or "", identifier or ""), type)

    def get_relation_type(self, name: str) -> str:
        return str(name)

    def add_ephemeral_prefix(self, name: str) -> str:
        return f"__dbt__cte__{name}"


_EXAMPLES = {"ref": "ref('model')", "source": "source('source', 'table')"}


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
        unless `version` names another. Raises TemplateFault if there is none."""
        if not 1 <= len(names) <= 2 or not all(isinstance(name, str) for name in names):
            raise _wrong_names("ref", "a name, or a project and a name", names)
        name, pattern = names[-1], _call("ref", *names)
        if version is not None or name in self.versions:
            name = self._version(name, version, pattern)
        if len(names) == 2 and names[0] not in (self.project, *self.packages):
            known = nearest(names[0], self.packages) or f"this project is {self.project!r}"
            raise TemplateFault(f"ref names package {names[0]!r}, which is not installed", pattern, known)
        if name in self.nodes and (len(names) == 1 or self.nodes[name].unique_id.package == names[0]):
            asked = RefCall(names[-1], names[0] if len(names) == 2 else None, version)
            return replace(self.nodes[name], asked=asked)
        if name in self.disabled:
            hint = f"enable it in {self.disabled[name]}, or drop the reference"
            raise DisabledNode(f"ref names {name!r}, which is disabled", pattern, hint)
        if sources := [source for source, table in self.sources if table == name]:
            hint = f"{name!r} is a table of a source: write source('{sources[0]}', '{name}')"
            raise MissingNode(f"no model or seed is named {name!r}", pattern, hint)
        hint = nearest(name, self.nodes) or f"known: {', '.join(sorted(self.nodes)[:20]) or 'none'}"
        raise MissingNode(f"no model or seed is named {name!r}", pattern, hint)

    def _version(self, name: str, wanted: object, pattern: str) -> str:
        known = self.versions.get(name, ())
        if not known:
            raise TemplateFault(f"model {name!r} has no versions", pattern, "ref it by its name alone")
        matches = [one for one in known if (one.is_latest if wanted is None else one.v == str(wanted))]
        if not matches:
            versions = ", ".join(one.v for one in known)
            raise TemplateFault(f"model {name!r} has no version {wanted}", pattern, f"its versions: {versions}")
        return matches[0].name

    def source(self, *names: str) -> InputRef:
        """The table of `source('source', 'name')`. Raises TemplateFault if there is none."""
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise _wrong_names("source", "the names of a source and of its table", names)
        source, name = names
        source_table = self.sources.get((source, name))
        if source_table is not None:
            return source_table
        pattern = _call("source", source, name)
        sources = {known for known, _ in self.sources}
        if source not in sources:
            hint = nearest(source, sources) or f"known sources: {', '.join(sorted(sources)) or 'none'}"
            raise MissingNode(f"no source is named {source!r}", pattern, hint)
        tables = [table for known, table in self.sources if known == source]
        hint = nearest(name, tables) or f"its tables: {', '.join(tables)}"
        raise MissingNode(f"source {source!r} has no table {name!r}", pattern, hint)


def _call(function: str, *names: str) -> str:
    quoted = r"\s*,\s*".join(rf"['\"]{re.escape(str(name))}['\"]" for name in names)
    return rf"\b{function}\s*\(\s*{quoted}"


def _wrong_names(function: str, wanted: str, names: Sequence[object]) -> TemplateFault:
    """The error of a call of ref or source with other arguments than names."""
    unquoted = [word for name in names if (word := getattr(name, "_undefined_name", None))]
    written = ", ".join(repr(word) for name in names if (word := getattr(name, "_undefined_name", name)))
    hint = f"quote it: {function}({written})" if unquoted else f"write {_EXAMPLES[function]}"
    shown = unquoted[0] if unquoted else written or "nothing"
    return TemplateFault(f"{function} takes {wanted}, not {shown}", rf"\b{function}\s*\(", hint)
