"""Hidden state of mergeable aggregates. Owns which columns a table keeps, each once; `merging` says what they hold."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Aggregate, Call
from sqlmesh_like.analyze.functions.aggregates import aggregate_named
from sqlmesh_like.analyze.functions.merging import KeptState, Merge, StateKind
from sqlmesh_like.delta.keys import column
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import ROWS


@dataclass(frozen=True)
class AggregateState:
    """One hidden column: what it holds and over which argument (None: over rows)."""

    name: str
    kind: StateKind
    argument: exp.Expr | None
    type: str
    counted_by: str | None = None  # for sums: the state with the number of summed values


def states_of(aggregate: Aggregate) -> tuple[AggregateState, ...]:
    """The states that all calls of an aggregate need, each once; the first counts rows."""
    entries: dict[tuple[str, str], AggregateState] = {}
    numbers: dict[str, int] = {}
    for call in aggregate.calls:
        names: list[str] = []
        for kept in _kept(call):
            sql = kept.argument.sql(SPARK)
            number = numbers.setdefault(sql, len(numbers))
            counted_by = None if kept.counted_by is None else names[kept.counted_by]
            state = AggregateState(f"_sml_{kept.kind}_{number}", kept.kind, kept.argument, kept.type, counted_by)
            names.append(entries.setdefault((kept.kind, sql), state).name)
    return (AggregateState(ROWS, "rows", None, "bigint"), *entries.values())


def value(call: Call, states: tuple[AggregateState, ...]) -> exp.Expr:
    """The aggregate's value, of Spark's type, from the states of its group."""
    if call.argument is None:
        return column(ROWS)
    names = {(state.kind, state.argument.sql(SPARK)): state.name for state in states if state.argument is not None}
    columns = [column(names[kept.kind, kept.argument.sql(SPARK)]) for kept in _kept(call)]
    return _merge(call).value(call.argument_type, *columns)


def _kept(call: Call) -> tuple[KeptState, ...]:
    return () if call.argument is None else _merge(call).states(call.argument, call.argument_type)


def _merge(call: Call) -> Merge:
    record = aggregate_named(call.function)
    assert record is not None and record.merge is not None, f"{call.function} has no state"
    return record.merge
