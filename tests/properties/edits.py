"""Edits of a query: the text before becomes one after. Owns them; what they do to a table is each test's matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import sqlglot
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from sqlglot import exp

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import SqlError
from tests.properties.case import Case
from tests.properties.cases import cases
from tests.properties.expressions import Col, expression
from tests.properties.query import quoted

Edit = Callable[[DrawFn, exp.Query, Sequence[Col]], exp.Expr]
_OWN = "_edited"


def _around(items: str, query: exp.Expr, rest: str = "") -> exp.Expr:
    return sqlglot.parse_one(f"select {items} from ({query.sql(SPARK)}) as {_OWN} {rest}", dialect=SPARK)


def _wrapped(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    return _around("*", query)


def _renamed_inside(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    inner = ", ".join(f"{column.name} as c{number}" for number, column in enumerate(columns))
    outer = ", ".join(f"c{number} as {column.name}" for number, column in enumerate(columns))
    return sqlglot.parse_one(
        f"with w as (select {inner} from ({query.sql(SPARK)}) as q) select {outer} from w -- the same", dialect=SPARK
    )


def _turned(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    """With the operands of AND and of comparisons in their other order."""
    turned = {exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE, exp.EQ: exp.EQ, exp.And: exp.And}

    def turn(node: exp.Expr) -> exp.Expr:
        kind = turned.get(type(node))
        return node if kind is None else kind(this=node.expression.copy(), expression=node.this.copy())

    copy = query.copy()
    for node in [node for node in copy.walk() if type(node) in turned]:
        if not node.find_ancestor(*turned):
            node.replace(turn(node))
    return copy


def _with_unread_column(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    shown = ", ".join(column.name for column in columns)
    return _around(shown, _around("*, 1 as _unread", query))


def _narrowed(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    return _around("*", query, f"where {expression(draw, columns, 'boolean')}")


def _widened(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    copy = query.copy()
    wheres = [where for where in copy.find_all(exp.Where) if isinstance(where.parent, exp.Select)]
    if wheres:
        draw(st.sampled_from(wheres)).pop()
    return copy


def _extended(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    branch = f"select * from ({query.sql(SPARK)}) as b"
    return sqlglot.parse_one(f"{branch} union all {branch}", dialect=SPARK)


def _with_other_number(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    copy = query.copy()
    numbers = [node for node in copy.find_all(exp.Literal) if not node.is_string and node.name.isdigit()]
    if numbers:
        draw(st.sampled_from(numbers)).replace(exp.Literal.number(draw(st.integers(0, 3))))
    return copy


def _with_other_operator(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    others = {
        exp.LT: exp.LTE,
        exp.GT: exp.LT,
        exp.EQ: exp.NullSafeEQ,
        exp.And: exp.Or,
        exp.Or: exp.And,
        exp.Add: exp.Sub,
    }
    copy = query.copy()
    nodes = [node for node in copy.walk() if type(node) in others]
    if nodes:
        node = draw(st.sampled_from(nodes))
        node.replace(others[type(node)](this=node.this.copy(), expression=node.expression.copy()))
    return copy


def _with_sides_swapped(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    """The two sides of a difference, or of a join's tables, are exchanged."""
    copy = query.copy()
    if nodes := list(copy.find_all(exp.Sub)):
        node = draw(st.sampled_from(nodes))
        node.replace(exp.Sub(this=node.expression.copy(), expression=node.this.copy()))
    for select in copy.find_all(exp.Select):
        joins, first = select.args.get("joins") or [], select.args.get("from_")
        if first is not None and len(joins) == 1 and not joins[0].side and not joins[0].kind:
            one, other = first.this.copy(), joins[0].this.copy()
            first.set("this", other)
            joins[0].set("this", one)
    return copy


