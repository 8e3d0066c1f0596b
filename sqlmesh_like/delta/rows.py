"""Relations as SQL. Owns how each operator reads snapshots, and how linear ones read changes.

Projections, filters, explodes, unions and inner joins are linear: the change of the result is a sum over the changes
of their inputs, so one rendering serves the full build and the delta. What is not linear is read from the step that
`changes` has made for it. The row key is threaded through: a union prefixes the branch, a join pairs both keys, an
explode adds the position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sqlmesh_like.analyze.clock import as_then, clock_calls
from sqlmesh_like.analyze.reader import TIE_SENSITIVE
from sqlmesh_like.analyze.relation import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    UnionAll,
    Windowed,
    columns,
)
from sqlmesh_like.analyze.ties import by_row_key
from sqlmesh_like.delta.crossing import crossing
from sqlmesh_like.delta.keys import column, encode, key, text, weight
from sqlmesh_like.delta.program import Role
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.names import KEY, ROWS, WEIGHT, Column


@dataclass(frozen=True)
class Reading:
    """Which state of the inputs is read; of changes, the steps that hold those of non-linear nodes (by identity)."""

    role: Role
    steps: Mapping[int, str] = field(default_factory=dict)

    @property
    def is_signed(self) -> bool:
        return self.role == "changes"


# No column that a user can have: a bare name in EXISTS could be taken for the table.
_LEFT, _RIGHT = "_sml_l", "_sml_r"

CURRENT = Reading("current")
PREVIOUS = Reading("previous")


def net(step: str, schema: Sequence[Column]) -> exp.Select:
    """Signed rows of an earlier step without the pairs that cancel out (grain: key and content)."""
    keys = [column(c.name) for c in schema] + [key()]
    total = exp.Sum(this=weight())
    summed = exp.cast(total.copy(), "bigint", dialect="spark")
    query = exp.select(*keys, exp.alias_(summed, WEIGHT, quoted=True)).from_(exp.table_(step))
    return query.group_by(*[k.copy() for k in keys]).having(exp.NEQ(this=total, expression=exp.Literal.number(0)))


def rows(source: Relation, reading: Reading) -> exp.Select:
    """SELECT of a relation's columns and `_sml_key` (over changes: `_sml_weight` too)."""
    if reading.is_signed and id(source) in reading.steps:
        return exp.select(*_names(source), *_carried(reading)).from_(exp.table_(reading.steps[id(source)]))
    match source:
        case Scan():
            return exp.select(*_names(source), *_carried(reading)).from_(outside(reading.role, source.input_id))
        case Filter():
            return _filtered(source, reading)
        case Project():
            return _over(source.child, reading, [_item(item.expression, item.name) for item in source.items])
        case Explode():
            return _exploded(source, reading)
        case UnionAll():
            return _union(source, reading)
        case Join():
            return _inner_change(source, reading) if reading.is_signed else _join(source, reading, reading)
    assert not reading.is_signed, "a node that is not linear is read from the step of its change"
    match source:
        case Windowed():
            return _over(source.child, reading, [_item(_with_tie_break(i.expression), i.name) for i in source.items])
        case Distinct():
            return _distinct(source, reading)
        case Aggregate():
            return _grouped(source, reading)


def _names(source: Relation) -> list[exp.Expr]:
    return [column(c.name) for c in columns(source)]


def _over(child: Relation, reading: Reading, items: list[exp.Expr]) -> exp.Select:
    return _from(exp.select(*items, *_carried(reading), copy=False), _source(child, reading))


def _from(query: exp.Select, source: exp.Expr) -> exp.Select:
    """`query FROM source`, of trees that nothing else holds: copying a nested one at each level costs its square."""
    return query.from_(source, copy=False)


def _source(child: Relation, reading: Reading, alias: str = "x") -> exp.Expr:
    """The FROM item of a child: the outside relation itself where nothing has to be computed."""
    if isinstance(child, Scan):
        return exp.alias_(outside(reading.role, child.input_id), alias, table=True)
    return rows(child, reading).subquery(alias, copy=False)


def _carried(reading: Reading) -> list[exp.Expr]:
    return [key(), weight()] if reading.is_signed else [key()]


