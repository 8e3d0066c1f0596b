"""Relations of a program → Spark views. Owns how `changes.x`, `current.x`, `target.this` and table names are bound."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from sqlmesh_like.analyze.clock import frozen
from sqlmesh_like.classify.rules import TIED
from sqlmesh_like.delta.crossing import at_clocks
from sqlmesh_like.delta.program import Prune, Role, split_relation
from sqlmesh_like.delta.unmoved import without_unmoved
from sqlmesh_like.engine.feed import Feed
from sqlmesh_like.engine.feeds import feed_of
from sqlmesh_like.engine.partition_paths import pruned_paths
from sqlmesh_like.engine.shared_changes import SMALL_CHANGE, SharedChanges, Span
from sqlmesh_like.engine.timeline import Timeline
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import KEY, WEIGHT, TableName, is_hidden
from sqlmesh_like.plan.builder import PlannedInput, PlannedModel
from sqlmesh_like.plan.history import TableState


@dataclass
class Bindings:
    """Views of one model's run in a Spark session of its own.

    `shared` names the inputs that other models of the run read as well: their change is kept with all columns.
    """

    session: SparkSession
    planned: PlannedModel
    changes: SharedChanges = field(default_factory=SharedChanges)
    shared: Collection[str] = ()
    steps: dict[str, DataFrame] = field(default_factory=dict)
    _views: dict[tuple[Role, str, frozenset[str] | None], str] = field(default_factory=dict)

    def run(self, query: exp.Expr, prune: Prune | None = None, *, nothing: bool = False) -> DataFrame:
        """The frame of a query over outside relations and steps. `nothing`: outside relations count as empty."""

        def bind(node: exp.Expr) -> exp.Expr:
            outside = split_relation(node) if isinstance(node, exp.Table) else None
            if outside is None:
                return node
            return exp.table_(self._bound(*outside, prune, nothing), alias=node.alias or None)

        record = self.planned.target.record
        then = datetime.fromisoformat(record.now) if record else None
        live = without_unmoved(at_clocks(query, self.planned.now, then), self._unmoved)
        return self.session.sql(live.transform(bind, copy=False).sql("spark"))

    def keep(self, name: str, frame: DataFrame, *, persist: bool) -> None:
        """Make a step readable by name."""
        if persist:
            frame = frame.persist()
        frame.createOrReplaceTempView(name)
        self.steps[name] = frame

    def as_written(self) -> DataFrame:
        """The model's own query over its inputs where they end, visible columns only."""
        ends = {item.ref.table: replace(item.state, frontier=item.end) for item in self.planned.inputs}
        return bound(self.session, frozen(self.planned.compiled.facts.tree, self.planned.now), ends)

    def recomputed(self) -> DataFrame:
        """The rows that the table must hold, visible columns only.

        Where its query leaves ties open they are those of the derived plan, whose row keys decide them.
        """
        compiled = self.planned.compiled
        if not any(found.rule in TIED for found in compiled.classification.reasons):
            return self.as_written()
        assert compiled.table.build is not None
        return shown(self.run(compiled.table.build))

    def release(self) -> None:
        """Drop what was persisted."""
        for frame in self.steps.values():
            frame.unpersist()

    def _bound(self, role: Role, name: str, prune: Prune | None, nothing: bool) -> str:
        """The view of a relation: one for all steps that read the same files of it."""
        state = self.planned.target if role == "target" else self._input(name).state
        paths = None if role == "changes" else set[str]() if nothing else self._paths(prune, name, state)
        known = (role, name, None if paths is None else frozenset(paths))
        if known not in self._views:
            self._views[known] = self._view(self._relation(role, name, state, paths))
        return self._views[known]

    def _relation(self, role: Role, name: str, state: TableState, paths: set[str] | None) -> DataFrame:
        timeline = Timeline(state.uri)
        feed = feed_of(self.session, timeline)
        if role == "changes":
            return self._change(self._input(name), feed)
        frontier = timeline.frontier if role == "target" else self._frontier(name, role)
        assert frontier is not None
        return feed.current(frontier, paths, hidden=role == "target")

    def _change(self, item: PlannedInput, feed: Feed) -> DataFrame:
        start, end = item.start, item.end
        assert start is not None and end is not None
        columns = None if item.ref.unique_id in self.shared else self._named_of(item)

        def read() -> DataFrame:
            frame = feed.changes(start, end)
            return frame if columns is None else frame.select(*[f"`{name}`" for name in (*columns, KEY, WEIGHT)])

        if start == end:
            return read()
        span = Span(item.state.uri, start, end, columns)
        return self.changes.frame(self.session, span, item.change.rows, read)

    def _named_of(self, item: PlannedInput) -> tuple[str, ...]:
        """Columns of an input that the plan's SQL names anywhere: no other one can be read."""
        return tuple(column.name for column in item.state.schema or () if column.name.lower() in self._named)

    @property
    def is_small(self) -> bool:
        """Whether all changes that are read fit one partition."""
        return all(item.change.rows <= SMALL_CHANGE for item in self.planned.inputs)

    @cached_property
    def _unmoved(self) -> frozenset[str]:
        return frozenset(item.ref.unique_id for item in self.planned.inputs if item.start == item.end)

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset(
            column.name.lower()
            for query in self.planned.compiled.table.queries
            for column in query.find_all(exp.Column)
        )

    def _frontier(self, name: str, role: Role) -> str | None:
        item = self._input(name)
        return item.start if role == "previous" else item.end

    def _paths(self, prune: Prune | None, relation: str, state: TableState) -> set[str] | None:
        return pruned_paths(self.steps[prune.step], prune, relation, state.layout) if prune else None

    def _input(self, unique_id: str) -> PlannedInput:
        return next(item for item in self.planned.inputs if item.ref.unique_id == unique_id)

    def _view(self, frame: DataFrame) -> str:
        name = f"_sml_relation_{len(self._views)}"
        frame.createOrReplaceTempView(name)
        return name


def bound(session: SparkSession, tree: exp.Expr, tables: Mapping[TableName, TableState]) -> DataFrame:
    """The frame of a query that names whole tables, each as of the frontier of its state; visible columns only."""
    by_name = {(table.schema.lower(), table.identifier.lower()): state for table, state in tables.items()}

    def bind(node: exp.Expr) -> exp.Expr:
        key = (node.db.lower(), node.name.lower()) if isinstance(node, exp.Table) else None
        if key not in by_name:
            return node
        view = f"_sml_table_{'__'.join(key)}"
        snapshot(session, by_name[key]).drop(KEY).createOrReplaceTempView(f"`{view}`")
        return exp.table_(view, quoted=True, alias=exp.to_identifier(node.alias or node.name, quoted=True))

    return session.sql(tree.copy().transform(bind).sql("spark"))


def snapshot(session: SparkSession, state: TableState) -> DataFrame:
    """A table's rows as of its frontier; a Hudi table's with `_sml_key`."""
    if state.kind == "missing" or state.frontier is None:
        raise NodeError(f"the table {state.uri} does not exist", hint="run `sml ingest` or build its model first")
    if state.kind != "files":
        return feed_of(session, Timeline(state.uri)).current(state.frontier)
    frame = session.read.format(state.format).options(header=True, inferSchema=True).load(state.uri)
    return shown(frame)


def shown(frame: DataFrame) -> DataFrame:
    """A frame without bookkeeping columns."""
    return frame.drop(*[name for name in frame.columns if is_hidden(name)])
