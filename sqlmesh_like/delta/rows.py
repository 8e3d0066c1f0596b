"""Relations as SQL: their current rows, and each operator over sources that other modules build.

The row key is threaded through: a union prefixes the branch, a join pairs the keys of all its tables, an explode adds
the position, groups are named by their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    OneRow,
    Projection,
    Relation,
    ScalarValue,
    Scan,
    TopK,
    UnionAll,
    Windowed,
    children,
    columns,
)
from sqlmesh_like.analyze.binding.expression_copies import replace_nodes
from sqlmesh_like.analyze.binding.ties import by_row_key, is_tied
from sqlmesh_like.analyze.spark_types.one_zero import FLOATING
from sqlmesh_like.delta.join_graph import flatten
from sqlmesh_like.delta.keys import as_text, column, encode, key, weight
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.states import value_of_frame, value_of_rows
from sqlmesh_like.names import KEY, ROWS, WEIGHT, Column

# Reserved names: a bare column name in EXISTS could otherwise refer to the table.
_LEFT, _RIGHT = "_sml_l", "_sml_r"


def rows(source: Relation) -> exp.Select:
    """SELECT of a relation's columns and `_sml_key`, over the current inputs."""
    match source:
        case Filter() | Projection() | Join(kind="inner"):
            graph = flatten(source)
            return graph.select([from_item(leaf) for leaf in graph.leaves])
        case OneRow():
            return exp.select(exp.alias_(encode([]), KEY, quoted=True))
        case Scan():
            return exp.select(*names(source), key()).from_(outside("current", source.input_id))
    return over(source, *(from_item(child) for child in children(source)))


def from_item(source: Relation) -> exp.Expr:
    """A relation as a FROM item: the outside relation itself if nothing has to be computed."""
    return outside("current", source.input_id) if isinstance(source, Scan) else subquery(rows(source))


def subquery(query: exp.Query) -> exp.Expr:
    return exp.Subquery(this=query)


def over(node: Relation, *sources: exp.Expr) -> exp.Select:
    """SELECT of one operator over FROM items that hold its children's rows."""
    match node:
        case Explode():
            return explode_rows(node, sources[0])
        case UnionAll():
            return union_rows(node, dict(enumerate(sources)))
        case Join():
            return _outer(node, *sources)
        case Windowed():
            types = {each.name.lower(): each.type for each in columns(node.child)}
            items = [_item(_repeatable(item.expression, types), item.name) for item in node.items]
            return _from(exp.select(*items, key(), copy=False), sources[0])
        case Distinct():
            return _distinct(node, sources[0])
        case Aggregate():
            return _group_rows(node, sources[0])
        case ScalarValue():
            return _scalar_value(node, sources[0])
        case TopK():
            return first_rows(node, [*names(node.child), key()], sources[0])
    raise AssertionError(f"{type(node).__name__} is part of a graph")


def net(source: exp.Expr, schema: Sequence[Column], *, has_zero_signs: bool = False) -> exp.Select:
    """Signed rows of a FROM item without the pairs that cancel out (grain: key and content).

    `has_zero_signs`: -0.0 and 0.0 are two values; GROUP BY takes either for 0.0.
    """
    keys = [column(c.name) for c in schema] + [key()]
    signs = {c.name: _is_negative_zero(c.name) for c in schema if has_zero_signs and c.type in FLOATING}
    items = [_item(_signed_zero(c, signs[c.name]), c.name) if c.name in signs else column(c.name) for c in schema] + [
        key()
    ]
    total = exp.Sum(this=weight())
    summed = exp.cast(total.copy(), "bigint", dialect="spark")
    query = exp.select(*items, exp.alias_(summed, WEIGHT, quoted=True)).from_(source)
    grouped = query.group_by(*[k.copy() for k in (*keys, *signs.values())])
    return grouped.having(exp.NEQ(this=total, expression=exp.Literal.number(0)))


def _is_negative_zero(name: str) -> exp.Expr:
    is_written = exp.EQ(this=as_text(column(name)), expression=exp.Literal.string("-0.0"))
    return exp.Coalesce(this=is_written, expressions=[exp.false()])


def _signed_zero(of: Column, is_negative: exp.Expr) -> exp.Expr:
    zero = exp.cast(exp.Literal.string("-0.0"), of.type or "double", dialect="spark")
    return exp.Case().when(is_negative.copy(), zero).else_(column(of.name))


def signed_rows(names: Sequence[exp.Expr], leaving: str | exp.Expr, entering: str | exp.Expr) -> exp.Select:
    """Signed rows: those of one step, which leave, with weight -1, and those of another, which enter, with +1."""
    parts = []
    for source, value in ((leaving, -1), (entering, 1)):
        sign = exp.alias_(exp.cast(exp.Literal.number(value), "bigint", dialect="spark"), WEIGHT, quoted=True)
        item = exp.table_(source) if isinstance(source, str) else source
        parts.append(exp.select(*[n.copy() for n in names], sign).from_(item))
    both = exp.union(parts[0], parts[1], distinct=False)
    return exp.select(*[n.copy() for n in names], weight()).from_(both.subquery("s"))


