"""`run_results.json` of a run, and its part of `run_history.json`. Owns their content about each node's outcome.

`artifacts` owns the formats of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict

from filelock import FileLock, Timeout

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.own_calls import note_own_call
from sqlmesh_like.artifacts.files import write_json
from sqlmesh_like.artifacts.manifest import write_manifest
from sqlmesh_like.artifacts.run_history import HISTORY, extend_history
from sqlmesh_like.artifacts.run_results import NodeRow, write_run_results
from sqlmesh_like.artifacts.state import read_artifact
from sqlmesh_like.errors import UsageError
from sqlmesh_like.plan.history import CommitSummary
from sqlmesh_like.project.paths import output_path
from sqlmesh_like.project.reading.values import parse_vars
from sqlmesh_like.run.plain_values import flat
from sqlmesh_like.run.ports import Rows, SparkWork
from sqlmesh_like.run.result import ModelResult, NodeResult, RunResult, SeedResult, TestResult, UnbuiltResult

_HISTORY_SECONDS = 10.0


def write_results(loaded: Loaded, result: RunResult, elapsed: float, call: Mapping[str, object]) -> None:
    """Write run_results.json, run_history.json and, for use as `--state`, manifest.json. `call`: `RunRequest.call`."""
    rows = [
        NodeRow(
            unique_id=node_result.node.unique_id,
            status=node_result.status,
            message=node_result.message or detail(node_result),
            execution_time=node_result.seconds,
            adapter_response=response(node_result),
            failures=_failures(node_result),
        )
        for node_result in result.results
    ]
    has_vars = bool(parse_vars(loaded.invocation.vars))
    args = {**vars(loaded.invocation), **call, "has_vars": has_vars}
    written = write_run_results(loaded.target_folder / "run_results.json", rows, elapsed, args, loaded.rendered)
    note_own_call(loaded.target_folder / "run_results.json")
    _write_history(loaded, written)
    write_manifest(loaded.target_folder / "manifest.json", loaded.project, loaded.manifest_text())


def _write_history(loaded: Loaded, run_results: Mapping[str, object]) -> None:
    path = loaded.target_folder / HISTORY
    lock = output_path(loaded.target_folder, f".{HISTORY}.lock")  # a lock's file is opened, and emptied
    # Another call may end now. If it is suspended here, the history has to do without one of the two.
    with suppress(Timeout, IsADirectoryError), FileLock(str(lock), timeout=_HISTORY_SECONDS):
        try:
            before = read_artifact(path)
        except UsageError:
            before = None  # the history is only for people to read: a run does not fail if it is damaged
        name = loaded.invocation.environment
        target = loaded.target.name if name is None else f"{loaded.target.name} -e {name}"
        write_json(path, extend_history(before, target, run_results), indent=None)


def _failures(result: NodeResult) -> int | None:
    match result:
        case TestResult():
            return result.failures
        case UnbuiltResult():
            return 0  # as in dbt
        case ModelResult() | SeedResult():
            return None


def response(result: NodeResult) -> Mapping[str, object]:
    """Return `adapter_response` of a node, with more fields than dbt's.

    They are the strategy, its reasons and the work of the commit, and the location of an error.
    """
    place = {} if result.location is None else {"location": asdict(result.location)}
    return {**_work(result), **place}


def _work(result: NodeResult) -> Mapping[str, object]:
    match result:
        case ModelResult():
            reasons = [{"rule": reason.rule, "message": reason.message} for reason in result.reasons]
            return {
                "strategy": result.strategy, "engine": result.engine, "rows_affected": result.rows,
                "upserts": result.upserts, "deletes": result.deletes, "reasons": reasons,
                **_write_summary(result.written), **_spark_summary(result.spark),
                "estimate": result.estimate, "published": [asdict(each) for each in result.sent],
            }  # fmt: skip
        case SeedResult():
            return {"rows_affected": result.rows, **_write_summary(result.written)}
        case TestResult():
            strategy = {"strategy": result.strategy} if result.strategy else {}
            return {**strategy, **_failing_rows(result.sample)}
        case UnbuiltResult():
            return {}


def _failing_rows(sample: Rows | None) -> Mapping[str, object]:
    """Return the rows that the terminal shows too, with values as text."""
    if sample is None or not sample.rows:
        return {}
    rows = [[None if value is None else flat(value) for value in row] for row in sample.rows]
    return {"failing_rows": {"columns": [column.name for column in sample.schema], "rows": rows}}


def _write_summary(written: CommitSummary | None) -> Mapping[str, object]:
    """Return the work of a commit. Files are rewritten whole, so `rows_written` may exceed the rows that changed."""
    if written is None:
        return {"rows_written": 0, "files_written": 0, "bytes_written": 0}
    return {
        "commit": written.instant, "rows_written": written.rows,
        "files_written": written.files, "bytes_written": written.bytes,
    }  # fmt: skip


def _spark_summary(work: SparkWork | None) -> Mapping[str, object]:
    """Return the work of Spark, empty where it is not known. It excludes reads by DuckDB."""
    return {f"spark_{name}": value for name, value in asdict(work).items()} if work is not None else {}


def detail(result: NodeResult) -> str:
    """Return in a few words what was done with a node, for its line of progress."""
    match result:
        case ModelResult() if result.model.config.snapshot is not None:
            return f"SNAPSHOT {result.upserts}"
        case ModelResult():
            built = f"{result.strategy} {result.rows} rows" if result.strategy else "VIEW"
            places = [each.destination for each in result.sent if each.rows is not None]
            return f"{built}, published to {' and '.join(places)}" if places else built
        case SeedResult():
            return f"INSERT {result.rows}"
        case TestResult() | UnbuiltResult():
            return result.status.upper()
