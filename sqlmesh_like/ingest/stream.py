"""The one streaming query of a source. Owns reading its files exactly once; `batch` what happens to their lines.

A file must be complete when it appears (write elsewhere, then move it in) and is read once by its path; names that
start with `_` or `.` are ignored.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.engine.storage import folder
from sqlmesh_like.errors import IngestError
from sqlmesh_like.ingest.batch import BatchReport, take_in
from sqlmesh_like.ingest.check import check_source
from sqlmesh_like.ingest.place import Place
from sqlmesh_like.ingest.report import IngestReport, TableReport
from sqlmesh_like.project.spec import ParsedProject, Source, Target

# Spark silently skips files older than the newest by more than a week.
_FOREVER = "36500d"


class _TableFailed(Exception):
    """Ends the query after a batch in which a table failed, so that the batch is not recorded as done."""


def ingest_source(spark: SparkSession, project: ParsedProject, target: Target, source: Source) -> IngestReport:
    """Take in all files of a source that were not taken in yet, then stop.

    A table that cannot be written is in the report (`failed`), and its batch is replayed by the next run. Raises
    UsageError (a setting that is not supported, wrong declarations, no such folder) before anything is written, and
    IngestError for the first bad line under `on_bad_record: fail`.
    """
    files = check_source(project, source)
    if not folder(files).fs.glob(folder(files).path):
        return IngestReport(source.name)
    run = _Run(Place(target, source), project.root)
    query = (
        _lines(spark, files)
        .writeStream.foreachBatch(run.batch)
        .option("checkpointLocation", run.place.checkpoint)
        .queryName(f"ingest_{source.name}")
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        if run.failure is None:
            raise IngestError(f"the stream of source {source.name!r} failed: {error}"[:1000]) from error
        if not isinstance(run.failure, _TableFailed):
            raise run.failure from None
    finally:
        query.stop()
    return run.report()


def _lines(spark: SparkSession, files: str) -> DataFrame:
    text = spark.readStream.format("text").option("maxFileAge", _FOREVER).load(files)
    return text.selectExpr(
        "value",
        "_metadata.file_path as file",
        "unix_millis(_metadata.file_modification_time) as modified",
        "_metadata.file_block_start as block",
    )


class _Run:
    """One run of the query: what its batches did, and the error that ended it."""

    def __init__(self, place: Place, root: Path) -> None:
        self.place = place
        self.root = root
        self.batches: list[BatchReport] = []
        self.failure: Exception | None = None

    def batch(self, lines: DataFrame, number: int) -> None:
        try:
            # A query keeps its id as long as its checkpoint lives.
            query = json.loads(folder(self.place.checkpoint).read("metadata"))["id"]
            self.batches.append(take_in(self.place, self.root, lines, query, number))
            if any(table.error for table in self.batches[-1].tables):
                raise _TableFailed
        except Exception as error:
            self.failure = error
            raise

    def report(self) -> IngestReport:
        tables: dict[str, TableReport] = {}
        skipped: Counter[str] = Counter()
        for batch in self.batches:
            skipped.update(batch.skipped)
            for table in batch.tables:
                name = str(table.table)
                tables[name] = tables[name].plus(table) if name in tables else table
        declared = [str(table.table) for table in self.place.source.tables]
        return IngestReport(
            source=self.place.source.name,
            tables=tuple(tables[name] for name in declared if name in tables),
            batches=len(self.batches),
            events=sum(batch.events for batch in self.batches),
            skipped=dict(skipped),
            dead_letters=sum(batch.dead_letters for batch in self.batches),
            dead_letter_table=self.place.dead_letters,
        )