def _item(expression: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(expression.copy(), name, quoted=True)


def _exploded(explode: Explode, reading: Reading) -> exp.Select:
    """A row for each element. The view's own names have no dot: Spark would keep the quotes as part of such a name."""
    names = ("_sml_e_position", "_sml_e_element")
    view = exp.Lateral(
        this=exp.Posexplode(this=explode.array.copy()), view=True, outer=False,
        alias=exp.TableAlias(
            this=exp.to_identifier("_sml_e", quoted=True), columns=[exp.to_identifier(n, quoted=True) for n in names]
        ),
    )  # fmt: skip
    kept = [column(c.name) for c in columns(explode.child)]
    added = [_item(column(names[0]), explode.position), _item(column(names[1]), explode.element.name)]
    numbered = exp.alias_(encode([key(), column(names[0])]), KEY, quoted=True)
    query = exp.select(*kept, *added, numbered, *_carried(reading)[1:]).from_(_source(explode.child, reading))
    query.append("laterals", view)
    return query


def _filtered(source: Filter, reading: Reading) -> exp.Select:
    """What the condition lets through; of changes also the rows that it treats otherwise since the clock moved on."""
    is_past = reading.role == "previous"
    condition = as_then(source.condition) if is_past else source.condition.copy()
    kept = _over(source.child, reading, _names(source)).where(condition, copy=False)
    if not reading.is_signed or not clock_calls(source.condition):
        return kept
    crossed = crossing(_names(source), _source(source.child, PREVIOUS), source.condition)
    items = [*_names(source), *_carried(reading)]
    return _from(exp.select(*items, copy=False), _stacked([kept, crossed]).subquery("c", copy=False))


def _union(union: UnionAll, reading: Reading) -> exp.Select:
    selects: list[exp.Query] = []
    for number, branch in enumerate(union.branches):
        prefix = exp.Literal.string(f"{number}.")
        branch_key = exp.alias_(exp.DPipe(this=prefix, expression=key(), safe=True), KEY, quoted=True)
        renamed = [
            _item(column(own.name), merged.name) for own, merged in zip(columns(branch), union.schema, strict=True)
        ]
        extra = [weight()] if reading.is_signed else []
        selects.append(_from(exp.select(*renamed, branch_key, *extra, copy=False), _source(branch, reading)))
    names = [column(c.name) for c in union.schema]
    return _from(exp.select(*names, *_carried(reading), copy=False), _stacked(selects).subquery("u", copy=False))


def _stacked(selects: Sequence[exp.Query]) -> exp.Query:
    query = selects[0]
    for further in selects[1:]:
        query = exp.union(query, further, distinct=False, copy=False)
    return query


def _inner_change(join: Join, reading: Reading) -> exp.Select:
    """ΔL ⋈ R as it was, and L as it is ⋈ ΔR: with R as it is in both, pairs of two changed rows would count twice."""
    assert join.kind == "inner", "outer, semi and anti joins are not linear"
    both = _stacked([_join(join, reading, PREVIOUS), _join(join, CURRENT, reading)])
    return _from(exp.select(*_names(join), key(), weight(), copy=False), both.subquery("b", copy=False))


def _join(join: Join, left: Reading, right: Reading) -> exp.Select:
    """The join with each side in its own reading; at most one of them is signed."""
    if join.kind in ("semi", "anti"):
        return _membership(join, left, right)
    paired = encode([column(KEY, _LEFT), column(KEY, _RIGHT)])
    names = [
        *[column(c.name, _LEFT) for c in columns(join.left)],
        *[column(c.name, _RIGHT) for c in columns(join.right)],
    ]
    signed = [column(WEIGHT, side) for side, reading in ((_LEFT, left), (_RIGHT, right)) if reading.is_signed]
    items = [*names, exp.alias_(paired, KEY, quoted=True), *signed]
    query = _from(exp.select(*items, copy=False), _source(join.left, left, _LEFT))
    if join.condition is None:
        return query.join(_source(join.right, right, _RIGHT), join_type="cross", copy=False)
    return query.join(_source(join.right, right, _RIGHT), on=join.condition.copy(), join_type=join.kind, copy=False)


def _membership(join: Join, left: Reading, right: Reading) -> exp.Select:
    """Rows of the left side with (semi) or without (anti) a match."""
    matching = _from(exp.select(exp.Literal.number(1), copy=False), _source(join.right, right, _RIGHT))
    if join.condition is not None:
        matching = matching.where(join.condition.copy(), copy=False)
    exists: exp.Expr = exp.Exists(this=matching)
    items = [*[column(c.name, _LEFT) for c in columns(join)], column(KEY, _LEFT)]
    query = _from(exp.select(*items, copy=False), _source(join.left, left, _LEFT))
    return query.where(exp.Not(this=exists) if join.kind == "anti" else exists, copy=False)


def _distinct(distinct: Distinct, reading: Reading) -> exp.Select:
    names = _names(distinct)
    keyed = exp.alias_(encode(names), KEY, quoted=True)
    source = _from(exp.select(*[n.copy() for n in names], keyed, copy=False), _source(distinct.child, reading))
    return source.group_by(*[n.copy() for n in names], copy=False)


def _grouped(aggregate: Aggregate, reading: Reading) -> exp.Select:
    """GROUP BY as written, with no hidden state: for rows that are recomputed, never merged."""
    inner_keys = [_item(named.expression, named.name) for named in aggregate.keys]
    keyed = _from(exp.select(*inner_keys, *_read_by(aggregate), key(), copy=False), _source(aggregate.child, reading))
    keys = [column(named.name) for named in aggregate.keys]
    calls = [_item(by_row_key(call.call, key()), call.name) for call in aggregate.calls]
    named = exp.alias_(encode(keys), KEY, quoted=True)
    counted = exp.alias_(exp.Count(this=exp.Star()), ROWS, quoted=True)  # without a call or a key nothing would group
    items = [named, *[k.copy() for k in keys], *calls, counted]
    grouped = _from(exp.select(*items, copy=False), keyed.subquery("k", copy=False))
    if keys:
        grouped = grouped.group_by(*[k.copy() for k in keys], copy=False)
    shown = [_item(item.expression, item.name) for item in aggregate.items]
    return _from(exp.select(*shown, key(), copy=False), grouped.subquery("g", copy=False))


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
