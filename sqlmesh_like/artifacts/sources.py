"""`sources.json` in the shape of dbt's schema v3. Owns the shape, and when a source is stale; it reads no tables."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlmesh_like import __version__
from sqlmesh_like.artifacts.files import timestamp, write_json
from sqlmesh_like.invocation_id import INVOCATION_ID
from sqlmesh_like.project.freshness import Freshness, Threshold

SOURCES_SCHEMA = "https://schemas.getdbt.com/dbt/sources/v3.json"
FreshnessStatus = Literal["pass", "warn", "error", "runtime error"]


@dataclass(frozen=True)
class FreshnessResult:
    """The freshness of one source table. `newest`: time of its newest row; `asked`: time of the check; both UTC.

    `error`: why the check failed; `newest` is meaningless then.
    """

    unique_id: str
    criteria: Freshness
    newest: datetime.datetime
    asked: datetime.datetime
    seconds: float = 0.0
    error: str | None = None

    @property
    def status(self) -> FreshnessStatus:
        """The status as dbt names it; `error` means stale, `runtime error` that the check failed."""
        if self.error is not None:
            return "runtime error"
        age = self.asked - self.newest
        if self.criteria.error_after is not None and age > self.criteria.error_after.age:
            return "error"
        return "warn" if self.criteria.warn_after is not None and age > self.criteria.warn_after.age else "pass"


def write_sources(path: Path, results: Sequence[FreshnessResult], elapsed: float, now: datetime.datetime) -> None:
    """Write the results of one call; `elapsed` in seconds. Raises MachineError where the file cannot be written."""
    metadata = {
        "dbt_schema_version": SOURCES_SCHEMA,
        "dbt_version": __version__,
        "generated_at": timestamp(now),
        "invocation_id": INVOCATION_ID,
        "env": {},
    }
    write_json(path, {"metadata": metadata, "results": [_row(each) for each in results], "elapsed_time": elapsed})


def criteria(freshness: Freshness) -> Mapping[str, object]:
    """Return the thresholds in the form of manifest.json and sources.json."""
    return {
        "warn_after": _threshold(freshness.warn_after),
        "error_after": _threshold(freshness.error_after),
        "filter": freshness.filter,
    }


def _threshold(threshold: Threshold | None) -> Mapping[str, object]:
    return {
        "count": threshold.count if threshold else None,
        "period": threshold.period if threshold else None,
    }


def _row(result: FreshnessResult) -> Mapping[str, object]:
    if result.error is not None:
        return {"unique_id": result.unique_id, "error": result.error, "status": result.status}
    return {
        "unique_id": result.unique_id,
        "max_loaded_at": timestamp(result.newest),
        "snapshotted_at": timestamp(result.asked),
        "max_loaded_at_time_ago_in_s": (result.asked - result.newest).total_seconds(),
        "status": result.status,
        "criteria": criteria(result.criteria),
        "adapter_response": {},
        "timing": [],
        "thread_id": "MainThread",
        "execution_time": result.seconds,
    }
