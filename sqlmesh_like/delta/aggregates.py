"""GROUP BY with mergeable aggregates, maintained by merging. Owns the merge program.

The change is aggregated by group, added to the stored states, and finished into visible columns. A group whose stored
extremum (or the row whose value is kept) is retracted, or whose sum overflowed, is recomputed from the current input,
and only such groups. Source: the counting and summary-delta algorithms (Gupta, Mumick, Subrahmanian 1993; Mumick,
Quass, Mumick 1997).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Aggregate
from sqlmesh_like.analyze.functions.floating_sums import most_additions
from sqlmesh_like.analyze.functions.merging import StateKind, cast
from sqlmesh_like.delta.affected_keys import visible_keys
from sqlmesh_like.delta.changes import Changes
from sqlmesh_like.delta.keys import column, encode, key, weight
from sqlmesh_like.delta.lookups import Lookups, Match
from sqlmesh_like.delta.program import TARGET, DeltaProgram, Moves, Prune
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import net, rows, signed_rows
from sqlmesh_like.delta.states import AggregateState, states_of, value
from sqlmesh_like.names import KEY, ROWS, Column

_ZERO = exp.Literal.number(0)


def build_aggregate(aggregate: Aggregate) -> exp.Select:
    """The whole table: key, visible columns, states."""
    return finalize_states(current_states(aggregate).subquery("g"), aggregate)


def current_states(aggregate: Aggregate) -> exp.Select:
    """Key, group keys and states of all groups, over the current inputs."""
    return group_states(_arguments(aggregate, rows(aggregate.child)), aggregate, signed=False)


def aggregate_delta(aggregate: Aggregate, moves: Moves) -> DeltaProgram:
    """The merge program of an aggregate whose calls are all mergeable."""
    states = states_of(aggregate)
    changes = Changes(aggregate, moves)
    steps = changes.steps
    if not moves.can_change(aggregate):
        return steps.program()
    changed = steps.add("changed", _arguments(aggregate, changes.of(aggregate.child), signed=True))
    arguments = [f"_sml_a{i}" for i, state in enumerate(states) if state.argument is not None]
    netted = net(exp.table_(changed), [Column(name) for name in (*(k.name for k in aggregate.keys), *arguments)])
    groups = steps.add("groups", group_states(netted, aggregate, signed=True))
    shown = visible_keys(aggregate, [named.name for named in aggregate.keys])
    old = steps.add("old", _old(groups), prunes=(Prune(groups, {TARGET: shown}),))
    stale = steps.add("stale", _stale(states, groups, old), is_rare=True)
    recomputed = steps.add("recomputed", _stale_group_states(aggregate, steps, stale), unless_empty=stale)
    pooled = steps.add("pooled", _union_states(aggregate, states, groups, old, stale))
    merged = steps.add("merged", _merge_states(aggregate, states, pooled, recomputed))
    steps.add("signed", _signed_rows(aggregate, old, merged))
    return replace(steps.program(), groups=groups)


def _arguments(aggregate: Aggregate, source: exp.Select, *, signed: bool = False) -> exp.Select:
    """Rows reduced to group keys, state arguments, row key and weight."""
    items = [exp.alias_(named.expression.copy(), named.name, quoted=True) for named in aggregate.keys]
    for i, state in enumerate(states_of(aggregate)):
        if state.argument is not None:
            items.append(exp.alias_(state.argument.copy(), f"_sml_a{i}", quoted=True))
    extra = [key(), weight()] if signed else [key()]
    return exp.select(*items, *extra).from_(source.subquery("r"))


def group_states(source: exp.Select, aggregate: Aggregate, *, signed: bool) -> exp.Select:
    """States by group, with `_sml_key` from the group's keys; for signed rows, the change of the states."""
    keys = [column(named.name) for named in aggregate.keys]
    items: list[exp.Expr] = [exp.alias_(encode(keys), KEY, quoted=True), *[k.copy() for k in keys]]
    states = states_of(aggregate)
    arguments = {state.name: column(f"_sml_a{i}") for i, state in enumerate(states)}
    decisive = {name for order in _orders(states) for name in order}
    for state in states:
        items.append(exp.alias_(_aggregate_state(state, arguments, signed), state.name, quoted=True))
        if signed and state.name in decisive:
            items.append(
                exp.alias_(_extremum(state, arguments, _is_negative()), _retraction_column(state.name), quoted=True)
            )
    query = exp.select(*items).from_(source.subquery("n"))
    return query.group_by(*[k.copy() for k in keys]) if keys else query


