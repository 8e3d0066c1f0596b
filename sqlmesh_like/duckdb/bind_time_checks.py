"""Operands of types that DuckDB combines otherwise than Spark, found when it binds a query. Owns which these are.

Beside a number Spark casts a text to the number's type or both to double, and in a COALESCE the number to text; DuckDB
casts the text and rounds. What Spark refuses is another question (`plan.checks.refused_operands`).
Types are those that DuckDB itself finds when it binds a query, so nothing is inferred here:
`with_type_checks` is a query that is bound only, and that cannot be bound where types do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.dialects import duck_template
from sqlmesh_like.duckdb.type_conditions import (
    ALIKE,
    ALIKE_QUERIES,
    CASTABLE,
    PLAIN,
    PLAIN_ROW,
    alike_operands,
    fits_text,
    fits_texts,
    keeps_digits,
)
from sqlmesh_like.sql_text import standard_literal


@dataclass(frozen=True)
class _Check:
    """A condition in DuckDB's SQL on `types`, the list of the names of the types of some operands."""

    condition: str
    operands: Sequence[exp.Expr]
    reason: str


def with_type_checks(tree: exp.Expr, unknown: str, end: str) -> exp.Expr:
    """A copy that DuckDB cannot bind if an operator has operands on whose types the engines are not known to agree.

    The reason then stands in DuckDB's message, between `unknown` and `end`: a field is chosen by a name that is made of
    the types, which are known when a query is bound, and there is no such field.
    """
    made = tree.copy()
    # Operands are copied as they are written, without checks of their own, so that nested ones do not multiply.
    pairs = [(original, node) for original, node in zip(tree.walk(), made.walk(), strict=True)]
    for original, node in reversed(pairs):
        for check in _checks(original):
            _apply(node, check, unknown, end)
        for check in _checks_of_rows(original):
            _filter(node, check, unknown, end)
    return made


def _apply(node: exp.Expr, check: _Check, unknown: str, end: str) -> None:
    """Make a value a checked one."""
    made = _check_expression(check, unknown, end)
    (place,) = (column for column in made.find_all(exp.Column) if column.name == "sml_value")
    node.replace(made)
    place.replace(exp.Paren(this=node))


def _filter(query: exp.Expr, check: _Check, unknown: str, end: str) -> None:
    """Add a checked condition to a query: to a set operation's first, as it has none itself."""
    made = _check_expression(check, unknown, end)
    (place,) = (column for column in made.find_all(exp.Column) if column.name == "sml_value")
    place.replace(exp.true())
    if isinstance(query, exp.Select):
        query.where(made, copy=False)
        return
    first = query.this
    while isinstance(first, exp.SetOperation):
        first = first.this
    holder = exp.Select(expressions=[exp.Star()])
    first.replace(holder)
    alias = exp.TableAlias(this=exp.to_identifier("_sml_first"))
    holder.set("from_", exp.From(this=exp.Subquery(this=first, alias=alias)))
    holder.where(made, copy=False)


def _check_expression(check: _Check, unknown: str, end: str) -> exp.Expr:
    """`sml_value` as a field that only alike types have. Each operand stands once in it."""
    number = range(len(check.operands))
    reason = f"{standard_literal(unknown + check.reason + ' of ')} || array_to_string(types, ' and ')"
    listed = ", ".join(f"replace(typeof(sml_{each}), 'TUPLE', '')" for each in number)
    made = duck_template(
        f"struct_extract({{'sml': sml_value}}, list_transform([[{listed}]],"
        f" LAMBDA types : CASE WHEN {check.condition} THEN 'sml' ELSE {reason} || {standard_literal(end)} END)[1])"
    )
    places = {column.name: column for column in made.find_all(exp.Column)}
    for each in number:
        places[f"sml_{each}"].replace(check.operands[each].copy())
    return made


_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


