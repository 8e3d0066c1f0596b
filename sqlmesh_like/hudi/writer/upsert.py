"""Rows → one commit of a copy-on-write table. Owns the order of the steps; the other modules here do them.

The rows are upserted, or they replace all rows of the table: then the commit ends the file groups that were there,
and none of their files is read. It exists completely or not at all, with its metadata and the log of its changes, like
one of Spark's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.change_log import ChangeLog, new_log
from sqlmesh_like.hudi.commits import Slice, extra_metadata
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError, conform_values, file_footer, file_schema
from sqlmesh_like.hudi.writer.begin import Commit, open_commit
from sqlmesh_like.hudi.writer.bucket_hash import buckets_of
from sqlmesh_like.hudi.writer.commit_encoding import CommitContent
from sqlmesh_like.hudi.writer.file_merge import GroupMerge, MergedFile, merge_file
from sqlmesh_like.names import HUDI_COLUMNS, KEY, WEIGHT, Column, Schema, is_hidden

_THREADS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True)
class Upsert:
    """A commit to write, of `rows` (grain: key × partition; `_hoodie_is_deleted` marks deletes).

    The rows are relative to the table at the frontier `previous`, None: to one without commits. Without `rows` the
    commit has metadata only. `avro`: the Avro schema that the table gets with this commit; if it had another one, all
    of its rows must be among these, unless it `grows`: the schema has all of its columns, as `schema_growth` makes it.
    `buckets`: the table's number of buckets. `ordering` empty: the last commit wins.
    `metadata`: keys without prefix. `schema`: the table's columns as readers see them, for a change log; None: none is
    written. `overwrites`: the rows are all that the table has from now on; the file groups at `previous` end, and no
    log is written. `most_bytes`: of present files that are rewritten here; None: any number.
    """

    timeline: Timeline
    previous: str | None
    rows: pa.Table | None
    buckets: int
    metadata: Mapping[str, str]
    partition_field: str | None = None
    ordering: tuple[str, ...] = ()
    schema: Schema | None = None
    avro: str | None = None
    overwrites: bool = False
    grows: bool = False
    most_bytes: int | None = None


@dataclass(frozen=True)
class UpsertResult:
    """The numbers of changed rows, and the commit's frontier."""

    frontier: str
    inserts: int
    updates: int
    deletes: int


def upsert(work: Upsert) -> UpsertResult:
    """Commit the rows. Raises UnsupportedRowsError or RetryableError; then nothing is committed."""
    avro = work.avro or (work.timeline.schema_json(work.previous) if work.previous is not None else None)
    if avro is None:
        raise UnsupportedRowsError("a table whose commits do not say its columns")
    schema = file_schema(avro)
    groups = list(_groups(work, _conform_rows(work.rows, schema))) if work.rows is not None else []
    _require_small(work, groups)
    commit = open_commit(work.timeline, work.previous, "replacecommit" if work.overwrites else "commit")
    groups = [replace(group, instant=commit.instant) for group in groups]
    try:
        files = _write_files(commit, groups, schema, file_footer(avro))
        fault_point("hudi.commit.files")
        log = _log(work, files)
        fault_point("hudi.commit.log")
        extra = {"schema": avro, **extra_metadata({**work.metadata, **(log.metadata if log else {})})}
        frontier = commit.complete(CommitContent(_operation(work), tuple(files), extra, _replaced_groups(work)))
    except BaseException:
        commit.abandon(group.path for group in groups)
        raise
    counts = ([file.inserts, file.updates, file.deletes] for file in files)
    return UpsertResult(frontier, *(sum(each) for each in zip([0, 0, 0], *counts, strict=True)))


def _require_small(work: Upsert, groups: Sequence[GroupMerge]) -> None:
    """Raise UnsupportedRowsError where more bytes would be rewritten than should be here."""
    if work.most_bytes is None or work.previous is None:
        return
    sizes = work.timeline.sizes(work.previous)
    touched = [sizes[group.partition, group.file_id].bytes for group in groups if group.previous_path is not None]
    if sum(touched) > work.most_bytes:
        raise UnsupportedRowsError(f"{sum(touched):,} bytes of files would be rewritten")


def _operation(work: Upsert) -> str:
    if work.overwrites:
        return "INSERT_OVERWRITE_TABLE"
    return "BULK_INSERT" if work.previous is None else "UPSERT"


def _replaced_groups(work: Upsert) -> Mapping[str, Sequence[str]] | None:
    """The file groups that end with the commit, by partition; None for an upsert."""
    if not work.overwrites or work.previous is None:
        return None
    replaced: dict[str, list[str]] = {}
    for partition, file_id in sorted(work.timeline.slices(work.previous)):
        replaced.setdefault(partition, []).append(file_id)
    return replaced


