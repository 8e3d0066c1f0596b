"""All functions by their names. Owns nothing: `aggregates` has the aggregates and `table` the others."""

from __future__ import annotations

from collections.abc import Iterator

from sqlmesh_like.analyze.functions.aggregates import AGGREGATES
from sqlmesh_like.analyze.functions.function import Function
from sqlmesh_like.analyze.functions.table import FUNCTIONS


def function_named(name: str) -> Function | None:
    """What is known of a function by its name (lower case).

    >>> function_named("avg").counts, function_named("instr").counts, function_named("my_udf")
    ((1, 1), (2, 2), None)
    """
    return FUNCTIONS.get(name) or next((each for each in _aggregates() if each.name == name), None)


def all_functions() -> Iterator[Function]:
    """The functions that Spark 3.5 has, by each of their names."""
    yield from FUNCTIONS.values()
    yield from _aggregates()


def _aggregates() -> Iterator[Function]:
    return (function for record in AGGREGATES.values() for function in record.functions)