def _aggregate_state(state: AggregateState, arguments: Mapping[str, exp.Column], signed: bool) -> exp.Expr:
    sign: exp.Expr = weight() if signed else exp.Literal.number(1)
    argument = arguments[state.name]
    match state.kind:
        case "rows":
            total: exp.Expr = exp.Sum(this=sign) if signed else exp.Count(this=exp.Star())
            return exp.Coalesce(this=cast(total, "bigint"), expressions=[_ZERO.copy()])
        case "count":
            is_null = exp.Is(this=argument.copy(), expression=exp.Null())
            filled = exp.Case().when(exp.Not(this=is_null), sign).else_(_ZERO.copy())
            return exp.Coalesce(this=cast(exp.Sum(this=filled), "bigint"), expressions=[_ZERO.copy()])
        case "sum" | "floating":
            return _sum(state, argument, signed)
        case "magnitude":  # of what is added and of what is taken away
            return _or_zero(argument, exp.Sum(this=exp.Abs(this=argument.copy())), state)
        case "additions":
            return cast(exp.Count(this=argument.copy()), state.type)
        case "min" | "max" | "min_by" | "max_by":
            return _extremum(state, arguments, exp.Not(this=_is_negative()) if signed else None)


def _sum(state: AggregateState, argument: exp.Column, signed: bool) -> exp.Expr:
    """The sum: 0 if nothing is summed, NULL only if it overflowed."""
    wide = cast(argument, state.type)
    if signed:
        wide = exp.Case().when(_is_negative(), exp.Neg(this=wide)).else_(wide.copy())
    return _or_zero(argument, cast(exp.Sum(this=wide), state.type), state)


def _or_zero(argument: exp.Column, total: exp.Expr, state: AggregateState) -> exp.Expr:
    is_empty = exp.EQ(this=exp.Count(this=argument.copy()), expression=_ZERO.copy())
    return exp.Case().when(is_empty, cast(_ZERO.copy(), state.type)).else_(total)


def _extremum(state: AggregateState, columns: Mapping[str, exp.Column], condition: exp.Expr | None = None) -> exp.Expr:
    """A minimum or maximum, or the value of the row that is first or last, of the rows that meet a condition.

    `columns` hold, by the name of a state, what it is over. Rows without a value of the first term of an order count
    for nothing.
    """
    value: exp.Expr = columns[state.name].copy()
    if not state.order:
        chosen = exp.Case().when(condition, value) if condition is not None else value
        return exp.Min(this=chosen) if state.kind == "min" else exp.Max(this=chosen)
    terms = [columns[name] for name in state.order]
    known = exp.Not(this=exp.Is(this=terms[0].copy(), expression=exp.Null()))
    met = exp.and_(condition, known) if condition is not None else known
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(f"_sml_{n}"), expression=term.copy()) for n, term in enumerate(terms)
    ]
    kind = exp.ArgMin if state.kind == "min_by" else exp.ArgMax
    return kind(this=value, expression=exp.Case().when(met, exp.Struct(expressions=fields)))


def _retraction_column(name: str) -> str:
    return name.replace("_sml_", "_sml_lost_")


def _orders(states: Sequence[AggregateState]) -> dict[tuple[str, ...], StateKind]:
    """The states that decide which rows a group's extrema and chosen values are of, each with its kind.

    An extremum that is the first term of an order stays while the row that is chosen by this order does.
    """
    orders = {state.order: state.kind for state in states if state.order}
    first = {order[0] for order in orders}
    extrema = {(state.name,): state.kind for state in states if state.kind in ("min", "max")}
    return {order: kind for order, kind in extrema.items() if order[0] not in first} | orders


