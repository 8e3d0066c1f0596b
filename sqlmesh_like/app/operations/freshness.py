"""How old the newest rows of sources are. Owns reading the tables; `artifacts.sources` owns the thresholds.

Starts Spark only for a `loaded_at_field` that is an expression, a `filter`, or a table that only Spark reads.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from time import perf_counter
from typing import Protocol

from sqlmesh_like.app.lakes.lake import Lake, clock, open_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.artifacts.sources import FreshnessResult, write_sources
from sqlmesh_like.errors import NodeError, SmlError
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.project.nodes import SourceTable

_NEVER = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)


class FreshnessListener(Protocol):
    """Receives each table before and after its check."""

    def started(self, number: int, total: int, table: SourceTable) -> None: ...

    def ended(self, number: int, total: int, table: SourceTable, result: FreshnessResult) -> None: ...


def source_freshness(
    loaded: Loaded, listener: FreshnessListener, path: Path | None = None, started: float | None = None
) -> tuple[FreshnessResult, ...]:
    """Return the age of the newest rows of the selected sources that have `freshness`.

    It is written to `path`, by default sources.json of the target folder. `started` is when the call began, by
    `perf_counter`. Raises UsageError where the target has no lake.
    """
    started = perf_counter() if started is None else started
    selected = {node.unique_id for node in loaded.select_nodes("source")}
    declared = (table for source in loaded.project.sources for table in source.tables)
    tables = [table for table in declared if table.unique_id in selected and table.freshness.is_asked]
    lake = open_lake(loaded)
    results: list[FreshnessResult] = []
    try:
        for number, table in enumerate(tables, 1):
            loaded.reporter.phase(f"asking source {number} of {len(tables)}, {table.table}")
            listener.started(number, len(tables), table)
            results.append(_result(lake, table))
            listener.ended(number, len(tables), table, results[-1])
    finally:
        lake.engine.stop()
    write_sources(path or loaded.target_folder / "sources.json", results, perf_counter() - started, clock(None))
    return tuple(results)


def _result(lake: Lake, table: SourceTable) -> FreshnessResult:
    started, asked, error, newest = perf_counter(), clock(None), None, _NEVER
    try:
        newest = _newest(lake, table)
    except SmlError as problem:
        error = str(problem)
    return FreshnessResult(table.unique_id, table.freshness, newest, asked, perf_counter() - started, error)


def _newest(lake: Lake, table: SourceTable) -> datetime.datetime:
    """Return the time of a table's newest row (UTC); the year 1 where it has none, as in dbt."""
    state = lake.catalog.state(table.unique_id)
    if not state.exists:
        raise NodeError(f"the table {table.table} does not exist yet", hint="run `sml ingest` first")
    if table.freshness.loaded_at is None:
        if state.format != "hudi":
            raise NodeError(f"{table.table} has no commits to ask", hint="declare its loaded_at_field")
        newest = next((each for each in Timeline(state.uri).newest_first() if each.is_data), None)
        if newest is None:
            return _NEVER
        text = newest.instant.completed or newest.instant.requested
        return datetime.datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(tzinfo=datetime.UTC)
    value = _largest(lake, table, state)
    return _NEVER if value is None else _moment(value, table)


def _largest(lake: Lake, table: SourceTable, state: TableState) -> object:
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    from sqlmesh_like.analyze.nesting import parse_text
    from sqlmesh_like.hudi.table_reader import largest

    asked = table.freshness
    if asked.filter is None and (newest := largest(state, (asked.loaded_at or "").strip("`"))) is not None:
        return newest[0]
    place = exp.table_(table.table.identifier, db=table.table.schema, quoted=True)
    try:
        tree = exp.select(exp.Max(this=parse_text(asked.loaded_at or ""))).from_(place)
        tree = tree if asked.filter is None else tree.where(parse_text(asked.filter))
    except SqlglotError as error:
        raise NodeError(f"loaded_at_field or filter of {table.table} is not valid SQL: {error}") from error
    return lake.engine.query(tree, {table.table: state}, 1).rows[0][0]


def _moment(value: object, table: SourceTable) -> datetime.datetime:
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value)
        except ValueError:
            raise NodeError(f"loaded_at_field of {table.table} is not a point in time: {value!r}") from None
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)
    raise NodeError(
        f"loaded_at_field of {table.table} is not a point in time: {value!r}", hint="name a timestamp or a date"
    )
