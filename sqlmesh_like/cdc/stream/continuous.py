"""Sources that are ingested until stopped. Owns the waiting loop; `ingest_run` runs each source.

As long as only a few events wait at a time, this process takes them, one source after another (`small_batches`); from
the first batch on that it cannot take, Spark's query follows that source, in threads of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from sqlmesh_like import stop_signals
from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.cdc.stream.ingest_run import IngestRun
from sqlmesh_like.cdc.stream.small_batches import take_small_batches
from sqlmesh_like.project.keys.value_types import seconds_of

_POLL_SECONDS = 0.5


@dataclass
class _FollowedSource:
    """A source, with a batch per `trigger`. `is_here`: this process takes its events; `due`: when it looks again."""

    run: IngestRun
    trigger: str
    start: str | None
    on_spark: Callable[[str], None]
    is_here: bool
    due: float = 0.0

    def advance(self) -> None:
        """Take what is pending, or begin Spark's query."""
        if self.is_here and time.monotonic() >= self.due:
            self.due = time.monotonic() + seconds_of(self.trigger)
            with self.run.gate:
                self.is_here = take_small_batches(self.run, self.on_spark)
            if not self.is_here and not stop_signals.is_wished():
                self.run.prepare()
        if not self.is_here and self.run.query is None:
            # A folder without files is not a stream yet; some may arrive later.
            self.run.begin(self.start, trigger=self.trigger)

    @property
    def has_ended(self) -> bool:
        return self.run.query is not None and not self.run.is_active


def run_until_stopped(
    runs: Sequence[IngestRun],
    triggers: Sequence[str],
    start: str | None = None,
    between: Callable[[], None] = lambda: None,
    *,
    small_batches: bool = True,
    on_spark: Callable[[str], None] = lambda _: None,
) -> list[IngestReport]:
    """Run sources, with a batch per trigger, until `stop_signals` receives a signal or a source ends.

    Batches that are under way finish before the stop. `between` is called repeatedly, in parallel to the batches of
    Spark's queries. `small_batches`, `on_spark`: as `ingest_source` says. Raises what `between` raises, or the error
    that ended a source, after all sources have stopped.
    """
    is_here = small_batches and start is None
    sources = [
        _FollowedSource(run, trigger, start, on_spark, is_here) for run, trigger in zip(runs, triggers, strict=True)
    ]
    with stop_signals.defer_signals(), ExitStack() as ending:
        for run in runs:
            ending.callback(run.close)
            run.is_continuous = True
        for run in runs:
            run.read_database(start, follows=True)
        if not is_here:
            for run in runs:
                run.prepare(start)
        try:
            while not stop_signals.is_wished():
                for source in sources:
                    source.advance()
                for run in runs:
                    run.keep_database()
                between()
                time.sleep(_POLL_SECONDS)
                if any(source.has_ended for source in sources):
                    break
        finally:
            _stop_all([run for run in runs if run.query is not None])
    return [run.report() for run in runs]


def _stop_all(runs: Sequence[IngestRun]) -> None:
    """Stop every source, and only then raise the first error of any."""
    for run in runs:
        run.is_stopping = True
    errors = []
    for run in runs:
        try:
            run.stop()
        except Exception as error:  # noqa: BLE001 - raised below, when all have stopped
            errors.append(error)
    if errors:
        raise errors[0]
