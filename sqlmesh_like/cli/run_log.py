"""A run's lines and summary. Owns the text for each node's outcome; `output` owns the layout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sqlmesh_like.app.operations.run_results import detail
from sqlmesh_like.app.reporter import Level
from sqlmesh_like.cli.node_events import result_data, result_event, start_data
from sqlmesh_like.cli.printing.output import LogLevel, LogStep, Output
from sqlmesh_like.cli.printing.rows import as_table
from sqlmesh_like.cli.printing.source_excerpt import source_excerpt
from sqlmesh_like.render.rendered import (
    RenderedExposure,
    RenderedModel,
    RenderedSeed,
    RenderedSemantic,
    RenderedTest,
    RenderedUnitTest,
)
from sqlmesh_like.run.result import ModelResult, NodeResult, RenderedNode, RunResult, TestResult


class RunLog:
    """Prints a run's lines in dbt's format, with reasons of full refreshes and failing rows.

    `root` is the project's folder, for excerpts of its files.
    """

    def __init__(self, output: Output, root: Path) -> None:
        self._output = output
        self._root = root

    def started(self, number: int, total: int, node: RenderedNode) -> None:
        if not isinstance(node, RenderedExposure | RenderedSemantic):  # as in dbt: never started
            self._output.start(_step(number, total, node, start_data(node)))

    def ended(self, number: int, total: int, result: NodeResult) -> None:
        step = _step(number, total, result.node, result_data(result))
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
                self._output.warning(step, detail(result), result.seconds, result.message)
            case "pass" | "fail" | "warn" | "error":
                failures = result.failures if isinstance(result, TestResult) else None
                self._output.test_result(step, result.status, failures or 0, result.seconds)
                self._show_failures(result)

    def notify(self, text: str, level: Level = "info") -> None:
        self._output.line(text, level)

    def finished(self, result: RunResult) -> None:
        self._output.end([node_result.status for node_result in result.results], problems(result, self._root))

    def _explain_full_refresh(self, result: NodeResult) -> None:
        """Print the reasons if a run had to rescan."""
        if isinstance(result, ModelResult) and result.strategy in (
            "full_refresh",
            "recompute_merge",
            "partition_rescan",
        ):
            for reason in dict.fromkeys(result.reasons):
                self._output.line(f"       {reason.rule} {reason.message}")

    def _show_failures(self, result: NodeResult) -> None:
        """Print a sample of the rows that the test returned."""
        if not isinstance(result, TestResult) or result.sample is None or not result.sample.rows:
            return
        level: LogLevel = "error" if result.status == "fail" else "warn"
        for text in as_table(result.sample).splitlines():
            self._output.line(f"       {text}", level)
        rest = (result.failures or 0) - len(result.sample.rows)
        if rest > 0:
            self._output.line(f"       … and {rest} more", level)


def problems(result: RunResult, root: Path) -> list[str]:
    """Return a text for each node that failed or warned, with its location."""
    bad = [node_result for node_result in result.results if node_result.status in ("error", "fail", "warn")]
    return [_problem_text(node_result, root) for node_result in bad]


def _problem_text(result: NodeResult, root: Path) -> str:
    if not isinstance(result, TestResult) and result.status == "warn":
        return f"Warning in {result.node.name} ({result.node.path})\n{indent_text(result.message)}"
    if isinstance(result, TestResult) and result.status != "error":
        word = "Failure" if result.status == "fail" else "Warning"
        if isinstance(result.node, RenderedUnitTest):
            return f"Failure in unit_test {result.node.name} ({result.node.declared_at})\n{indent_text(result.message)}"
        return f"{word} in test {result.node.name} ({result.node.path})\n  {result.message}"
    excerpt = None if result.location is None else source_excerpt(root, result.location)
    return f"{result.node.name}: {result.message}" + (f"\n{excerpt}" if excerpt else "")


def indent_text(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _step(number: int, total: int, node: RenderedNode, data: Mapping[str, object]) -> LogStep:
    kind, name = _kind_and_name(node)
    return LogStep(number, total, kind, name, data, result_event(node))


def _kind_and_name(node: RenderedNode) -> tuple[str, str]:
    match node:
        case RenderedModel() if node.config.snapshot is not None:
            return "snapshot", str(node.table)
        case RenderedModel():
            return f"{node.language} {node.config.materialized} model", str(node.table)
        case RenderedSeed():
            return "seed file", str(node.table)
        case RenderedTest():
            return "test", node.name
        case RenderedUnitTest():
            return "unit_test", f"{node.model.name}::{node.name}"
        case RenderedExposure() | RenderedSemantic():
            return node.unique_id.noun, node.name
