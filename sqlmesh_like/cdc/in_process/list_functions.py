"""Functions of lists and maps, those that are given a function included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlmesh_like.cdc.in_process.operators import same
from sqlmesh_like.cdc.in_process.strict import Function, strict
from sqlmesh_like.cdc.in_process.text_functions import as_text
from sqlmesh_like.cdc.in_process.values import NotProvenError, Row, Value, group_of


def _distinct(values: list[Value]) -> list[Value]:
    known: dict[Value, Value] = {}
    for value in values:
        known.setdefault(group_of(value), value)
    return list(known.values())


def _contains(values: list[Value], value: Value) -> bool | None:
    if any(same(each, value) for each in values):
        return True
    return None if None in values else False


def _item(values: Value, place: Value) -> Value:
    """`values[place]`, from 0; of a map the value of a key. NULL where there is none."""
    if values is None or place is None:
        return None
    if isinstance(values, dict):
        return values.get(place)
    return values[place] if 0 <= place < len(values) else None


def _element_at(values: Value, place: Value) -> Value:
    """From 1, or from the end, from -1; of a map the value of a key."""
    if isinstance(values, dict):
        return values.get(place)
    if not place:
        raise NotProvenError("element_at of 0")
    place = place - 1 if place > 0 else len(values) + place
    return values[place] if 0 <= place < len(values) else None


def _sequence(first: int, last: int, step: int = 1) -> list[int]:
    if step <= 0 or last < first:
        raise NotProvenError("a sequence that falls")
    return list(range(first, last + 1, step))


_ENTRY = ("key", "value")


LIST_FUNCTIONS: Mapping[str, Function] = {
    "array_distinct": strict(_distinct),
    "array_union": strict(lambda left, right: _distinct([*left, *right])),
    "array_except": strict(lambda left, right: [v for v in _distinct(left) if not any(same(v, r) for r in right)]),
    "array_contains": strict(_contains),
    "array_join": strict(lambda values, sign: sign.join(as_text(value) for value in values if value is not None)),
    "array_repeat": strict(lambda value, count: [value] * max(count, 0)),
    "flatten": strict(lambda values: None if None in values else [each for value in values for each in value]),
    "reverse": strict(lambda values: values[::-1]),
    "sequence": strict(_sequence),
    "size": lambda values: -1 if values is None else len(values),
    "item": _item,
    "get": _item,
    "element_at": strict(_element_at),
    "try_element_at": strict(_element_at),
    "map_keys": strict(lambda entries: list(entries)),
    "map_entries": strict(lambda entries: [Row.of(_ENTRY, each) for each in entries.items()]),
}


def _aggregate(values: Sequence[Value] | None, start: Value, merge: Function, finish: Function | None = None) -> Value:
    if values is None:
        return None
    state = start
    for value in values:
        state = merge(state, value)
    return state if finish is None else finish(state)


def _exists(values: list[Value] | None, test: Function) -> bool | None:
    if values is None:
        return None
    results = [test(value) for value in values]
    return True if True in results else None if None in results else False


WITH_LAMBDAS: Mapping[str, Function] = {
    "transform": strict(lambda values, function: [function(value, place) for place, value in enumerate(values)]),
    "filter": strict(lambda values, test: [value for place, value in enumerate(values) if test(value, place)]),
    "exists": _exists,
    "aggregate": _aggregate,
    "zip_with": strict(
        lambda left, right, function: [
            function(_item(left, place), _item(right, place)) for place in range(max(len(left), len(right)))
        ]
    ),
    "map_filter": strict(lambda entries, test: {name: value for name, value in entries.items() if test(name, value)}),
}
"""Functions whose last argument is a function of its own; it gets more values than it has parameters, at the end."""