def _checks(node: exp.Expr) -> Iterator[_Check]:
    yield from _in_rows(node)
    yield from _choice_checks(node)
    if _is_extreme(node):
        yield _Check(PLAIN, (node,), "MIN or MAX")
    if isinstance(node.parent, exp.Ordered) and node.arg_key == "this" and not _is_of_output(node):
        yield _Check(PLAIN, (node,), "ORDER BY")
    match node:
        case exp.Binary() if isinstance(node, _COMPARISONS):
            if isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE):
                yield _Check(PLAIN, (node.this,), "an order")
            yield from _comparison_checks(node.this, node.expression)
        case exp.Between():
            yield _Check(PLAIN, (node.this,), "BETWEEN")
            yield from _comparison_checks(node.this, node.args["low"])
            yield from _comparison_checks(node.this, node.args["high"])
        case exp.In():
            yield from _in_checks(node)
        case exp.Nullif():
            yield from _comparison_checks(node.this, node.expression)
        case exp.Window():
            for shifted in (node.this, node.this.this):
                if isinstance(shifted, exp.Lag | exp.Lead) and shifted.args.get("default") is not None:
                    yield _Check(CASTABLE, (shifted.this, shifted.args["default"]), shifted.sql_name())
        case exp.Binary() if isinstance(node, _ARITHMETIC) and not isinstance(node.expression, exp.Interval):
            yield from _arithmetic_checks(node)


def _is_extreme(node: exp.Expr) -> bool:
    """Whether a node is MIN or MAX with its FILTER and OVER."""
    if isinstance(node.parent, exp.Filter | exp.Window) and node.arg_key == "this":
        return False
    while isinstance(node, exp.Filter | exp.Window):
        node = node.this
    return isinstance(node, exp.Min | exp.Max)


def _choice_checks(node: exp.Expr) -> Iterator[_Check]:
    match node:
        case exp.Case():
            yield from _case(node)
        case exp.If() if not isinstance(node.parent, exp.Case):
            yield from _common_type_checks([node.args["true"], node.args.get("false")], "IF")
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            if not isinstance(node, exp.Coalesce):
                yield _Check(PLAIN, (node.this,), node.sql_name())
            yield from _common_type_checks([node.this, *node.expressions], node.sql_name())
        case exp.Array():
            yield from _common_type_checks(node.expressions, "ARRAY")


def _in_rows(node: exp.Expr) -> Iterator[_Check]:
    """A value of VALUES beside those above it: beside a number DuckDB casts a text, and Spark the number."""
    row = node.parent
    if not isinstance(row, exp.Tuple) or not isinstance(row.parent, exp.Values) or isinstance(node, exp.Null):
        return
    column = [each.expressions[node.index or 0] for each in row.parent.expressions if isinstance(each, exp.Tuple)]
    yield from _common_type_checks([next(each for each in column if not isinstance(each, exp.Null)), node], "VALUES")


def _comparison_checks(one: exp.Expr, other: exp.Expr) -> Iterator[_Check]:
    """A comparison; a text as it is written may be that of a whole number, a date or a timestamp, cast as in Spark."""
    if isinstance(one, exp.Tuple) and isinstance(other, exp.Tuple):
        for each, its in zip(one.expressions, other.expressions, strict=False):
            yield from _comparison_checks(each, its)
        return
    if isinstance(one, exp.Tuple) and isinstance(other, exp.Query):
        for each, item in zip(one.expressions, other.selects, strict=False):
            column = other.unnest().copy()
            column.set("expressions", [item.copy()])
            yield from _comparison_checks(each, exp.Subquery(this=column))
        return
    for text, value in ((one, other), (other, one)):
        if isinstance(text, exp.Literal) and text.is_string:
            yield _Check(fits_text(text.name), (value,), f"the text {text.name!r} beside a value")
            return
    yield _Check(ALIKE, (one, other), "a comparison")


def _in_checks(node: exp.In) -> Iterator[_Check]:
    """`IN`: beside one text Spark casts all its members to text, so others must have one text."""
    query = node.args.get("query")
    members = list(node.expressions) if query is None else [query]
    texts = [item.name for item in members if isinstance(item, exp.Literal) and item.is_string]
    others = [item for item in members if not (isinstance(item, exp.Literal) and item.is_string)]
    if not texts:
        for item in others:
            yield from _comparison_checks(node.this, item)
        return
    for item in (node.this, *others):
        yield _Check(fits_texts(texts), (item,), f"IN ({', '.join(map(repr, texts[:3]))})")
    for item in others:
        yield from _comparison_checks(node.this, item)


def _case(node: exp.Case) -> Iterator[_Check]:
    branches = node.args["ifs"]
    if node.this is not None:
        for branch in branches:
            yield from _comparison_checks(node.this, branch.this)
    yield from _common_type_checks([*(branch.args["true"] for branch in branches), node.args.get("default")], "CASE")


