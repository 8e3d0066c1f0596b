"""The table of contents: rendered → analyzed → classified → delta. Owns the order of stages and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType

from sqlglot import exp

from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.analyze.expressions.types import normalize
from sqlmesh_like.analyze.nesting import nesting_errors
from sqlmesh_like.analyze.query_analysis import QueryFacts, analyze, tables_read
from sqlmesh_like.classify.strategy import Classification, classify
from sqlmesh_like.delta.program import TablePlan
from sqlmesh_like.delta.snapshot import added_columns
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.render.rendered import InputRef, RenderedModel


@dataclass(frozen=True)
class Analysis:
    """The facts of a model's query, and the columns and views that they follow from."""

    facts: QueryFacts
    schemas: Mapping[str, Schema | None]
    views: Mapping[str, QueryFacts]


@dataclass(frozen=True)
class CompiledModel:
    """Everything that follows from a model's text and the schemas of its inputs.

    `inputs` are the tables that it reads, as views are inlined; `analyze` is called where more is asked of its query.
    `known`: the fingerprint of a query that reads no clock, where it has been computed before.
    """

    model: RenderedModel
    inputs: tuple[InputRef, ...]
    analyze: Callable[[], Analysis] = field(compare=False, repr=False)
    known: str | None = None

    @staticmethod
    def of(
        facts: QueryFacts,
        schemas: Mapping[str, Schema | None] = MappingProxyType({}),
        views: Mapping[str, QueryFacts] = MappingProxyType({}),
    ) -> CompiledModel:
        """The model that has been analyzed."""
        analysis = Analysis(facts, schemas, views)
        return CompiledModel(facts.model, facts.inputs, lambda: analysis)

    @property
    def facts(self) -> QueryFacts:
        """What is known of its query. Raises SqlError where it has not been analyzed yet and is wrong."""
        return self.analyze().facts

    @property
    def clock_calls(self) -> list[exp.Expr]:
        """Calls of its query that read the clock."""
        return [] if self.known is not None else clock_calls(self.facts.tree)

    @cached_property
    def advised(self) -> Classification:
        """The classification, with advice that has been tried on the query; computed where it is printed."""
        from sqlmesh_like.classify.advice.trial import with_tried_advice

        known = self.analyze()
        with nesting_errors(self.model.path):
            return with_tried_advice(
                known.facts, self.classification, lambda model: analyze(model, known.schemas, known.views)
            )

    @cached_property
    def classification(self) -> Classification:
        """How the model can be maintained; computed lazily, since binding alone does not need it."""
        with nesting_errors(self.model.path):
            return classify(self.facts)

    @cached_property
    def table(self) -> TablePlan:
        """What is executed; computed and imported lazily, since most models of a run have nothing to do."""
        from sqlmesh_like.delta.compile import compile_table

        with nesting_errors(self.model.path):
            return compile_table(self.facts, self.classification)


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
        if self.inlines and _is_view(model):
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


def compile_later(
    below: Sequence[RenderedModel], model: RenderedModel, schemas: Mapping[str, Schema | None], known: str
) -> CompiledModel:
    """Do the same for a model whose fingerprint is known, but not before its facts are asked for."""
    views: dict[str, tuple[InputRef, ...]] = {}
    for view in filter(_is_view, below):
        views[view.unique_id] = tables_read(view.inputs, views)
    analyze = cache(lambda: compile_after(below, model, schemas).analyze())
    return CompiledModel(model, tables_read(model.inputs, views), analyze, known)


def _is_view(model: RenderedModel) -> bool:
    return model.config.materialized in ("view", "ephemeral")


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
