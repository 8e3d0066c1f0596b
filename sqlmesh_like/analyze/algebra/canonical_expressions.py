"""Expressions in one of their spellings. Owns which functions may be written otherwise, and which operands may turn.

The equalities hold for every value, NULL included. `canonical_form` does the same for relations.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

_KNOWN: tuple[type[exp.Expr], ...] = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Star, exp.Var, exp.DataType,
    exp.DataTypeParam, exp.Cast, exp.TryCast, exp.Paren, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.In, exp.Between, exp.Like, exp.Add, exp.Sub,
    exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Abs, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest,
    exp.Least, exp.Concat, exp.DPipe, exp.Lower, exp.Upper, exp.Trim, exp.Length, exp.Substring, exp.Round, exp.Floor,
    exp.Ceil, exp.Year, exp.Month, exp.Day, exp.Quarter, exp.TsOrDsToDate, exp.TsOrDsAdd, exp.DateDiff,
    exp.TimestampTrunc, exp.DateTrunc, exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Distinct, exp.Filter,
    exp.Where, exp.ArgMax, exp.ArgMin, exp.LogicalAnd, exp.LogicalOr, exp.Window, exp.WindowSpec, exp.Order,
    exp.Ordered, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead, exp.First, exp.Last, exp.FirstValue,
    exp.LastValue, exp.AnyValue, exp.Interval, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance,
    exp.VariancePop, exp.Array, exp.CountIf, exp.TimestampDiff,
)  # fmt: skip
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}
_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT,
}  # fmt: skip


class NoFormError(Exception):
    """Raised for an expression whose meaning may depend on how it is written."""


def canonical(expression: exp.Expr, over: Mapping[str, exp.Expr]) -> exp.Expr:
    """An expression over the columns of a source, in one of its spellings. Raises NoFormError."""

    def form(node: exp.Expr) -> exp.Expr:
        if type(node) not in _KNOWN or (isinstance(node, exp.In) and not node.expressions):
            raise NoFormError
        if isinstance(node, exp.Column):
            value = over.get(node.name.lower())
            if value is None or node.table:
                raise NoFormError
            return exp.Paren(this=value.copy())
        return node

    return expression.transform(form)


def text_of(expression: exp.Expr) -> str:
    """One spelling of a value: its tree, without parentheses, with operands in one order where it does not matter.

    >>> import sqlglot
    >>> def text(sql): return text_of(sqlglot.parse_one(sql, dialect="spark"))
    >>> text("b = a and (not 3 > c)") == text("c >= 3 and (a = b)")
    True
    >>> text("a between 1 and b") == text("b >= a and 1 <= a")
    True
    >>> text("a - b") == text("b - a"), text("a - (b - c)") == text("(a - b) - c")
    (False, False)
    """
    return tree_text(spelling(expression))


def spelling(expression: exp.Expr) -> exp.Expr:
    """The value whose tree `text_of` tells."""
    return _bottom_up(expression.copy())


def conditions_of(condition: exp.Expr) -> dict[str, exp.Expr]:
    """The conditions that must all be true, by their texts."""
    return {tree_text(each): each for each in _flat(_bottom_up(condition.copy()), exp.And)}


def _bottom_up(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.And | exp.Or):
        kind = type(node)
        made = (_bottom_up(each) for each in _flat(node, kind))
        operands = {tree_text(each): each for part in made for each in _flat(part, kind)}
        return _combine_operands([operands[text] for text in sorted(operands)], kind)
    for name, value in list(node.args.items()):
        if isinstance(value, exp.Expr):
            node.set(name, _bottom_up(value))
        elif isinstance(value, list):
            node.set(name, [_bottom_up(each) if isinstance(each, exp.Expr) else each for each in value])
    return _rewritten(node)


def _rewritten(node: exp.Expr) -> exp.Expr:
    """A node whose operands have been rewritten."""
    match node:
        case exp.Paren():
            return _bare(node)
        case exp.Between():
            low = exp.GTE(this=node.this.copy(), expression=node.args["low"])
            high = exp.LTE(this=node.this.copy(), expression=node.args["high"])
            return node if node.args.get("symmetric") else _bottom_up(exp.And(this=low, expression=high))
        case exp.Not():
            inner = _bare(node.this)
            negated = _NEGATED.get(type(inner))
            return node if negated is None else _rewritten(negated(this=inner.this, expression=inner.expression))
        case exp.GT() | exp.GTE():
            return _MIRRORED[type(node)](this=node.expression, expression=node.this)
        case exp.EQ() | exp.NEQ() | exp.NullSafeEQ() | exp.NullSafeNEQ():
            first, second = sorted((node.this, node.expression), key=tree_text)
            return type(node)(this=first, expression=second)
    return node


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def tree_text(node: object) -> str:
    """A tree as a text, which has all of it: SQL that is generated from a tree without parentheses has not."""
    if isinstance(node, list):
        return f"[{', '.join(map(tree_text, node))}]"
    if not isinstance(node, exp.Expr):
        return repr(node)
    parts = (
        f"{name}={tree_text(value)}" for name, value in sorted(node.args.items()) if value not in (None, False, [])
    )
    return f"{type(node).__name__}({', '.join(parts)})"


def _flat(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of nested ANDs or ORs, which may be thousands."""
    operands, ahead = [], [node]
    while ahead:
        next_ = _bare(ahead.pop())
        if isinstance(next_, kind):
            ahead += (next_.expression, next_.this)
        else:
            operands.append(next_)
    return operands


def _combine_operands(operands: list[exp.Expr], kind: type[exp.Expr]) -> exp.Expr:
    made = operands[0]
    for operand in operands[1:]:
        made = kind(this=made, expression=operand)
    return made


def over_columns(value: exp.Expr, columns: Mapping[str, str]) -> exp.Expr | None:
    """A condition or value of an outline over columns (names by text); None if it reads what no column has."""
    try:
        return _over_columns(value, columns)
    except NoFormError:
        return None


def _over_columns(node: exp.Expr, columns: Mapping[str, str]) -> exp.Expr:
    if (
        not isinstance(node, exp.Literal | exp.Boolean | exp.Null)
        and (name := columns.get(tree_text(node))) is not None
    ):
        return exp.column(name, quoted=True)
    if isinstance(node, exp.Column):
        raise NoFormError

    def below(child: object) -> object:
        if not isinstance(child, exp.Expr):
            return child
        made = _over_columns(child, columns)
        return exp.Paren(this=made) if isinstance(node, _OPERATORS) and isinstance(made, _OPERATORS) else made

    args = {
        name: [below(each) for each in value] if isinstance(value, list) else below(value)
        for name, value in node.args.items()
    }
    return type(node)(**args)


_OPERATORS = (exp.Binary, exp.Unary, exp.Predicate, exp.Between, exp.In)
