"""A run of a model on Spark → one Hudi commit. Owns what is committed for each outcome of the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.classify.rules import Reason, reason
from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.delta.actions import ACTIONS
from sqlmesh_like.delta.affected_keys import key_columns
from sqlmesh_like.delta.frozen import frozen_rows_lost
from sqlmesh_like.delta.machine import FRESH, Actions
from sqlmesh_like.delta.partitions import AFFECTED
from sqlmesh_like.delta.program import RescanProgram
from sqlmesh_like.duckdb.programs.local_actions import LocalActions
from sqlmesh_like.errors import NodeError, RetryableError, UnslicedError
from sqlmesh_like.hudi.recovery.table_swap import recover
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, is_storable, visible
from sqlmesh_like.plan.checks.contracts import refuse_breach
from sqlmesh_like.plan.frontier_advance import must_advance_frontier
from sqlmesh_like.plan.history import AS_WRITTEN, RECORD_KEY, History
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.run.ports import WriteResult
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.frames.content_key import keyed_by_content
from sqlmesh_like.spark.frames.partition_paths import target_paths
from sqlmesh_like.spark.program.spark_steps import SparkSteps
from sqlmesh_like.spark.writer import upsert as sinks
from sqlmesh_like.spark.writer.author_incremental import write_branch
from sqlmesh_like.spark.writer.upsert import TableSpec

_LOCATED = "_sml_located"
_NO_ROWS = {"upserts": 0, "deletes": 0}


@dataclass
class SparkWriter:
    """Commits one run of a model. `specify` gives the table of a plan: a rebuild may choose another layout."""

    planned: PlannedModel
    steps: SparkSteps
    history: History
    specify: Callable[[PlannedModel], TableSpec]
    overwrites_partitions: bool = True

    def __post_init__(self) -> None:
        self.target = self.specify(self.planned)

    @property
    def is_comparable(self) -> bool:
        """Whether Spark derives the query's rows as the compiler does, and as the table has them."""
        frame, _, is_as_derived = self._whole()
        rows = self.target.prepared(frame).withColumn(IS_DELETED, F.lit(False))
        return is_as_derived and sinks.keeps_layout(self.target, rows)

    def stored_form(self, signed: str) -> str:
        """With the partition where there is one: a row that moves to another is deleted in the old one."""
        if not self.target.partition_by:
            return signed
        self.steps.add(_LOCATED, self.target.prepared(self.steps.frames[signed]))
        return _LOCATED

    def apply_actions(self, done: Actions) -> WriteResult:
        planned, counts = self.planned, sinks.WriteCounts(done.upserts, done.deletes)
        if planned.reconciles and planned.frozen is None and self._is_most(done.upserts + done.deletes):
            return self.rebuild()
        self._require_kept()
        stored = None if _has_stored_images(planned) else self._stored_rows()
        metadata = self._metadata(planned.strategy, vars(counts))
        sinks.commit_actions(self.steps.frames[ACTIONS], counts, self.target, metadata, stored)
        return WriteResult(planned.strategy, counts.upserts, counts.deletes, committed=True, reasons=done.notes)

    def write_local(self, done: LocalActions) -> WriteResult:
        """Commit the actions that DuckDB has computed."""
        if not done.upserts and not done.deletes:
            return replace(self.keep(done.notes), engine="duckdb")
        columns = ", ".join(f"`{column.name}` {column.type}" for column in done.schema)
        reader = self.steps.bindings.session.read.schema(f"{columns}, {IS_DELETED} boolean")
        metadata = self._metadata(self.planned.strategy, {"upserts": done.upserts, "deletes": done.deletes})
        sinks.upsert_rows(self.target.prepared(reader.parquet(str(done.path))), self.target, metadata, done.log)
        return WriteResult(self.planned.strategy, done.upserts, done.deletes, True, done.notes, engine="duckdb")

    def keep(self, notes: tuple[Reason, ...] = ()) -> WriteResult:
        """Commit the new frontier without rows, so that the same changes are not read again."""
        if self.planned.strategy == "no_op":
            return WriteResult("no_op", 0, 0, committed=False)
        self._require_kept()
        sinks.merge_nothing(self._stored_rows(), self.target, self._metadata(self.planned.strategy, _NO_ROWS))
        return WriteResult(self.planned.strategy, 0, 0, committed=True, reasons=notes)

    def overwrite_partitions(self, rescan: RescanProgram) -> WriteResult:
        names = key_columns(len(rescan.partition_by))
        pairs = zip(names, rescan.partition_by, strict=True)
        affected = self.steps.frames[AFFECTED].select(*[F.col(theirs).alias(own) for theirs, own in pairs])
        paths, rows = target_paths(affected, rescan.partition_by), self.steps.frames[FRESH]
        metadata = self._metadata("partition_rescan", {"partitions": len(paths)})
        if not paths:
            sinks.merge_nothing(rows, self.target, metadata)
            return WriteResult("partition_rescan", 0, 0, committed=True)
        sinks.overwrite(rows, self.target, paths, metadata)
        return WriteResult("partition_rescan", _rows_written(self.target.table.uri), 0, committed=True)

    def apply_author_strategy(self) -> WriteResult:
        bindings = self.steps.bindings
        given = bindings.as_written().persist()
        bindings.steps["_given"] = given  # read more than once, and each time with other rows if it calls rand()
        _require_storable(given, self.planned)
        must_carry = must_advance_frontier(self.planned, self.history)
        return write_branch(self.planned, given, self._stored_rows(), self.target, must_carry)

    def rebuild(self) -> WriteResult:
        planned = replace(self.planned, strategy="full_refresh")
        if planned.frozen is not None:
            raise frozen_rows_lost(planned.compiled.model.table)
        if recover(planned.target.uri):
            name = planned.compiled.model.table
            raise RetryableError(f"{name}: a swap cut short by a crash was finished: plan anew")
        frame, strategy_reasons, is_as_derived = self._whole()
        if not is_as_derived and planned.slice is not None:
            raise UnslicedError("; ".join(each.message for each in strategy_reasons))
        target = self.specify(planned)
        if target.unique_key:
            sinks.check_rows(frame, target)
        bindings = self.steps.bindings
        record = planned.record("full_refresh", target.table.buckets, {}, bindings.started, bindings.done)
        if not is_as_derived and planned.compiled.model.config.frozen_before is not None:
            why = "; ".join(each.message for each in strategy_reasons)
            hint = "cast the columns in question; or leave frozen_before out"
            raise NodeError(f"{planned.compiled.model.table} cannot have frozen partitions: {why}", hint=hint)
        if not is_as_derived:
            # The stored rows lack the state that the program needs, so no later run may be incremental.
            record = replace(record, fingerprint=record.fingerprint + AS_WRITTEN)
        sinks.rebuild(frame, target, {RECORD_KEY: record.to_json()})
        return WriteResult("full_refresh", _rows_written(target.table.uri), 0, True, strategy_reasons)

    def _whole(self) -> tuple[DataFrame, tuple[Reason, ...], bool]:
        """All rows of the model with keys and state; why they are not derived; whether their state fits the plan."""
        planned, bindings = self.planned, self.steps.bindings
        written = bindings.as_written()
        _require_storable(written, planned)
        refuse_breach(planned.compiled.model, visible(sinks.frame_schema(written)))
        build = planned.table.build
        if build is None or any(item.state.kind == "files" for item in planned.inputs):
            return keyed_by_content(written), (), build is None
        if meant := bindings.other_meaning(written):
            result = reason("TYP003", f"Spark reads the query as {meant}, which the compiler would write")
            return keyed_by_content(written), (result,), False
        derived = bindings.run(build)
        if not sinks.have_same_columns(derived, written):
            result = reason("TYP003", f"derived {_column_list(derived)}, Spark says {_column_list(written)}")
            return keyed_by_content(written), (result,), False
        return derived, (), True

    def _metadata(self, strategy: Strategy, rows: dict[str, int]) -> dict[str, str]:
        buckets, bindings = self.target.table.buckets, self.steps.bindings
        record = self.planned.record(strategy, buckets, rows, bindings.started, bindings.done)
        return {RECORD_KEY: record.to_json()}

    def _stored_rows(self) -> DataFrame:
        timeline = Timeline(self.target.table.uri)
        assert timeline.frontier is not None
        return change_feed(self.steps.bindings.session, timeline).current(timeline.frontier, hidden=True)

    def _is_most(self, rows: int) -> bool:
        """Whether so many rows are more than half of the table: to replace all of them takes Hudi less time then."""
        state = self.planned.target
        return state.frontier is not None and 2 * rows > self.history.volume(state.uri, state.frontier).rows

    def _require_kept(self) -> None:
        """Raise RetryableError where files were cleaned since the plan: Hudi's reader may have returned fewer rows."""
        for item in () if self.planned.reconciles else self.planned.inputs:  # which reads no history
            if item.state.kind != "mor" or not item.has_moved or item.start is None or item.end is None:
                continue
            if lost := self.history.unreadable_reason(item.state.uri, item.start, item.end):
                raise RetryableError(f"{item.ref.table}: {lost}", hint="run again, which plans anew")


def _has_stored_images(planned: PlannedModel) -> bool:
    """Whether rows that leave equal the stored ones in every bit: recomputed sums of floats may differ."""
    if planned.strategy in ("aggregate_merge", "recompute_merge"):
        return True  # they are read from the table
    types = (column.type or "" for column in planned.target.schema or ())
    return not any("float" in type_ or "double" in type_ for type_ in types)


def _require_storable(frame: DataFrame, planned: PlannedModel) -> None:
    bad = [name for name in frame.columns if not is_storable(name)]
    if bad:
        raise NodeError(
            f"{planned.compiled.model.path}: a Hudi table cannot have a column named {bad[0]!r}",
            hint="give it an alias of letters, digits and underscores",
        )
    unknown = [name for name in planned.compiled.model.config.partition_by if name not in frame.columns]
    if unknown:
        hint = f"columns: {', '.join(frame.columns)}"
        raise NodeError(f"{planned.compiled.model.path}: no column {unknown[0]!r} to partition by", hint=hint)


def _column_list(frame: DataFrame) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in visible(sinks.frame_schema(frame)))


def _rows_written(uri: str) -> int:
    commits = Timeline(uri).data_commits
    return sum(write.rows for write in commits[-1].writes) if commits else 0