def _conform_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly the table's columns. Raises UnsupportedRowsError for other columns or types."""
    wanted = [field for field in schema if field.name not in HUDI_COLUMNS]
    if set(rows.column_names) != {field.name for field in wanted}:
        raise UnsupportedRowsError("other columns than the table's")
    columns = []
    for field in wanted:
        column = rows.column(field.name)
        if column.null_count and not field.nullable:
            raise UnsupportedRowsError(f"{field.name} without a value")
        columns.append(conform_values(column, field))
    return pa.table(columns, schema=pa.schema(wanted))


def _groups(work: Upsert, rows: pa.Table) -> Iterator[GroupMerge]:
    """The file groups of the rows, each with its own rows as actions. Raises UnsupportedRowsError."""
    keys = rows.column(KEY).to_pylist()
    if any(":" in key for key in keys):
        raise UnsupportedRowsError("a record key with a colon")
    paths = _partitions(rows, work.partition_field)
    members: dict[tuple[str, int], list[int]] = {}
    for number, place in enumerate(zip(paths, buckets_of(keys, work.buckets), strict=True)):
        members.setdefault(place, []).append(number)
    slices = _slices(work)
    for number, ((partition, bucket), indices) in enumerate(sorted(members.items())):
        actions = rows.take(pa.array(indices, pa.int64()))
        if pc.count_distinct(actions.column(KEY)).as_py() < len(indices):
            raise UnsupportedRowsError("two rows of a key")
        known = slices.get((partition, bucket))
        file_id = known.file_id if known else f"{bucket:08d}{str(uuid4())[8:]}-0"
        yield GroupMerge(
            work.timeline.folder, partition, file_id, "", number, actions, KEY, work.ordering,
            known.instant if known else None, known.path if known else None,
            work.avro is not None and not work.grows,
        )  # fmt: skip


def _partitions(rows: pa.Table, field: str | None) -> list[str]:
    """The partition of each row. Raises UnsupportedRowsError for empty values, for which Hudi has its own names."""
    if field is None:
        return [""] * rows.num_rows
    if not pa.types.is_string(rows.schema.field(field).type):
        raise UnsupportedRowsError(f"a partition by {rows.schema.field(field).type}")
    values = rows.column(field).to_pylist()
    if not all(values):
        raise UnsupportedRowsError("a partition without a name")
    return [f"{field}={value}" for value in values]


def _slices(work: Upsert) -> Mapping[tuple[str, int], Slice]:
    """The newest file of each partition and bucket. Raises UnsupportedRowsError for other file groups."""
    entries: dict[tuple[str, int], Slice] = {}
    if work.previous is None or work.overwrites:
        return entries
    for (partition, file_id), file_slice in work.timeline.slices(work.previous).items():
        place = (partition, int(file_id[:8])) if file_id[:8].isdigit() else None
        if place is None or place in entries or place[1] >= work.buckets:
            raise UnsupportedRowsError(f"the file group {file_id} is not that of a bucket")
        entries[place] = file_slice
    return entries


def _write_files(
    commit: Commit, groups: Sequence[GroupMerge], schema: pa.Schema, footer: Mapping[str, str]
) -> list[MergedFile]:
    """Write the file of each group, several at a time."""

    def write(merge: GroupMerge) -> MergedFile | None:
        commit.mark(merge.path, is_new=merge.previous is None)
        commit.add_partition(merge.partition, is_new=merge.previous is None)
        merged = merge_file(merge, schema, footer)
        fault_point("hudi.commit.file")
        return merged

    with ThreadPoolExecutor(_THREADS) as pool:
        tasks = [pool.submit(write, group) for group in groups]
        try:
            return [merged for merged in (task.result() for task in tasks) if merged is not None]
        except BaseException:
            for task in tasks:
                task.cancel()
            raise


def _log(work: Upsert, files: Sequence[MergedFile]) -> ChangeLog | None:
    """Write the log of the rows that were removed and added, as readers see them; None where none is wanted."""
    if work.schema is None or work.previous is None or work.overwrites:
        return None
    shown = [column for column in work.schema if column.name == KEY or not is_hidden(column.name)]
    if not any(file.left.num_rows or file.entered.num_rows for file in files):
        return ChangeLog(work.previous)
    names = [column.name for column in shown]

    def with_weight(rows: pa.Table, weight: int) -> pa.Table:
        return rows.select(names).append_column(WEIGHT, pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows))

    def write(path: str, metadata: Mapping[str, str]) -> int:
        parts = [part for file in files for part in (with_weight(file.left, -1), with_weight(file.entered, 1))]
        table = pa.concat_tables(parts)
        with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as file:
            file.write_table(table)
            file.add_key_value_metadata(dict(metadata))
        return int(table.num_rows)

    return new_log(work.timeline, work.previous, (*shown, Column(WEIGHT, "bigint")), write)