def names(source: Relation) -> list[exp.Expr]:
    return [column(c.name) for c in columns(source)]


def union_all(selects: Sequence[exp.Query]) -> exp.Query:
    """UNION ALL of queries with the same columns."""
    query = selects[0]
    for further in selects[1:]:
        query = exp.union(query, further, distinct=False, copy=False)
    return query


def _from(query: exp.Select, source: exp.Expr, alias: str = "x") -> exp.Select:
    """`query FROM source`, without copies: both trees are used nowhere else, and copying at each level is quadratic."""
    return query.from_(exp.alias_(source, alias, table=True, quoted=True, copy=False), copy=False)


def _item(expression: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(expression.copy(), name, quoted=True)


def explode_rows(explode: Explode, source: exp.Expr, *, signed: bool = False) -> exp.Select:
    """One row per element (`signed`: the source's rows are a change, whose weight is passed on).

    The view's own names have no dot: Spark would keep the quotes as part of such a name."""
    inner = ("_sml_e_position", "_sml_e_element")
    view = exp.Lateral(
        this=exp.Posexplode(this=explode.array.copy()), view=True, outer=False,
        alias=exp.TableAlias(
            this=exp.to_identifier("_sml_e", quoted=True), columns=[exp.to_identifier(n, quoted=True) for n in inner]
        ),
    )  # fmt: skip
    kept = [column(c.name) for c in columns(explode.child)]
    added = [_item(column(inner[0]), explode.position), _item(column(inner[1]), explode.element.name)]
    numbered = exp.alias_(encode([key(), column(inner[0])]), KEY, quoted=True)
    query = _from(exp.select(*kept, *added, numbered, *([weight()] if signed else [])), source)
    query.append("laterals", view)
    return query


def union_rows(union: UnionAll, sources: Mapping[int, exp.Expr], *, signed: bool = False) -> exp.Select:
    """Rows of the branches that have a source (`signed`: these are changes, whose weight is passed on)."""
    carried = [weight()] if signed else []
    selects: list[exp.Query] = []
    for number, source in sources.items():
        prefix = exp.Literal.string(f"{number}.")
        branch_key = exp.alias_(exp.DPipe(this=prefix, expression=key(), safe=True), KEY, quoted=True)
        renamed = [
            _item(column(own.name), merged.name)
            for own, merged in zip(columns(union.branches[number]), union.schema, strict=True)
        ]
        selects.append(_from(exp.select(*renamed, branch_key, *[c.copy() for c in carried], copy=False), source))
    shown = [column(c.name) for c in union.schema]
    return _from(exp.select(*shown, key(), *carried, copy=False), subquery(union_all(selects)), "u")


def _scalar_value(node: ScalarValue, source: exp.Expr) -> exp.Select:
    """The one row; engines refuse a subquery of several rows in an expression."""
    (only,) = names(node)
    value = exp.Subquery(this=_from(exp.select(only, copy=False), source))
    return exp.select(_item(value, only.name), exp.alias_(encode([]), KEY, quoted=True), copy=False)


def as_it_was(node: Relation, *sources: exp.Expr) -> exp.Select:
    """`over` for rows as they were, which fails for none: rows that Spark did not read may have been too many."""
    if not isinstance(node, ScalarValue):
        return over(node, *sources)
    (only,) = names(node)
    most = _item(exp.Max(this=only), columns(node)[0].name)
    return _from(exp.select(most, exp.alias_(encode([]), KEY, quoted=True), copy=False), sources[0])


PLACE = "_sml_place"
"""Column: the number of a row in the order of a LIMIT, from 1 on."""


def first_rows(limit: TopK, shown: Sequence[exp.Expr], source: exp.Expr, *last: exp.Expr) -> exp.Select:
    """The first rows of a FROM item. `last` orders rows of one key.

    Written as ROW_NUMBER, which DuckDB is proven to compute as Spark does; Spark makes a LIMIT of it for up to so many
    rows (`InferWindowGroupLimit`), and would otherwise number all rows in one task.
    """
    items = [item.copy() for item in shown]
    if limit.count is not None and limit.count + limit.skipped > _MOST_NUMBERED:
        query = _from(exp.select(*items, copy=False), source)
        query.set("order", exp.Order(expressions=_total_order(limit, last)))
        query = query.limit(limit.count, copy=False)
        return query.offset(limit.skipped, copy=False) if limit.skipped else query
    numbered = _from(exp.select(*items, in_place(limit, *last), copy=False), source)
    query = _from(exp.select(*[item.copy() for item in items], copy=False), subquery(numbered))
    if limit.count is not None:
        end = exp.Literal.number(limit.count + limit.skipped)
        query = query.where(exp.LTE(this=column(PLACE), expression=end), copy=False)
    if limit.skipped:
        query = query.where(exp.GT(this=column(PLACE), expression=exp.Literal.number(limit.skipped)), copy=False)
    return query


_MOST_NUMBERED = 1000


def in_place(limit: TopK, *last: exp.Expr) -> exp.Expr:
    """`PLACE` of rows that have the columns of a limit's child."""
    window = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=_total_order(limit, last)))
    return exp.alias_(window, PLACE, quoted=True)


