"""Copies of expressions: with some nodes replaced, or as an operand. Owns which parts of a node are copied."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

WRITTEN = "written"
"""Note of a node that stands for what its author wrote otherwise: that text, for messages."""
Change = Callable[[exp.Expr], exp.Expr]


def replace_nodes(node: exp.Expr, change: Change) -> exp.Expr:
    """A copy of the tree with each node replaced by the result of `change`; replacements are not visited.

    >>> import sqlglot
    >>> swap = lambda node: exp.column("b") if isinstance(node, exp.Column) else node
    >>> replace_nodes(sqlglot.parse_one("f(a, 1) + a"), swap).sql()
    'F(b, 1) + b'
    """
    made = change(node)
    if made is not node:
        return made
    made = _alone(node)
    for part, value in node.args.items():
        if isinstance(value, exp.Expr):
            made.set(part, replace_nodes(value, change))
        elif isinstance(value, list):
            made.set(part, [replace_nodes(one, change) if isinstance(one, exp.Expr) else one for one in value])
        else:
            made.args[part] = value
    return made


def operand(expression: exp.Expr) -> exp.Expr:
    """A copy that can be an operand of any operator: a bare `a <=> b` beside `=` would be parsed as another tree.

    >>> import sqlglot
    >>> [operand(sqlglot.parse_one(sql, dialect="spark")).sql("spark") for sql in ("a", "f(a)", "a <=> b", "not a")]
    ['a', 'F(a)', '(a IS NOT DISTINCT FROM b)', '(NOT a)']
    """
    is_open = isinstance(expression, exp.Binary | exp.Between | exp.In | exp.Not | exp.Neg)
    return exp.Paren(this=expression.copy()) if is_open else expression.copy()


def _alone(node: exp.Expr) -> exp.Expr:
    """A copy without children. Reads `_type`, as a cast overrides `type`, and `_meta`, as reading `meta` creates it."""
    made = type(node)()
    made.comments = None if node.comments is None else [*node.comments]
    made._type = None if node._type is None else node._type.copy()
    made._meta = None if node._meta is None else type(node._meta)(node._meta)  # `FlatNotes` stay flat
    return made
