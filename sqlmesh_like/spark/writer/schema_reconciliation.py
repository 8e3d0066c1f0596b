"""Rows of an author's incremental SQL → the columns of their table. Owns `on_schema_change`, as in dbt.

Source: https://docs.getdbt.com/docs/build/incremental-models#what-if-the-columns-of-my-incremental-model-change
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.analyze.expressions.types import INTEGERS, decimal_of
from sqlmesh_like.analyze.spark_types.type_names import stored_type
from sqlmesh_like.errors import Location, NodeError
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.spark.writer import upsert as sinks

_HINT = "change the query or on_schema_change, or run with --full-refresh, which replaces the table"


def reconciled_schema(given: DataFrame, stored: DataFrame, model: RenderedModel) -> DataFrame:
    """The rows with the table's columns and types, and with new columns unless `on_schema_change` ignores these.

    Raises NodeError where the table would lose a column or a value.
    """
    change = model.config.on_schema_change
    have = {column.name.lower(): column for column in sinks.frame_schema(given)}
    known = {column.name.lower() for column in sinks.frame_schema(stored)}
    added = [column.name for lower, column in have.items() if lower not in known]
    missing = [column.name for column in sinks.frame_schema(stored) if column.name.lower() not in have]
    if missing and change != "append_new_columns":
        raise _schema_error(model, f"the query has no column {missing[0]!r}, which the table has")
    if added and change == "fail":
        raise _schema_error(model, f"the query has a column {added[0]!r}, which the table has not")
    items = []
    for column in sinks.frame_schema(stored):
        result = have.get(column.name.lower())
        if result is not None and not can_reconcile(result.type, column.type):
            message = f"the column {column.name!r} is {column.type} in the table and {result.type} in the query"
            raise _schema_error(model, message)
        value = F.lit(None) if result is None else F.col(f"`{result.name}`")
        items.append(value.cast(column.type or "string").alias(column.name))
    return given.select(*items, *([f"`{name}`" for name in added] if change != "ignore" else []))


def can_reconcile(result: str | None, stored: str | None) -> bool:
    """Whether every value of the type `result` is also a value of the type `stored`.

    >>> can_reconcile("int", "bigint"), can_reconcile("bigint", "int"), can_reconcile("decimal(10,2)",
    ... "decimal(12,2)"), can_reconcile("date", "timestamp")
    (True, False, True, True)
    """
    result, stored = stored_type(result), stored_type(stored)
    if result == stored or (result, stored) in (("date", "timestamp"), ("float", "double")) or result == "void":
        return True
    one, other = decimal_of(result), decimal_of(stored)
    if one is None or other is None or (stored in INTEGERS and result not in INTEGERS):
        return False
    return one[0] - one[1] <= other[0] - other[1] and one[1] <= other[1]


def _schema_error(model: RenderedModel, message: str) -> NodeError:
    return NodeError(f"{model.table}: {message}", location=Location(model.path, 1, 1), hint=_HINT)
