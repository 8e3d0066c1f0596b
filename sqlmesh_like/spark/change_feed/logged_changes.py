"""Signed rows ↔ the change log of a commit. Owns which rows a commit will change, writing them and reading them back.

A log must agree with the table's content after the commit: where that is not certain, none is written, and readers
compare file slices instead.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sqlmesh_like.hudi.change_log import (
    UNSURE,
    ChangeLog,
    LogFile,
    columns_fingerprint,
    log_folder,
    read_footer,
)
from sqlmesh_like.hudi.reading.rows_plan import LogRows
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.merge_mode import merges_as_declared
from sqlmesh_like.names import IS_DELETED, KEY, WEIGHT, Schema, is_hidden
from sqlmesh_like.spark.frames.cached_frame import cached
from sqlmesh_like.spark.frames.local_frame import local_frame
from sqlmesh_like.spark.frames.type_promotion import promoted_type
from sqlmesh_like.spark.tables.hudi_table import HudiTable, without_small_integers

ROWS_A_FILE = 1_000_000
FEW = 500_000
"""Up to this many keys are broadcast to where a table is read."""
LOCAL = 5_000
"""Up to this many rows are fetched to the driver, so that the steps after it need only one job."""


def write_log(signed: DataFrame, timeline: Timeline, previous: str) -> ChangeLog | None:
    """Write signed rows relative to a frontier, one file per Spark partition; None where some are unsure."""
    path = log_folder()
    options = {"compression": "zstd", "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
    signed.write.options(**options).parquet(f"{timeline.uri}/{path}")
    return _finish_log(timeline, path, previous)


def _finish_log(timeline: Timeline, path: str, previous: str) -> ChangeLog | None:
    """The log of the files in a folder. Removes the folder where there are no rows or some are unsure."""
    folder = timeline.folder
    start = len(folder.path) + 1
    listed = {name[start:]: info for name, info in folder.fs.find(f"{folder.path}/{path}", detail=True).items()}
    files = [LogFile(n, int(str(i["size"]))) for n, i in sorted(listed.items()) if n.endswith(".parquet")]
    footers = {file: read_footer(timeline, file) for file in files}
    rows = sum(footer.rows for footer in footers.values())
    is_sure = not any(footer.unsure for footer in footers.values())
    if not rows or not is_sure:
        folder.fs.rm(f"{folder.path}/{path}", recursive=True)
        return ChangeLog(previous) if is_sure else None
    with_rows = tuple(file for file in files if footers[file].rows)
    return ChangeLog(previous, rows, with_rows, columns_fingerprint(footers[with_rows[0]].columns))


def read_logs(session: SparkSession, timeline: Timeline, logs: Collection[LogRows], schema: Schema) -> DataFrame:
    """Signed rows of logs: visible columns of `schema`, `_sml_key`, `_sml_weight`."""
    names = [(column.name, column.type or "string") for column in schema if not is_hidden(column.name)]
    names += [(KEY, "string"), (WEIGHT, "bigint")]
    empty = session.range(0).select(*[F.lit(None).cast(type_).alias(name) for name, type_ in names])
    frames = [
        session.read.schema(StructType.fromJson(json.loads(log.columns))).parquet(
            *(f"{timeline.uri}/{path}" for path in log.paths)
        )
        for log in logs
    ]
    alike = [frame.select(*[promoted_type(frame, f.name, f.dataType) for f in empty.schema.fields]) for frame in frames]
    return reduce(DataFrame.unionByName, alike) if alike else empty


def log_of_upsert(
    rows: DataFrame, stored: DataFrame, timeline: Timeline, table: HudiTable, previous: str, count: int
) -> ChangeLog | None:
    """Write the log of an upsert of `rows` (grain: key × partition; deletes marked) into a table.

    `stored`: the table's rows at the frontier `previous`, with hidden columns. `count`: approximate number of `rows`.
    None where the table's future content is not certain: it merges by unknown rules, or a type changes.
    """
    rows = without_small_integers(rows)
    if not merges_as_declared(timeline, table.ordering, table.options) or not have_same_types(rows, stored):
        return None
    at = [*table.key, *([table.partition_field] if table.partition_field else [])]
    keys = rows.select(*map(_column, at), _rank(table.ordering).alias(_RANK))
    matching = stored.join(F.broadcast(keys) if count <= FEW else keys, at)
    if count <= LOCAL and (local := local_frame(matching, LOCAL)):
        return write_log(_signed_rows(rows, local.frame, at, table.ordering).coalesce(1), timeline, previous)
    matches = cached(matching)
    try:
        signed = _signed_rows(rows, matches.frame, at, table.ordering)
        return write_log(signed.repartition(_files_for(2 * count)), timeline, previous)
    finally:
        matches.release()


_RANK = "_sml_rank"
_SUPPLEMENTARY = r"[\x{10000}-\x{10ffff}]"


def _signed_rows(rows: DataFrame, matches: DataFrame, at: Sequence[str], ordering: Sequence[str]) -> DataFrame:
    """The rows that an upsert removes and adds. `matches`: stored rows with the same key, and the new row's rank."""
    entering, unsure = rows.where(~F.col(IS_DELETED)), F.lit(None)
    if ordering:
        mine, theirs, is_unlike = F.col(_RANK), _rank(ordering), _may_compare_otherwise(matches, ordering)
        unsure = F.when((mine == theirs) | is_unlike, F.lit(True))
        losing = matches.where(mine < theirs).select(*map(_column, at))
        entering = entering.join(losing, list(at), "left_anti")
        matches = matches.where((mine >= theirs) | is_unlike)
    leaving = matches.select(*_visible_columns(matches), _weight(-1), unsure.cast("boolean").alias(UNSURE))
    return leaving.unionByName(entering.select(*_visible_columns(entering), _weight(1)), allowMissingColumns=True)


