"""The fields of a node's lines in JSON logs: dbt's, and what it has no field for. `json_log` owns those of all lines.

Dagster and Airflow's Cosmos read the name of a node's last event, `node_info`, `num_failures` and `execution_time`.
Source: `LogModelResult` and its like in dbt 1.11.
"""

from __future__ import annotations

import datetime

from sqlmesh_like.artifacts.files import timestamp
from sqlmesh_like.render.rendered import RenderedModel, RenderedSeed, RenderedTest, RenderedUnitTest
from sqlmesh_like.run.result import ModelResult, NodeResult, RenderedNode, SeedResult, TestResult

_NEVER = ""  # as in dbt: the time of what has not happened


def result_event(node: RenderedNode) -> str:
    """Return dbt's name of the event that ends a node."""
    match node:
        case RenderedModel():
            return "LogModelResult" if node.config.snapshot is None else "LogSnapshotResult"
        case RenderedSeed():
            return "LogSeedResult"
        case RenderedTest() | RenderedUnitTest():
            return "LogTestResult"
        case _:
            return "LogNodeNoOpResult"


def start_data(node: RenderedNode) -> dict[str, object]:
    """Return the fields of the line that says that a node starts."""
    return {**_node(node), "status": "started", "node_info": _node_info(node, "started", _NEVER, _NEVER)}


def result_data(result: NodeResult) -> dict[str, object]:
    """Return the outcome of a node: rows that it changed and bytes that its commit wrote, null where it writes no
    table; `failures` of a test; `elapsed` in seconds."""
    ended = result.started + datetime.timedelta(seconds=result.seconds)
    failures = result.failures if isinstance(result, TestResult) else None
    return {
        **_node(result.node),
        "status": result.status,
        "strategy": result.strategy if isinstance(result, ModelResult | TestResult) else None,
        **_rows_and_bytes(result),
        "failures": failures,
        "num_failures": failures,
        "elapsed": round(result.seconds, 3),
        "execution_time": result.seconds,
        "message": result.message,
        "node_info": _node_info(result.node, result.status, timestamp(result.started), timestamp(ended)),
    }


def _rows_and_bytes(result: NodeResult) -> dict[str, object]:
    if not isinstance(result, ModelResult | SeedResult):
        return {"rows": None, "bytes": None}
    return {"rows": result.rows, "bytes": 0 if result.written is None else result.written.bytes}


def _node(node: RenderedNode) -> dict[str, object]:
    return {"unique_id": node.unique_id, "resource_type": node.unique_id.kind, "name": node.name}


def _node_info(node: RenderedNode, status: str, started: str, finished: str) -> dict[str, object]:
    return {
        "unique_id": node.unique_id,
        "node_name": node.name,
        "resource_type": node.unique_id.kind,
        "materialized": _materialization(node),
        "node_status": status,
        "node_started_at": started,
        "node_finished_at": finished,
    }


def _materialization(node: RenderedNode) -> str | None:
    if isinstance(node, RenderedModel):
        return node.config.materialized if node.config.snapshot is None else "snapshot"
    kind = {"unit_test": "unit"}.get(node.unique_id.kind, node.unique_id.kind)
    return kind if isinstance(node, RenderedSeed | RenderedTest | RenderedUnitTest) else None
