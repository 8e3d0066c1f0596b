"""The hooks of one call. Owns wiring them, and that a target without Spark says that it runs none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlmesh_like.app.lakes.lake import Lake
from sqlmesh_like.app.reporter import Notify
from sqlmesh_like.render.operations import Operations
from sqlmesh_like.render.renderer import Renderer
from sqlmesh_like.run.hooks import Hooks
from sqlmesh_like.run.lake_query import LakeQuery
from sqlmesh_like.run.result import RunResult


def hooks_of(lake: Lake, written: Collection[str], now: datetime, notify: Notify) -> Hooks | None:
    """The hooks of the nodes that are written and of the run, None where there are none."""
    loaded = lake.loaded
    models = sum(
        bool(m.config.pre_hook or m.config.post_hook) for m in loaded.rendered.models if m.unique_id in written
    )
    seeds = [seed for seed in loaded.rendered.seeds if seed.unique_id in written]
    count = models + sum(bool(seed.config.get("pre_hook") or seed.config.get("post_hook")) for seed in seeds)
    count += len(loaded.project.on_run_start) + len(loaded.project.on_run_end)
    if not count:
        return None
    if loaded.target.type == "duckdb":
        notify("warning: hooks are statements for Spark: they are not run on DuckDB", "warn")
        return None
    return Hooks(operations(lake, now), LakeQuery(lake.planner(now), lake.engine, may_write=True))


def operations(lake: Lake, now: datetime) -> Operations:
    """Renders hooks and operations with answers of the lake, which they may change."""
    loaded = lake.loaded
    renderer = Renderer(loaded.project, loaded.target, now=now, full_refresh=loaded.invocation.full_refresh)
    answers = LakeQuery(lake.planner(now), lake.engine, may_write=True)
    return Operations(renderer, loaded.project, loaded.target, answers)


def end_context(result: RunResult) -> Mapping[str, object]:
    """What templates of `on-run-end` know of the run."""
    results = [
        {
            "node": {"unique_id": node_result.node.unique_id, "name": node_result.node.name},
            "unique_id": node_result.node.unique_id,
            "status": node_result.status,
            "message": node_result.message,
            "execution_time": node_result.seconds,
        }
        for node_result in result.results
    ]
    tables = (getattr(node_result.node, "table", None) for node_result in result.results)
    schemas = sorted({table.schema for table in tables if table is not None})
    return {"results": results, "schemas": schemas, "database_schemas": [(None, schema) for schema in schemas]}
