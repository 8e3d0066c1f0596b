"""Copy-on-write tables of another writer, made file by file: what commits did is chosen, not what a writer would do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import HUDI_COLUMNS

_TYPES = {"int": pa.int32(), "long": pa.int64(), "string": pa.string()}
_PROPERTIES = """\
hoodie.table.type=COPY_ON_WRITE
hoodie.table.version=9
hoodie.timeline.layout.version=2
hoodie.table.recordkey.fields=id
hoodie.table.partition.fields=p
hoodie.record.merge.mode=COMMIT_TIME_ORDERING
"""

StoredRow = tuple[int, int, object, object]
"""Second of the commit that wrote it, its number there, and the values of `id` and of the second column."""
Group = tuple[str, str]


def instant(second: int) -> str:
    return f"20240101000{second:03d}000"


@dataclass(frozen=True)
class HandMadeTable:
    """A table with the record key `id`, one more column (name and Avro type of each commit's choice) and `p`."""

    root: Path

    def create(self) -> HandMadeTable:
        (self.root / ".hoodie" / "timeline").mkdir(parents=True)
        (self.root / ".hoodie" / "hoodie.properties").write_text(_PROPERTIES)
        return self

    @property
    def timeline(self) -> Timeline:
        return Timeline(str(self.root))

    def commit(
        self,
        second: int,
        files: Mapping[Group, Sequence[StoredRow]],
        *,
        operation: str = "UPSERT",
        replaced: Mapping[str, Sequence[str]] | None = None,
        deletes: Sequence[Group] = (),
        column: tuple[str, str] = ("v", "int"),
        extra: Mapping[str, str] | None = None,
    ) -> str:
        """A commit that wrote these files (by partition and file group), in full; returns its frontier.

        `deletes`: groups from which it deleted rows.
        """
        stats: dict[str, list[Mapping[str, object]]] = {}
        for group, rows in files.items():
            stat = {"numDeletes": int(group in deletes), "numUpdateWrites": 1, "prevCommit": "null"}
            path = self._write(group, second, rows, column)
            stats.setdefault(f"p={group[0]}", []).append({"fileId": group[1], "path": path, **stat})
        record = {
            "partitionToWriteStats": stats,
            "partitionToReplaceFileIds": {f"p={partition}": ids for partition, ids in (replaced or {}).items()},
            "operationType": operation,
            "extraMetadata": {"schema": _avro(column), **(extra or {})},
        }
        frontier = f"{instant(second)}_{instant(second + 1)}"
        action = "replacecommit" if replaced else "commit"
        (self.root / ".hoodie" / "timeline" / f"{frontier}.{action}").write_text(json.dumps(record))
        return frontier

    def _write(self, group: Group, second: int, rows: Sequence[StoredRow], column: tuple[str, str]) -> str:
        partition, file_id = f"p={group[0]}", group[1]
        path = f"{partition}/{file_id}_0-1-2_{instant(second)}.parquet"
        (self.root / partition).mkdir(exist_ok=True)
        values = [
            (instant(at), f"{instant(at)}_0_{n}", str(id_), partition, path, id_, value, group[0])
            for at, n, id_, value in rows
        ]
        fields = [*((name, pa.string()) for name in HUDI_COLUMNS), ("id", pa.int32()), (column[0], _TYPES[column[1]])]
        schema = pa.schema([*fields, ("p", pa.string())])
        columns = zip(*values, strict=True) if values else [[] for _ in schema]
        arrays = [pa.array(list(each), field.type) for each, field in zip(columns, schema, strict=True)]
        pq.write_table(pa.table(arrays, schema=schema), self.root / path)
        return path


def _avro(column: tuple[str, str]) -> str:
    columns = [("id", "int"), column, ("p", "string")]
    fields = [{"name": name, "type": ["null", type_], "default": None} for name, type_ in columns]
    return json.dumps({"type": "record", "name": "t", "fields": fields})


@dataclass(frozen=True)
class Scenario:
    """A table, a range of its commits, and the net change in it: weight, id, second column, p."""

    table: HandMadeTable
    start: str
    end: str
    change: Mapping[tuple[object, ...], int]


X, Y = ("x", "a"), ("y", "b")
BEFORE: Mapping[Group, Sequence[StoredRow]] = {X: [(1, 1, 1, 10), (1, 2, 2, 20)], Y: [(1, 3, 1, 30)]}
UPDATED = [(3, 1, 1, 11), (1, 2, 2, 20)]
UPDATE = {(1, 10, "x"): -1, (1, 11, "x"): 1}


def _updated(table: HandMadeTable) -> str:
    return table.commit(3, {X: UPDATED})


def _deleted_beside_an_update(table: HandMadeTable) -> str:
    """One group loses a row and another only has newer ones."""
    return table.commit(3, {X: [(3, 1, 1, 11)], Y: [(3, 2, 1, 31)]}, deletes=[X])


def _moved(table: HandMadeTable) -> str:
    """A row leaves a partition in which another of the same key was, and stays."""
    files = {X: [(1, 1, 1, 10)], Y: [(1, 3, 1, 30), (3, 1, 2, 20)]}
    return table.commit(3, files, deletes=[X])


def _deleted_where_another_partition_has_the_key(table: HandMadeTable) -> str:
    return table.commit(3, {X: [(1, 2, 2, 20)]}, deletes=[X])


def _records_of_two_partitions(table: HandMadeTable) -> str:
    """A record changes, and the file of another with the same key is written anew."""
    return table.commit(3, {X: UPDATED, Y: [(1, 3, 1, 30), (3, 2, 5, 50)]})


def _overwritten(table: HandMadeTable) -> str:
    return table.commit(
        3, {("x", "new"): [(3, 1, 2, 20), (3, 2, 3, 33)]}, operation="INSERT_OVERWRITE", replaced={"x": ["a"]}
    )


def _clustered_and_updated(table: HandMadeTable) -> str:
    clustered = {("x", "c"): BEFORE[X]}
    table.commit(3, clustered, operation="CLUSTER", replaced={"x": ["a"]})
    return table.commit(5, {("x", "c"): [(5, 1, 1, 11), (1, 2, 2, 20)]})


def _deleted_after_a_rewrite(table: HandMadeTable) -> str:
    """Every row got the time of the rewrite, which is no change."""
    rewritten = {("x", "r"): [(3, 1, 1, 10), (3, 2, 2, 20)], ("y", "r"): [(3, 3, 1, 30)]}
    extra = {"sml.rewrite": "test"}
    replaced = {"x": ["a"], "y": ["b"]}
    table.commit(3, rewritten, operation="INSERT_OVERWRITE_TABLE", replaced=replaced, extra=extra)
    return table.commit(5, {("x", "r"): [(3, 2, 2, 20)]}, deletes=[("x", "r")])


def _rewritten_after_an_update(table: HandMadeTable) -> str:
    table.commit(3, {X: UPDATED})
    rewritten = {("x", "r"): [(5, 1, 1, 11), (5, 2, 2, 20)], ("y", "r"): [(5, 3, 1, 30)]}
    extra = {"sml.rewrite": "test"}
    replaced = {"x": ["a"], "y": ["b"]}
    table.commit(5, rewritten, operation="INSERT_OVERWRITE_TABLE", replaced=replaced, extra=extra)
    return table.commit(7, {("y", "r"): [(5, 3, 1, 30), (7, 1, 5, 50)]})


def _inserted_beside_the_same_key(table: HandMadeTable) -> str:
    """Plain inserts may repeat a key: the row that was there stays."""
    return table.commit(3, {X: [*BEFORE[X], (3, 1, 1, 12)]}, operation="INSERT")


def _inserted_in_another_group(table: HandMadeTable) -> str:
    return table.commit(3, {("x", "z"): [(3, 1, 1, 12)]}, operation="BULK_INSERT")


def _column_of_another_case(table: HandMadeTable) -> str:
    return table.commit(
        3, {("x", "n"): [(3, 1, 1, 11), (3, 2, 2, 20)], ("y", "n"): [(3, 3, 1, 30)]},
        operation="INSERT_OVERWRITE_TABLE", replaced={"x": ["a"], "y": ["b"]}, column=("V", "int"),
    )  # fmt: skip


def _wider_column(table: HandMadeTable) -> str:
    return table.commit(3, {X: [(3, 1, 1, 2**40), (1, 2, 2, 20)]}, column=("v", "long"))


SCENARIOS = {
    "updated": (_updated, UPDATE),
    "deleted beside an update": (
        _deleted_beside_an_update,
        {**UPDATE, (2, 20, "x"): -1, (1, 30, "y"): -1, (1, 31, "y"): 1},
    ),
    "moved": (_moved, {(2, 20, "x"): -1, (2, 20, "y"): 1}),
    "deleted where another partition has the key": (
        _deleted_where_another_partition_has_the_key,
        {(1, 10, "x"): -1},
    ),
    "records of two partitions": (_records_of_two_partitions, {**UPDATE, (5, 50, "y"): 1}),
    "overwritten": (_overwritten, {(1, 10, "x"): -1, (3, 33, "x"): 1}),
    "clustered and updated": (_clustered_and_updated, UPDATE),
    "deleted after a rewrite": (_deleted_after_a_rewrite, {(1, 10, "x"): -1}),
    "rewritten after an update": (_rewritten_after_an_update, {**UPDATE, (5, 50, "y"): 1}),
    "inserted beside the same key": (_inserted_beside_the_same_key, {(1, 12, "x"): 1}),
    "inserted in another group": (_inserted_in_another_group, {(1, 12, "x"): 1}),
    "column of another case": (_column_of_another_case, UPDATE),
    "wider column": (_wider_column, {(1, 10, "x"): -1, (1, 2**40, "x"): 1}),
}
"""What happened to a table after its first commit, and the change that is."""


def scenario(root: Path, name: str) -> Scenario:
    happen, change = SCENARIOS[name]
    table = HandMadeTable(root).create()
    start = table.commit(1, BEFORE)
    return Scenario(table, start, happen(table), change)
