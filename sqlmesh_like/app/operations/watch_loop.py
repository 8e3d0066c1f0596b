"""Updates of models after an ingestion in the same process. Owns when they run; the executor runs them.

A round runs the selected models whose sources exist. It starts as soon as a batch has changed a table, and also every
half minute, for tables that other processes write and for models that read the clock. If nothing changed it reads the
end of each timeline, starts no Spark job and prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Event
from time import monotonic, perf_counter

from sqlmesh_like.app.lakes.clean_tables import clean_built, clean_ingested
from sqlmesh_like.app.lakes.lake import HudiLake, clock
from sqlmesh_like.app.lakes.lake_lock import HeldLocks
from sqlmesh_like.app.loading.query_record import store_queries
from sqlmesh_like.app.operations.releases.release_after_run import makes_release, publisher_of_run, release_after_run
from sqlmesh_like.app.operations.run_results import write_results
from sqlmesh_like.app.reporter import RunListener
from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.plan.queries.known_queries import KnownQueries
from sqlmesh_like.publish.publisher import LakePublisher
from sqlmesh_like.run.executor import Executor, RunPolicy
from sqlmesh_like.run.result import ModelResult, NodeResult, RenderedNode, RunResult
from sqlmesh_like.run.schedule import Pace

IDLE_SECONDS = 30.0
"""Seconds between rounds while no batch changes a table."""


@dataclass
class WatchLoop:
    """The rounds of one watch. `gates` keep every source from writing while its tables are cleaned."""

    lake: HudiLake
    held: HeldLocks
    selected: Sequence[str]
    listener: RunListener
    gates: Callable[[], ExitStack]
    publisher: LakePublisher | None = None
    on_round: Callable[[RunResult], None] = lambda _: None
    result: RunResult = field(default_factory=RunResult)
    _changed: Event = field(default_factory=Event)
    _next: float = 0.0
    _queries: KnownQueries | None = None

    def on_batch(self, report: IngestReport) -> None:
        """Note an ingested batch; called from the threads of the sources."""
        if any(table.upserts or table.deletes for table in report.tables):
            self._changed.set()

    def __call__(self) -> None:
        """Run the models if a table has changed or the next round is due."""
        # After a failure only a change of data is expected to help, so rounds are not started by time.
        is_due = monotonic() >= self._next and self.result.ok
        if not (self._changed.is_set() or is_due):
            return
        self._changed.clear()
        self._run_round()
        self._next = monotonic() + IDLE_SECONDS

    def _run_round(self) -> None:
        started, lake = perf_counter(), self.lake
        now = clock(None)
        policy = RunPolicy(Pace(lake.loaded.target.threads), notes_tables=makes_release(lake.loaded, "watch"))
        listener = _CompletedListener(self.listener)
        executor = Executor(self._planner(now), lake.loaded.graph, lake.engine, listener, policy)
        executor.publisher = publisher_of_run(lake, self.publisher)
        self.result = executor.run(self._ready())
        store_queries(lake.loaded.entry_path, self._queries, lake.loaded.rendered)
        if self.result.has_written:
            self.result = release_after_run(lake, "watch", executor, self.result, self.publisher)
        self.listener.finished(self.result)
        self.on_round(self.result)
        if self.result.has_written:
            write_results(lake.loaded, self.result, perf_counter() - started, {"which": "run", "now": now.isoformat()})
            clean_built(lake, self.held, self.listener.notify)
            with self.gates():
                clean_ingested(lake, self.held, self.listener.notify)

    def _planner(self, now: datetime) -> Planner:
        """The planner of a round, which knows the queries of those before it.

        Other calls may know of files that were edited since: what they store replaces this record, and each round goes
        on from what the first one knew.
        """
        planner = self.lake.planner(now)
        self._queries = self._queries or planner.queries
        return replace(planner, queries=self._queries)

    def _ready(self) -> list[str]:
        """Return the selected models whose sources all exist: at the start some tables are not ingested yet."""
        catalog, graph = self.lake.catalog, self.lake.loaded.graph
        missing = [
            unique_id
            for unique_id, place in catalog.places.items()
            if place.unique_id.kind != "model" and not catalog.state(unique_id).exists
        ]
        waiting = frozenset[str]().union(*map(graph.descendants, missing))
        return [unique_id for unique_id in self.selected if unique_id not in waiting]


class _CompletedListener:
    """Forwards only results of models that did something: neither no-ops nor views."""

    def __init__(self, listener: RunListener) -> None:
        self._listener = listener

    def started(self, number: int, total: int, node: RenderedNode) -> None:
        """Do nothing: whether the model did something is known only when it has ended."""

    def ended(self, number: int, total: int, result: NodeResult) -> None:
        is_view = isinstance(result, ModelResult) and result.status == "success" and result.strategy is None
        if result.status != "no-op" and not is_view:
            self._listener.ended(number, total, result)