def _with_keys_turned(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    copy = query.copy()
    for group in copy.find_all(exp.Group):
        group.set("expressions", group.expressions[::-1])
    return copy


def _with_fewer_columns(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    """Some of the columns, in another order, under other names."""
    kept = draw(st.permutations(columns))[: draw(st.integers(1, len(columns)))]
    new = draw(st.booleans())
    items = ", ".join(f"{each.name} as n{number}" if new else each.name for number, each in enumerate(kept))
    return _around(items, query)


def _renamed_at_top(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    """The columns of an aggregate keep its state under other names."""
    copy = query.copy()
    if isinstance(copy, exp.Select) and not copy.is_star and not copy.args.get("order"):
        copy.set("expressions", [exp.alias_(each.unalias().copy(), f"n{n}") for n, each in enumerate(copy.expressions)])
    return copy


def _with_computed_column(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    return _around(f"*, {expression(draw, columns, 'int')} as computed", query)


def _with_column_added(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    """One more column, of an expression that the query has anywhere: one of its own, or of an aggregate."""
    copy = query.copy()
    if not isinstance(copy, exp.Select) or copy.is_star or copy.args.get("distinct"):
        return copy
    calls = [call.copy() for call in copy.find_all(exp.AggFunc) if call.find_ancestor(exp.Select) is copy]
    read = [c.copy() for c in copy.find_all(exp.Column) if c.find_ancestor(exp.Select, exp.AggFunc) is copy]
    if copy.args.get("group") or calls:
        arguments = [node.copy() for call in calls for node in call.find_all(exp.Column)]
        made: list[exp.Expr] = [exp.Count(this=exp.Star()), *[exp.Max(this=each) for each in arguments]]
        made += [exp.Sum(this=exp.cast(each.copy(), "bigint", dialect=SPARK)) for each in arguments]
    else:
        made = [exp.Coalesce(this=each, expressions=[each.copy()]) for each in read]
    if made:
        item = exp.alias_(draw(st.sampled_from(made)), "added")
        copy.set("expressions", draw(st.permutations([*copy.expressions, item])))
    return copy


def _with_branch_at_the_end(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    """A UNION ALL anywhere has its last branch once more, or does not have it any more."""
    copy = query.copy()
    unions = [u for u in copy.find_all(exp.Union) if not u.args.get("distinct") and not u.args.get("with_")]
    if unions:
        union = draw(st.sampled_from(unions))
        more = exp.union(union.copy(), union.expression.copy(), distinct=False)
        other = more if draw(st.booleans()) else union.this.copy()
        if union is copy:
            return other
        union.replace(other)
    return copy


def _with_join(draw: DrawFn, query: exp.Query, columns: Sequence[Col]) -> exp.Expr:
    """Joined with the rows of the same query, of which one column is shown."""
    on, shown = draw(st.sampled_from(columns)).name, draw(st.sampled_from(columns)).name
    left, where = draw(st.sampled_from(["left", "left", "inner"])), ""
    further = draw(st.sampled_from(["", f" and j.{shown} is not null", f" and {_OWN}.{shown} is null"]))
    if draw(st.integers(0, 3)) == 0:
        where = f"where {_OWN}.{shown} is not null or j.{on} is null"
    other = f"{left} join ({query.sql(SPARK)}) as j on {_OWN}.{on} = j.{on}{further}"
    return _around(f"{_OWN}.*, j.{shown} as joined", query, f"{other} {where}")


SAME: dict[str, Edit] = {
    "in a subquery": _wrapped, "renamed inside": _renamed_inside, "operands turned": _turned,
    "a column that is not read": _with_unread_column,
}  # fmt: skip
"""Edits that change no row."""
OTHER: dict[str, Edit] = {
    "filter narrowed": _narrowed, "filter widened": _widened, "branch added": _extended, "number": _with_other_number,
    "columns": _with_fewer_columns, "operator": _with_other_operator, "sides swapped": _with_sides_swapped,
    "keys turned": _with_keys_turned, "column computed": _with_computed_column,
    "renamed at the top": _renamed_at_top, "column added": _with_column_added,
    "branch at the end": _with_branch_at_the_end, "join": _with_join,
}  # fmt: skip


@st.composite
def edited(draw: DrawFn, construct: str, edits: dict[str, Edit], most: int = 2) -> tuple[str, Case, Case]:
    """Names of edits, a case and the case after them."""
    before = draw(cases(construct)).case
    names = draw(st.lists(st.sampled_from(sorted(edits)), min_size=1, max_size=most))
    query = sqlglot.parse_one(before.sql, dialect=SPARK)
    columns = [Col(quoted(c.name), c.type or "") for c in before.plan.facts.schema or ()]
    for name in names:
        assert isinstance(query, exp.Query)
        query = edits[name](draw, query, columns) if columns else query
        if name in ("columns", "column added", "column computed", "renamed at the top", "join"):
            break  # the types of its columns are not known here
    after = replace(before, sql=query.sql(SPARK))
    try:
        _ = after.plan.classification
    except SqlError:
        reject()  # no query any more
    if names[0] == "join" and draw(st.booleans()):
        before, after = after, before
    return ", ".join(names), before, after
