"""One batch of a source's log. Owns the order of its commits; `events` says what lines are, `table` does each table.

Bad lines are kept first, tables follow side by side. A table that fails does not stop the others: it is noted as behind
(`behind`) and catches up later. Any other failure fails the batch, which is then replayed: tables that have it
recognize it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from sqlmesh_like.errors import NodeError, ProjectError
from sqlmesh_like.ingest import dead_letters
from sqlmesh_like.ingest.decode import Decoded, decode
from sqlmesh_like.ingest.events import Routed, events_for, events_of, routed
from sqlmesh_like.ingest.extent import Files
from sqlmesh_like.ingest.mark import Mark
from sqlmesh_like.ingest.place import Place
from sqlmesh_like.ingest.report import TableReport
from sqlmesh_like.ingest.table import commit
from sqlmesh_like.project.spec import IngestSource, SourceTable

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class BatchReport:
    """What one batch brought."""

    tables: tuple[TableReport, ...]
    skipped: Mapping[str, int] = field(default_factory=dict)
    events: int = 0
    dead_letters: int = 0


@contextmanager
def _in_memory(frame: DataFrame) -> Iterator[DataFrame]:
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def take_in(
    place: Place,
    root: Path,
    lines: DataFrame,
    mark: Mark,
    *,
    without: Collection[str] = (),
    only: str | None = None,
) -> BatchReport:
    """Commit a batch to all tables it touches, `without` some (by name), or again to `only` one.

    `lines`: `LINE_COLUMNS` of `log`. Raises ProjectError, and IngestError under `on_bad_record: fail`.
    """
    assert place.source.ingest is not None
    with _in_memory(events_of(lines, place.source.ingest.format)) as events:
        found = routed(place, events)
        if only is not None:
            found = Routed({name: share for name, share in found.shares.items() if name == only}, {}, 0, 0)
        found = replace(found, shares={name: share for name, share in found.shares.items() if name not in without})
        decoded, failed = _decode_all(place, events, found, mark)
        try:
            # What the table's own lines were worth was not known when the batch first came.
            bad_mark = mark if only is None else replace(mark, query=f"{mark.query}/{only}")
            bad = _keep_bad(place, root, events, found, decoded, bad_mark)
            done = _side_by_side(place, decoded, lambda each: commit(place, each, mark), lambda each: each.layout.table)
            return BatchReport((*failed, *done[0], *done[1]), found.skipped, found.lines, bad)
        finally:
            for each in decoded:
                each.events.unpersist()


def _decode_all(place: Place, events: DataFrame, found: Routed, mark: Mark) -> tuple[list[Decoded], list[TableReport]]:
    def one(name: str) -> Decoded:
        share = found.shares[name]
        return decode(place, share, events_for(events, share), in_order=isinstance(mark.extent, Files))

    return _side_by_side(place, list(found.shares), one, lambda name: found.shares[name].table)


def _keep_bad(place: Place, root: Path, events: DataFrame, found: Routed, decoded: list[Decoded], mark: Mark) -> int:
    bad = [dead_letters.letters(each.events) for each in decoded if each.bad]
    bad += [dead_letters.letters(events.selectExpr("*", "0 as item").where("kind = 'bad'"))] if found.bad else []
    if bad and place.source.ingest and place.source.ingest.on_bad_record == "fail":
        raise dead_letters.refuse(bad, root)
    if bad:
        dead_letters.keep(place, bad, mark)
    return found.bad + sum(each.bad for each in decoded)


def _side_by_side(
    place: Place, items: Sequence[Item], work: Callable[[Item], Result], table_of: Callable[[Item], SourceTable]
) -> tuple[list[Result], list[TableReport]]:
    """Work on every table, several at a time, and wait for all; a table's failure becomes its report."""
    workers = place.source.ingest.concurrency if place.source.ingest else IngestSource.concurrency
    with ThreadPoolExecutor(max(1, workers)) as pool:
        futures = [(table_of(item), pool.submit(work, item)) for item in items]
    done: list[Result] = []
    failed: list[TableReport] = []
    for table, future in futures:
        try:
            done.append(future.result())
        except ProjectError:
            raise
        except (NodeError, PySparkException, Py4JError) as error:
            failed.append(TableReport(table.table, error=short(error)))
    return done, failed


def short(error: Exception) -> str:
    """The cause at the bottom of a Java stack in one line; our own errors whole."""
    if isinstance(error, NodeError):
        return str(error)
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return (causes[-1].removeprefix("Caused by: ") if causes else lines[0])[:500]
