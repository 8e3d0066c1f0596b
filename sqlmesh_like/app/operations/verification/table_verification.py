"""Compares tables with a recompute of their query, whole or by a sample of keys.

Owns which tables can be compared, and the random seed; the engine compares them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

from sqlmesh_like.app.lakes.lake import clock
from sqlmesh_like.app.lakes.release_lake import environment_tables, newest_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import NewerVersionError, NodeError, SmlError, UsageError
from sqlmesh_like.plan.fingerprint import is_of_query
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.ports import ModelVerifier, RowDifference, Sample


@dataclass(frozen=True)
class Verification:
    """One table compared with its recompute. `difference` None: this was not possible, `error` says why."""

    model: RenderedModel
    difference: RowDifference | None
    error: str | None
    seconds: float

    @property
    def status(self) -> Literal["pass", "fail", "error"]:
        if self.difference is None:
            return "error"
        return "fail" if self.difference.total else "pass"


OnVerified = Callable[[int, int, Verification], None]
"""Called with the number of a table, the number of all tables, and its result."""


SAMPLED_KEYS = 20
"""Keys of a table that a sample compares by default."""


def new_sample(keys: int = SAMPLED_KEYS, seed: int | None = None) -> Sample:
    """Return a sample; without a seed, a random one. Raises UsageError if it would have no keys."""
    if keys < 1:
        raise UsageError(f"a sample of {keys} keys", hint="give at least one key")
    return Sample(keys, secrets.randbelow(1_000_000) if seed is None else seed)


def verify_tables(
    loaded: Loaded, limit: int, on_verified: OnVerified, sample: Sample | None = None
) -> tuple[Verification, ...]:
    """Compare the selected tables, each at its own frontier and clock; a result has at most `limit` differing rows.

    `sample`: compare only rows of these keys. Raises UsageError where the target has no lake.
    """
    selected = environment_tables(loaded, [node.unique_id for node in loaded.select_nodes("model")])
    lake = newest_lake(loaded, selected)
    planner = lake.planner(clock(None))
    tables = [planner.rendered.model(unique_id) for unique_id in selected if unique_id in lake.catalog.places]
    results: list[Verification] = []
    try:
        for number, model in enumerate(tables, 1):
            loaded.reporter.phase(f"verifying {number} of {len(tables)}, {model.table}")
            results.append(verify_table(model, planner, lake.engine, limit, sample))
            on_verified(number, len(tables), results[-1])
    finally:
        lake.engine.stop()
    return tuple(results)


def verify_table(
    model: RenderedModel, planner: Planner, engine: ModelVerifier, limit: int, sample: Sample | None = None
) -> Verification:
    """Compare one table, as `verify_tables`."""
    started = perf_counter()
    try:
        difference = engine.verify(_verifiable(planner.plan(model, {}, whole=True)), limit, sample)
    except NewerVersionError:
        raise
    except SmlError as error:
        return Verification(model, None, str(error), perf_counter() - started)
    return Verification(model, difference, None, perf_counter() - started)


def _verifiable(planned: PlannedModel) -> PlannedModel:
    name = planned.compiled.model.table
    record = planned.target.record
    if record is None:
        raise NodeError(f"{name} has not been built by a run", hint="run it first: sml run")
    if not is_of_query(record, planned.compiled):
        raise NodeError(f"the query of {name} changed since its last run", hint="run it first: sml run")
    return planned
