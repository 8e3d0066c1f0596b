"""Unit tests as nodes of a run. Owns the verdict; an engine of the port runs the case, without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from sqlmesh_like.errors import SmlError
from sqlmesh_like.render.rendered import RenderedUnitTest
from sqlmesh_like.run.ports import Rows
from sqlmesh_like.run.result import NodeStatus, RenderedNode, TestResult
from sqlmesh_like.run.row_diff import RowDiff, compare
from sqlmesh_like.run.unit_cases import UnitCase, expected_rows

if TYPE_CHECKING:  # what has nothing to do imports none of it
    from sqlmesh_like.classify.strategy import Strategy


@dataclass(frozen=True)
class Outcome:
    """The model's table at the end of a case, or why this engine cannot say what Spark would do (`unknown`).

    `recomputed` are the rows of the model's own query over the inputs at the end; None if there were no changes.
    `is_by_value`: only values are not known to be Spark's. `unproven`: why these rows may not be Spark's.
    """

    rows: Rows
    recomputed: Rows | None = None
    strategy: Strategy | None = None
    unknown: str | None = None
    is_by_value: bool = False
    unproven: str | None = None


class UnitEngine(Protocol):
    """Runs unit tests in this process. Raises NodeError if a query fails."""

    def query(self, sql: str) -> Rows:
        """Rows of a query over nothing, in Spark's SQL."""
        ...

    def run(self, case: UnitCase) -> Outcome:
        """Build the model's table from the given rows, then apply the changes by its own delta program."""
        ...


@dataclass(frozen=True)
class UnitWork:
    """Runs prepared unit tests by unique id; `flat` formats a value in a difference.

    `errors` are those of tests that could not be prepared.
    """

    cases: Mapping[str, UnitCase]
    engine: UnitEngine
    flat: Callable[[object], str] = str
    errors: Mapping[str, SmlError] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.cases) + len(self.errors)

    def execute(self, node: RenderedNode) -> TestResult:
        """Run one unit test; a failure becomes its result."""
        assert isinstance(node, RenderedUnitTest)
        started, clock = datetime.now(UTC), perf_counter()
        location = None
        try:
            if node.unique_id in self.errors:
                raise self.errors[node.unique_id]
            status, message, failures, strategy = self._verdict(self.cases[node.unique_id])
        except SmlError as error:
            status, message, failures, strategy = "error", str(error), None, None
            location = error.location
        seconds = perf_counter() - clock
        return TestResult(
            node, status, message, started, seconds, failures, strategy=strategy, location=location
        )  # fmt: skip

    def skip(self, node: RenderedNode, why: str) -> TestResult:
        assert isinstance(node, RenderedUnitTest)
        return TestResult(node, "skipped", why, datetime.now(UTC), 0.0)

    def _verdict(self, case: UnitCase) -> tuple[NodeStatus, str, int | None, Strategy | None]:
        outcome = self.engine.run(case)
        if outcome.unknown is not None:
            return "error", f"not checkable here: {outcome.unknown}", None, None
        difference = self._difference(case, outcome.rows)
        if difference is not None:
            return (
                "fail",
                f"actual differs from expected\n{difference.text(self.flat)}",
                difference.total,
                outcome.strategy,
            )
        if outcome.recomputed is not None:
            names = [column.name for column in outcome.rows.schema]
            drift = compare(names, outcome.recomputed.rows, outcome.rows.rows)
            if drift is not None:
                way = f"maintained by {outcome.strategy}" if outcome.strategy else "built"
                head = f"the table as {way} differs from a full recompute, which is shown as expected"
                return "fail", f"{head}\n{drift.text(self.flat)}", drift.total, outcome.strategy
        if outcome.unproven is not None:
            warning = f"not checkable here: {outcome.unproven}; passed on DuckDB (on_unproven: warn), may fail on Spark"
            return "warn", warning, 0, outcome.strategy
        return "pass", "", 0, outcome.strategy

    def _difference(self, case: UnitCase, actual: Rows) -> RowDiff | None:
        schema, expected = expected_rows(case.expect, actual.schema, case.test.model.name)
        positions = [[column.name for column in actual.schema].index(column.name) for column in schema]
        shown = [tuple(row[position] for position in positions) for row in actual.rows]
        return compare([column.name for column in schema], expected, shown)