def _common_type_checks(values: Sequence[exp.Expr | None], what: str) -> Iterator[_Check]:
    """Values of which one is chosen: of one type, or numbers, or dates and timestamps."""
    given = [value for value in values if value is not None and not isinstance(value, exp.Null)]
    for value in given[1:]:
        yield _Check(ALIKE, (given[0], value), what)


def _arithmetic_checks(node: exp.Binary) -> Iterator[_Check]:
    operands = (node.this, node.expression)
    yield _Check(alike_operands(node), operands, _SIGNS[type(node)])
    if not isinstance(node, exp.Div):
        yield _Check(keeps_digits(node), operands, _SIGNS[type(node)])


_SIGNS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}


def _checks_of_rows(node: exp.Expr) -> Iterator[_Check]:
    if isinstance(node, exp.Query):
        yield from _order_checks(node)
    match node:
        case exp.SetOperation() if not isinstance(node.parent, exp.SetOperation):
            rows = [_row_of(query) for query in _set_operation_queries(node)]
            yield _Check(ALIKE_QUERIES, rows, _SET_OPERATIONS[type(node)])
        case exp.Select():
            for number, join in enumerate(node.args.get("joins") or ()):
                for column in join.args.get("using") or ():
                    yield _Check(ALIKE, _using_operands(node, number, column), f"USING ({column.name})")


def _ordered_query(key: exp.Expr) -> exp.Query | None:
    """The query whose rows a key of ORDER BY orders; None for keys of windows and aggregates."""
    order = key.find_ancestor(exp.Order)
    return order.parent if order is not None and isinstance(order.parent, exp.Query) else None


def _is_of_output(key: exp.Expr) -> bool:
    """Whether a key of ORDER BY is a position, a name of the result, or of a set operation's result."""
    query = _ordered_query(key)
    if not isinstance(query, exp.Select):
        return query is not None
    is_name = isinstance(key, exp.Column) and not key.table and key.name.lower() in map(str.lower, query.named_selects)
    return key.is_int or is_name


def _order_checks(query: exp.Query) -> Iterator[_Check]:
    order = query.args.get("order")
    for key in [] if order is None else [each.this for each in order.expressions]:
        if not _is_of_output(key):
            continue
        rows = query.copy()
        for clause in ("order", "limit", "offset"):
            rows.set(clause, None)
        if key.is_int:
            yield _Check(PLAIN_ROW, (_row_of(rows),), "ORDER BY a position")
        else:
            held = exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier("_sml_rows")))
            value = exp.Select(expressions=[key.copy()], from_=exp.From(this=held))
            yield _Check(PLAIN, (exp.Subquery(this=value),), "ORDER BY")


def _set_operation_queries(query: exp.Expr) -> Iterator[exp.Expr]:
    """The queries of a chain of set operations."""
    if isinstance(query, exp.SetOperation):
        yield from _set_operation_queries(query.this)
        yield from _set_operation_queries(query.expression)
    else:
        yield query


def _row_of(query: exp.Expr) -> exp.Expr:
    """The rows of a query as one value, whose type names those of all its columns."""
    row = duck_template("row(*COLUMNS(*))")
    rows = exp.Subquery(this=query.copy(), alias=exp.TableAlias(this=exp.to_identifier("_sml_rows")))
    return exp.Subquery(this=exp.Select(expressions=[row], from_=exp.From(this=rows)))


def _using_operands(select: exp.Select, number: int, column: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """A column of USING on either side of a join, as a subquery each."""
    joins = select.args["joins"]
    left = exp.Select(expressions=[exp.column(column.name)], joins=[join.copy() for join in joins[:number]])
    for clause in ("from_", "laterals"):
        if value := select.args.get(clause):
            left.set(clause, [each.copy() for each in value] if isinstance(value, list) else value.copy())
    right = exp.Select(expressions=[exp.column(column.name)], from_=exp.From(this=joins[number].this.copy()))
    return (exp.Subquery(this=left), exp.Subquery(this=right))


_SET_OPERATIONS = {exp.Union: "a UNION", exp.Intersect: "an INTERSECT", exp.Except: "an EXCEPT"}
