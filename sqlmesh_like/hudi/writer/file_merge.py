"""One file group's next file: its rows as they were, with upserts and deletes merged in. Owns the merge and its counts.

Rows are streamed, so memory is bounded by a piece of the file and the actions. Which of two rows of a key wins is
Hudi's rule: the last one or, in a table with ordering fields, the one with the higher order; an action wins ties.
Unchanged rows keep the values of Hudi's columns except the file name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sqlmesh_like.hudi.storage import Folder
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError, conform_values
from sqlmesh_like.names import COMMIT_TIME, FILE_NAME, HUDI_COLUMNS, IS_DELETED, PARTITION_PATH, RECORD_KEY, SEQUENCE

_PIECE = 262_144
"""Rows that are read at a time."""
_ROW_GROUP = 1_000_000
"""Rows of a row group, the unit that readers skip by statistics."""
_SUPPLEMENTARY = r"[\x{10000}-\x{10ffff}]"


@dataclass(frozen=True)
class GroupMerge:
    """A file group, its present file (`previous_path`, written by the instant `previous`), and actions on its rows.

    `actions`: all columns of the table except Hudi's, with one row per key. `ordering` empty: an action always wins.
    `replaces`: the table gets other columns with this commit, and there is an action on each row of the file.
    """

    folder: Folder
    partition: str
    file_id: str
    instant: str
    number: int
    actions: pa.Table
    key: str
    ordering: tuple[str, ...] = ()
    previous: str | None = None
    previous_path: str | None = None
    replaces: bool = False

    @property
    def file_name(self) -> str:
        return f"{self.file_id}_{self.number}-0-0_{self.instant}.parquet"

    @property
    def path(self) -> str:
        """The new file's path, relative to the table."""
        return f"{self.partition}/{self.file_name}" if self.partition else self.file_name


@dataclass(frozen=True)
class MergedFile:
    """A file that a commit wrote (grain: file group). `left`, `entered`: the rows that it removed and added."""

    partition: str
    file_id: str
    path: str
    previous: str | None
    rows: int
    inserts: int
    updates: int
    deletes: int
    bytes: int
    left: pa.Table
    entered: pa.Table


def merge_file(merge: GroupMerge, schema: pa.Schema, footer: Mapping[str, str]) -> MergedFile | None:
    """Write the group's next file; None where no row changes, or a new file would have no rows.

    Raises UnsupportedRowsError; then the caller removes the file, which may have been begun.
    """
    if merge.previous is None and not pc.any(pc.invert(merge.actions.column(IS_DELETED))).as_py():
        return None
    work = _Merge(merge, schema)
    with merge.folder.new_file(merge.path) as target:
        _write(target, work, schema, footer)
        if (merged := work.result(target.stat().st_size)) is None:
            target.unlink()
    return merged


def _write(target: Path, work: _Merge, schema: pa.Schema, footer: Mapping[str, str]) -> None:
    with pq.ParquetWriter(target, schema, compression="zstd", store_schema=False) as file:
        pending: list[pa.Table] = []
        for piece in (*work.merged_pieces(), work.inserted_rows()):
            pending.append(piece)
            if sum(each.num_rows for each in pending) >= _ROW_GROUP:
                file.write_table(pa.concat_tables(pending), row_group_size=_ROW_GROUP)
                pending = []
        if pending:
            file.write_table(pa.concat_tables(pending), row_group_size=_ROW_GROUP)
        file.add_key_value_metadata({**footer, **work.key_range})