def _is_negative() -> exp.Expr:
    return exp.LT(this=weight(), expression=_ZERO.copy())


def _old(groups: str) -> exp.Select:
    """The stored rows of the changed groups."""
    matching = exp.select(key()).from_(groups)
    return exp.select("*").from_(outside("target", TARGET)).where(exp.In(this=key(), query=matching.subquery()))


def _stale(states: tuple[AggregateState, ...], groups: str, old: str) -> exp.Select:
    """Keys of changed groups whose stored states cannot be merged.

    A retracted value equals or exceeds the stored extremum, and none that enters does (exceeds it, where it is that of
    a row), a stored or added sum has overflowed, or one of floating numbers may be farther off than its tolerance.
    """
    conditions: list[exp.Expr] = []
    for order, kind in _orders(states).items():
        stored = [column(name, "o") for name in order]
        reached, beaten = (exp.LTE, exp.LT) if kind in ("min", "min_by") else (exp.GTE, exp.GT)
        is_lost = _reaches([column(_retraction_column(name), "d") for name in order], stored, reached)
        entering = [column(name, "d") for name in order]
        is_beaten = _reaches(entering, stored, reached if kind in ("min", "max") else beaten)
        conditions.append(exp.Case().when(is_beaten, exp.false()).else_(is_lost))
    for state in states:
        if state.kind == "sum":
            conditions += [exp.Is(this=column(state.name, alias), expression=exp.Null()) for alias in ("o", "d")]
        elif state.tolerance is not None:
            conditions.append(_is_too_inexact(state, states))
    changed = exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier("d"))).from_(
        exp.alias_(exp.table_(groups), "d", table=True)
    )
    on = exp.EQ(this=column(KEY, "o"), expression=column(KEY, "d"))
    query = changed.join(exp.alias_(exp.table_(old), "o", table=True), on=on, join_type="inner")
    return query.where(exp.or_(*conditions) if conditions else exp.false())


def _is_too_inexact(total: AggregateState, states: Sequence[AggregateState]) -> exp.Expr:
    """Whether the sum after the change may be farther off than its tolerance, by the bound of `floating_sums`.

    What it is not is asked for, and the quotients are so, because NaN is above all numbers in either engine.
    """
    own = {state.kind: state.name for state in states if state.argument == total.argument}
    merged = {kind: exp.Paren(this=exp.Add(this=column(n, "o"), expression=column(n, "d"))) for kind, n in own.items()}
    error = exp.Div(this=merged["magnitude"], expression=exp.Abs(this=merged["floating"]), safe=True)
    most = exp.Div(this=most_additions(total.tolerance or 0), expression=merged["additions"], safe=True)
    nothing = (column(own["additions"], "d"), merged["count"].copy(), merged["magnitude"].copy())
    unchanged = [exp.EQ(this=each, expression=_ZERO.copy()) for each in nothing]
    return exp.Case().when(exp.or_(*unchanged, exp.LTE(this=error, expression=most)), exp.false()).else_(exp.true())


def _reaches(values: Sequence[exp.Expr], stored: Sequence[exp.Expr], compare: type[exp.Predicate]) -> exp.Expr:
    """Whether values are at least as far in an order as the stored ones; with a strict comparison farther."""
    last = compare(this=values[-1], expression=stored[-1])
    if len(values) == 1:
        return last
    farther = exp.LT if compare in (exp.LT, exp.LTE) else exp.GT
    tied = [exp.EQ(this=value.copy(), expression=own.copy()) for value, own in zip(values[:-1], stored, strict=False)]
    return exp.or_(_reaches(values[:-1], stored[:-1], farther), exp.and_(*tied, last))


def _stale_group_states(aggregate: Aggregate, steps: Lookups, stale: str) -> exp.Select:
    """States of the stale groups, from the current input."""
    if not aggregate.keys:
        # Without GROUP BY an aggregate over no rows still has a row: filter after aggregating, not before.
        whole = group_states(_arguments(aggregate, rows(aggregate.child)), aggregate, signed=False)
        subquery = exp.select(key()).from_(stale).subquery()
        return exp.select("*").from_(whole.subquery("w")).where(exp.In(this=key(), query=subquery))
    expressions = [named.expression for named in aggregate.keys]
    names = tuple(named.name for named in aggregate.keys)
    match = Match(tuple(expressions), stale, names, (True,) * len(names))
    current = steps.lookup(aggregate.child, match)
    return group_states(_arguments(aggregate, exp.select("*").from_(current)), aggregate, signed=False)


