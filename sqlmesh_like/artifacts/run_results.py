"""`run_results.json` in the shape of dbt's schema v6. Owns the shape; `run` owns the results."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sqlmesh_like import __version__
from sqlmesh_like.artifacts.files import timestamp, write_json
from sqlmesh_like.invocation_id import INVOCATION_ID
from sqlmesh_like.render.rendered import RenderedProject

RUN_RESULTS_SCHEMA = "https://schemas.getdbt.com/dbt/run-results/v6.json"
ResultStatus = Literal["success", "error", "skipped", "pass", "fail", "warn", "no-op", "runtime error"]


@dataclass(frozen=True)
class Timing:
    """One phase of a node's run: `compile` or `execute`."""

    name: Literal["compile", "execute"]
    started_at: datetime.datetime
    completed_at: datetime.datetime


@dataclass(frozen=True)
class NodeRow:
    """The outcome of one node. `execution_time` in seconds; `failures`: number of rows that a data test returned."""

    unique_id: str
    status: ResultStatus
    message: str | None = None
    execution_time: float = 0.0
    adapter_response: Mapping[str, object] = field(default_factory=dict)
    failures: int | None = None
    timing: tuple[Timing, ...] = ()
    thread_id: str = "MainThread"


def write_run_results(
    path: Path,
    results: Sequence[NodeRow],
    elapsed: float,
    args: Mapping[str, object],
    rendered: RenderedProject | None = None,
    now: datetime.datetime | None = None,
) -> dict[str, object]:
    """Write the results of one call in the order given, and return the content of the file. Raises MachineError.

    `elapsed` in seconds; `args` are the flags of the call. With `rendered`, results contain their compiled SQL.
    """
    moment = now or datetime.datetime.now(datetime.UTC)
    compiled = _compiled_code(rendered) if rendered else {}
    metadata = {
        "dbt_schema_version": RUN_RESULTS_SCHEMA,
        "dbt_version": __version__,
        "generated_at": timestamp(moment),
        "invocation_id": INVOCATION_ID,
        "env": {},
    }
    rows = [_row(result, compiled.get(result.unique_id)) for result in results]
    # As JSON values, without `vars`, which may contain a secret.
    listed = {key: list(value) if isinstance(value, tuple) else value for key, value in args.items() if key != "vars"}
    plain_args = {
        key: value if value is None or isinstance(value, bool | int | float | list) else str(value)
        for key, value in listed.items()
    }
    written = {"metadata": metadata, "results": rows, "elapsed_time": elapsed, "args": plain_args}
    write_json(path, written)
    return written


def _compiled_code(rendered: RenderedProject) -> dict[str, tuple[str, str | None]]:
    compiled: dict[str, tuple[str, str | None]]
    compiled = {model.unique_id: (model.sql, model.table.sql()) for model in rendered.models}
    return compiled | {test.unique_id: (test.sql, None) for test in rendered.tests}


def _row(result: NodeRow, compiled: tuple[str, str | None] | None) -> dict[str, object]:
    code, relation = compiled or (None, None)
    return {
        "status": result.status,
        "timing": [
            {"name": part.name, "started_at": timestamp(part.started_at), "completed_at": timestamp(part.completed_at)}
            for part in result.timing
        ],
        "thread_id": result.thread_id,
        "execution_time": result.execution_time,
        "adapter_response": dict(result.adapter_response),
        "message": result.message,
        "failures": result.failures,
        "unique_id": result.unique_id,
        "compiled": code is not None,
        "compiled_code": code,
        "relation_name": relation,
        "batch_results": None,
    }
