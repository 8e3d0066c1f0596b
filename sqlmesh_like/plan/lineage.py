"""Column lineage through a project: from a model's column up to the sources, through views and tables alike.

Owns walking models; `analyze.algebra.column_lineage` and `analyze.text_lineage` trace one query each. Needs no lake,
but uses the columns of existing tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlmesh_like.analyze.algebra.column_lineage import ColumnLineage, ColumnOrigin, How, Influences, stronger, trace
from sqlmesh_like.analyze.query_analysis import analyze
from sqlmesh_like.analyze.text_lineage import trace_text
from sqlmesh_like.compiler import declared_schema, with_versions
from sqlmesh_like.errors import SqlError, UsageError, nearest
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.render.rendered import InputRef, RenderedModel, RenderedProject


@dataclass(frozen=True)
class TracedColumn:
    """A column, how it enters the value of the column derived from it (None: the column whose lineage was requested),
    and its own origins. A column of a source or seed has none."""

    unique_id: str
    name: str
    type: str | None
    how: How | None
    origins: tuple[TracedColumn, ...]
    influences: Influences
    is_complete: bool

    @property
    def sources(self) -> Mapping[ColumnOrigin, How]:
        """Columns at the upstream end of every path, and how their values are transformed along it."""
        if not self.origins:
            return {ColumnOrigin(self.unique_id, self.name): self.how} if self.how is not None else {}
        origins: dict[ColumnOrigin, How] = {}
        for origin in self.origins:
            for end, how in origin.sources.items():
                whole = stronger(how, self.how or how)
                origins[end] = stronger(origins.get(end, whole), whole)
        return dict(sorted(origins.items()))


@dataclass
class Lineage:
    """Traces columns of one project. `schemas`: columns of sources and seeds by unique id, where the lake has them.

    With `is_lenient` the columns of a model whose SQL is wrong are those that it declares.
    """

    rendered: RenderedProject
    schemas: Mapping[str, Schema | None]
    is_lenient: bool = False
    _known: dict[str, tuple[ColumnLineage, ...] | None] = field(default_factory=dict)
    _models: dict[str, RenderedModel] = field(default_factory=dict)

    def direct(self, model: RenderedModel) -> tuple[ColumnLineage, ...] | None:
        """Columns of a model with the columns of its inputs that they come from; None where a star hides them."""
        return self._of(model)

    def columns(self, model: RenderedModel) -> tuple[TracedColumn, ...]:
        """All columns of a model. Raises UsageError where a star hides them, SqlError for wrong SQL."""
        traced = self._of(model)
        if traced is None:
            missing = [ref for ref in model.inputs if self._schema(ref) is None]
            names = ", ".join(str(ref.table) for ref in missing) or "its inputs"
            hint = "run `sml ingest` first, or declare the columns with their types in the source's YAML"
            raise UsageError(f"{model.path}: the columns of {names} are not known yet", hint=hint)
        return tuple(self._trace_column(model.unique_id, column, None) for column in traced)

    def column(self, model: RenderedModel, name: str) -> TracedColumn:
        """One column of a model. Raises UsageError with the nearest name."""
        known = self.columns(model)
        for column in known:
            if column.name.lower() == name.lower():
                return column
        names = [column.name for column in known]
        hint = nearest(name, names) or f"its columns: {', '.join(names)}"
        raise UsageError(f"the model {model.name!r} has no column {name!r}", hint=hint)

    def _trace_column(self, unique_id: str, column: ColumnLineage, how: How | None) -> TracedColumn:
        origins = tuple(self._origin(origin, entering) for origin, entering in column.origins.items())
        return TracedColumn(
            unique_id, column.name, column.type, how, origins, column.influences, column.is_complete
        )  # fmt: skip

    def _origin(self, origin: ColumnOrigin, how: How) -> TracedColumn:
        above = self._model(origin.input_id)
        for column in (self._of(above) or ()) if above else ():
            if column.name.lower() == origin.column.lower():
                return self._trace_column(origin.input_id, column, how)
        return TracedColumn(origin.input_id, origin.column, self._type(origin), how, (), {}, is_complete=above is None)

    def _of(self, model: RenderedModel) -> tuple[ColumnLineage, ...] | None:
        if model.python is not None or model.asks_lake:  # how it uses its inputs is known only at run time
            return _contract_type(model)
        if model.unique_id not in self._known:
            try:
                self._known[model.unique_id] = self._by_query(model)
            except SqlError:
                if not self.is_lenient:
                    raise
                self._known[model.unique_id] = _contract_type(model)
        return self._known[model.unique_id]

    def _by_query(self, model: RenderedModel) -> tuple[ColumnLineage, ...] | None:
        schemas: dict[str, Schema | None] = {ref.unique_id: self._schema(ref) for ref in model.inputs}
        # Views are not inlined: each is a step of its own.
        facts = analyze(model, schemas, {})
        traced = trace(facts.relation) if facts.relation else trace_text(model, schemas)
        if traced is None:
            return None
        # Columns that a snapshot adds to those of its query; none derives from an input column alone.
        added = (ColumnLineage(column.name, column.type, {}, {}) for column in with_versions(model, ()) or ())
        return (*traced, *added)

    def _schema(self, ref: InputRef) -> Schema | None:
        above = self._model(ref.unique_id)
        if above is None:
            return self.schemas.get(ref.unique_id) or declared_schema(ref)
        traced = self._of(above)
        return tuple(Column(column.name, column.type) for column in traced) if traced else None

    def _type(self, origin: ColumnOrigin) -> str | None:
        known = self.schemas.get(origin.input_id) or ()
        return next((column.type for column in known if column.name.lower() == origin.column.lower()), None)

    def _model(self, unique_id: str) -> RenderedModel | None:
        if not self._models:
            self._models.update({model.unique_id: model for model in self.rendered.models})
        return self._models.get(unique_id)


def _contract_type(model: RenderedModel) -> tuple[ColumnLineage, ...] | None:
    """The declared columns of a model whose query is not known; None if none are declared."""
    return tuple(ColumnLineage(c.name, c.type, {}, {}, is_complete=False) for c in model.declared) or None
