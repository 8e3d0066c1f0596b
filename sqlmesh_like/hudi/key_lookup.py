"""Rows of a copy-on-write table by record key, read without Spark. Owns which files and row groups are read for a key.

Few keys are in few files: the hash of a key says in which bucket it is, and Parquet's statistics of the columns that
make up the key say in which row groups it cannot be. A Spark join takes longer to plan than that takes to read.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sqlmesh_like.hudi.commits import Slice
from sqlmesh_like.hudi.storage import Folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.bucket_hash import buckets_of
from sqlmesh_like.names import KEY

MOST_KEYS = 20_000
"""More keys are looked up by Spark."""
_MOST_FILES = 2_000
_MOST_BYTES = 256 * 1024**2
"""The same limit in compressed bytes of the columns to read, of all row groups that may have a key."""
_THREADS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True)
class KeyLookup:
    """Which rows to find, and what of them.

    `values`: by column, all values that the rows with these keys can have in it; empty where that is not known.
    `buckets`: the table's number of buckets.
    """

    keys: Collection[str]
    columns: Sequence[str]
    buckets: int = 1
    values: Mapping[str, Collection[Any]] = field(default_factory=dict)

    @cached_property
    def wanted(self) -> pa.Array:
        return pa.array(sorted(self.keys), pa.string())

    @cached_property
    def own_buckets(self) -> frozenset[int] | None:
        """Buckets that the keys are in; None where the hash of one of them is not known."""
        return None if any(":" in key for key in self.keys) else frozenset(buckets_of(self.keys, self.buckets))

    @cached_property
    def sorted_values(self) -> Mapping[str, Sequence[Any]]:
        return {name: sorted(set(values)) for name, values in self.values.items()}

    @property
    def names(self) -> list[str]:
        return [KEY, *self.columns]


def rows_by_key(timeline: Timeline, lookup: KeyLookup) -> list[tuple[Any, ...]] | None:
    """The table's newest rows with these keys (grain: row): the key, then the columns of the lookup in their order.

    None where Spark must look them up: for tables that are merge-on-read, out of reach, in the middle of a
    commit or without one of the columns in a file, and for very many keys, files or bytes.
    """
    newest = timeline.newest_readable
    is_readable = timeline.is_cow and timeline.folder.is_in_reach and not timeline.unfinished
    if not is_readable or newest is None or len(lookup.keys) > MOST_KEYS:
        return None
    slices = [each for each in timeline.slices(newest).values() if _may_have(each, lookup)]
    if len(slices) > _MOST_FILES:
        return None
    with ThreadPoolExecutor(_THREADS) as pool:
        files = list(pool.map(lambda each: _file(timeline, each, lookup), slices))
        known = [file for file in files if file is not None]
        if len(known) < len(files) or sum(file.bytes for file in known) > _MOST_BYTES:
            return None
        tables = list(pool.map(lambda file: file.rows(lookup), known))
    return [row for table in tables for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def _may_have(file_slice: Slice, lookup: KeyLookup) -> bool:
    """Whether a file is in one of the buckets, or in none: with another index its id is random, and can be digits."""
    bucket = file_slice.file_id[:8]
    is_bucket = bucket.isdigit() and int(bucket) < lookup.buckets
    return lookup.own_buckets is None or not is_bucket or int(bucket) in lookup.own_buckets


@dataclass(frozen=True)
class _File:
    """A file, the numbers of its row groups that may have a key, and the compressed bytes to read of them."""

    folder: Folder
    path: str
    groups: Sequence[int]
    bytes: int

    def rows(self, lookup: KeyLookup) -> pa.Table:
        with pq.ParquetFile(self.folder.parquet_source(self.path)) as file:
            rows = file.read_row_groups(self.groups, columns=lookup.names, use_threads=False)
        return rows.select(lookup.names).filter(pc.is_in(rows.column(KEY), value_set=lookup.wanted))


def _file(timeline: Timeline, file_slice: Slice, lookup: KeyLookup) -> _File | None:
    """What to read of a file; None if it lacks one of the columns."""
    with pq.ParquetFile(timeline.folder.parquet_source(file_slice.path)) as file:
        footer, schema = file.metadata, file.schema_arrow
    if any(schema.get_field_index(name) < 0 for name in lookup.names) or schema.field(KEY).type != pa.string():
        return None
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chosen = [number for number, group in enumerate(groups) if _can_match(group, lookup)]
    read = set(lookup.names)
    columns = (groups[number].column(index) for number in chosen for index in range(footer.num_columns))
    size = sum(column.total_compressed_size for column in columns if column.path_in_schema.split(".")[0] in read)
    return _File(timeline.folder, file_slice.path, chosen, size)


def _can_match(group: pq.RowGroupMetaData, lookup: KeyLookup) -> bool:
    """Whether, by its statistics, a row group can have a row with one of the keys."""
    entries = (group.column(index) for index in range(group.num_columns))
    columns = {entry.path_in_schema: entry for entry in entries}
    return all(
        name not in columns or _overlaps(columns[name].statistics, values)
        for name, values in lookup.sorted_values.items()
    )


def _overlaps(statistics: pq.Statistics | None, values: Sequence[Any]) -> bool:
    """Whether one of the sorted values is between minimum and maximum; true where these are not known or comparable."""
    if statistics is None or not statistics.has_min_max or not values or type(statistics.min) is not type(values[0]):
        return True
    position = bisect_left(values, statistics.min)
    return position < len(values) and bool(values[position] <= statistics.max)