def _total_order(limit: TopK, last: Sequence[exp.Expr]) -> list[exp.Expr]:
    terms: list[exp.Expr] = [
        exp.Ordered(this=column(term.column), desc=term.is_descending, nulls_first=term.is_null_first)
        for term in limit.order
    ]
    return terms + [exp.Ordered(this=end.copy(), desc=False, nulls_first=True) for end in (as_text(key()), *last)]


def _outer(join: Join, left: exp.Expr, right: exp.Expr) -> exp.Select:
    if join.kind in ("semi", "anti"):
        return _membership(join, left, right)
    paired = encode([column(KEY, _LEFT), column(KEY, _RIGHT)])
    shown = [
        *[column(c.name, _LEFT) for c in columns(join.left)],
        *[column(c.name, _RIGHT) for c in columns(join.right)],
    ]
    query = _from(exp.select(*shown, exp.alias_(paired, KEY, quoted=True), copy=False), left, _LEFT)
    condition = exp.true() if join.condition is None else join.condition.copy()
    source = exp.alias_(right, _RIGHT, table=True, quoted=True, copy=False)
    return query.join(source, on=condition, join_type=join.kind, copy=False)


def _membership(join: Join, left: exp.Expr, right: exp.Expr) -> exp.Select:
    """Rows of the left side with (semi) or without (anti) a match."""
    matching = _from(exp.select(exp.Literal.number(1), copy=False), right, _RIGHT)
    if join.condition is not None:
        matching = matching.where(join.condition.copy(), copy=False)
    exists: exp.Expr = exp.Exists(this=matching)
    items = [*[column(c.name, _LEFT) for c in columns(join)], column(KEY, _LEFT)]
    query = _from(exp.select(*items, copy=False), left, _LEFT)
    return query.where(exp.Not(this=exists) if join.kind == "anti" else exists, copy=False)


def _distinct(distinct: Distinct, source: exp.Expr) -> exp.Select:
    shown = names(distinct)
    keyed = exp.alias_(encode(shown, [c.type for c in columns(distinct)]), KEY, quoted=True)
    query = _from(exp.select(*[n.copy() for n in shown], keyed, copy=False), source)
    return query.group_by(*[n.copy() for n in shown], copy=False)


def _group_rows(aggregate: Aggregate, source: exp.Expr) -> exp.Select:
    """GROUP BY as written, without hidden state: for rows that are recomputed, never merged."""
    inner_keys = [_item(named.expression, named.name) for named in aggregate.keys]
    read = dict.fromkeys(argument.name for call in aggregate.calls for argument in call.call.find_all(exp.Column))
    keyed = _from(exp.select(*inner_keys, *[column(name) for name in read], key(), copy=False), source)
    keys = [column(named.name) for named in aggregate.keys]
    calls = [_item(value_of_rows(call) or by_row_key(call.call, key()), call.name) for call in aggregate.calls]
    named = exp.alias_(encode(keys, [named.type for named in aggregate.keys]), KEY, quoted=True)
    counted = exp.alias_(exp.Count(this=exp.Star()), ROWS, quoted=True)  # without a call or a key nothing would group
    items = [named, *[k.copy() for k in keys], *calls, counted]
    grouped = _from(exp.select(*items, copy=False), subquery(keyed), "k")
    if keys:
        grouped = grouped.group_by(*[k.copy() for k in keys], copy=False)
    shown = [_item(item.expression, item.name) for item in aggregate.items]
    return _from(exp.select(*shown, key(), copy=False), subquery(grouped), "g")


def _repeatable(expression: exp.Expr, types: Mapping[str, str | None]) -> exp.Expr:
    """The expression with windows whose value is a function of their rows, wherever it is known how."""
    return replace_nodes(
        _with_tie_break(expression),
        lambda node: (isinstance(node, exp.Window) and value_of_frame(node, types)) or node,
    )


def _with_tie_break(expression: exp.Expr) -> exp.Expr:
    """The expression with the row key as the last ORDER BY term of windows whose result depends on ties.

    The order of ties is not a function of the input; the full build and the delta must choose the same.
    """
    copy = expression.copy()
    for window in copy.find_all(exp.Window):
        if is_tied(window):
            window.args["order"].append("expressions", exp.Ordered(this=as_text(key())))
    return copy
