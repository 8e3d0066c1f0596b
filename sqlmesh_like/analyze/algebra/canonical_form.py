"""What a relation means, without how it is written: equal forms have equal rows, row keys and state on all inputs.

Owns the equalities that are used. They are those of three-valued logic and of projections: names inside a query,
subqueries and CTEs that only pass columns on, the order and place of conditions of inner joins and filters, mirrored
comparisons. What decides keys, state or the order of columns is kept: the order of joins, of branches, of GROUP BY.

A relation has no form if an expression has a node that is not listed: it may read names (`struct(a)`), fail, or be
evaluated a different number of times; of a filter by the clock, the place decides the row key (`delta.join_graph`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    Named,
    Projection,
    Relation,
    ScalarValue,
    Scan,
    TopK,
    UnionAll,
    Windowed,
    columns,
)

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
    exp.LastValue, exp.AnyValue,
)  # fmt: skip
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}
_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT,
}  # fmt: skip


class _NoFormError(Exception):
    """Raised for an expression whose meaning may depend on how it is written."""


@dataclass(frozen=True)
class _Block:
    """Rows of `source` that meet all of `conditions`; `values`: each column (lower case) over those of `source`."""

    source: object
    values: Mapping[str, exp.Expr]
    conditions: Mapping[str, exp.Expr] = field(default_factory=dict)

    @property
    def form(self) -> object:
        return [self.source, sorted(self.conditions)]


@dataclass(frozen=True)
class Outline:
    """The outermost projections and filters of a relation over its source, whose rows have the relation's keys.

    `columns`: text and name of each column, in their order. `conditions`: what rows must meet, by text.
    """

    source: str
    columns: tuple[tuple[str, str], ...]
    conditions: Mapping[str, exp.Expr]


def outline(relation: Relation) -> Outline | None:
    """The outline of a relation; None if it has none."""
    try:
        former = _Former()
        block = former.block(relation)
        texts = former.listed(block, relation)
    except _NoFormError:
        return None
    named = tuple(zip(texts, (column.name for column in columns(relation)), strict=True))
    return Outline(repr(block.source), named, block.conditions)


def over_columns(condition: exp.Expr, columns: Mapping[str, str]) -> exp.Expr | None:
    """A condition of an outline over columns (names by text); None if it reads what no column has."""
    try:
        return _over_columns(condition, columns)
    except _NoFormError:
        return None


def _over_columns(node: exp.Expr, columns: Mapping[str, str]) -> exp.Expr:
    if not isinstance(node, exp.Literal | exp.Boolean | exp.Null) and (name := columns.get(_key(node))) is not None:
        return exp.column(name, quoted=True)
    if isinstance(node, exp.Column):
        raise _NoFormError

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


def canonical_form(relation: Relation) -> object | None:
    """A value of lists and texts, with the relation's columns in their order; None if there is none.

    It does not hold the names of these columns.
    """
    try:
        made = _Former()
        block = made.block(relation)
        return [block.form, made.listed(block, relation)]
    except _NoFormError:
        return None


@dataclass
class _Former:
    """Forms the nodes of one relation. Columns of a source are named by its number and their place in it."""

    _sources: list[object] = field(default_factory=list)

    def block(self, relation: Relation) -> _Block:
        match relation:
            case Scan():
                tokens = {column.name.lower(): f"{column.name.lower()}:{column.type}" for column in relation.schema}
                return self._source(["scan", relation.input_id], tokens)
            case Filter():
                block = self.block(relation.child)
                conditions = _conjuncts(_formed(relation.condition, block.values))
                return _Block(block.source, block.values, {**block.conditions, **conditions})
            case Projection():
                block = self.block(relation.child)
                return _Block(block.source, _values(relation.items, block.values), block.conditions)
            case Join():
                return self._join(relation)
            case Windowed():
                return self._windowed(relation)
            case Aggregate():
                return self._aggregate(relation)
            case UnionAll():
                blocks = [(self.block(branch), branch) for branch in relation.branches]
                return self._opaque(["union", [[b.form, self.listed(b, branch)] for b, branch in blocks]], relation)
            case Distinct() | ScalarValue():
                block = self.block(relation.child)
                name = type(relation).__name__
                return self._opaque([name, block.form, self.listed(block, relation.child)], relation)
            case TopK():
                return self._top(relation)
            case Explode():
                raise _NoFormError

    def listed(self, block: _Block, relation: Relation) -> list[str]:
        """The columns of a relation as texts, in their order."""
        return [_text(block.values[column.name.lower()]) for column in columns(relation)]

    def _source(self, source: object, tokens: Mapping[str, str]) -> _Block:
        """A source whose columns are named by tokens, by their names in lower case."""
        number = len(self._sources)
        self._sources.append(source)
        values: dict[str, exp.Expr] = {n: exp.column(f"{number}.{token}", quoted=True) for n, token in tokens.items()}
        return _Block([number, source], values)

    def _opaque(self, source: object, relation: Relation) -> _Block:
        names = [column.name.lower() for column in columns(relation)]
        return self._source(source, {name: str(place) for place, name in enumerate(names)})

    def _join(self, join: Join) -> _Block:
        left, right = self.block(join.left), self.block(join.right)
        values = {**left.values, **right.values}
        matched = _conjuncts(_formed(join.condition, values)) if join.condition is not None else {}
        if join.kind == "inner":
            conditions = {**left.conditions, **right.conditions, **matched}
            return _Block(["join", left.source, right.source], values, conditions)
        sides = [[side.form, self.listed(side, of)] for side, of in ((left, join.left), (right, join.right))]
        return self._opaque([join.kind, *sides, sorted(matched)], join)

    def _windowed(self, relation: Windowed) -> _Block:
        """Windows are computed over the rows that the conditions below leave; they add columns to these."""
        block = self.block(relation.child)
        values = _values(relation.items, block.values)
        texts = sorted({_text(window) for value in values.values() for window in value.find_all(exp.Window)})
        added = self._source(["windowed", block.form, texts], {text: str(n) for n, text in enumerate(texts)})

        def token(node: exp.Expr) -> exp.Expr:
            return added.values[_text(node)].copy() if isinstance(node, exp.Window) else node

        return _Block(added.source, {name: value.transform(token) for name, value in values.items()})

    def _aggregate(self, relation: Aggregate) -> _Block:
        block = self.block(relation.child)
        keys = [_text(_formed(key.expression, block.values)) for key in relation.keys]
        calls = [_text(_formed(call.call, block.values)) for call in relation.calls]
        names = [*(key.name for key in relation.keys), *(call.name for call in relation.calls)]
        tokens = {name.lower(): str(place) for place, name in enumerate(names)}
        grouped = self._source(["aggregate", block.form, keys, calls], tokens)
        return _Block(grouped.source, _values(relation.items, grouped.values))

    def _top(self, relation: TopK) -> _Block:
        block = self.block(relation.child)
        order = [
            [_text(block.values[term.column.lower()]), term.is_descending, term.is_null_first]
            for term in relation.order
        ]
        source = ["top", block.form, order, relation.count, self.listed(block, relation)]
        return self._opaque(source, relation)


def _values(items: Iterable[Named], over: Mapping[str, exp.Expr]) -> dict[str, exp.Expr]:
    return {item.name.lower(): _formed(item.expression, over) for item in items}


def _formed(expression: exp.Expr, over: Mapping[str, exp.Expr]) -> exp.Expr:
    """An expression over the columns of a source, in one of its spellings. Raises _NoFormError."""

    def form(node: exp.Expr) -> exp.Expr:
        if type(node) not in _KNOWN or (isinstance(node, exp.In) and not node.expressions):
            raise _NoFormError
        if isinstance(node, exp.Column):
            value = over.get(node.name.lower())
            if value is None or node.table:
                raise _NoFormError
            return exp.Paren(this=value.copy())
        return node

    return expression.transform(form)


def _text(expression: exp.Expr) -> str:
    """One spelling of a value: its tree, without parentheses, with operands in one order where it does not matter.

    >>> import sqlglot
    >>> def text(sql): return _text(sqlglot.parse_one(sql, dialect="spark"))
    >>> text("b = a and (not 3 > c)") == text("c >= 3 and (a = b)")
    True
    >>> text("a between 1 and b") == text("b >= a and 1 <= a")
    True
    >>> text("a - b") == text("b - a"), text("a - (b - c)") == text("(a - b) - c")
    (False, False)
    """
    return _key(_bottom_up(expression.copy()))


def _conjuncts(condition: exp.Expr) -> dict[str, exp.Expr]:
    """The conditions that must all be true, by their texts."""
    return {_key(each): each for each in _flat(_bottom_up(condition.copy()), exp.And)}


def _bottom_up(node: exp.Expr) -> exp.Expr:
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
            return node if node.args.get("symmetric") else _rewritten(exp.And(this=_rewritten(low), expression=high))
        case exp.Not():
            inner = _bare(node.this)
            negated = _NEGATED.get(type(inner))
            return node if negated is None else _rewritten(negated(this=inner.this, expression=inner.expression))
        case exp.And() | exp.Or():
            kind = type(node)
            operands = {_key(each): each for each in _flat(node, kind)}
            return _combined([operands[key] for key in sorted(operands)], kind)
        case exp.GT() | exp.GTE():
            return _MIRRORED[type(node)](this=node.expression, expression=node.this)
        case exp.EQ() | exp.NEQ() | exp.NullSafeEQ() | exp.NullSafeNEQ():
            first, second = sorted((node.this, node.expression), key=_key)
            return type(node)(this=first, expression=second)
    return node


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _key(node: object) -> str:
    """A tree as a text, which has all of it: SQL that is generated from a tree without parentheses has not."""
    if isinstance(node, list):
        return f"[{', '.join(map(_key, node))}]"
    if not isinstance(node, exp.Expr):
        return repr(node)
    parts = (f"{name}={_key(value)}" for name, value in sorted(node.args.items()) if value not in (None, False, []))
    return f"{type(node).__name__}({', '.join(parts)})"


def _flat(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of nested ANDs or ORs."""
    if not isinstance(node, kind):
        return [node]
    return [*_flat(node.this, kind), *_flat(node.expression, kind)]


def _combined(operands: list[exp.Expr], kind: type[exp.Expr]) -> exp.Expr:
    made = operands[0]
    for operand in operands[1:]:
        made = kind(this=made, expression=operand)
    return made
