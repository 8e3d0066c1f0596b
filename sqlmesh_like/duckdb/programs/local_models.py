"""Models built and updated in this process: DuckDB computes, and the commit is written without Spark.

Owns for which plans, and which part of them, that is possible. Spark does all of the work if DuckDB cannot run the
program or read its tables, and only the commit of a change if `hudi.writer` cannot write the table. If executors are
on other machines, they do not see what DuckDB wrote here: then Spark does all of the work in that case, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from sqlmesh_like.delta.frozen import frozen_rows_lost
from sqlmesh_like.duckdb.programs.local_actions import LocalActions
from sqlmesh_like.duckdb.programs.local_programs import local_actions
from sqlmesh_like.duckdb.programs.local_snapshots import snapshot_actions
from sqlmesh_like.duckdb.programs.read_limit import ReadLimit
from sqlmesh_like.duckdb.programs.shared_rows import SharedRows
from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi import change_log
from sqlmesh_like.hudi.catalogs.registration import is_registered, note_registration
from sqlmesh_like.hudi.change_log import ChangeLog
from sqlmesh_like.hudi.file_sizing import buckets_of_whole
from sqlmesh_like.hudi.recovery.table_swap import recover
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError
from sqlmesh_like.hudi.writer.kept_layout import keeps_layout
from sqlmesh_like.hudi.writer.new_table import NewTable, table_name, table_schema
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.hudi.writer.partition_names import partition_names
from sqlmesh_like.hudi.writer.table_support import unsupported_option, unsupported_reason
from sqlmesh_like.hudi.writer.upsert import Upsert, upsert
from sqlmesh_like.names import PARTITION, Column, TableName, is_store
from sqlmesh_like.plan.frontier_advance import defers_frontier, must_advance_frontier
from sqlmesh_like.plan.history import RECORD_KEY, History
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.router import Router
from sqlmesh_like.remedies import remedy
from sqlmesh_like.run.ports import NamedColumns, WriteResult
from sqlmesh_like.run.remote_reader import RemoteReader

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 256_000_000
"""Larger actions are committed by Spark, as they would all be held in memory here."""


@dataclass(frozen=True)
class LocalModels:
    """Writes models without Spark where possible. `reader`: who reads tables too large for this process.

    `register`: tells the catalog of a table that has new columns or partitions, by Spark; see `TableMaintenance`.
    """

    shared: SharedRows
    history: History
    router: Router
    reader: RemoteReader | None = None
    register: Callable[[TableName, str, str | None], None] | None = None

    def write(self, planned: PlannedModel, named: NamedColumns) -> WriteResult | LocalActions | None:
        """Update a table by its plan. Returns actions if Spark has yet to commit them, None if it has to do it all.

        `named`: see `run.ports.ModelWriter.apply`.
        """
        is_whole = planned.strategy == "full_refresh"
        reason = (self.router.why_spark_builds if is_whole else self.router.why_spark_computes_model)(planned)
        if reason:
            _LOG.debug("%s is computed by Spark: %s", planned.compiled.model.unique_id, reason)
            return None
        with _writing(planned):
            if planned.rewrites and (done := self._rewritten(planned, named)):
                return done
            if planned.rewrites and planned.frozen is not None:
                raise frozen_rows_lost(planned.compiled.model.table)
            if is_whole:
                return self._build_table(replace(planned, rewrites=False), named)
            limit = ReadLimit(self.router.most_bytes, self.reader)
            written = self._update_table(planned, named, limit)
            if isinstance(written, WriteResult):
                return replace(written, spark=limit.spark)
            return written if self.router.shares_disk else None

    def write_snapshot(self, planned: PlannedModel) -> WriteResult | None:
        """Write the new versions of a snapshot's rows; None if Spark has to do it all."""
        if reason := self.router.why_spark_builds(planned):
            _LOG.debug("%s is computed by Spark: %s", planned.compiled.model.unique_id, reason)
            return None
        with _writing(planned):
            fault_point("snapshot.begin")
            done = self._write_versions(planned)
            fault_point("snapshot.end")
            return done

    def _write_versions(self, planned: PlannedModel) -> WriteResult | None:
        started = datetime.now(UTC)
        if not self._may_create(planned):
            return None
        versions = snapshot_actions(planned, self.shared)
        if versions is None or versions.path.stat().st_size > _MOST_BYTES:
            return None
        try:
            if not planned.target.exists:
                self._write_whole(planned, versions, started)
                return WriteResult("full_refresh", versions.upserts, 0, committed=True, engine="duckdb")
            if not versions.upserts and not self._must_commit(planned):
                return WriteResult("full_refresh", 0, 0, committed=False, engine="duckdb")
            return self._commit_actions(planned, versions, started)
        except UnsupportedRowsError as error:
            _LOG.debug("%s is written by Spark: %s", planned.compiled.model.unique_id, error)
            return None

    def _may_create(self, planned: PlannedModel) -> bool:
        """Whether a table may be written as it is found. Raises RetryableError after ending a swap cut short."""
        uri = planned.target.uri
        if is_store(uri):
            return True  # `writer.store_table` sees what is there
        if recover(uri):
            message = f"{planned.compiled.model.table}: a swap cut short by a crash was finished: plan anew"
            raise RetryableError(message)
        # Hudi's writer knows what may be left of an unfinished table.
        return planned.target.kind != "missing" or not folder(uri).exists()

    def _update_table(
        self, planned: PlannedModel, named: NamedColumns, limit: ReadLimit
    ) -> WriteResult | LocalActions | None:
        started = datetime.now(UTC)
        actions = local_actions(planned, self.shared, named, logged=self._is_large(planned), limit=limit)
        if actions is None:
            return None
        # The change had no effect: a commit has to be worth it, as the change is read again otherwise.
        is_nothing = not actions.upserts and not actions.deletes
        done = WriteResult(planned.strategy, 0, 0, committed=False, reasons=actions.notes, engine="duckdb")
        if is_nothing and defers_frontier(planned) and not self._must_commit(planned):
            return done
        try:
            return self._commit_actions(planned, actions, started, limit) or (
                done if is_nothing and not self._must_commit(planned) else actions
            )
        except UnsupportedRowsError as error:
            _LOG.debug("%s is committed by Spark: %s", planned.compiled.model.unique_id, error)
            return actions

    def _build_table(self, planned: PlannedModel, named: NamedColumns) -> WriteResult | None:
        """Build a table, or replace all rows of one; None if Spark has to."""
        model, started = planned.compiled.model, datetime.now(UTC)
        if not self._may_create(planned):
            return None
        rows = local_actions(planned, self.shared, named, logged=False)
        if rows is None or rows.path.stat().st_size > _MOST_BYTES:
            return None
        try:
            self._write_whole(planned, rows, started)
        except UnsupportedRowsError as error:
            _LOG.debug("%s is built by Spark: %s", model.unique_id, error)
            return None
        return WriteResult("full_refresh", rows.upserts, 0, committed=True, engine="duckdb")

    def _rewritten(self, planned: PlannedModel, named: NamedColumns) -> WriteResult | None:
        """Replace all rows of a table by rows with other columns, in its own files; None if that is not possible."""
        model, target, started = planned.compiled.model, planned.target, datetime.now(UTC)
        timeline, partition_field = settled_timeline(target.uri), PARTITION if model.config.partition_by else None
        reason = unsupported_reason(timeline, (), partition_field, self._options(planned))
        actions = local_actions(planned, self.shared, named, logged=False) if reason is None else None
        if actions is None or target.record is None or actions.path.stat().st_size > _MOST_BYTES:
            _LOG.debug("%s does not keep its files: %s", model.unique_id, reason)
            return None
        columns = (*actions.schema, *((Column(PARTITION, "string"),) if partition_field else ()))
        buckets, counts = target.record.buckets, {"upserts": actions.upserts, "deletes": actions.deletes}
        metadata = {RECORD_KEY: planned.record("full_refresh", buckets, counts, started).to_json()}
        rows = _rows(actions, model.config.partition_by)
        try:
            avro = table_schema(NewTable(target.uri, table_name(model.table), columns, partition_field, buckets))
            upsert(Upsert(timeline, target.frontier, rows, buckets, metadata, partition_field, avro=avro))
        except UnsupportedRowsError as error:
            _LOG.debug("%s does not keep its files: %s", model.unique_id, error)
            return None
        return WriteResult("full_refresh", actions.upserts, actions.deletes, committed=True, engine="duckdb")

    def _write_whole(self, planned: PlannedModel, computed: LocalActions, started: datetime) -> None:
        """Make the table of these rows, or put them in the place of all others. Raises UnsupportedRowsError."""
        model, options = planned.compiled.model, self._options(planned)
        if reason := unsupported_option(options):
            raise UnsupportedRowsError(reason)
        rows, columns, partition_field = pq.read_table(computed.path), computed.schema, None
        if model.config.partition_by:
            partition_field = PARTITION
            rows = rows.append_column(PARTITION, partition_names(rows, model.config.partition_by))
            columns = (*columns, Column(PARTITION, "string"))
        target, buckets = planned.target, buckets_of_whole(planned, self.history, options)
        table = NewTable(target.uri, table_name(model.table), columns, partition_field, buckets)
        metadata = {RECORD_KEY: planned.record("full_refresh", buckets, {}, started).to_json()}
        if target.kind == "missing":
            table.write(rows, metadata)
        elif target.frontier and keeps_layout(target, columns, model.config.partition_by, buckets, "cow"):
            timeline = settled_timeline(target.uri)
            if reason := unsupported_reason(timeline, (), partition_field, options):
                raise UnsupportedRowsError(reason)
            table.overwrite(timeline, target.frontier, rows, metadata)
        else:
            table.replace(rows, metadata)

    def _options(self, planned: PlannedModel) -> dict[str, str]:
        """The user's options for Hudi."""
        own = planned.compiled.model.config.hudi
        return {name: str(value) for name, value in {**self.router.target.hudi, **own}.items()}

    def _is_large(self, planned: PlannedModel) -> bool:
        target = planned.target
        size = self.history.volume(target.uri, target.frontier).bytes if target.frontier is not None else 0
        return size >= change_log.LOGGED_FROM_BYTES

    def _must_commit(self, planned: PlannedModel) -> bool:
        """Whether a commit is needed, by Spark if necessary, even if the change has no effect on the table."""
        is_other_query = planned.reconciles or planned.strategy == "recompute_merge"
        is_slice = planned.slice is not None and planned.slice.left is not None
        return is_other_query or is_slice or must_advance_frontier(planned, self.history)

    def _commit_actions(
        self, planned: PlannedModel, actions: LocalActions, started: datetime, limit: ReadLimit | None = None
    ) -> WriteResult | None:
        """Commit the actions; None if Spark has to. Raises UnsupportedRowsError, and OSError for a failed write.

        `limit`: that of the program, which knows what it has waited for.
        """
        config, target = planned.compiled.model.config, planned.target
        timeline, partition_field = settled_timeline(target.uri), PARTITION if config.partition_by else None
        options = self._options(planned)
        reason = self.router.why_spark_commits(target.uri) or unsupported_reason(timeline, (), partition_field, options)
        if reason is not None or target.record is None or target.frontier is None:
            _LOG.debug("%s is committed by Spark: %s", planned.compiled.model.unique_id, reason)
            return None
        if actions.upserts + actions.deletes and actions.path.stat().st_size > _MOST_BYTES:
            return None
        rows, table = _rows(actions, config.partition_by), planned.compiled.model.table
        reason = self.router.why_spark_registers_model(planned)
        is_known = not reason or is_registered(timeline, self.router.target, table, _partitions(rows, partition_field))
        if not is_known and (self.router.shares_disk or self.register is None):
            _LOG.debug("%s is committed by Spark: %s", planned.compiled.model.unique_id, reason)
            return None
        counts = {"upserts": actions.upserts, "deletes": actions.deletes}
        limit = limit or ReadLimit()
        began = started + timedelta(seconds=limit.seconds)  # a job has a price of its own, and is no part of the pace
        record = planned.record(planned.strategy, target.record.buckets, counts, began, limit.done)
        log = actions.log if rows is not None else ChangeLog(target.frontier)
        metadata = {RECORD_KEY: record.to_json(), **(log.metadata if log else {})}
        most, buckets = self.router.most_bytes, target.record.buckets
        upsert(Upsert(timeline, target.frontier, rows, buckets, metadata, partition_field, most_bytes=most))
        if not is_known and self.register is not None:  # executors do not see the rows, and would compute them again
            self.register(table, target.uri, partition_field)
        elif reason:  # of a later commit: the noted one may be archived
            note_registration(Timeline(target.uri), self.router.target, table)
        return WriteResult(planned.strategy, actions.upserts, actions.deletes, True, actions.notes, engine="duckdb")

    def release(self) -> None:
        """Forget what was read for the models of a run."""
        self.shared.release()


@contextmanager
def _writing(planned: PlannedModel) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        table = planned.compiled.model.table
        message = f"{table}: {planned.target.uri} cannot be written: {error.strerror or error}"
        raise NodeError(message, hint=remedy(error, "sml run")) from error


def _rows(actions: LocalActions, partition_by: tuple[str, ...]) -> pa.Table | None:
    """The rows to write, with their partition if there is one; None if there are none."""
    if not actions.upserts and not actions.deletes:
        return None
    rows = pq.read_table(actions.path)
    return rows.append_column(PARTITION, partition_names(rows, partition_by)) if partition_by else rows


def _partitions(rows: pa.Table | None, partition_field: str | None) -> set[str]:
    """The partitions of the rows to write, by their paths in the table."""
    if rows is None or partition_field is None:
        return set()
    return {f"{partition_field}={value}" for value in rows.column(partition_field).unique().to_pylist()}