def _rank(ordering: Sequence[str]) -> SparkColumn:
    return F.struct(*map(_column, ordering)) if ordering else F.lit(0)


def _may_compare_otherwise(matches: DataFrame, ordering: Sequence[str]) -> SparkColumn:
    """Whether Hudi, which compares texts in Java by UTF-16, may order them differently from Spark's byte order."""
    texts = [name for name in ordering if dict(matches.dtypes)[name] == "string"]
    result = F.lit(False)
    for each in (column for name in texts for column in (F.col(f"{_RANK}.`{name}`"), _column(name))):
        result = result | each.rlike(_SUPPLEMENTARY)
    return result


def log_of_images(actions: DataFrame, before: str, timeline: Timeline, previous: str, count: int) -> ChangeLog | None:
    """Write the log of actions (grain: key × partition). `before`: column with the old row, a struct or NULL."""
    actions = without_small_integers(actions)
    old = actions.where(F.col(before).isNotNull()).select(f"{before}.*")
    new = actions.where(~F.col(IS_DELETED)).drop(before)
    signed = old.select(*_visible_columns(old), _weight(-1)).unionByName(new.select(*_visible_columns(new), _weight(1)))
    return write_log(signed.coalesce(_files_for(2 * count)), timeline, previous)


def have_same_types(rows: DataFrame, stored: DataFrame) -> bool:
    """Whether columns that both frames have are of the same types, so that no cast can alter a value."""
    types = {name.lower(): type_ for name, type_ in stored.dtypes}
    return all(types.get(name.lower(), type_) == type_ for name, type_ in rows.dtypes)


def _files_for(rows: int) -> int:
    return max(1, -(-rows // ROWS_A_FILE))


def _visible_columns(frame: DataFrame) -> list[SparkColumn]:
    return [_column(name) for name in frame.columns if not is_hidden(name) or name == KEY]


def _column(name: str) -> SparkColumn:
    return F.col(f"`{name}`")


def _weight(sign: int) -> SparkColumn:
    return F.lit(sign).cast("bigint").alias(WEIGHT)
