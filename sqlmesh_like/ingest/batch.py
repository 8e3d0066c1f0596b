"""One micro-batch of a source. Owns numbering and routing its lines and the order of commits; `table` does each one.

Bad lines are kept first, tables follow side by side. A table that fails does not stop the others, but fails the batch:
it is replayed by the next run, where the tables that have it recognize it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from sqlmesh_like.errors import NodeError, ProjectError
from sqlmesh_like.ingest import dead_letters
from sqlmesh_like.ingest.debezium import envelope
from sqlmesh_like.ingest.mark import Mark, mark_of
from sqlmesh_like.ingest.place import Place
from sqlmesh_like.ingest.report import TableReport
from sqlmesh_like.ingest.route import route
from sqlmesh_like.ingest.table import Decoded, Variant, commit, decode
from sqlmesh_like.project.spec import SourceTable

Item = TypeVar("Item")
Result = TypeVar("Result")


_LINE_COLUMNS = ("value", "file", "line", "position", "kind", "op", "reason")
_EVENT_COLUMNS = (*_LINE_COLUMNS, "database", "source_table", "is_enveloped", "schema_id", "schema_text")


@dataclass(frozen=True)
class Routed:
    """Where the lines of a batch go."""

    tables: Mapping[str, tuple[SourceTable, tuple[tuple[str | None, str], ...], tuple[Variant, ...]]]
    skipped: Mapping[str, int]
    events: int
    bad: int


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


def take_in(place: Place, root: Path, lines: DataFrame, query: str, number: int) -> BatchReport:
    """Commit a batch to all tables it touches. Raises ProjectError, and IngestError under `on_bad_record: fail`.

    `lines` (grain: line): `value`, `file`, `modified` (ms) and `block` (its start in the file), in the files' order.
    """
    # Spark numbers the rows of a partition in order: it must be asked before anything moves them to others.
    lines = lines.withColumn("seen", F.monotonically_increasing_id())
    with _in_memory(lines), _in_memory(_events(lines)) as events:
        routed = _routed(place, events)
        mark = _mark(lines, query, number)
        decoded, failed = _decode_all(place, events, routed)
        try:
            bad = _keep_bad(place, root, events, routed, decoded, mark)
            done = _side_by_side(place, decoded, lambda each: commit(place, each, mark), lambda each: each.layout.table)
            return BatchReport((*failed, *done[0], *done[1]), routed.skipped, routed.events, bad)
        finally:
            for each in decoded:
                each.events.unpersist()


def _events(lines: DataFrame) -> DataFrame:
    """Lines with their number in the file, their place in the log, and what their envelope says."""
    frame = _numbered(lines)
    for name, sql in envelope("value").items():
        frame = frame.withColumn(name, F.expr(sql))
    position = "concat(lpad(modified, 13, '0'), '|', file, '|', lpad(line, 12, '0'))"
    frame = frame.withColumn("position", F.expr(position)).withColumn("schema_id", F.expr("sha2(schema_text, 256)"))
    return frame.withColumn("op", F.expr("_body.op")).select(*_EVENT_COLUMNS)


def _numbered(lines: DataFrame) -> DataFrame:
    """Adds `line`, 1-based. How Spark cuts files into blocks differs from run to run; a line's number must not."""
    blocks = lines.groupBy("file", "block").agg(F.min("seen").alias("first"), F.count("*").alias("size"))
    before = Window.partitionBy("file").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    blocks = blocks.withColumn("skip", F.coalesce(F.sum("size").over(before), F.lit(0)))
    joined = lines.join(F.broadcast(blocks), ["file", "block"])
    return joined.withColumn("line", F.expr("skip + seen - first + 1"))


def _mark(lines: DataFrame, query: str, number: int) -> Mark:
    files = lines.select("modified", "file").distinct().collect()
    return mark_of(query, number, [(row["modified"], row["file"]) for row in files])


def _routed(place: Place, events: DataFrame) -> Routed:
    by = ("kind", "database", "source_table", "is_enveloped", "schema_id")
    groups = events.groupBy(*by).agg(F.first("schema_text").alias("schema_text"), F.count("*").alias("lines")).collect()
    found: dict[str, tuple[SourceTable, set[tuple[str | None, str]], set[Variant]]] = {}
    skipped: Counter[str] = Counter()
    for row in groups:
        database, name = row["database"], row["source_table"]
        if row["kind"] not in ("upsert", "delete"):
            skipped[row["kind"]] += row["lines"]
            continue
        table = route(place.source, database, name)
        if table is None:
            skipped[f"undeclared {database}.{name}"] += row["lines"]
            continue
        _, names, variants = found.setdefault(table.name, (table, set(), set()))
        names.add((database, name))
        variants.add(Variant(row["is_enveloped"], row["schema_id"], row["schema_text"]))
    bad = skipped.pop("bad", 0)
    tables = {
        key: (table, tuple(names), tuple(sorted(variants, key=repr))) for key, (table, names, variants) in found.items()
    }
    return Routed(tables, dict(skipped), sum(row["lines"] for row in groups), bad)


def _decode_all(place: Place, events: DataFrame, routed: Routed) -> tuple[list[Decoded], list[TableReport]]:
    def one(name: str) -> Decoded:
        table, sources, variants = routed.tables[name]
        own = F.lit(False)
        for database, source_table in sources:
            own = own | (F.col("database").eqNullSafe(F.lit(database)) & (F.col("source_table") == source_table))
        return decode(place, table, events.where(own & F.col("kind").isin("upsert", "delete")), variants)

    return _side_by_side(place, list(routed.tables), one, lambda name: routed.tables[name][0])


def _keep_bad(place: Place, root: Path, events: DataFrame, routed: Routed, decoded: list[Decoded], mark: Mark) -> int:
    bad = [dead_letters.letters(each.events) for each in decoded if each.bad]
    bad += [dead_letters.letters(events.where("kind = 'bad'"))] if routed.bad else []
    if bad and place.source.ingest and place.source.ingest.on_bad_record == "fail":
        raise dead_letters.refuse(bad, root)
    if bad:
        dead_letters.keep(place, bad, mark)
    return routed.bad + sum(each.bad for each in decoded)


def _side_by_side(
    place: Place, items: Sequence[Item], work: Callable[[Item], Result], table_of: Callable[[Item], SourceTable]
) -> tuple[list[Result], list[TableReport]]:
    """Work on every table, several at a time, and wait for all; a table's failure becomes its report."""
    workers = place.source.ingest.concurrency if place.source.ingest else 1
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
            failed.append(TableReport(table.table, error=_short(error)))
    return done, failed


def _short(error: Exception) -> str:
    """The cause at the bottom of a Java stack in one line; our own errors whole."""
    if isinstance(error, NodeError):
        return str(error)
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return (causes[-1].removeprefix("Caused by: ") if causes else lines[0])[:500]
