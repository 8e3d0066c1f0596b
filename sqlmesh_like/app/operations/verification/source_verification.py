"""Compares tables of sources with the databases that they are read from. Owns which ones, and the lock for the log.

Only sources that the selection names are compared: it costs the database work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.lake_tables import require_lake
from sqlmesh_like.app.lakes.table_locks import log_locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.ingestion import IngestListener, IngestRequest, ingest
from sqlmesh_like.cdc.sources.database.capture import spool_log
from sqlmesh_like.cdc.sources.database.comparison.differences import TableComparison
from sqlmesh_like.cdc.sources.database.comparison.record import note_comparison
from sqlmesh_like.cdc.sources.database.comparison.repair import Repair, add_repair
from sqlmesh_like.cdc.sources.database.comparison.table_comparison import ComparisonRequest, compare_tables
from sqlmesh_like.cdc.sources.database.engine import engine_jars
from sqlmesh_like.cdc.sources.discover import with_discovered
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import UsageError
from sqlmesh_like.project.nodes import Source, SourceTable
from sqlmesh_like.spark.jvm.jars import ensure_jars

OnCompared = Callable[[int, int, TableComparison], None]
"""Called with the number of a table, the number of all tables, and its result."""


def named_sources(loaded: Loaded) -> tuple[Source, ...]:
    """Return the sources of databases that the selection names by `source:`, with their selected tables.

    Raises UsageError where it names sources alone, and none of a database.
    """
    if not any("source:" in word for word in loaded.invocation.select):
        return ()
    nodes = loaded.select_nodes("source", "model")
    wanted = {node.unique_id for node in nodes if node.resource_type == "source"}
    named = [
        replace(source, tables=tables)
        for source in loaded.project.sources
        if (tables := tuple(table for table in source.tables if table.unique_id in wanted))
    ]
    databases = tuple(source for source in named if source.ingest is not None and source.ingest.database is not None)
    if named and not databases and len(nodes) == len(wanted):
        raise UsageError(
            f"source {named[0].name!r} does not read a database: there is nothing to compare it with",
            location=named[0].declared_at,
            hint="select a source with `ingest: {database: …}`, or models, which are compared with their query",
        )
    return databases


def verify_sources(
    loaded: Loaded, sources: tuple[Source, ...], request: ComparisonRequest, on_compared: OnCompared
) -> tuple[TableComparison, ...]:
    """Compare these tables of sources with their databases, and record what was found.

    Raises UsageError where the target has no lake, MachineError where a database cannot be asked.
    """
    require_lake(loaded)
    chosen = [(source, *_tables(loaded, source)) for source in sources]
    total = sum(len(tables) for _, _, tables in chosen)
    results: list[TableComparison] = []
    for source, place, tables in chosen:

        def read_log(source: Source = source, place: SourcePaths = place) -> None:
            assert source.ingest is not None
            assert source.ingest.database is not None
            with lake_lock(loaded, "verify", log_locks(source)), loaded.reporter.downloading() as progress:
                ensure_jars(engine_jars(source.ingest.database.kind), progress=progress)
                spool_log(place)

        for result in compare_tables(place, tables, request, read_log, loaded.reporter.phase):
            try:
                note_comparison(place, result, request, time.time())
            except OSError as error:  # the warehouse may be read-only
                loaded.reporter.notify(
                    f"warning: what was found of {result.table.table} is not recorded: {error}", "warn"
                )
            results.append(result)
            on_compared(len(results), total, result)
    return tuple(results)


def repair_sources(loaded: Loaded, results: Sequence[TableComparison], listener: IngestListener) -> Repair:
    """Read the rows that differ again from their databases, then ingest these sources. Holds their locks meanwhile.

    Raises SmlError where a database or its log cannot be read; what was added to the log of events stays there.
    """
    total = Repair()
    by_source: dict[str, list[TableComparison]] = {}
    for result in results:
        by_source.setdefault(result.table.source_name, []).append(result)
    for name, own in by_source.items():
        source = next(each for each in loaded.project.sources if each.name == name)
        place = with_discovered(SourcePaths(loaded.target, source))
        with lake_lock(loaded, "verify", log_locks(source)):
            loaded.reporter.phase(f"reading rows of source {name} again")
            total.add(add_repair(place, own, partial(spool_log, place)))
        ingest(loaded, IngestRequest(source=name), listener)
    return total


def _tables(loaded: Loaded, chosen: Source) -> tuple[SourcePaths, tuple[SourceTable, ...]]:
    """The whole source, which says where events belong, and those of its tables that are compared."""
    whole = next(source for source in loaded.project.sources if source.name == chosen.name)
    place = with_discovered(SourcePaths(loaded.target, whole))
    wanted = {table.unique_id for table in chosen.tables}
    is_all = len(wanted) == len(whole.tables)
    tables = (t for t in place.source.tables if t.unique_id in wanted or (is_all and t.meta.get("discovered")))
    return place, tuple(table for table in tables if table.ingest is not None)
