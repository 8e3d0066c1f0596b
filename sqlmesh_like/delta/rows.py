"""Row-wise relations as SQL. Owns how a projection, filter or union reads changes instead of tables.

These operators are linear: the change of the result is the operator applied to the change of its input, so one
rendering serves the full build and the delta. The row key is threaded through: a union prefixes the branch.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlmesh_like.analyze.reader import TIE_SENSITIVE
from sqlmesh_like.analyze.relation import (
    Aggregate,
    Distinct,
    Filter,
    Project,
    Relation,
    Scan,
    UnionAll,
    Windowed,
    columns,
)
from sqlmesh_like.delta.keys import column, encode, key, text, weight
from sqlmesh_like.delta.program import DeltaProgram, Role, Step
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.names import KEY, WEIGHT, Column


def delta(source: Relation) -> DeltaProgram:
    """The program of a row-wise relation: its change is itself over the changes of its inputs."""
    changed = Step("changed", rows(source, "changes"))
    return DeltaProgram((changed, Step("signed", net("changed", columns(source)))))


def net(step: str, schema: Sequence[Column], *, keep_key: bool = True) -> exp.Select:
    """Signed rows of an earlier step without the pairs that cancel out (grain: key and content)."""
    keys = [column(c.name) for c in schema] + ([key()] if keep_key else [])
    total = exp.Sum(this=weight())
    summed = exp.cast(total.copy(), "bigint", dialect="spark")
    query = exp.select(*keys, exp.alias_(summed, WEIGHT, quoted=True)).from_(exp.table_(step))
    return query.group_by(*[k.copy() for k in keys]).having(exp.NEQ(this=total, expression=exp.Literal.number(0)))


def rows(source: Relation, role: Role) -> exp.Select:
    """SELECT of a relation's columns and `_sml_key` (over changes: `_sml_weight` too)."""
    match source:
        case Scan():
            names = [column(c.name) for c in source.schema]
            return exp.select(*names, *_carried(role)).from_(outside(role, source.input_id))
        case Filter():
            return _over(source.child, role, [column(c.name) for c in columns(source)]).where(source.condition.copy())
        case Project():
            return _over(source.child, role, [_item(item.expression, item.name) for item in source.items])
        case UnionAll():
            return _union(source, role)
        case Windowed():
            return _over(source.child, role, [_item(_with_tie_break(i.expression), i.name) for i in source.items])
        case Distinct():
            return _distinct(source, role)
        case Aggregate():
            return _grouped(source, role)


def _over(child: Relation, role: Role, items: list[exp.Expr]) -> exp.Select:
    return exp.select(*items, *_carried(role)).from_(_source(child, role))


def _source(child: Relation, role: Role) -> exp.Expr:
    """The FROM item of a child: the outside relation itself where nothing has to be computed."""
    if isinstance(child, Scan):
        return outside(role, child.input_id)
    return rows(child, role).subquery("x")


def _carried(role: Role) -> list[exp.Expr]:
    return [key(), weight()] if role == "changes" else [key()]


def _item(expression: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(expression.copy(), name, quoted=True)


def _union(union: UnionAll, role: Role) -> exp.Select:
    selects: list[exp.Query] = []
    for number, branch in enumerate(union.branches):
        prefix = exp.Literal.string(f"{number}.")
        branch_key = exp.alias_(exp.DPipe(this=prefix, expression=key(), safe=True), KEY, quoted=True)
        renamed = [
            _item(column(own.name), merged.name) for own, merged in zip(columns(branch), union.schema, strict=True)
        ]
        extra = [weight()] if role == "changes" else []
        selects.append(exp.select(*renamed, branch_key, *extra).from_(_source(branch, role)))
    query = selects[0]
    for branch_query in selects[1:]:
        query = exp.union(query, branch_query, distinct=False)
    names = [column(c.name) for c in union.schema]
    return exp.select(*names, *_carried(role)).from_(
        exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("u")))
    )


def _distinct(distinct: Distinct, role: Role) -> exp.Select:
    if role == "changes":
        raise AssertionError("DISTINCT is not linear: it has no reading over changes")
    names = [column(c.name) for c in columns(distinct)]
    keyed = exp.alias_(encode(names), KEY, quoted=True)
    return exp.select(*[n.copy() for n in names], keyed).from_(_source(distinct.child, role)).group_by(*names)


def _grouped(aggregate: Aggregate, role: Role) -> exp.Select:
    """GROUP BY as written, with no hidden state: for tables that are recomputed, never merged."""
    if role == "changes":
        raise AssertionError("aggregates are not linear: they have no reading over changes")
    inner_keys = [_item(named.expression, named.name) for named in aggregate.keys]
    keyed = exp.select(*inner_keys, *[c.copy() for c in _read_by(aggregate)]).from_(_source(aggregate.child, role))
    keys = [column(named.name) for named in aggregate.keys]
    calls = [_item(call.call, call.name) for call in aggregate.calls]
    named = exp.alias_(encode(keys), KEY, quoted=True)
    grouped = exp.select(named, *[k.copy() for k in keys], *calls).from_(keyed.subquery("k"))
    if keys:
        grouped = grouped.group_by(*[k.copy() for k in keys])
    items = [_item(item.expression, item.name) for item in aggregate.items]
    return exp.select(*items, key()).from_(grouped.subquery("g"))


def _read_by(aggregate: Aggregate) -> list[exp.Expr]:
    """The child's columns that the calls read."""
    names = dict.fromkeys(found.name for call in aggregate.calls for found in call.call.find_all(exp.Column))
    return [column(name) for name in names]


def _with_tie_break(expression: exp.Expr) -> exp.Expr:
    """Tied order is no function of the input: the row key decides, in the full build and in the delta alike."""
    copy = expression.copy()
    for window in copy.find_all(exp.Window):
        order = window.args.get("order")
        if isinstance(window.this, TIE_SENSITIVE) and order is not None:
            order.append("expressions", exp.Ordered(this=text(key())))
    return copy
