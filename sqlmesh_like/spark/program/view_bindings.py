"""Relations of a program → Spark views. Owns how `changes.x`, `current.x`, `target.this` and table names are bound."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlglot import exp

from sqlmesh_like.analyze.author_text import Bind, spark_sql
from sqlmesh_like.analyze.python_inputs import input_query
from sqlmesh_like.classify.rules import TIED
from sqlmesh_like.delta.clock_boundary import at_clocks
from sqlmesh_like.delta.program import Prune, RelationRole, split_relation
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, WEIGHT, TableName, is_hidden
from sqlmesh_like.plan.cluster.job_price import JobsDone
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.model_plan import InputVersion, PlannedModel
from sqlmesh_like.run.ports import SparkWork
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.change_feed.cow_change_feed import CopyOnWriteFeed
from sqlmesh_like.spark.change_feed.shared_changes import SharedChanges, Span
from sqlmesh_like.spark.frames.cached_frame import CachedFrame, cached
from sqlmesh_like.spark.frames.partition_paths import pruned_paths
from sqlmesh_like.spark.jvm.spark_errors import first_line
from sqlmesh_like.spark.program.python_function import python_rows
from sqlmesh_like.spark.program.query_plans import other_meaning
from sqlmesh_like.sql_text import spark_identifier


@dataclass(frozen=True)
class ValueRange:
    """The smallest and largest value of a step's column, as Spark casts them to text, and the column's type."""

    low: str
    high: str
    has_null: bool
    type: str


Bounds = tuple[tuple[str, ValueRange], ...]
"""Columns of a relation, with the range of values to read."""


@dataclass
class Bindings:
    """Views of one model's run in a Spark session of its own.

    `shared`: ids of inputs that other models of the run read too, so that their change is cached with all columns.
    `started`: when work on the model began. `spark_work`: what Spark has done for it so far, if that is known.
    """

    session: SparkSession
    planned: PlannedModel
    changes: SharedChanges = field(default_factory=SharedChanges)
    shared: Collection[str] = ()
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    spark_work: Callable[[], SparkWork | None] = lambda: None
    steps: dict[str, DataFrame] = field(default_factory=dict)
    _cached: list[CachedFrame] = field(default_factory=list)
    _views: dict[tuple[RelationRole, str, frozenset[str] | None, Bounds], str] = field(default_factory=dict)

    @property
    def done(self) -> JobsDone | None:
        """The jobs so far of a run on executors of other machines; None if there are none, or it is not known."""
        work = self.spark_work() if self.planned.price is not None else None
        if work is None:
            return None
        seconds = (datetime.now(UTC) - self.started).total_seconds()
        return JobsDone(work.jobs, seconds, work.bytes_read + work.bytes_shuffled)

    def run(self, query: exp.Query, prunes: Sequence[Prune] = ()) -> DataFrame:
        """The frame of a query over inputs, target and steps, with clocks set to those of the run."""
        return self.bound(at_clocks(query, self.planned.now, self.planned.then), prunes)

    def bound(
        self,
        query: exp.Query,
        prunes: Sequence[Prune] = (),
        ranges: Mapping[str, Mapping[str, ValueRange]] | None = None,
    ) -> DataFrame:
        """The frame of a query with the run's clocks.

        `ranges`: of values in the steps that `prunes` name, by step and column.
        """

        def bind(node: exp.Expr) -> exp.Expr:
            outside = split_relation(node) if isinstance(node, exp.Table) else None
            if outside is None:
                return node
            return exp.table_(self._view_of_relation(*outside, prunes, ranges or {}), alias=node.alias or None)

        return self.session.sql(query.transform(bind).sql(SPARK))

    def cache(self, frame: DataFrame) -> DataFrame:
        """Cache a frame until `release`; frames built on the result are planned without its history."""
        kept = cached(frame)
        self._cached.append(kept)
        return kept.frame

    def as_written(self) -> DataFrame:
        """Rows of the model's own query or function over its inputs at their end frontiers; visible columns only."""
        facts = self.planned.compiled.facts
        if facts.model.python is None:
            return self._author_frame(facts.tree)
        return python_rows(
            facts.model, self.session, lambda number: self._author_frame(input_query(facts.tree, number))
        )

    def other_meaning(self, written: DataFrame) -> str | None:
        """How Spark reads the model's query otherwise if it is written from its tree, as programs are; else None."""
        try:
            compiled = self._author_frame(self.planned.compiled.facts.tree, from_tree=True)
        except AnalysisException as error:
            return first_line(error)
        return other_meaning(written, compiled)

    def _author_frame(self, tree: exp.Expr, *, from_tree: bool = False) -> DataFrame:
        return self.session.sql(spark_sql(tree, self._names, self.planned.now, from_tree=from_tree))

    @cached_property
    def _names(self) -> Bind:
        """Views of the inputs at their end frontiers, visible columns only."""
        return bind_tables(
            self.session, {item.ref.table: replace(item.state, frontier=item.end) for item in self.planned.inputs}
        )

    def recomputed(self) -> DataFrame:
        """The rows that the table must have, visible columns only.

        Where the query leaves ties open, the rows are those of the derived plan, which breaks ties by row key.
        """
        compiled = self.planned.compiled
        if not any(reason.rule in TIED for reason in compiled.classification.reasons):
            return self.as_written()
        assert compiled.table.build is not None
        return visible_rows(self.run(compiled.table.build))

    def release(self) -> None:
        """Release all cached frames."""
        for frame in self.steps.values():
            frame.unpersist()
        for kept in self._cached:
            kept.release()

    def _view_of_relation(
        self, role: RelationRole, name: str, prunes: Sequence[Prune], ranges: Mapping[str, Mapping[str, ValueRange]]
    ) -> str:
        """The name of a relation's view, which all steps that read the same part share."""
        if role == "changes":
            return self._view(role, name, None, ())
        state = self.planned.target if role == "target" else self._input(name).state
        paths = self._paths(prunes, name, state)
        bounds = tuple(
            (own, ranges[prune.step][theirs])
            for prune in prunes
            for own, theirs in prune.columns.get(name, ())
            if theirs in ranges.get(prune.step, {})
        )
        return self._view(role, name, None if paths is None else frozenset(paths), bounds)

    def _view(self, role: RelationRole, name: str, paths: frozenset[str] | None, bounds: Bounds) -> str:
        known = (role, name, paths, bounds)
        if known not in self._views:
            view = f"_sml_relation_{len(self._views)}"
            state = self.planned.target if role == "target" else self._input(name).state
            frame = self._relation(role, name, state, paths)
            within_bounds(frame, bounds).createOrReplaceTempView(view)
            self._views[known] = view
        return self._views[known]

    def _relation(self, role: RelationRole, name: str, state: TableState, paths: frozenset[str] | None) -> DataFrame:
        timeline = Timeline(state.uri)
        feed = change_feed(self.session, timeline)
        if role == "changes":
            return self._change(self._input(name), feed)
        frontier = timeline.frontier if role == "target" else self._input(name).end
        assert frontier is not None
        return feed.current(frontier, paths, hidden=role == "target")

    def _change(self, item: InputVersion, feed: CopyOnWriteFeed) -> DataFrame:
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

    def _named_of(self, item: InputVersion) -> tuple[str, ...]:
        """Columns of an input whose names occur in the plan's SQL: no others can be read."""
        return tuple(column.name for column in item.state.schema or () if column.name.lower() in self._named)

    def is_large(self, prune: Prune, bytes_: int) -> bool:
        """Whether a prune applies to an input of more than this many bytes."""
        known = (item.volume for item in self.planned.inputs if item.ref.unique_id in prune.columns)
        return any(volume is not None and volume.bytes > bytes_ for volume in known)

    @property
    def unmoved(self) -> frozenset[str]:
        return frozenset(item.ref.unique_id for item in self.planned.inputs if item.start == item.end)

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset(
            column.name.lower()
            for query in self.planned.compiled.table.queries
            for column in query.find_all(exp.Column)
        )

    def _paths(self, prunes: Sequence[Prune], relation: str, state: TableState) -> set[str] | None:
        entries = [pruned_paths(self.session.table(p.step), p, relation, state.layout) for p in prunes]
        known = [paths for paths in entries if paths is not None]
        return set.intersection(*known) if known else None

    def _input(self, unique_id: str) -> InputVersion:
        return next(item for item in self.planned.inputs if item.ref.unique_id == unique_id)


