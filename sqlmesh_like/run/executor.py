"""Runs selected models in dependency order. Owns pinning, scheduling and what happens after a failure.

Inputs that this run does not build are pinned once, at its start: chains and diamonds see one consistent past. A model
that this run builds is read by its children as it left it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Protocol

from sqlmesh_like.errors import RetryableError, SmlError
from sqlmesh_like.plan.builder import PlannedModel
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.live import Planner
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.ports import Engine
from sqlmesh_like.run.result import ModelResult, RunResult

_ATTEMPTS = 2
"""A plan whose files vanish while they are read is made anew this often in all."""


class Listener(Protocol):
    """Told of each model as it starts and ends, from any thread."""

    def started(self, number: int, total: int, model: RenderedModel) -> None: ...

    def ended(self, number: int, total: int, result: ModelResult) -> None: ...


@dataclass
class Executor:
    """One run of selected models, `threads` side by side."""

    planner: Planner
    graph: Graph
    engine: Engine
    listener: Listener
    threads: int = 1
    fail_fast: bool = False
    _pinned: dict[str, TableState] = field(default_factory=dict)

    def run(self, selected: Sequence[str]) -> RunResult:
        """Run models given by unique id. Errors of a model end up in its result; nothing is raised for them."""
        models = [self.planner.rendered.model(i) for i in self.graph.order(selected)]
        models = [model for model in models if model.config.materialized != "ephemeral"]
        self._pin(models)
        return RunResult(tuple(_Schedule(self, models).results()))

    def _pin(self, models: Sequence[RenderedModel]) -> None:
        built = {model.unique_id for model in models}
        read = dict.fromkeys(unique_id for model in models for unique_id in self.planner.inputs(model))
        self._pinned = self.planner.catalog.states(unique_id for unique_id in read if unique_id not in built)

    def execute(self, model: RenderedModel) -> ModelResult:
        """Plan and apply one model."""
        started, clock = datetime.now(UTC), perf_counter()

        def result(status: str, message: str, **more: object) -> ModelResult:
            return ModelResult(model, status, message, started, perf_counter() - clock, **more)  # type: ignore[arg-type]

        if model.config.materialized == "view":
            return result("success", "view, inlined where it is read")
        try:
            for attempt in range(_ATTEMPTS):
                try:
                    return self._apply(self.planner.plan(model, self._pinned), result)
                except RetryableError:
                    if attempt == _ATTEMPTS - 1:
                        raise
            raise AssertionError("the loop returns or raises")
        except SmlError as error:
            return result("error", str(error))

    def _apply(self, planned: PlannedModel, result) -> ModelResult:  # type: ignore[no-untyped-def]
        if planned.strategy == "no_op":
            return result("no-op", "nothing changed", strategy="no_op")
        applied = self.engine.apply(planned)
        reasons = (*applied.reasons, *planned.reasons)
        return result(
            "success", "", strategy=applied.strategy, upserts=applied.upserts, deletes=applied.deletes, reasons=reasons
        )


class _Schedule:
    """Models whose parents are done run; descendants of a failed one are skipped."""

    def __init__(self, executor: Executor, models: Sequence[RenderedModel]) -> None:
        self._executor = executor
        self._models: Mapping[str, tuple[int, RenderedModel]] = {
            model.unique_id: (number, model) for number, model in enumerate(models, 1)
        }
        self._waiting = {i: self._selected_ancestors(i) for i in self._models}
        self._done: dict[str, ModelResult] = {}
        self._running: dict[Future[ModelResult], str] = {}
        self._stopped = False

    def results(self) -> list[ModelResult]:
        with ThreadPoolExecutor(max_workers=self._executor.threads) as pool:
            self._start_ready(pool)
            while self._running:
                ended, _ = wait(self._running, return_when=FIRST_COMPLETED)
                for future in ended:
                    self._finish(self._running.pop(future), future.result())
                self._start_ready(pool)
        return list(self._done.values())

    def _selected_ancestors(self, unique_id: str) -> set[str]:
        return {found for found in self._executor.graph.ancestors(unique_id) if found in self._models}

    def _start_ready(self, pool: ThreadPoolExecutor) -> None:
        """Start what can run, in order; skip what cannot any more."""
        progressed = True
        while progressed:
            progressed = False
            for unique_id in [i for i, needs in self._waiting.items() if needs <= set(self._done)]:
                failed = [i for i in self._waiting.pop(unique_id) if self._done[i].status in ("error", "skipped")]
                number, model = self._models[unique_id]
                if failed or self._stopped:
                    self._skip(model, failed)
                    progressed = True
                elif len(self._running) < self._executor.threads:
                    self._executor.listener.started(number, len(self._models), model)
                    self._running[pool.submit(self._executor.execute, model)] = unique_id
                else:
                    self._waiting[unique_id] = set()

    def _skip(self, model: RenderedModel, failed: list[str]) -> None:
        why = f"because of {', '.join(sorted(failed))}" if failed else "because of --fail-fast"
        self._finish(model.unique_id, ModelResult(model, "skipped", why, datetime.now(UTC), 0.0))

    def _finish(self, unique_id: str, result: ModelResult) -> None:
        self._done[unique_id] = result
        if result.status == "error" and self._executor.fail_fast:
            self._stopped = True
        self._executor.listener.ended(self._models[unique_id][0], len(self._models), result)
