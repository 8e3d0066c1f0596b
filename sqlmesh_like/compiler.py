"""The table of contents: rendered → analyzed → classified → delta. Owns the order in which models are compiled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlmesh_like.analyze.expressions.types import normalize
from sqlmesh_like.analyze.nesting import nesting_errors
from sqlmesh_like.analyze.query_analysis import QueryFacts, analyze
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.snapshot import added_columns
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.render.rendered import InputRef, RenderedModel
from sqlmesh_like.render.table_inputs import is_view


@dataclass
class Compiler:
    """Compiles models in dependency order and remembers what later ones need: columns of tables and queries of views.

    `schemas` are the columns in the lake, by unique id. Without `inlines`, a view is treated as a table of its columns:
    that is enough to bind the models that read it, and saves compiling what is below it.
    """

    schemas: Mapping[str, Schema | None] = field(default_factory=dict)
    inlines: bool = True
    _views: dict[str, QueryFacts] = field(default_factory=dict)
    _derived: dict[str, Schema | None] = field(default_factory=dict)

    def compile(self, model: RenderedModel, fresh: Mapping[str, Schema | None] | None = None) -> CompiledModel:
        """Compile one model; `fresh` schemas override the remembered ones. Raises SqlError."""
        schemas = {ref.unique_id: self._schema(ref) for ref in model.inputs} | dict(fresh or {})
        with nesting_errors(model.path):
            facts = analyze(model, schemas, self._views)
        if self.inlines and is_view(model):
            self._views[model.unique_id] = facts
        self._derived[model.unique_id] = with_versions(model, facts.schema)
        return CompiledModel.of(facts, schemas, self._views)

    def columns(self, ref: InputRef) -> Schema | None:
        """Columns of an input as models compiled from now on see them, None if they are not known."""
        return self._schema(ref)

    def _schema(self, ref: InputRef) -> Schema | None:
        """Columns of an input: those to which its model compiles, with their types in the lake."""
        stored, derived = self.schemas.get(ref.unique_id), self._derived.get(ref.unique_id)
        if derived is None:
            return stored or declared_schema(ref)
        if not stored or stored is derived:
            return derived
        known = {column.name.lower(): column.type for column in stored}
        return tuple(Column(column.name, known.get(column.name.lower()) or column.type) for column in derived)


def compile_after(
    below: Iterable[RenderedModel], model: RenderedModel, schemas: Mapping[str, Schema | None]
) -> CompiledModel:
    """Compile a model after those that it reads. Raises SqlError."""
    compiler = Compiler(schemas)
    for each in below:
        compiler.compile(each)
    return compiler.compile(model)


def with_versions(model: RenderedModel, schema: Schema | None) -> Schema | None:
    """Columns of a model's table, given those of its query: a snapshot adds some."""
    if schema is None or model.config.snapshot is None:
        return schema
    return (*schema, *added_columns(model.config.snapshot))


def declared_schema(ref: InputRef) -> Schema | None:
    """A source's columns from YAML if all have a type: a list without types may be a partial one, for docs.

    Types are in Spark's short spelling, as rules compare them: `DECIMAL(10, 2)` is `decimal(10,2)`.
    """
    is_whole = ref.kind == "source" and all(column.type for column in ref.declared)
    return tuple(map(_with_short_type, ref.declared)) if ref.declared and is_whole else None


def _with_short_type(column: Column) -> Column:
    type_ = column.type or ""
    return column if "<" in type_ else Column(column.name, normalize(type_))  # names of fields keep their case
