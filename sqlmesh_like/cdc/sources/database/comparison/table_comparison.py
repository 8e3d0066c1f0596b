"""The tables of a source compared with those of its database, one after another. Owns the order of the steps.

All rows are compared first, then the log is read to its end: a row that differs has then been so since before the
table's position, unless the log has a change of it that the table has not read yet (`unread_log`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.sources.database.comparison.compared_part import ComparedPart, DifferentKeys, compared_part
from sqlmesh_like.cdc.sources.database.comparison.dialects import DATABASES
from sqlmesh_like.cdc.sources.database.comparison.differences import DifferentRow, TableComparison, different_row
from sqlmesh_like.cdc.sources.database.comparison.lake_rows import with_hashes
from sqlmesh_like.cdc.sources.database.comparison.narrowing import CHUNK_ROWS, Narrowed, narrow, spans_of
from sqlmesh_like.cdc.sources.database.comparison.side import Key, Side, Span, Sum, values_of
from sqlmesh_like.cdc.sources.database.comparison.unread_log import unread_rows
from sqlmesh_like.cdc.sources.database.connector_settings import database_of, declared_table, wanted_tables
from sqlmesh_like.cdc.sources.database.server import Table, connect, tables_of
from sqlmesh_like.cdc.sources.database.spool import spool_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import SmlError, UsageError
from sqlmesh_like.project.nodes import DatabaseSettings, SourceTable

if TYPE_CHECKING:
    import sqlalchemy as sa


_LONGEST_PAUSE = 0.5
"""Seconds without asking whether to go on."""


@dataclass(frozen=True)
class ComparisonRequest:
    """How tables are compared. `limit`: rows that differ which are shown; `rows_per_second`: most that are read.

    `share`: of the chunks that are compared, between 0 and 1, chosen by `seed`.
    """

    limit: int = 20
    rows_per_second: int | None = None
    share: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class _NarrowedPart:
    """What differs in one part, before it is known what the log has."""

    part: ComparedPart
    narrowed: Narrowed
    sampled: bool


def compare_tables(
    place: SourcePaths,
    tables: Sequence[SourceTable],
    request: ComparisonRequest,
    read_log: Callable[[], None],
    phase: Callable[[str], None] = lambda _: None,
    require_going: Callable[[], None] = lambda: None,
) -> Iterator[TableComparison]:
    """Compare tables of a source with its database; those that differ come last.

    `read_log` spools the log to its end; it is called once, if a table differs. `require_going` is called between
    queries, and raises what ends the comparison. Raises MachineError where the database cannot be asked.
    """
    settings = database_of(place.source)
    with connect(settings) as connection:
        db = connection.execution_options(isolation_level="AUTOCOMMIT", no_parameters=True)
        every = tables_of(db, settings)
        wanted = set(map(str, wanted_tables(place.source, every)))
        every = tuple(table for table in every if wanted.isdisjoint(table.partition_of))
        for statement in DATABASES[settings.kind].settings:
            db.exec_driver_sql(statement)
        comparer = _Comparer(place, settings, db, every, request, require_going)
        waiting = []
        for table in tables:
            phase(f"comparing {table.table} with {settings.address}")
            began = time.perf_counter()
            try:
                parts = comparer.narrowed_parts(table)
            except SmlError as error:
                yield TableComparison(table, time.perf_counter() - began, error=str(error))
                continue
            result = _result(table, parts, time.perf_counter() - began)
            if any(each.narrowed.keys for each in parts):
                waiting.append((result, parts))
            else:
                yield result
        if waiting:
            phase("reading the log to its end")
            problem = _problem_of(read_log)
            for result, parts in waiting:
                began = time.perf_counter()
                try:
                    done = (
                        comparer.decided(result, parts)
                        if problem is None
                        else _uncertain_result(result, parts, problem)
                    )
                except SmlError as error:
                    done = _uncertain_result(result, parts, error)
                yield replace(done, seconds=done.seconds + time.perf_counter() - began)


def _result(table: SourceTable, parts: Sequence[_NarrowedPart], seconds: float) -> TableComparison:
    return TableComparison(
        table,
        seconds,
        rows=sum(each.narrowed.rows for each in parts),
        left=sum(each.narrowed.left for each in parts),
        sampled=any(each.sampled for each in parts),
        uncompared=tuple(dict.fromkeys(column for each in parts for column in each.part.columns.uncompared)),
    )


def _problem_of(read_log: Callable[[], None]) -> SmlError | None:
    try:
        read_log()
    except SmlError as error:
        return error
    return None


def _uncertain_result(result: TableComparison, parts: Sequence[_NarrowedPart], problem: SmlError) -> TableComparison:
    """Without the log's end, what differs may be what the log still has: nothing is certain."""
    count = sum(len(each.narrowed.keys) for each in parts)
    text = f"{count} rows differ, or have changes in the log that the table has not read. Which is not known: {problem}"
    return replace(result, left=0, error=text)


