"""Which events of a watch cause an alert. Owns the conditions; `alerts` sends them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlmesh_like.app.monitoring.alerts import Alert, Alerts
from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.errors import SmlError
from sqlmesh_like.run.result import ModelResult, RunResult

_EXPECTED = frozenset({"HIS001", "CFG001", "CFG002", "CFG003", "CST001"})
"""Rules of full refreshes that need no alert: a first build, and those that were configured or are cheaper."""


@dataclass(frozen=True)
class WatchAlerts:
    """Sends alerts about batches and rounds. `most_lag`: seconds that a table may be behind its log without one."""

    alerts: Alerts
    most_lag: float | None = None

    def note_batch(self, report: IngestReport) -> None:
        if report.dead_letters:
            text = f"{report.dead_letters} events could not be ingested, see {report.dead_letter_table}"
            self.alerts.send(Alert("dead letters", report.source, text))
        for table in report.tables:
            if table.error:
                self.alerts.send(Alert("failure", str(table.table), table.error))
            if self.most_lag is not None and table.lag is not None and table.lag > self.most_lag:
                text = f"{table.lag:.0f} seconds behind its log, more than {self.most_lag:.0f}"
                self.alerts.send(Alert("lag", str(table.table), text))

    def note_difference(self, unique_id: str, problem: str | None) -> None:
        """Alert a table that differs from its recompute, or from its database."""
        if problem is not None:
            self.alerts.send(Alert("difference", unique_id, problem))

    def note_failed_comparison(self, table: str, problem: str | None) -> None:
        """Alert a table that could not be compared with its database."""
        if problem is not None:
            self.alerts.send(Alert("failure", f"comparison of {table}", problem))

    @contextmanager
    def noting_failure(self) -> Iterator[None]:
        """Alert any error that ends the watch; a signal to stop, such as Ctrl-C, is none."""
        try:
            yield
        except Exception as error:
            self.alerts.send(Alert("failure", "watch", f"it has ended: {_text(error)}"))
            raise

    def note_round(self, result: RunResult) -> None:
        for each in result.results:
            if each.status in ("error", "fail"):
                self.alerts.send(Alert("failure", each.node.unique_id, each.message))
            elif isinstance(each, ModelResult) and each.status == "success" and each.strategy == "full_refresh":
                reasons = [reason for reason in each.reasons if reason.rule not in _EXPECTED]
                # A model that cannot be maintained is rebuilt each time: only reasons in its history are unexpected.
                if any(reason.rule.startswith("HIS") for reason in reasons):
                    text = "; ".join(f"{reason.rule} {reason.message}" for reason in reasons)
                    self.alerts.send(Alert("full refresh", each.node.unique_id, text))


def _text(error: Exception) -> str:
    """
    >>> _text(ValueError("bad\\nmore")), _text(SmlError("a table is locked"))
    ('ValueError: bad', 'a table is locked')
    """
    if isinstance(error, SmlError):
        return error.message
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
