"""Statements by which Spark and Hive read a table as of one commit. Owns the statements; runs none of them.

A stored view cannot: Spark 3.5 refuses Hudi's `TIMESTAMP AS OF` inside one, and an option `as.of.instant` of a catalog
table has no effect. Temporary views, global ones too, keep the option.
"""

from __future__ import annotations

import re

from sqlmesh_like.errors import UsageError
from sqlmesh_like.hudi.external_table import external_ddl
from sqlmesh_like.hudi.history import path_columns
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName, is_hidden
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.sql_text import spark_identifier, spark_literal

PLAIN_PATH = re.compile(r"[A-Za-z0-9_.=/-]+")
NULL_IN_PATHS = "__HIVE_DEFAULT_PARTITION__"
_HINT = "send it to a database, DuckDB or Parquet instead: sml publish"


def options_from_data(timeline: Timeline) -> dict[str, str]:
    """Options that make Hudi read a partition column from the files, not from the paths, which are not exact.

    Hudi does so for ordering columns; naming one has no other effect where the table has no order.
    """
    fields = timeline.partition_fields
    if len(fields) != 1 or is_hidden(fields[0]) or timeline.properties.get("hoodie.table.ordering.fields"):
        return {}
    return {"hoodie.datasource.write.precombine.field": fields[0]}


def view_name(table: TableName) -> str:
    """The name of a table's view in a session, which has no schemas.

    >>> view_name(TableName("dws", "daily"))
    'dws__daily'
    """
    return f"{table.schema}__{table.identifier}"


def spark_view(table: TableName, state: TableState) -> list[str]:
    """Statements that make a global temporary view of a table's visible columns at `state`'s frontier.

    Raises UsageError where Hudi's reader would not give back what is stored.
    """
    assert state.frontier is not None and state.schema is not None
    timeline = Timeline(state.uri)
    options = {"path": _location(state.uri), "as.of.instant": _instant(timeline, state.frontier)}
    options |= _partition_options(timeline, table, state)
    name, source = (spark_identifier(f"{view_name(table)}{end}") for end in ("", "__hudi"))
    columns = ", ".join(spark_identifier(column.name) for column in state.schema)
    settings = ", ".join(f"{spark_literal(key)} {spark_literal(value)}" for key, value in options.items())
    return [
        f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW {source} USING hudi OPTIONS ({settings})",
        f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW {name} AS SELECT {columns} FROM global_temp.{source}",
    ]


def hive_table(table: TableName, state: TableState) -> list[str]:
    """Statements that declare a table in Hive, and let the session read it at `state`'s frontier.

    Raises UsageError for a merge-on-read table, whose input format reads log files past that commit.
    """
    assert state.frontier is not None
    if state.kind != "cow":
        raise UsageError(f"{table} is merge-on-read: Hive reads it at its newest commit only", hint=_HINT)
    timeline = Timeline(state.uri)
    own = timeline.properties.get("hoodie.table.name") or table.identifier
    setting = f"SET hoodie.{own}.consume.commit={timeline.snapshot_instant(state.frontier)}"
    return [*external_ddl(table, state, "hive"), setting]


def _instant(timeline: Timeline, frontier: str) -> str:
    """The instant at which Hudi's reader returns a frontier: requested times, by which it picks file slices."""
    return timeline.snapshot_instant(frontier) if timeline.is_cow else timeline.as_of(frontier)


def _partition_options(timeline: Timeline, table: TableName, state: TableState) -> dict[str, str]:
    """Options for reading partition columns exactly. Raises UsageError where paths have to be read, and are not."""
    assert state.frontier is not None
    visible = [name for name in timeline.partition_fields if not is_hidden(name)]
    options = options_from_data(timeline)
    if options or not visible:
        return options
    slices = timeline.slices_at(_instant(timeline, state.frontier)).values()
    paths = {each.partition for each in slices}
    if not path_columns(timeline, state.stored or ()) or any(
        not PLAIN_PATH.fullmatch(path) or NULL_IN_PATHS in path for path in paths
    ):
        message = (
            f"Hudi's reader does not give back the values of {', '.join(visible)}, by which {table} is partitioned"
        )
        raise UsageError(message, hint=_HINT)
    return {}


def _location(uri: str) -> str:
    return uri if "://" in uri else folder(uri).path
