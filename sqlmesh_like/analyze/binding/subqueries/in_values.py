"""IN of a query as a value. Owns where Spark's result is that of the place where it is written.

There it is false where SQL has NULL, and NOT IN is false as well: both are semi-join flags. But Spark writes the
expression again wherever another part of the query reads its column, and moves a NOT there down to it: `where not f`
drops rows for which f is shown as false. So such a value may be shown by the outermost SELECT, where no part of the
query reads it, or be the argument of an aggregate. Source: Spark 3.5 `RewritePredicateSubquery`, `CollapseProject`,
`PushPredicateThroughNonJoin`, `BooleanSimplification`; of COUNT_IF, which compares with false, `CountIf`.
"""

from __future__ import annotations

from sqlglot import exp

_LOGICAL = (exp.And, exp.Or, exp.Not, exp.Paren)
_OF_BOOLEANS = (exp.Max, exp.Min, exp.LogicalAnd, exp.LogicalOr)
_OF_NUMBERS = (exp.Sum, exp.Avg, exp.Max, exp.Min)
_ALONE = ("having", "qualify", "limit", "offset")
"""Clauses that may read an item."""


def reread_value(tree: exp.Expr, *, is_stored: bool) -> exp.In | None:
    """The first IN of a query whose value another part of the query may read; `is_stored`: no query reads this one."""
    values = filter(is_value, tree.find_all(exp.In))
    return next((node for node in values if not is_shown_alone(node, is_stored=is_stored)), None)


def is_value(node: exp.In) -> bool:
    """Whether this is IN of a query, and not a condition of rows or of a branch of CASE.

    >>> import sqlglot
    >>> def told(sql): return is_value(sqlglot.parse_one(sql, dialect="spark").find(exp.In))
    >>> told("select a from t where b or a not in (select c from u)"), told("select not (a in (select c from u)) as x")
    (False, True)
    """
    if node.args.get("query") is None:
        return False
    last, above = _end_of_condition(node)
    if isinstance(above, exp.If):
        return above.this is not last
    return not isinstance(above, exp.Where | exp.Having | exp.Join | exp.Qualify)


def is_below_not(node: exp.Expr) -> bool:
    """Whether a part of a condition, or of a value made of AND, OR and NOT, is below an odd number of NOT."""
    negations = 0
    while isinstance(node.parent, _LOGICAL):
        node = node.parent
        negations += isinstance(node, exp.Not)
    return negations % 2 == 1


def asks_both_ways(tree: exp.Expr) -> bool:
    """Whether aggregates are asked both for IN and for NOT IN of one query, which were once the opposite of each other.

    >>> import sqlglot
    >>> query = "select count(*) filter (where a in (select b from u)), {} from t"
    >>> both = [query.format(other) for other in ("max(not (a in (select b from u)))", "max(a in (select b from u))")]
    >>> [asks_both_ways(sqlglot.parse_one(sql, dialect="spark")) for sql in both]
    [True, False]
    """
    ways: dict[str, set[bool]] = {}
    for node in tree.find_all(exp.In):
        if node.args.get("query") is not None and node.find_ancestor(exp.AggFunc, exp.Filter):
            ways.setdefault(repr(node), set()).add(is_below_not(node))
    return any(len(each) > 1 for each in ways.values())


def is_aggregated(node: exp.Expr, function: exp.Expr) -> bool:
    """Whether an aggregate takes a value with IN of a query as it is, or as a number."""
    return isinstance(function, _OF_NUMBERS if isinstance(node, exp.Cast) else _OF_BOOLEANS)


def makes_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.INTEGER_TYPES)


def _end_of_condition(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    while isinstance(node.parent, _LOGICAL):
        node = node.parent
    return node, node.parent


def is_shown_alone(node: exp.In, *, is_stored: bool = True) -> bool:
    """Whether no other part of the query reads the value of an IN, so that it stays a part of this place."""
    last, above = _end_of_condition(node)
    if isinstance(above, exp.Cast) and makes_number(above):
        last, above = above, above.parent
    if isinstance(above, exp.Distinct | exp.Filter):
        above = above.parent
    if isinstance(above, exp.AggFunc):
        return is_aggregated(last, above)
    select = node.parent_select
    if not is_stored or not isinstance(select, exp.Select) or not _is_outermost(select):
        return False
    if any(select.args.get(part) for part in _ALONE):
        return False
    if isinstance(above, exp.Group):
        return not is_below_not(node)
    is_item = last.parent is select or (isinstance(above, exp.Alias) and above.parent is select)
    return is_item and not (select.args.get("group") and is_below_not(node))


def _is_outermost(select: exp.Select) -> bool:
    node: exp.Expr = select
    while node.parent is not None:
        node = node.parent
        if not isinstance(node, exp.Subquery | exp.Union):
            return False
    return True
