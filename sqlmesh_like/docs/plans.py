"""Strategies and plans of all models, for readers. Owns compiling a whole project once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlmesh_like.analyze.algebra.relation import Join, walk
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.errors import SqlError
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.catalog import Catalog
from sqlmesh_like.plan.explain import explain_classification, explain_model, program_text
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.model_plan import PlannedModel, plan_model
from sqlmesh_like.render.rendered import RenderedModel, RenderedProject

MOST_JOINS = 3
"""Joins above which the program is left out: its size grows with their square, and a site of 150 models had 19 MB."""


@dataclass(frozen=True)
class DocumentedModel:
    """A compiled model and, where there is a lake, the plan of its next run."""

    compiled: CompiledModel
    planned: PlannedModel | None

    @property
    def program(self) -> str:
        """The output of `sml explain --sql`, or how to get it where it is long; empty for a view."""
        if not self.is_table:
            return ""
        relation = self.compiled.facts.relation
        joins = 0 if relation is None else sum(isinstance(node, Join) for node in walk(relation))
        if joins > MOST_JOINS:
            name = self.compiled.model.name
            return f"-- {joins} joins make a long program: `sml explain {name} --sql` prints it"
        return program_text(self.compiled.table)

    @property
    def is_table(self) -> bool:
        return self.compiled.model.config.materialized in ("incremental", "table")

    def plan(self) -> dict[str, object]:
        """Return the model's entry of `sml explain --output json`; without a lake, the part that needs only the SQL."""
        if self.planned is not None:
            return explain_model(self.planned)
        return explain_classification(self.compiled)


def document_models(
    rendered: RenderedProject,
    graph: Graph,
    schemas: Mapping[str, Schema | None],
    catalog: Catalog | None,
    states: Mapping[str, TableState],
    now: datetime,
) -> tuple[dict[str, DocumentedModel], dict[str, SqlError]]:
    """Compile all models; return them by unique id, each after its inputs, and the errors of invalid ones.

    `schemas`: columns of sources and seeds; `states`: tables of the lake. Models whose templates query the lake are
    left out.
    """
    models: dict[str, RenderedModel] = {model.unique_id: model for model in rendered.models}
    stored = {unique_id: state.schema for unique_id, state in states.items() if state.schema is not None}
    compiler = Compiler({**schemas, **stored})
    moving: set[str] = set()
    models_by_id: dict[str, DocumentedModel] = {}
    errors: dict[str, SqlError] = {}
    for unique_id in graph.order(models):
        model = models[unique_id]
        if model.asks_lake:  # its SQL is known only in a run
            continue
        fresh: dict[str, Schema | None] = {
            ref.unique_id: stored[ref.unique_id] for ref in model.inputs if ref.unique_id in stored
        }
        try:
            compiled = compiler.compile(model, fresh)
            planned = None if catalog is None else _plan_model(model, compiled, catalog, states, now, moving)
        except SqlError as error:
            errors[unique_id] = error
            continue
        if planned is not None and planned.strategy != "no_op":
            moving.add(unique_id)
        models_by_id[unique_id] = DocumentedModel(compiled, planned)
    return models_by_id, errors


def _plan_model(
    model: RenderedModel,
    compiled: CompiledModel,
    catalog: Catalog,
    states: Mapping[str, TableState],
    now: datetime,
    moving: set[str],
) -> PlannedModel | None:
    needed = {model.unique_id, *(ref.unique_id for ref in compiled.facts.inputs)}
    if not needed <= states.keys():  # a view, or a table that cannot be read
        return None
    return plan_model(compiled, states[model.unique_id], states, catalog.history, now, awaited=moving)
