"""Constructs in clauses where Spark does not allow them. Owns the checks that need no columns.

The parser accepts many dialects at once; what Spark would refuse after minutes of waiting is refused here. Source:
Spark SQL reference, "SELECT".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze.expressions.node_kinds import forms_of, has_any
from sqlmesh_like.analyze.functions.aggregates import AGGREGATES
from sqlmesh_like.dialects import SPARK

_RANKING = (
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead,
)  # fmt: skip
"""Window functions that need an ORDER BY."""
_CHECKED = (
    *_RANKING, exp.Window, exp.Group, exp.Order, exp.Distinct, exp.Limit, exp.In, exp.Parameter,
)  # fmt: skip
"""A query without any of these, and without aggregates, needs no check."""


@dataclass(frozen=True)
class Misplaced:
    """A construct in a position where it is not allowed."""

    message: str
    node: exp.Expr
    hint: str | None = None


def first_misplaced(tree: exp.Expr) -> Misplaced | None:
    """The first construct that Spark would refuse, query by query from the outermost.

    >>> import sqlglot
    >>> found = first_misplaced(sqlglot.parse_one("select a from t where sum(b) > 1", dialect="spark"))
    >>> found.message, found.hint
    ('an aggregate is not allowed in WHERE: SUM(b)', 'filter groups in HAVING')
    """
    if not has_any(forms_of(tree), (*AGGREGATES, *_CHECKED)):
        return None
    for select in tree.find_all(exp.Select):
        for check in (_clauses, _nested_aggregates, _windows, _positions, _foreign):
            if clause := next(check(select), None):
                return clause
    return None


def _clauses(select: exp.Select) -> Iterator[Misplaced]:
    """Aggregates and window functions in clauses that Spark evaluates before them."""
    joins = [("ON", join.args.get("on")) for join in select.args.get("joins") or []]
    group = select.args.get("group")
    grouped = [("GROUP BY", key) for key in group.expressions] if group else []
    is_outer = select.find_ancestor(exp.Having) is not None  # its aggregate may be the outer query's
    for clause, part in (("WHERE", select.args.get("where")), *joins, *grouped, ("HAVING", select.args.get("having"))):
        for node in _own(part):
            if isinstance(node, exp.Window):
                hint = "compute it in a subquery, or filter by QUALIFY"
                yield Misplaced(f"a window function is not allowed in {clause}: {node.sql(SPARK)}", node, hint)
            elif type(node) in AGGREGATES and clause != "HAVING" and not is_outer and not _is_windowed(node):
                advice = "filter groups in HAVING" if clause == "WHERE" else None
                yield Misplaced(f"an aggregate is not allowed in {clause}: {node.sql(SPARK)}", node, advice)


def _nested_aggregates(select: exp.Select) -> Iterator[Misplaced]:
    for item in select.expressions:
        for node in _own(item):
            around = node.find_ancestor(*AGGREGATES, exp.Window, exp.Query) if type(node) in AGGREGATES else None
            if around is not None and type(around) in AGGREGATES and not _is_windowed(around):
                yield Misplaced(
                    f"an aggregate cannot be nested in another one: {around.sql(SPARK)}", node,
                    "compute the inner one in a subquery",
                )  # fmt: skip


def _windows(select: exp.Select) -> Iterator[Misplaced]:
    named = select.args.get("windows")
    for part in (*select.expressions, select.args.get("qualify"), select.args.get("order")):
        for node in _own(part):
            if not isinstance(node, _RANKING):
                continue
            window = node.parent.parent if isinstance(node.parent, exp.IgnoreNulls | exp.RespectNulls) else node.parent
            name = node.sql(SPARK)
            if not isinstance(window, exp.Window):
                yield Misplaced(f"{name} needs a window", node, f"{name} OVER (PARTITION BY … ORDER BY …)")
            elif not window.args.get("order") and not window.args.get("alias") and not named:
                yield Misplaced(f"the window of {name} has no order", node, "add ORDER BY to its OVER (…)")


def _positions(select: exp.Select) -> Iterator[Misplaced]:
    """Positions in GROUP BY and ORDER BY that are not in the SELECT list."""
    count = len(select.expressions)
    order, group = select.args.get("order"), select.args.get("group")
    if any(isinstance(item, exp.Star) or item.is_star for item in select.expressions):
        if position := next((key for key in group.expressions if _is_whole(key)), None) if group else None:
            hint = "name the columns to group by"
            yield Misplaced(f"GROUP BY position {position.name} beside a star", position, hint)
        return
    ordered = [("ORDER BY", item.this) for item in order.expressions] if order else []
    grouped = [("GROUP BY", item) for item in group.expressions] if group else []
    for clause, item in (*grouped, *ordered):
        if _is_whole(item) and not 1 <= int(item.this) <= count:
            yield Misplaced(f"{clause} position {item.this} is not in the SELECT list", item, f"it has {count} columns")


def _is_whole(item: exp.Expr) -> bool:
    return isinstance(item, exp.Literal) and item.is_int


def _foreign(select: exp.Select) -> Iterator[Misplaced]:
    """Syntax of other dialects that the parser accepts."""
    distinct, limit = select.args.get("distinct"), select.args.get("limit")
    if distinct is not None and distinct.args.get("on"):
        yield Misplaced("DISTINCT ON is not Spark SQL", distinct, "filter by QUALIFY ROW_NUMBER() OVER (…) = 1")
    value = limit.args.get("expression") if limit is not None else None
    if isinstance(value, exp.Neg) or (isinstance(value, exp.Literal) and not value.is_int):
        yield Misplaced("LIMIT must be a whole number of at least 0", value)
    for node in select.find_all(exp.In, exp.Parameter):
        if isinstance(node, exp.Parameter):
            yield Misplaced(f"{node.sql(SPARK)} is a parameter", node, "use {{ var('…') }}")
        elif not any(node.args.get(part) for part in ("expressions", "query", "unnest", "field")):
            yield Misplaced("the list of IN is empty", node)


def _own(part: exp.Expr | None) -> Iterator[exp.Expr]:
    """Nodes of a clause, without those of subqueries in it."""
    if part is None:
        return
    for node in part.walk(prune=lambda node: isinstance(node, exp.Query)):
        if not isinstance(node, exp.Query):
            yield node


def _is_windowed(node: exp.Expr) -> bool:
    parent = (
        node.parent.parent if isinstance(node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls) else node.parent
    )
    return isinstance(parent, exp.Window)
