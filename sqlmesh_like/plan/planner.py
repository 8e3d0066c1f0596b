"""One model planned against the lake as it is. Owns compiling a model, with the views it reads, from pinned states."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from sqlmesh_like.compiled_model import CompiledModel, known_model
from sqlmesh_like.errors import SmlError, UnreadableTableError
from sqlmesh_like.names import Schema, TableName
from sqlmesh_like.plan.catalog import Catalog
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.model_plan import PlannedModel, plan_model
from sqlmesh_like.plan.queries.known_queries import KnownQueries
from sqlmesh_like.plan.slices.sliced_build import SliceWish
from sqlmesh_like.plan.slices.sliced_plan import with_slices
from sqlmesh_like.render.rendered import RenderedModel, RenderedProject, RenderedTest
from sqlmesh_like.render.table_inputs import TableInputs

if TYPE_CHECKING:
    from sqlmesh_like.analyze.query_analysis import QueryFacts
    from sqlmesh_like.plan.cluster.weighing import Cluster

_WORD = re.compile(r"`([^`]*)`|(\w+)")
_ALL_COLUMNS = re.compile(r"(?:\b(?:select|distinct|all)|[,.])\s*\*", re.IGNORECASE)
"""`*` as an item of a SELECT list."""
_EXISTS = re.compile(r"\bexists\s*\(\s*select\s*\*", re.IGNORECASE)
"""A `*` that reads no column."""


class Rerender(Protocol):
    """Renders nodes whose templates query the lake again, with the current results."""

    def model(self, model: RenderedModel) -> RenderedModel: ...

    def test(self, test: RenderedTest) -> RenderedTest: ...


@dataclass(frozen=True)
class Planner:
    """Plans models of one project. `now` is the clock of the run, the same for all.

    Without `rerender`, models that query the lake keep the text that they were read with, as if queries returned
    nothing. `foreseen` are columns, by unique id, of tables that do not exist yet: those of a seed's file.
    `has_catalog`: a query may name tables that are not the project's. `advances`: that of `PlannedModel`.
    `slices`: how builds are divided; None: tables do not outlive the run, and are built as a whole. `cluster`: None if
    all work is done on one machine. `queries`: what earlier calls know of queries.
    """

    rendered: RenderedProject
    catalog: Catalog
    now: datetime
    full_refresh: bool = False
    rerender: Rerender | None = None
    foreseen: Mapping[str, Schema] = field(default_factory=dict)
    has_catalog: bool = False
    advances: bool = False
    slices: SliceWish | None = None
    queries: KnownQueries | None = None
    cluster: Cluster | None = None

    def with_measured_jobs(self, unique_ids: Iterable[str]) -> Planner:
        """The planner with the price of a job as the tables of these models have it; the same without a cluster."""
        if self.cluster is None:
            return self
        models = [model.unique_id for model in map(self.reads.models.get, unique_ids) if model is not None]
        records = [state.record for state in map(self._state_if_readable, models) if state is not None]
        price = self.cluster.price.known_from(record for record in records if record is not None)
        return replace(self, cluster=replace(self.cluster, price=price))

    def _state_if_readable(self, unique_id: str) -> TableState | None:
        try:
            return self.catalog.state(unique_id) if unique_id in self.catalog.places else None
        except SmlError:  # whoever plans the model reports it
            return None

    @cached_property
    def reads(self) -> TableInputs:
        """Which tables the project's nodes read."""
        return TableInputs(self.rendered, self.catalog.places)

    def live(self, model: RenderedModel) -> RenderedModel:
        """Return the model with its current text. Raises JinjaError, and NodeError for a failed query to the lake.

        Also raises SqlError if a result brought in a table that no `ref()` or `source()` names: its changes would go
        unnoticed.
        """
        if self.rerender is None or not model.asks_lake:
            return model
        live = self.rerender.model(model)
        if live.asks_lake != model.asks_lake:
            self.require_known_tables(live)
        return live

    def require_known_tables(self, model: RenderedModel) -> None:
        """Raise SqlError if a text rendered from query results names a table that is not the project's."""
        from sqlmesh_like.analyze.query_analysis import parse
        from sqlmesh_like.plan.checks.check import refuse_foreign_tables

        if not self.has_catalog:
            refuse_foreign_tables(model, parse(model))

    def compile(self, model: RenderedModel, states: Mapping[str, TableState]) -> CompiledModel:
        """Compile a model, and the views that it reads, with the columns of pinned tables. Raises SqlError."""
        below, schemas = self._read_by(model, states)
        return _compile(below, model, schemas)

    def _compile_known(self, model: RenderedModel, states: Mapping[str, TableState]) -> CompiledModel:
        """Do the same, but not before it is needed where the fingerprint of the query is known. Raises SqlError."""
        below, schemas = self._read_by(model, states)
        key = self.queries.key(model, below, schemas) if self.queries is not None else None
        if self.queries is None or key is None:
            return _compile(below, model, schemas)
        known = self.queries.find(model.unique_id, key)
        if known is not None:
            return known_model(below, model, known, lambda: _compile(below, model, schemas))
        return self.queries.remember(key, _compile(below, model, schemas))

    def _read_by(
        self, model: RenderedModel, states: Mapping[str, TableState]
    ) -> tuple[list[RenderedModel], dict[str, Schema | None]]:
        """The models that are compiled before this one, each after its inputs, and the columns of tables by id."""
        unbuilt = [self.live(below) for below in self._unbuilt_below(model, states)]
        further = {unique_id for one in (*unbuilt, model) for unique_id in self.inputs(one)} - set(states)
        known = {**self.catalog.states(further), **states}
        schemas = {unique_id: state.schema or self.foreseen.get(unique_id) for unique_id, state in known.items()}
        return unbuilt, schemas

    def tables(self, facts: QueryFacts, states: Mapping[str, TableState]) -> dict[TableName, TableState]:
        """The tables that a query reads, as pinned; one that a lake query chose during rendering, as it is now."""
        read = {ref.unique_id: ref.table for ref in facts.inputs}
        return {table: states[i] if i in states else self.catalog.state(i) for i, table in read.items()}

    def inputs(self, model: RenderedModel) -> tuple[str, ...]:
        """Ids of the tables that a model reads, directly or through views."""
        return self.reads.of(model)

    def words(self, model: RenderedModel) -> frozenset[str] | None:
        """All words, in lower case, of a model's text and of the views that it reads: every column it names is among
        them. None if it reads columns without naming them, or is not SQL.
        """
        texts = [_EXISTS.sub("", reader.sql) for reader in (*self.views_below(model), model)]
        if model.python is not None or any(_ALL_COLUMNS.search(text) for text in texts):
            return None
        return frozenset(word.lower() for text in texts for pair in _WORD.findall(text) for word in pair if word)

    def plan_ahead(self, models: Iterable[RenderedModel]) -> list[PlannedModel]:
        """Plan models given in dependency order, as one run of all of them would."""
        plans: list[PlannedModel] = []
        for model in models:
            moving = {plan.compiled.model.unique_id for plan in plans if plan.strategy != "no_op"}
            plans.append(self.plan(model, {}, moving))
        return plans

    def plan(
        self,
        model: RenderedModel,
        pinned: Mapping[str, TableState],
        awaited: Collection[str] = (),
        *,
        whole: bool = False,
    ) -> PlannedModel:
        """Plan a model; inputs that are not pinned are read now. `whole`: plan the query without its author's branch.

        Raises SqlError and NodeError.
        """
        states = {
            unique_id: pinned[unique_id] if unique_id in pinned else self.catalog.state(unique_id)
            for unique_id in self.inputs(model)
        }
        live = self.live(model)
        compiled = self._compile_known(live, states)
        states |= self._unforeseen(compiled, states)
        target = self._target(model)
        if model.config.frozen_before is not None:
            self._require_whole(model, target)
        if not self._is_full(model) and (live.author_strategy is not None or model.config.materialized == "snapshot"):
            self._require_whole(model, target)
        if live.author_strategy is not None and target.exists and not whole and not self._is_full(model):
            return self._plan_branch(live, compiled, target, pinned, awaited)
        planned = plan_model(
            compiled, target, states, self.catalog.history, self.now,
            full_refresh=self._is_full(model), awaited=awaited,
        )  # fmt: skip
        if self.slices is not None:
            planned = with_slices(planned, self.catalog.history, self.slices, full_refresh=self._is_full(model))
        planned = replace(planned, advances=True) if self.advances else planned
        return planned if self.cluster is None else self.cluster.weigh(planned)

    def _target(self, model: RenderedModel) -> TableState:
        """The model's table. Raises UnreadableTableError if its metadata is broken, unless the table may be rebuilt."""
        try:
            return self.catalog.state(model.unique_id)
        except UnreadableTableError as error:
            if model.config.frozen_before is not None:
                hint = "restore that file from a backup of the table: rows of frozen partitions are stored nowhere else"
            elif model.config.materialized == "snapshot":  # its old versions are stored nowhere else
                hint = "restore that file from a backup of the table: no query gives a snapshot's old versions again"
            elif self._is_full(model):
                return TableState(self.catalog.places[model.unique_id].uri, "unreadable")
            else:
                hint = f"restore that file, or build the table again: sml run --full-refresh --select {model.name}"
            raise UnreadableTableError(f"{model.table}: {error.message}", hint=hint) from error

    def _require_whole(self, model: RenderedModel, target: TableState) -> None:
        """Raise UnreadableTableError if data files of a table are missing whose rows its query may not return again."""
        missing = self.catalog.history.missing(target.uri) if target.exists else None
        if missing is None:
            return
        hint = "restore the files from a backup of the table"
        if model.config.materialized != "snapshot" and model.config.frozen_before is None:
            hint += f", or build it again: sml run --full-refresh --select {model.name}"
        raise UnreadableTableError(f"{model.table}: {missing} ({target.uri})", hint=hint)

    def _plan_branch(
        self,
        model: RenderedModel,
        whole: CompiledModel,
        target: TableState,
        pinned: Mapping[str, TableState],
        awaited: Collection[str],
    ) -> PlannedModel:
        from sqlmesh_like.plan.author_incremental import plan_branch

        branch = model.branch
        assert branch is not None
        states = {i: pinned[i] if i in pinned else self.catalog.state(i) for i in self.inputs(branch)}
        states[model.unique_id] = target
        compiled = self.compile(branch, states)
        states |= self._unforeseen(compiled, states)
        return plan_branch(compiled, whole, target, states, self.catalog.history, self.now, awaited)

    def _unforeseen(self, compiled: CompiledModel, states: Mapping[str, TableState]) -> Mapping[str, TableState]:
        """Inputs that a lake query chose during rendering, as they are now."""
        return self.catalog.states(ref.unique_id for ref in compiled.inputs if ref.unique_id not in states)

    def _is_full(self, model: RenderedModel) -> bool:
        return self.full_refresh if model.config.full_refresh is None else model.config.full_refresh

    def _unbuilt_below(self, model: RenderedModel, states: Mapping[str, TableState]) -> list[RenderedModel]:
        """Models whose columns follow from their query alone (views, tables not built yet), each after its inputs."""
        by_id = self.reads.models
        models: dict[str, RenderedModel] = {}

        def visit(reader: RenderedModel) -> None:
            for ref in reader.inputs:
                below = by_id.get(ref.unique_id)
                has_columns = ref.unique_id in states and states[ref.unique_id].schema is not None
                if below is not None and not has_columns and ref.unique_id not in models:
                    visit(below)
                    models[ref.unique_id] = below

        visit(model)
        return list(models.values())

    def views_below(self, model: RenderedModel) -> list[RenderedModel]:
        """Views that the model reads, directly or through views, each after its inputs."""
        return self.reads.views_below(model)


def _compile(
    below: Iterable[RenderedModel], model: RenderedModel, schemas: Mapping[str, Schema | None]
) -> CompiledModel:
    from sqlmesh_like.compiler import compile_after  # a run with nothing to do compiles nothing, and imports none of it

    return compile_after(below, model, schemas)
