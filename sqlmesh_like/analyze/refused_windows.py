"""Windows and frames that Spark's analysis refuses whatever their columns are. Owns finding them in a tree.

Source: `CheckAnalysis`, `WindowSpecDefinition` and `AstBuilder` of Spark 3.5.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlmesh_like.analyze.illegal_clauses import Misplaced
from sqlmesh_like.dialects import SPARK

_LARGEST_ROWS = 2**31 - 1


def refused_windows(tree: exp.Expr) -> Iterator[Misplaced]:
    """Names of windows that are not defined, or twice; FILTER and DISTINCT beside OVER; frames that no row can have.

    >>> import sqlglot
    >>> query = "select sum(a) over (order by b, c range between 1 preceding and current row) from t"
    >>> [found.message for found in refused_windows(sqlglot.parse_one(query, dialect="spark"))]
    ['a RANGE frame with an offset needs one column in ORDER BY, not 2']
    """
    for select in tree.find_all(exp.Select):
        yield from _names(select)
    for window in tree.find_all(exp.Window):
        if isinstance(window.this, exp.Filter) and window.args.get("over"):
            hint = "put the condition into the aggregate: sum(case when … then … end)"
            yield Misplaced("FILTER is not possible over a window", window, hint)
        if isinstance(window.this, exp.AggFunc) and isinstance(window.this.this, exp.Distinct):
            hint = "count in a query with GROUP BY that is joined, or write size(collect_set(…) over (…))"
            yield Misplaced("DISTINCT is not possible over a window", window, hint)
        spec = window.args.get("spec")
        if isinstance(spec, exp.WindowSpec):
            yield from _frame(window, spec)


def _names(select: exp.Select) -> Iterator[Misplaced]:
    defined: set[str] = set()
    for named in select.args.get("windows") or ():
        if named.name.lower() in defined:
            yield Misplaced(f"the window {named.name!r} is defined twice", named)
        defined.add(named.name.lower())
    for window in select.find_all(exp.Window):
        name = window.text("alias")
        if (
            name
            and window.args.get("over")
            and window.find_ancestor(exp.Select) is select
            and name.lower() not in defined
        ):
            yield Misplaced(f"the window {name!r} is not defined", window, f"add WINDOW {name} AS (…), or OVER (…)")


def _frame(window: exp.Window, spec: exp.WindowSpec) -> Iterator[Misplaced]:
    start, end = (_frame_bound(spec, side) for side in ("start", "end"))
    if start == ("UNBOUNDED", "FOLLOWING") or end == ("UNBOUNDED", "PRECEDING"):
        yield Misplaced(f"the frame {spec.sql(SPARK).upper()} begins after all rows or ends before them", window)
    numbers = [_offset(*bound) for bound in (start, end)]
    if None not in numbers and (numbers[0] or 0) > (numbers[1] or 0):
        yield Misplaced(f"the frame {spec.sql(SPARK).upper()} ends before it begins", window)
    offsets = [bound for bound, _ in (start, end) if isinstance(bound, exp.Expr)]
    if odd := next((bound for bound in offsets if bound.find(exp.Column, exp.CurrentDate, exp.CurrentTimestamp)), None):
        yield Misplaced(
            f"a bound of a frame is a literal, not {odd.sql(SPARK)}", window, "e.g. interval 1 day preceding"
        )
    if spec.text("kind").upper() == "ROWS":
        if any(number is not None and abs(number) > _LARGEST_ROWS for number in numbers):
            yield Misplaced(f"a frame has at most {_LARGEST_ROWS} rows on a side", window)
        return
    order = window.args.get("order")
    count = len(order.expressions) if order is not None else 0
    if offsets and count != 1 and not window.args.get("alias"):
        message = f"a RANGE frame with an offset needs one column in ORDER BY, not {count}"
        yield Misplaced(message, window, "ROWS counts rows, whatever their order")


def _frame_bound(spec: exp.WindowSpec, side: str) -> tuple[object, str]:
    """A bound (CURRENT ROW, UNBOUNDED or an expression) and its direction; the end is the current row if left out."""
    value = spec.args.get(side) or "CURRENT ROW"
    return value, str(spec.args.get(f"{side}_side") or "").upper()


def _offset(value: object, side: str) -> int | None:
    if value == "CURRENT ROW":
        return 0
    is_number = isinstance(value, exp.Literal) and value.is_int
    return (
        int(value.name) * (-1 if side == "PRECEDING" else 1) if is_number and isinstance(value, exp.Literal) else None
    )
