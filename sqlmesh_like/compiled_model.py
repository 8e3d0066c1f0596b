"""A model and what follows from its text and the columns of its inputs. Owns that it is computed where it is needed.

Nothing that reads SQL is imported here: most models of a run have nothing to do, and then what an earlier call has
computed is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from sqlmesh_like.names import Schema
from sqlmesh_like.render.rendered import InputRef, RenderedModel
from sqlmesh_like.render.table_inputs import is_view, tables_read

if TYPE_CHECKING:
    from sqlglot import exp

    from sqlmesh_like.analyze.query_analysis import QueryFacts
    from sqlmesh_like.classify.strategy import Classification
    from sqlmesh_like.delta.program import TablePlan


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
        if self.known is not None:
            return []
        from sqlmesh_like.analyze.expressions.clock import clock_calls

        return clock_calls(self.facts.tree)

    @cached_property
    def advised(self) -> Classification:
        """The classification, with advice that has been tried on the query; computed where it is printed."""
        from sqlmesh_like.analyze.nesting import nesting_errors
        from sqlmesh_like.analyze.query_analysis import analyze
        from sqlmesh_like.classify.advice.trial import with_tried_advice

        known = self.analyze()
        with nesting_errors(self.model.path):
            return with_tried_advice(
                known.facts, self.classification, lambda model: analyze(model, known.schemas, known.views)
            )

    @cached_property
    def classification(self) -> Classification:
        """How the model can be maintained; computed lazily, since binding alone does not need it."""
        from sqlmesh_like.analyze.nesting import nesting_errors
        from sqlmesh_like.classify.strategy import classify

        with nesting_errors(self.model.path):
            return classify(self.facts)

    @cached_property
    def table(self) -> TablePlan:
        """What is executed; computed lazily, since most models of a run have nothing to do."""
        from sqlmesh_like.analyze.nesting import nesting_errors
        from sqlmesh_like.delta.compile import compile_table

        with nesting_errors(self.model.path):
            return compile_table(self.facts, self.classification)


def known_model(
    below: Sequence[RenderedModel], model: RenderedModel, known: str, compile_model: Callable[[], CompiledModel]
) -> CompiledModel:
    """A model whose fingerprint is known, which is compiled where its facts are asked for. `below`: what it reads."""
    views: dict[str, tuple[InputRef, ...]] = {}
    for view in filter(is_view, below):
        views[view.unique_id] = tables_read(view.inputs, views)
    return CompiledModel(model, tables_read(model.inputs, views), cache(lambda: compile_model().analyze()), known)
