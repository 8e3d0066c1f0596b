"""What a job of executors takes on a master. Owns how it is measured, recorded with commits and known again.

A job has to be planned, its tasks sent out and their results fetched, however few rows it returns: of a small change
this is most of the time. What it takes differs between masters, so each commit for which executors had jobs records it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import exp, log

from sqlmesh_like.plan.history import TableRecord

QUESTION_SECONDS, STEP_SECONDS = 1.0, 0.25
"""Seconds of a job on a master where none has been measured: of a question of the driver's, which is mostly among the
first jobs of a session, for which executors load their classes; and of one job of many in a run that is all theirs."""
_SECONDS_PER_BYTE = 1e-8
"""What a job reads and shuffles is no part of its price: the estimate counts bytes by themselves."""
_LEAST, _MOST = 0.05, 20.0
"""Seconds outside these bounds are not a job's: they are those of bytes, or a cluster without free cores was waited
for."""
_NEWEST = 5
"""Records of so many tables are pooled: those before are of other days."""
_PREFIX = "job of "


@dataclass(frozen=True)
class JobsDone:
    """Jobs for which a run has waited `seconds`, and the bytes that they read and shuffled."""

    jobs: int
    seconds: float
    bytes: int = 0

    @property
    def seconds_each(self) -> float | None:
        """The price of one; None: there was none.

        >>> JobsDone(4, 2.0, 100_000_000).seconds_each, JobsDone(1, 90.0).seconds_each, JobsDone(0, 1.0).seconds_each
        (0.25, 20.0, None)
        """
        if not self.jobs:
            return None
        return min(_MOST, max(_LEAST, (self.seconds - _SECONDS_PER_BYTE * self.bytes) / self.jobs))


@dataclass(frozen=True)
class JobPrice:
    """The price of a job on `master`. `measured`: in seconds, by earlier runs; None: none of them had a job there."""

    master: str
    measured: float | None = None

    def seconds(self, *, is_question: bool) -> float:
        """Of a question that the driver asks, or of a job of a run that executors do as a whole."""
        if self.measured is not None:
            return self.measured
        return QUESTION_SECONDS if is_question else STEP_SECONDS

    def known_from(self, records: Iterable[TableRecord]) -> JobPrice:
        """The price as the newest of these records have it: their geometric mean."""
        priced = [record for record in records if self._name in record.paces]
        newest = sorted(priced, key=lambda record: record.now, reverse=True)[:_NEWEST]
        if not newest:
            return self
        return replace(self, measured=exp(sum(log(each.paces[self._name]) for each in newest) / len(newest)))

    def recorded(self, before: TableRecord | None, done: JobsDone | None) -> dict[str, float]:
        """What the record of a commit says of the price: the mean of what this run and those before it have measured.

        It stands among the paces, by the master's name; versions that do not know it take it for one more of them.
        """
        earlier = before.paces.get(self._name) if before is not None else None
        now = done.seconds_each if done is not None else None
        if now is None:
            return {} if earlier is None else {self._name: earlier}
        return {self._name: round(now if earlier is None else (now + earlier) / 2, 3)}

    @property
    def _name(self) -> str:
        return f"{_PREFIX}{self.master}"


def is_of_job(pace: str) -> bool:
    """Whether an entry of a record's paces is the price of a job, in seconds, and not a strategy's pace."""
    return pace.startswith(_PREFIX)
