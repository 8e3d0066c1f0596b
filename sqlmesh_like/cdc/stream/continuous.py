"""Sources that are ingested until stopped. Owns the waiting loop; `ingest_run` runs each source."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from sqlmesh_like import stop_signals
from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.cdc.stream.ingest_run import IngestRun

_POLL_SECONDS = 0.5


def run_until_stopped(
    runs: Sequence[IngestRun],
    triggers: Sequence[str],
    start: str | None = None,
    between: Callable[[], None] = lambda: None,
) -> list[IngestReport]:
    """Run sources in parallel, with a batch per trigger, until `stop_signals` receives a signal or a source ends.

    Batches that are under way finish before the stop. `between` is called repeatedly, in parallel to the batches.
    Raises what it raises, or the error that ended a source, after all sources have stopped.
    """
    with stop_signals.defer_signals(), ExitStack() as ending:
        for run in runs:
            ending.callback(run.close)
        for run in runs:
            run.read_database(start, follows=True)
        waiting = dict(zip(runs, triggers, strict=True))
        for run in runs:
            run.prepare(start)
        try:
            while not stop_signals.is_wished():
                # A folder without files is not a stream yet; some may arrive later.
                begun = [run for run in waiting if run.begin(start, trigger=waiting[run])]
                waiting = {run: trigger for run, trigger in waiting.items() if run not in begun}
                for run in runs:
                    run.keep_database()
                between()
                time.sleep(_POLL_SECONDS)
                if any(not run.is_active for run in runs if run not in waiting):
                    break
        finally:
            _stop_all([run for run in runs if run not in waiting])
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
