"""A table that `hudi.writer` alone writes: no JVM. Its first commit has columns and no rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa

from sqlmesh_like.duckdb.local_files import LocalTable
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.hudi.bucket_count import BUCKETS_KEY
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.reading.change_plan import plan_comparison
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import file_schema
from sqlmesh_like.hudi.writer.commit_encoding import CommitContent
from sqlmesh_like.hudi.writer.open_commit import open_commit, settled_timeline
from sqlmesh_like.hudi.writer.table_support import unsupported_reason
from sqlmesh_like.hudi.writer.upsert import Upsert, UpsertResult, upsert
from sqlmesh_like.names import HUDI_COLUMNS, IS_DELETED, KEY, WEIGHT

Row = tuple[object, ...]
Signed = Counter[Row]
_PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.table.recordkey.fields": KEY,
    "hoodie.table.keygenerator.type": "NON_PARTITION",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
}


@dataclass(frozen=True)
class WrittenTable:
    """Rows are positional: the key, then `columns` (Avro types by name; each may be NULL)."""

    root: Path
    columns: Mapping[str, object]
    partition: str | None = None
    buckets: int = 1
    ordering: tuple[str, ...] = ()

    def create(self) -> WrittenTable:
        """Properties and a first commit."""
        properties = dict(_PROPERTIES)
        if self.partition:
            properties |= {"hoodie.table.partition.fields": self.partition, "hoodie.table.keygenerator.type": "SIMPLE"}
        if self.ordering:
            properties["hoodie.record.merge.mode"] = "EVENT_TIME_ORDERING"
            properties["hoodie.table.ordering.fields"] = ",".join(self.ordering)
        (self.root / ".hoodie" / "timeline").mkdir(parents=True)
        text = "".join(f"{name}={value}\n" for name, value in properties.items())
        (self.root / ".hoodie" / "hoodie.properties").write_text(text)
        commit = open_commit(self.root, None)
        commit.complete(CommitContent("BULK_INSERT", (), {"schema": self.avro, "sml.by": "test"}))
        return self

    @property
    def avro(self) -> str:
        fields: list[Mapping[str, object]] = [{"name": KEY, "type": "string"}]
        typed = {**self.columns, IS_DELETED: "boolean"}
        fields += [{"name": name, "type": ["null", type_], "default": None} for name, type_ in typed.items()]
        return json.dumps({"type": "record", "name": "t", "fields": fields})

    @property
    def timeline(self) -> Timeline:
        return Timeline(str(self.root))

    @property
    def frontier(self) -> str:
        frontier = self.timeline.frontier
        assert frontier is not None
        return frontier

    def upsert(self, upserts: Sequence[Row] = (), deletes: Sequence[Row] = (), *, logged: bool = True) -> UpsertResult:
        """One commit. Of a row to be deleted key, partition and order count."""
        timeline = settled_timeline(str(self.root))
        assert unsupported_reason(timeline, self.ordering, self.partition, {}) is None
        stored = LakeHistory().state(str(self.root)).stored if logged else None
        rows, metadata = self.actions(upserts, deletes), {"by": "test", BUCKETS_KEY: str(self.buckets)}
        return upsert(
            Upsert(
                timeline, self.frontier, rows, self.buckets, metadata, self.partition, self.ordering, schema=stored
            )
        )  # fmt: skip

    def overwrite(self, rows: Sequence[Row]) -> UpsertResult:
        """One commit that replaces all rows."""
        timeline, metadata = settled_timeline(str(self.root)), {"by": "test", BUCKETS_KEY: str(self.buckets)}
        return upsert(
            Upsert(
                timeline, self.frontier, self.actions(rows, ()), self.buckets, metadata, self.partition, self.ordering,
                overwrites=True,
            )
        )  # fmt: skip

    def actions(self, upserts: Iterable[Row], deletes: Iterable[Row]) -> pa.Table:
        schema = pa.schema([field for field in file_schema(self.avro) if field.name not in HUDI_COLUMNS])
        rows = [*((*row, False) for row in upserts), *((*row, True) for row in deletes)]
        columns = list(zip(*rows, strict=True)) if rows else [[] for _ in schema]
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)

    def reader(self) -> LocalTable:
        """The table as DuckDB's programs read it."""
        table = local_table(LakeHistory().state(str(self.root)), MergedSlices(), hidden=False)
        assert table is not None
        return table

    def rows(self, frontier: str | None = None) -> Signed:
        return Counter(fetched(self._shown(self.reader().rows(frontier or self.frontier))))

    def change(self, start: str, end: str, *, compared: bool = False) -> Signed:
        """Net signed rows, by the logs of commits where they have them, or by comparing file slices."""
        reader = self.reader()
        plan = plan_comparison(reader.timeline, start, end) if compared else None
        query = reader.select_change(plan) if plan else reader.change(start, end)
        net: Signed = Counter()
        for *row, weight in fetched(self._shown(query, WEIGHT)):
            net[tuple(row)] += int(str(weight))
        return Counter({row: weight for row, weight in net.items() if weight})

    def _shown(self, query: str, *more: str) -> str:
        names = [KEY, *(name for name in self.columns if not name.startswith("_sml_")), *more]
        return f"SELECT {', '.join(names)} FROM ({query})"


@cache
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def fetched(query: str) -> list[Row]:
    with connection().cursor() as db:
        return db.execute(query).fetchall()
