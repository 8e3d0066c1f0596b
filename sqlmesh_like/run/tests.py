"""One data test against the lake: the rows of its SELECT are failures. Owns counting them and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmesh_like.errors import Location, ProjectError, SqlError
from sqlmesh_like.names import TableName
from sqlmesh_like.plan.history import TableState, require_table
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import RenderedModel, RenderedTest
from sqlmesh_like.run.ports import Engine, Rows
from sqlmesh_like.run.result import NodeStatus

if TYPE_CHECKING:  # what has nothing to do imports none of it
    from sqlglot import exp

SAMPLE = 5
"""Number of failing rows that are shown."""


@dataclass(frozen=True)
class TestVerdict:
    """Outcome of a test that ran: `failures` by its `fail_calc`, by default the number of rows; 0 if it passes."""

    status: NodeStatus
    failures: int
    message: str
    sample: Rows | None = None


def as_model(test: RenderedTest) -> RenderedModel:
    """The test as a view that has its query."""
    text = test.source_map.compiled or test.sql
    return RenderedModel(
        test.unique_id, test.name, test.path, test.raw_sql, text,
        ModelConfig(materialized="view"), TableName("", test.name), test.inputs, test.source_map, error=test.error,
    )  # fmt: skip


def run_test(
    test: RenderedTest,
    planner: Planner,
    engine: Engine,
    pinned: Mapping[str, TableState],
    *,
    warnings_fail: bool = False,
) -> TestVerdict:
    """Count a test's failures; rows are fetched only to show a few. Raises SqlError or NodeError.

    `warnings_fail`: as with dbt's `--warn-error`, a test fails instead of warning.
    """
    from sqlglot import exp

    asked, test = test.asks_lake, planner.rerender.test(test) if planner.rerender is not None else test
    model = as_model(test)
    states = {i: pinned[i] if i in pinned else planner.catalog.state(i) for i in planner.inputs(model)}
    try:
        if asked:
            planner.require_known_tables(model)
        facts = planner.compile(model, states).facts
    except SqlError as error:
        # The text of a generic test is a macro's: a position in it means nothing in the file that declares the test.
        place = error.location if test.test_type == "singular" else _declaration(test)
        raise SqlError(f"data test {test.name}: {error.message}", location=place, hint=error.hint) from None
    tables = planner.tables(facts, states)
    for name, state in tables.items():
        require_table(name, state)
    limit = test.config.get("limit")
    failing = (
        exp.select("*").from_(_as_subquery(facts.tree)).limit(int(str(limit))) if limit is not None else facts.tree
    )
    counted = engine.query(_count_query(failing, test), tables, -1, ())
    ((failures, warns, fails),) = counted.rows
    status: NodeStatus = "fail" if fails and test.severity == "error" else "warn" if warns else "pass"
    sample = None if status == "pass" else engine.query(failing, tables, SAMPLE, facts.schema)
    count = _whole(failures) if status != "pass" else 0
    message = ""
    if status != "pass":
        condition = _condition(test, "error_if" if status == "fail" else "warn_if")
        message = f"Got {count} result{'' if count == 1 else 's'}, configured to {status} if {condition}"
    if counted.warning:
        status = "warn" if status == "pass" else status
        message = "\n  ".join(filter(None, (message, counted.warning)))
    if status == "warn" and warnings_fail:
        status, message = "fail", f"{message}; --warn-error makes it fail"
    if test.table is not None:
        is_kept = engine.store_failures(failing, tables, planner.catalog.places[test.unique_id], planner.now)
        message += f"\n  the rows: sml show {test.table}" if is_kept and message else ""
    return TestVerdict(status, count, message, sample)


def _declaration(test: RenderedTest) -> Location:
    return test.declared_at or Location(test.path)


def _count_query(tree: exp.Expr, test: RenderedTest) -> exp.Expr:
    """A query for one row: the count, whether it warns, whether it fails."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    from sqlmesh_like.analyze.nesting import parse_text

    count = str(test.config.get("fail_calc") or "count(*)")
    conditions = [_condition(test, name) for name in ("warn_if", "error_if")]
    texts = [f"{count} AS failures", *(f"{count} {condition}" for condition in conditions)]
    try:
        items = [parse_text(text) for text in texts]
        if any(isinstance(item, exp.Alias) for item in items[1:]):  # a word that is no comparison would be a name
            raise SqlglotError
    except SqlglotError:
        hint = "e.g. warn_if: '> 10', error_if: '!= 0', fail_calc: 'sum(n)'"
        message = f"data test {test.name}: cannot read {' or '.join(repr(text) for text in texts)}"
        raise ProjectError(message, location=_declaration(test), hint=hint) from None
    return exp.select(*items).from_(_as_subquery(tree))


def _condition(test: RenderedTest, name: str) -> str:
    return str(test.config.get(name) or "!= 0")


def _as_subquery(tree: exp.Expr) -> exp.Subquery:
    from sqlglot import exp

    return exp.Subquery(this=tree.copy(), alias=exp.TableAlias(this=exp.to_identifier("sml_test")))


def _whole(count: object) -> int:
    """The count as an integer: a `fail_calc` over no rows is NULL, and it may be a decimal."""
    return int(str(count).partition(".")[0]) if count is not None else 0