def _union_states(
    aggregate: Aggregate, states: tuple[AggregateState, ...], groups: str, old: str, stale: str
) -> exp.Select:
    """Stored states, and those that the change adds, of all changed groups that are not recomputed."""
    names = _state_names(aggregate, states)
    stored = exp.select(*names).from_(old)
    added = exp.select(*[name.copy() for name in names]).from_(groups)
    both = exp.union(stored, added, distinct=False).subquery("b")
    subquery = exp.select(key()).from_(stale).subquery()
    return (
        exp.select(*[name.copy() for name in names]).from_(both).where(exp.Not(this=exp.In(this=key(), query=subquery)))
    )


def _merge_states(aggregate: Aggregate, states: tuple[AggregateState, ...], pooled: str, recomputed: str) -> exp.Select:
    """States of every changed group after the change."""
    keys = [key(), *[column(named.name) for named in aggregate.keys]]
    columns = {state.name: column(state.name) for state in states}
    sums = [exp.alias_(_merge_one(state, columns), state.name, quoted=True) for state in states]
    combined = exp.select(*keys, *sums).from_(pooled).group_by(*[name.copy() for name in keys])
    names = _state_names(aggregate, states)
    every = exp.union(combined, exp.select(*names).from_(recomputed), distinct=False)
    return exp.select(*[name.copy() for name in names]).from_(every.subquery("e"))


def _state_names(aggregate: Aggregate, states: tuple[AggregateState, ...]) -> list[exp.Expr]:
    return [key(), *[column(named.name) for named in aggregate.keys], *[column(state.name) for state in states]]


def _merge_one(state: AggregateState, columns: Mapping[str, exp.Column]) -> exp.Expr:
    if state.kind in ("min", "max", "min_by", "max_by"):
        return _extremum(state, columns)
    total = cast(exp.Sum(this=column(state.name)), state.type)
    if state.counted_by is None:
        return total
    counted = exp.Sum(this=column(state.counted_by))
    is_empty = exp.EQ(this=counted, expression=_ZERO.copy())
    return exp.Case().when(is_empty, cast(_ZERO.copy(), state.type)).else_(total)


def _signed_rows(aggregate: Aggregate, old: str, merged: str) -> exp.Select:
    """Stored rows leave, merged rows enter; a group exists while it has rows, a scalar aggregate always."""
    hidden = [column_.name for column_ in state_schema(aggregate)]
    names = [key(), *[column(name) for name in (*(item.name for item in aggregate.items), *hidden)]]
    alive = exp.select("*").from_(merged)
    if aggregate.keys:
        alive = alive.where(exp.GT(this=column(ROWS), expression=_ZERO.copy()))
    return signed_rows(names, old, finalize_states(alive.subquery("m"), aggregate).subquery("f"))


def state_schema(aggregate: Aggregate) -> tuple[Column, ...]:
    """Hidden columns of the table: group keys (which a query need not select) and states."""
    keys = tuple(Column(named.name, named.type) for named in aggregate.keys)
    return keys + tuple(Column(state.name, state.type) for state in states_of(aggregate))


def finalize_states(source: exp.Expr, aggregate: Aggregate) -> exp.Select:
    """Key, visible columns and states: in the items, call columns are replaced by their values."""
    states = states_of(aggregate)
    values = {call.name: value(call, states) for call in aggregate.calls}

    def replace(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in values:
            return exp.Paren(this=values[node.name].copy())
        return node

    visible = [
        exp.alias_(item.expression.copy().transform(replace), item.name, quoted=True) for item in aggregate.items
    ]
    hidden = [column(named.name) for named in aggregate.keys]
    kept = [column(state.name) for state in states]
    return exp.select(key(), *visible, *hidden, *kept).from_(source)
