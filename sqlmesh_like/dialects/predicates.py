"""Predicates beside comparisons, whose operands Spark's grammar takes otherwise than sqlglot's. Owns their trees.

To Spark a predicate (IN, BETWEEN, LIKE, RLIKE, IS DISTINCT FROM) belongs to the whole comparison before it, and a
comparison after it to its last operand: `a = b in (c)` is `(a = b) in (c)`, `a like b = c` is `a like (b = c)`. After
`<=>` sqlglot itself writes parentheses, which are not told apart from the author's: `a <=> b in (c)` stays.
Source: `booleanExpression`, `predicate` and `valueExpression` of Spark 3.5's SqlBaseParser.g4.
"""

from __future__ import annotations

from sqlglot import exp

_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_LAST_OPERAND: dict[type[exp.Expr], str] = {
    exp.Between: "high",
    exp.Like: "expression",
    exp.ILike: "expression",
    exp.RegexpLike: "expression",
}
_PREDICATES: tuple[type[exp.Expr], ...] = (exp.In, *_LAST_OPERAND)


def with_whole_comparisons(tree: exp.Expr) -> exp.Expr:
    """The tree, whose predicates have the operands that Spark gives them; it may be changed in place.

    >>> import sqlglot
    >>> read = lambda sql: with_whole_comparisons(sqlglot.parse_one(sql, dialect="spark")).sql("spark")
    >>> read("a = b not in (c)"), read("a = b = c between d and e")
    ('NOT (a = b) IN (c)', '(a = b = c) BETWEEN d AND e')
    >>> read("a like b = c"), read("a = (b in (c)) and d > e"), read("not a < b in (c)")
    ('a LIKE (b = c)', 'a = (b IN (c)) AND d > e', 'NOT (a < b) IN (c)')
    """
    root = exp.Paren(this=tree)
    for comparison in reversed(list(root.find_all(*_COMPARISONS))):
        right, left = _predicate(comparison.expression), _predicate(comparison.this)
        if right is not None:
            _take_comparison(comparison, right)
        elif left is not None and _ends_with_operand(left):
            _give_comparison(comparison, left)
    made: exp.Expr = root.this
    return made.pop()


def _predicate(operand: exp.Expr) -> exp.Expr | None:
    """The predicate that an operand is, or is the negation of."""
    while isinstance(operand, (exp.Not, exp.Escape)):
        operand = operand.this
    return operand if isinstance(operand, _PREDICATES) else None


def _ends_with_operand(predicate: exp.Expr) -> bool:
    """Whether the text of a predicate ends with its last operand, which is one value."""
    last = _LAST_OPERAND.get(type(predicate))
    is_list = last is not None and isinstance(predicate.args[last], (exp.Any, exp.All))
    return last is not None and not is_list and not isinstance(predicate.parent, exp.Escape)


def _take_comparison(comparison: exp.Expr, predicate: exp.Expr) -> None:
    """Make the comparison the first operand of the predicate that was its right one."""
    operand = comparison.expression
    comparison.replace(operand)
    comparison.set("expression", predicate.this)
    predicate.set("this", exp.Paren(this=comparison))


def _give_comparison(comparison: exp.Expr, predicate: exp.Expr) -> None:
    """Make the comparison the last operand of the predicate that was its left one."""
    operand, last = comparison.this, _LAST_OPERAND[type(predicate)]
    comparison.replace(operand)
    comparison.set("this", predicate.args[last])
    predicate.set(last, exp.Paren(this=comparison))