def within_bounds(frame: DataFrame, bounds: Bounds) -> DataFrame:
    """Rows of a frame whose columns are within these bounds: a filter that file statistics support."""
    types = {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}
    for name, result in bounds:
        if types.get(name.lower()) != result.type:
            continue  # texts and numbers are ordered differently
        column = F.col(f"`{name}`")
        condition = column.between(F.lit(result.low).cast(result.type), F.lit(result.high).cast(result.type))
        frame = frame.where(condition | column.isNull() if result.has_null else condition)
    return frame


def bound(session: SparkSession, tree: exp.Expr, tables: Mapping[TableName, TableState]) -> DataFrame:
    """The frame of a query over tables, each as of the frontier of its state; visible columns only."""
    return session.sql(spark_sql(tree, bind_tables(session, tables)))


def bind_tables(session: SparkSession, tables: Mapping[TableName, TableState]) -> Bind:
    """Views of tables, each as of the frontier of its state, made when their names are asked for."""
    by_name = {(table.schema.lower(), table.identifier.lower()): state for table, state in tables.items()}
    views: dict[tuple[str, str], str] = {}

    def bind(schema: str, name: str) -> str | None:
        key = (schema, name)
        if key in by_name and key not in views:
            views[key] = f"_sml_table_{'__'.join(key)}"
            snapshot(session, by_name[key]).drop(KEY).createOrReplaceTempView(spark_identifier(views[key]))
        return views.get(key)

    return bind


def snapshot(session: SparkSession, state: TableState) -> DataFrame:
    """A table's rows as of its frontier, with `_sml_key` for Hudi tables. Raises NodeError where it does not exist."""
    if state.kind == "missing" or state.frontier is None:
        raise NodeError(f"the table {state.uri} does not exist", hint="run `sml ingest` or build its model first")
    if state.kind != "files":
        return change_feed(session, Timeline(state.uri)).current(state.frontier)
    frame = session.read.format(state.format).options(header=True, inferSchema=True).load(state.uri)
    return visible_rows(frame)


def visible_rows(frame: DataFrame) -> DataFrame:
    """A frame without bookkeeping columns."""
    return frame.drop(*[name for name in frame.columns if is_hidden(name)])
