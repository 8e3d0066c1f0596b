"""A run's lines, end block and run_results.json. Owns what is said of each node's outcome; `output` has the layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from sqlmesh_like.cli.context import Loaded
from sqlmesh_like.cli.printing.output import LogLevel, LogStep, Output
from sqlmesh_like.cli.printing.rows import as_table
from sqlmesh_like.plan.history import CommitSummary
from sqlmesh_like.project.reading.values import parse_vars
from sqlmesh_like.render.rendered import RenderedModel, RenderedSeed, RenderedTest, RenderedUnitTest
from sqlmesh_like.run.result import ModelResult, NodeResult, RenderedNode, RunResult, SeedResult, TestResult


class RunLog:
    """Prints a run's lines in dbt's format, with what the contract adds."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def started(self, number: int, total: int, node: RenderedNode) -> None:
        self._output.start(_step(number, total, node))

    def ended(self, number: int, total: int, result: NodeResult) -> None:
        step = _step(number, total, result.node)
        match result.status:
            case "success":
                self._output.success(step, detail(result), result.seconds)
                self._explain_full_refresh(result)
            case "no-op":
                self._output.no_op(step, result.seconds)
            case "skipped":
                self._output.skip(step)
            case "error" if not isinstance(result, TestResult):
                self._output.error(step, result.seconds)
            case "warn" if not isinstance(result, TestResult):
                self._output.warned(step, detail(result), result.seconds)
            case "pass" | "fail" | "warn" | "error":
                failures = result.failures if isinstance(result, TestResult) else None
                self._output.tested(step, result.status, failures or 0, result.seconds)
                self._show_failures(result)

    def _explain_full_refresh(self, result: NodeResult) -> None:
        """Where a run must rescan it says why."""
        if isinstance(result, ModelResult) and result.strategy in (
            "full_refresh",
            "recompute_merge",
            "partition_rescan",
        ):
            for reason in dict.fromkeys(result.reasons):
                self._output.line(f"       {reason.rule} {reason.message}")

    def _show_failures(self, result: NodeResult) -> None:
        """A few of the rows that the test found."""
        if not isinstance(result, TestResult) or result.sample is None or not result.sample.rows:
            return
        level: LogLevel = "error" if result.status == "fail" else "warn"
        for text in as_table(result.sample).splitlines():
            self._output.line(f"       {text}", level)
        rest = (result.failures or 0) - len(result.sample.rows)
        if rest > 0:
            self._output.line(f"       … and {rest} more", level)


def detail(result: NodeResult) -> str:
    """What was done, for the brackets of a line."""
    match result:
        case ModelResult() if result.model.config.snapshot is not None:
            return f"SNAPSHOT {result.upserts}"
        case ModelResult():
            return (f"{result.strategy} {result.rows} rows" if result.strategy else "VIEW") + _published(result)
        case SeedResult():
            return f"INSERT {result.rows}"
        case TestResult():
            return result.status.upper()


def _published(result: ModelResult) -> str:
    places = [each.destination for each in result.sent if each.rows is not None]
    return f", published to {' and '.join(places)}" if places else ""


def problems(result: RunResult) -> list[str]:
    """A text for each node that failed or warned: what and where."""
    bad = [node_result for node_result in result.results if node_result.status in ("error", "fail", "warn")]
    return [_problem_text(node_result) for node_result in bad]


def _problem_text(result: NodeResult) -> str:
    if not isinstance(result, TestResult) and result.status == "warn":
        return f"Warning in {result.node.name} ({result.node.path})\n{indented(result.message)}"
    if isinstance(result, TestResult) and result.status != "error":
        word = "Failure" if result.status == "fail" else "Warning"
        if isinstance(result.node, RenderedUnitTest):
            return f"Failure in unit_test {result.node.name} ({result.node.declared_at})\n{indented(result.message)}"
        return f"{word} in test {result.node.name} ({result.node.path})\n  {result.message}"
    return f"{result.node.name}: {result.message}"


def indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _step(number: int, total: int, node: RenderedNode) -> LogStep:
    match node:
        case RenderedModel() if node.config.snapshot is not None:
            return LogStep(number, total, "snapshot", str(node.table))
        case RenderedModel():
            return LogStep(number, total, f"sql {node.config.materialized} model", str(node.table))
        case RenderedSeed():
            return LogStep(number, total, "seed file", str(node.table))
        case RenderedTest():
            return LogStep(number, total, "test", node.name)
        case RenderedUnitTest():
            return LogStep(number, total, "unit_test", f"{node.model.name}::{node.name}")


def write_results(loaded: Loaded, result: RunResult, elapsed: float, call: Mapping[str, object]) -> None:
    """Write run_results.json and, to be a state with it, manifest.json. `call` is what `retry` repeats."""
    from sqlmesh_like.artifacts.manifest import write_manifest
    from sqlmesh_like.artifacts.run_results import ResultRow as Row
    from sqlmesh_like.artifacts.run_results import write_run_results

    rows = [
        Row(
            unique_id=node_result.node.unique_id,
            status=node_result.status,
            message=node_result.message or detail(node_result),
            execution_time=node_result.seconds,
            adapter_response=response(node_result),
            failures=node_result.failures if isinstance(node_result, TestResult) else None,
        )
        for node_result in result.results
    ]
    has_vars = bool(parse_vars(loaded.flags.vars))
    args = {**vars(loaded.flags), **call, "has_vars": has_vars}
    write_run_results(loaded.target_folder / "run_results.json", rows, elapsed, args, loaded.rendered)
    write_manifest(loaded.target_folder / "manifest.json", loaded.project, loaded.manifest_text())


def response(result: NodeResult) -> Mapping[str, object]:
    """What `adapter_response` reports of a node beyond dbt's fields: strategy, reasons, and the work of its commit."""
    match result:
        case ModelResult():
            reasons = [{"rule": reason.rule, "message": reason.message} for reason in result.reasons]
            return {
                "strategy": result.strategy, "engine": result.engine, "rows_affected": result.rows,
                "upserts": result.upserts, "deletes": result.deletes, "reasons": reasons,
                **_write_summary(result.written),
                "estimate": result.estimate, "published": [asdict(each) for each in result.sent],
            }  # fmt: skip
        case SeedResult():
            return {"rows_affected": result.rows, **_write_summary(result.written)}
        case TestResult():
            return {"strategy": result.strategy} if result.strategy else {}


def _write_summary(written: CommitSummary | None) -> Mapping[str, object]:
    """The work of a commit: files are written whole, so `rows_written` is more than the rows that changed."""
    if written is None:
        return {"rows_written": 0, "files_written": 0, "bytes_written": 0}
    return {
        "commit": written.instant, "rows_written": written.rows,
        "files_written": written.files, "bytes_written": written.bytes,
    }  # fmt: skip
