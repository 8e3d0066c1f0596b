"""The hooks of one call. Owns which ones it has, and wiring them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlmesh_like.app.lakes.lake import HudiLake, Lake, clock, open_lake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.table_locks import BESIDE_INGESTION
from sqlmesh_like.app.loading.declared_hooks import has_hook, has_hooks, nodes_have_hooks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.reporter import Notify
from sqlmesh_like.errors import SmlError, UsageError
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.config import HookTime
from sqlmesh_like.project.reading.values import parse_vars
from sqlmesh_like.render.library.call import TemplateCall
from sqlmesh_like.render.operations import Operations
from sqlmesh_like.run.hooks import Hooks
from sqlmesh_like.run.result import RunResult

if TYPE_CHECKING:
    from sqlmesh_like.app.lakes.duck_lake import DuckLake
    from sqlmesh_like.run.lake_query import LakeQuery


@dataclass(frozen=True)
class HooksInMemory(Hooks):
    """Hooks of nodes on a `duckdb` target: one that DuckDB cannot run is skipped with a warning."""

    notify: Notify

    def around(self, unique_id: NodeId, moment: HookTime) -> bool:
        try:
            return super().around(unique_id, moment)
        except SmlError as error:
            _warn_of_hook(unique_id, str(error), self.notify)
            return True


def _warn_of_hook(unique_id: NodeId, reason: str, notify: Notify) -> None:
    notify(
        f"warning: {unique_id.short_name}: a hook that is a statement for Spark is not run on DuckDB: {reason}", "warn"
    )


def hooks_in_memory(
    lake: DuckLake, written: Collection[str], now: datetime, command: str, selected: Collection[str], notify: Notify
) -> Hooks | None:
    """Return the hooks of the nodes that are written, None where there are none.

    Hooks of the run, and of views, are skipped with a warning on a `duckdb` target.
    """
    from sqlmesh_like.run.lake_query import LakeQuery

    project = lake.loaded.project
    if project.on_run_start or project.on_run_end:
        notify("warning: on-run-start and on-run-end are statements for Spark: they are not run on DuckDB", "warn")
    for model in lake.loaded.rendered.models:
        if model.config.materialized == "view" and model.unique_id in written and has_hook(model.config):
            _warn_of_hook(model.unique_id, "a view is inlined where it is read", notify)
    if not nodes_have_hooks(lake.loaded, written):
        return None
    answers = LakeQuery(lake.planner(now), lake.engine, lake.engine)
    return HooksInMemory(_operations(lake, answers, now, command, selected), answers, notify)


def hooks_of(
    lake: HudiLake, written: Collection[str], now: datetime, command: str, selected: Collection[str]
) -> Hooks | None:
    """Return the hooks of the nodes that are written and of the run, None where there are none."""
    if not has_hooks(lake.loaded, written):
        return None
    from sqlmesh_like.run.lake_query import LakeQuery

    return Hooks(operations(lake, now, command, selected), LakeQuery(lake.planner(now), lake.engine, lake.engine))


def operations(lake: HudiLake, now: datetime, command: str, selected: Collection[str] = ()) -> Operations:
    """Return the renderer of a command's hooks and operations, which may query and change the lake."""
    from sqlmesh_like.run.lake_query import LakeQuery

    answers = LakeQuery(lake.planner(now), lake.engine, lake.engine)
    return _operations(lake, answers, now, command, selected)


def _operations(lake: Lake, answers: LakeQuery, now: datetime, command: str, selected: Collection[str]) -> Operations:
    loaded = lake.loaded
    call = _template_call(loaded, command, selected)
    return Operations(loaded.renderer(now), loaded.project, loaded.target, answers, loaded.graph_of_templates, call)


def run_operation(loaded: Loaded, macro: str, arguments: Mapping[str, object]) -> str:
    """Call a macro, `name` or `package.name`, which may query and change the lake, and return its text.

    Raises UsageError where the target has no lake.
    """
    if loaded.target.type != "spark":
        hint = "choose a target of type spark with -t"
        raise UsageError(f"the target {loaded.target.name!r} has no lake that an operation could change", hint=hint)
    lake = open_lake(loaded)
    try:
        with lake_lock(loaded, "run-operation", BESIDE_INGESTION):
            return operations(lake, clock(None), "run-operation").call(macro, arguments)
    finally:
        lake.engine.stop()


def end_context(result: RunResult) -> Mapping[str, object]:
    """Return the variables that templates of `on-run-end` have about the run."""
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


def _template_call(loaded: Loaded, command: str, selected: Collection[str]) -> TemplateCall:
    given = loaded.invocation
    arguments = {
        "select": given.select,
        "exclude": given.exclude,
        "selector": given.selector,
        "target": loaded.target.name,
        "vars": parse_vars(given.vars),
        "threads": loaded.target.threads,
        "fail_fast": given.fail_fast,
        "defer": given.defer,
        "warn_error": given.warn_error,
        "partial_parse": given.partial_parse,
    }
    return TemplateCall(command, given.full_refresh, arguments, tuple(sorted(selected)))
