"""A table at one commit as a view of DuckDB's. Owns the statement, which names the files that the commit has."""

from __future__ import annotations

from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.local_files import LocalTable
from sqlmesh_like.errors import UsageError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.sql_text import standard_identifier

_HINT = "`sml ddl --release --dialect spark` declares it for Spark; `sml publish` sends its rows to DuckDB"


def duckdb_view(table: TableName, state: TableState) -> list[str]:
    """Statements that make a view of a table's visible columns at `state`'s frontier.

    Raises UsageError for a table that is not copy-on-write, elsewhere than on this machine, or of types that differ.
    """
    assert state.frontier is not None and state.schema is not None
    if state.kind != "cow" or not folder(state.uri).is_local:
        message = f"{table}: DuckDB reads the files of copy-on-write tables on this machine only"
        raise UsageError(message, hint=_HINT)
    files = LocalTable(state.uri, Timeline(state.uri), state.schema, keeps_negative_zero=True)
    try:
        rows = files.rows(state.frontier)
    except Unproven as error:
        raise UsageError(f"{table} cannot be declared in DuckDB: {error}", hint=_HINT) from error
    schema, name = standard_identifier(table.schema), standard_identifier(table.identifier)
    return [f"CREATE SCHEMA IF NOT EXISTS {schema}", f"CREATE OR REPLACE VIEW {schema}.{name} AS {rows}"]