@dataclass
class _Merge:
    merge: GroupMerge
    schema: pa.Schema
    rows: int = 0
    updates: int = 0
    deletes: int = 0
    inserts: int = 0
    lowest_key: str | None = None
    highest_key: str | None = None
    matched: set[int] = field(default_factory=set)
    won: set[int] = field(default_factory=set)
    left: list[pa.Table] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = [name for name in self.schema.names if name not in HUDI_COLUMNS]
        self.keys = self.merge.actions.column(self.merge.key).combine_chunks()
        self.entering = self._entering()

    def merged_pieces(self) -> Iterator[pa.Table]:
        """The rows of the previous file, with changed ones in their old positions and without deleted ones."""
        if self.merge.previous_path is None:
            return
        source = pq.ParquetFile(
            self.merge.folder.parquet_source(self.merge.previous_path), pre_buffer=not self.merge.folder.is_local
        )
        for batch in source.iter_batches(batch_size=_PIECE):
            piece = pa.Table.from_batches([batch])
            if self.merge.replaces:  # other columns of the file are no matter: none of its rows stays
                piece = piece.select([name for name in piece.column_names if name in self.schema.names])
            yield self._count_piece(self._merge_piece(conform_piece(piece, self.schema)))

    def inserted_rows(self) -> pa.Table:
        """Rows with keys that the previous file did not have."""
        flags = self.merge.actions.column(IS_DELETED)
        new = [n for n, gone in enumerate(flags.to_pylist()) if not gone and n not in self.matched]
        self.inserts = len(new)
        self.won.update(new)
        return self._count_piece(self.entering.take(pa.array(new, pa.int64())))

    def result(self, size: int) -> MergedFile | None:
        if not self.won:
            return None
        flags = self.merge.actions.column(IS_DELETED)
        upserted = sorted(number for number in self.won if not flags[number].as_py())
        entered = self.entering.take(pa.array(upserted, pa.int64())).select(self.schema.names)
        left = pa.concat_tables(self.left) if self.left else self.schema.empty_table()
        return MergedFile(
            self.merge.partition, self.merge.file_id, self.merge.path, self.merge.previous,
            self.rows, self.inserts, self.updates, self.deletes, size, left, entered,
        )  # fmt: skip

    @property
    def key_range(self) -> dict[str, str]:
        """Footer entries of Hudi with the smallest and largest record key; empty for a file without rows."""
        if self.lowest_key is None or self.highest_key is None:
            return {}
        return {"hoodie_min_record_key": self.lowest_key, "hoodie_max_record_key": self.highest_key}

    def _merge_piece(self, old: pa.Table) -> pa.Table:
        renamed = self._set_file_name(old)
        at = pc.index_in(old.column(self.merge.key), value_set=self.keys).combine_chunks()
        is_met = pc.is_valid(at)
        met_rows = pc.indices_nonzero(is_met)
        if self.merge.replaces and len(met_rows) < old.num_rows:
            raise UnsupportedRowsError("a row that would keep its old columns")
        if not len(met_rows):
            return renamed
        met_actions = at.take(met_rows).to_pylist()
        if len(set(met_actions)) < len(met_actions) or not self.matched.isdisjoint(met_actions):
            raise UnsupportedRowsError("a file with two rows of a key")
        self.matched.update(met_actions)
        met = old.take(met_rows)
        wins = self._wins(met, pa.array(met_actions))
        won = [action for action, is_won in zip(met_actions, wins, strict=True) if is_won]
        gone = self.merge.actions.column(IS_DELETED).take(pa.array(won, pa.int64())).to_pylist()
        self.won.update(won)
        self.deletes += sum(gone)
        self.updates += len(won) - sum(gone)
        self.left.append(met.filter(pa.array(wins, pa.bool_())))
        # The index of each resulting row: its own, that of the action which replaces it, or NULL for a deleted one.
        replaced = pc.replace_with_mask(is_met, is_met, pa.array(wins, pa.bool_()))
        taken = [None if is_gone else old.num_rows + action for action, is_gone in zip(won, gone, strict=True)]
        places = pc.replace_with_mask(pa.array(range(old.num_rows), pa.int64()), replaced, pa.array(taken, pa.int64()))
        return pa.concat_tables([renamed, self.entering]).take(pc.drop_null(places))

    def _wins(self, old: pa.Table, actions: pa.Array) -> list[bool]:
        """Whether each action wins against the old row at the same index."""
        if not self.merge.ordering:
            return [True] * old.num_rows
        new = self.merge.actions.take(actions)
        for name in self.merge.ordering:
            for column in (old.column(name), new.column(name)):
                if column.null_count or not _is_ordered_alike(column):
                    raise UnsupportedRowsError(f"an order of {name} that Java may see otherwise")
        mine, theirs = (
            zip(*(t.column(name).to_pylist() for name in self.merge.ordering), strict=True) for t in (new, old)
        )
        return [own >= other for own, other in zip(mine, theirs, strict=True)]

    def _entering(self) -> pa.Table:
        """All actions as rows of the file."""
        merge, count = self.merge, self.merge.actions.num_rows
        meta = {
            COMMIT_TIME: pa.repeat(merge.instant, count),
            SEQUENCE: pa.array([f"{merge.instant}_{merge.number}_{n}" for n in range(count)], pa.string()),
            RECORD_KEY: self.keys,
            PARTITION_PATH: pa.repeat(merge.partition, count),
            FILE_NAME: pa.repeat(merge.file_name, count),
        }
        columns = [meta[name] if name in meta else merge.actions.column(name) for name in self.schema.names]
        return pa.table(columns, schema=self.schema)

    def _set_file_name(self, old: pa.Table) -> pa.Table:
        index = self.schema.get_field_index(FILE_NAME)
        return old.set_column(index, self.schema.field(index), pa.repeat(self.merge.file_name, old.num_rows))

    def _count_piece(self, piece: pa.Table) -> pa.Table:
        self.rows += piece.num_rows
        if piece.num_rows:
            ends = pc.min_max(piece.column(RECORD_KEY)).as_py()
            self.lowest_key = min(ends["min"], ends["min"] if self.lowest_key is None else self.lowest_key)
            self.highest_key = max(ends["max"], self.highest_key or "")
        return piece


def conform_piece(piece: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of a file with the table's columns: columns that are newer than the file are NULL.

    Raises UnsupportedRowsError where the file has a column that the table lacks, or one of another type.
    """
    if unknown := set(piece.schema.names) - set(schema.names):
        raise UnsupportedRowsError(f"a file with the column {min(unknown)}")
    return pa.table([_conform_column(piece, wanted) for wanted in schema], schema=schema)


def _conform_column(piece: pa.Table, wanted: pa.Field) -> pa.ChunkedArray | pa.Array:
    index = piece.schema.get_field_index(wanted.name)
    if index < 0 and wanted.nullable:
        return pa.nulls(piece.num_rows, wanted.type)
    if index < 0:
        raise UnsupportedRowsError(f"a file without {wanted.name}")
    column = piece.column(index)
    if pa.types.is_int32(column.type) and pa.types.is_int64(wanted.type):
        return column.cast(wanted.type)
    return conform_values(column, wanted)


def _is_ordered_alike(column: pa.ChunkedArray) -> bool:
    """Whether Java orders these values as Python does.

    False for floats (NaN, -0.0), binaries (Java's bytes are signed), dates and times (some are beyond Python's range),
    and texts with supplementary characters, which Java compares by UTF-16 units.
    """
    type_ = column.type
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return not pc.any(pc.match_substring_regex(column, _SUPPLEMENTARY)).as_py()
    return bool(pa.types.is_integer(type_) or pa.types.is_decimal(type_) or pa.types.is_boolean(type_))