@dataclass(frozen=True)
class _Comparer:
    place: SourcePaths
    settings: DatabaseSettings
    db: sa.Connection
    every: tuple[Table, ...]
    request: ComparisonRequest
    require_going: Callable[[], None]

    def narrowed_parts(self, table: SourceTable) -> list[_NarrowedPart]:
        """Narrow each of the database's tables that the declared one takes. Raises SmlError where it cannot."""
        return [self._narrow_part(part) for part in [self._part(table, each) for each in self._origins(table)]]

    def _origins(self, table: SourceTable) -> list[Table]:
        ingest = table.ingest
        assert ingest is not None
        taken = [each for each in self.every if declared_table(self.place.source, each) is table]
        leave_out = f"leave it out: --exclude source:{table.source_name}.{table.name}"
        if not taken:
            raise UsageError(
                f"{self.settings.address} has no table for {table.table}: it was dropped or renamed there",
                location=table.declared_at,
                hint=f"change `table:` of the declaration, or {leave_out}",
            )
        if len(taken) > 1 and ingest.origin is None:
            raise UsageError(
                f"{table.table} has the rows of {len(taken)} tables, and no column that says which",
                location=table.declared_at,
                hint=f"declare `origin:`, or {leave_out}",
            )
        return taken

    def _part(self, table: SourceTable, origin: Table) -> ComparedPart:
        assert table.ingest is not None
        if table.ingest.deletes == "retention":
            raise UsageError(
                f"{table.table} keeps rows that the database has deleted (`deletes: retention`), so they differ",
                location=table.declared_at,
                hint=f"leave it out: --exclude source:{table.source_name}.{table.name}",
            )
        return compared_part(self.place, table, origin, self._fetch)

    def _narrow_part(self, part: ComparedPart) -> _NarrowedPart:
        with part.lake.side(part.columns) as lake:
            spans, share = self._spans(part, lake), self.request.share
            chosen = [span for number, span in enumerate(spans) if self._is_chosen(number)] if share < 1 else spans
            narrowed = narrow(part.database, lambda: with_hashes(lake), chosen or spans[:1], self._pause())
            return _NarrowedPart(part, narrowed, len(chosen) < len(spans))

    def _spans(self, part: ComparedPart, lake: Side) -> tuple[Span, ...]:
        """Ranges of the key, where the database has an index that begins with it; else all rows at once."""
        first = part.columns.database[part.columns.key[0]]
        if not first.kind.is_ordered or first.zone is not None or part.origin.key[:1] != (first.name,):
            return (Span(),)
        own = part.columns.lake[part.columns.key[0]]
        bounds = lake.bounds(CHUNK_ROWS)
        usable = (
            text for text in bounds if part.database.dialect.literal(first, text) and lake.dialect.literal(own, text)
        )
        return spans_of(list(usable))

    def _is_chosen(self, number: int) -> bool:
        """Whether a chunk is in the sample: the same ones for the same seed."""
        digest = hashlib.sha256(f"{self.request.seed} {number}".encode()).digest()
        return int.from_bytes(digest[:8], "big") < self.request.share * 2**64

    def _pause(self) -> Callable[[Sum], None]:
        """What waits after a query until so many rows a second are not exceeded."""
        most, began = self.request.rows_per_second, time.monotonic()
        read = 0

        def pause(rows: Sum) -> None:
            nonlocal read
            read += rows.rows
            self.require_going()
            while most is not None and (left := read / most - (time.monotonic() - began)) > 0:
                time.sleep(min(left, _LONGEST_PAUSE))
                self.require_going()

        return pause

    def _fetch(self, query: str) -> Sequence[Sequence[object]]:
        return self.db.exec_driver_sql(query).fetchall()

    def decided(self, result: TableComparison, parts: Sequence[_NarrowedPart]) -> TableComparison:
        """Tell what differs from what the log still has, and show some of it."""
        examples: list[DifferentRow] = []
        keys: list[DifferentKeys] = []
        different, unread = 0, 0
        for each in parts:
            part = each.part
            key = [part.columns.database[index] for index in part.columns.key]
            changed = unread_rows(spool_of(self.place), part.read, part.origin, key)
            certain = sorted((one for one in each.narrowed.keys if one not in changed), key=_in_order)
            different += len(certain)
            keys.append(DifferentKeys(part, tuple(certain)))
            unread += len(each.narrowed.keys) - len(certain)
            if wanted := certain[: self.request.limit - len(examples)]:
                theirs = values_of(part.database, wanted)
                with part.lake.side(part.columns) as lake:
                    ours = values_of(lake, wanted)
                examples += [different_row(part.columns, one, theirs.get(one, []), ours.get(one, [])) for one in wanted]
        if result.left and not different:
            text = f"{result.left} more rows were not compared: too many have changes in the log that were not read"
            return replace(result, unread=unread, left=0, error=text)
        return replace(result, different=different, unread=unread, examples=tuple(examples), keys=tuple(keys))


def _in_order(key: Key) -> tuple[tuple[int, str], ...]:
    """Numbers by their length first, so that 9 comes before 10."""
    return tuple((len(text or ""), text or "") for text in key)
