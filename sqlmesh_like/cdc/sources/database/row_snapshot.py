"""Some rows of a database's tables as the events of a snapshot. Owns reading them apart from the source's own log.

Debezium's engine reads them, so that each value has the form that it has in the events of the log. No slot, no
publication and no position in the log belong to it.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlmesh_like import stop_signals
from sqlmesh_like.cdc.sources.database.connector_settings import connector_settings, database_of
from sqlmesh_like.cdc.sources.database.engine import Engine, EngineFailure, engine_error
from sqlmesh_like.cdc.sources.database.server import Table, connect, is_mariadb
from sqlmesh_like.cdc.sources.database.spool import Spool, spool_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import IngestError

_QUERIES = "snapshot.select.statement.overrides"
_LOG_OF_ITS_OWN = ("heartbeat.action.query", "sml.marker")


def snapshot_lines(place: SourcePaths, queries: Mapping[Table, str]) -> Iterator[bytes]:
    """The lines of events, one a row, that these queries give: each selects rows of its table.

    Raises SmlError where the database cannot be read.
    """
    with row_segments(place, queries) as segments:
        for path in segments:
            with gzip.open(path, "rb") as lines:
                yield from lines


@contextmanager
def row_segments(
    place: SourcePaths, queries: Mapping[Table, str | None], on_rows: Callable[[int], None] | None = None
) -> Iterator[Sequence[Path]]:
    """Segments with an event for each row that these queries give, or for all rows of a table (None), in order.

    `on_rows` is called every moment with the number of rows that have been read.

    Those that are not moved away are removed at the end. Raises SmlError where the database cannot be read.
    """
    spool = Spool(spool_of(place).folder / "rows", of_rows=True)
    shutil.rmtree(spool.folder, ignore_errors=True)
    try:
        spool.prepare()
        _run_engine(place, spool, queries, on_rows or (lambda _: None))
        yield sorted((spool.folder / "log").glob("*.gz"))
    finally:
        shutil.rmtree(spool.folder, ignore_errors=True)


def _run_engine(
    place: SourcePaths, spool: Spool, queries: Mapping[Table, str | None], on_rows: Callable[[int], None]
) -> None:
    settings = database_of(place.source)
    with connect(settings) as db:
        mariadb = is_mariadb(db)
    own = connector_settings(place.source, spool, queries, None, mariadb=mariadb, follows=False)
    names = {f"{table.schema or settings.database}.{table.name}": query for table, query in queries.items() if query}
    own = {name: value for name, value in own.items() if name not in _LOG_OF_ITS_OWN} | {
        "snapshot.mode": "initial_only",
        "heartbeat.interval.ms": "0",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": "sml_notifications",
        **({_QUERIES: ",".join(names)} if names else {}),
        **{f"{_QUERIES}.{name}": query for name, query in names.items()},
        "sml.rows.only": "true",
    }
    if settings.kind == "mysql":
        own["snapshot.locking.mode"] = "none"  # no position goes with the rows
    engine = Engine(own, settings.kind, spool.folder.parent / "rows.log")

    def may_go_on() -> bool:
        on_rows(engine.events)
        return not stop_signals.is_wished()

    try:
        if not engine.wait_until_caught_up(may_go_on):
            raise IngestError(f"stopped before the rows of source {place.source.name!r} were read")
    except EngineFailure as failure:
        raise engine_error(settings, str(failure), place.source.name) from None
    finally:
        engine.end()
