"""Progress of operations for `logging`, as a library reports it. Owns the messages; the logger is `sqlmesh_like`."""

from __future__ import annotations

import logging

from sqlmesh_like.app.operations.maintenance import MaintenanceResult
from sqlmesh_like.app.operations.publishing import Publication
from sqlmesh_like.app.operations.run_results import detail
from sqlmesh_like.app.operations.verification.table_verification import Verification
from sqlmesh_like.app.reporter import LogReporter
from sqlmesh_like.artifacts.sources import FreshnessResult
from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.project.nodes import Source, SourceTable
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.result import NodeResult, RenderedNode, RunResult

_LOGGER = logging.getLogger("sqlmesh_like")
_BAD = frozenset({"error", "fail"})


class LogListener(LogReporter):
    """Listens to runs, ingestions and comparisons: failures are errors, the rest is `info`."""

    def started(self, number: int, total: int, node: RenderedNode) -> None:
        _LOGGER.debug("%s of %s: %s", number, total, node.unique_id)

    def ended(self, number: int, total: int, result: NodeResult) -> None:
        level = logging.ERROR if result.status in _BAD else logging.INFO
        words = result.message or detail(result)
        _LOGGER.log(level, "%s of %s: %s %s: %s", number, total, result.node.unique_id, result.status, words)

    def finished(self, result: RunResult) -> None:
        _LOGGER.info("%s nodes, %s", len(result.results), "all well" if result.ok else "with failures")

    def reading(self, source: Source, *, dead_letters: bool = False) -> None:
        _LOGGER.info("reading %s of source %s", "dead letters" if dead_letters else "events", source.name)

    def ingested(self, report: IngestReport) -> None:
        for table in report.tables:
            if table.error is not None:
                _LOGGER.error("%s: %s", table.table, table.error)
            else:
                _LOGGER.info("%s: %s upserts, %s deletes", table.table, table.upserts, table.deletes)
        if report.dead_letters:
            _LOGGER.warning("%s dead letters in %s", report.dead_letters, report.dead_letter_table)

    def verified(self, number: int, total: int, result: Verification) -> None:
        level = logging.INFO if result.status == "pass" else logging.ERROR
        _LOGGER.log(level, "%s of %s: %s %s", number, total, result.model.table, result.error or result.status)


class TableLog:
    """Listens to operations on one table after another, maintenance and publishing: one line for each table."""

    def started(self, number: int, total: int, table: TablePlace | RenderedModel) -> None:
        _LOGGER.debug("%s of %s: %s", number, total, table.unique_id)

    def ended(self, number: int, total: int, result: MaintenanceResult | Publication) -> None:
        table = result.place if isinstance(result, MaintenanceResult) else result.model
        level = logging.INFO if result.error is None else logging.ERROR
        _LOGGER.log(level, "%s of %s: %s: %s", number, total, table.unique_id, result.error or "done")


class FreshnessLog:
    """Listens to freshness checks of sources; a status with "error" in it is logged as an error."""

    def started(self, number: int, total: int, table: SourceTable) -> None:
        _LOGGER.debug("%s of %s: %s", number, total, table.unique_id)

    def ended(self, number: int, total: int, table: SourceTable, result: FreshnessResult) -> None:
        level = logging.ERROR if "error" in result.status else logging.INFO
        _LOGGER.log(level, "%s of %s: %s: %s", number, total, table.unique_id, result.error or result.status)
