"""Rows of hand-written incremental SQL → the columns of their table. Owns `on_schema_change`, as dbt has it.

Source: https://docs.getdbt.com/docs/build/incremental-models#what-if-the-columns-of-my-incremental-model-change
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.analyze.types import INTEGERS, decimal_of
from sqlmesh_like.engine import sink as sinks
from sqlmesh_like.errors import Location, NodeError
from sqlmesh_like.render.rendered import RenderedModel

_HINT = "change the query or on_schema_change, or run with --full-refresh, which replaces the table"


def fitted(given: DataFrame, stored: DataFrame, model: RenderedModel) -> DataFrame:
    """The rows with the columns and types of the table, and with new columns where these are to be added.

    Raises NodeError where the table would lose a column or a value.
    """
    change = model.config.on_schema_change
    have = {column.name.lower(): column for column in sinks.schema_of(given)}
    known = {column.name.lower() for column in sinks.schema_of(stored)}
    added = [column.name for lower, column in have.items() if lower not in known]
    missing = [column.name for column in sinks.schema_of(stored) if column.name.lower() not in have]
    if missing and change != "append_new_columns":
        raise _refused(model, f"the query has no column {missing[0]!r}, which the table has")
    if added and change == "fail":
        raise _refused(model, f"the query has a column {added[0]!r}, which the table has not")
    items = []
    for column in sinks.schema_of(stored):
        found = have.get(column.name.lower())
        if found is not None and not fits(found.type, column.type):
            message = f"the column {column.name!r} is {column.type} in the table and {found.type} in the query"
            raise _refused(model, message)
        value = F.lit(None) if found is None else F.col(f"`{found.name}`")
        items.append(value.cast(column.type or "string").alias(column.name))
    return given.select(*items, *([f"`{name}`" for name in added] if change != "ignore" else []))


def fits(found: str | None, stored: str | None) -> bool:
    """Whether every value of one type is one of the other as well.

    >>> fits("int", "bigint"), fits("bigint", "int"), fits("decimal(10,2)", "decimal(12,2)"), fits("date", "timestamp")
    (True, False, True, True)
    """
    found, stored = sinks.as_stored(found), sinks.as_stored(stored)
    if found == stored or (found, stored) in (("date", "timestamp"), ("float", "double")) or found == "void":
        return True
    one, other = decimal_of(found), decimal_of(stored)
    if one is None or other is None or (stored in INTEGERS and found not in INTEGERS):
        return False
    return one[0] - one[1] <= other[0] - other[1] and one[1] <= other[1]


def _refused(model: RenderedModel, message: str) -> NodeError:
    return NodeError(f"{model.table}: {message}", location=Location(model.path, 1, 1), hint=_HINT)
