"""All rows of a table, written without Spark: properties, schema and first commit as Hudi 1.2.0 writes them.

Owns what Hudi derives from the write options of `spark.tables.hudi_table`, which a test compares with this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zlib import crc32

import pyarrow as pa

from sqlmesh_like.analyze.spark_types.nested_types import element_of, typed_fields_of
from sqlmesh_like.hudi.recovery.table_swap import create_table, replace_table, require_no_savepoint
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.hudi.writer.upsert import Upsert, upsert
from sqlmesh_like.names import IS_DELETED, KEY, Schema, TableName, is_store

_PROPERTIES = {
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "9",
    "hoodie.table.initial.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.archivelog.folder": "history",
    "hoodie.table.format": "native",
    "hoodie.table.recordkey.fields": KEY,
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.table.cdc.enabled": "false",
    "hoodie.table.multiple.base.file.formats.enable": "false",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.populate.meta.fields": "true",
    "hoodie.table.base.file.format": "PARQUET",
}
_EXTRACTOR = "org.apache.hudi.hive."
_AVRO: dict[str, object] = {
    "int": "int", "bigint": "long", "float": "float", "double": "double", "boolean": "boolean", "string": "string",
    "binary": "bytes",
    "tinyint": "int", "smallint": "int",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class NewTable:
    """A table to be made, or to be filled anew.

    `columns`: with Spark's types, in their order; `partition_field` is one of them, or None. `ordering`: those that
    decide between two rows of a key; empty: the last commit wins.
    """

    uri: str
    name: str
    columns: Schema
    partition_field: str | None = None
    buckets: int = 1
    ordering: tuple[str, ...] = ()

    def write(self, rows: pa.Table, metadata: Mapping[str, str]) -> None:
        """Make the table with these rows, one a key, and metadata (keys without prefix) in its first commit.

        Readers see no rows or all of them. Raises UnsupportedRowsError for types that only Spark writes, RetryableError
        where another writer was there first; no rows are there then.
        """
        avro, upserts = table_schema(self), _as_upserts(rows)
        if not is_store(self.uri):
            create_table(self.uri, partial(self._build, avro, upserts, metadata))
            return
        from sqlmesh_like.hudi.writer.store_table import begin_table  # needs obstore

        timeline = begin_table(self.uri, self._properties())
        upsert(Upsert(timeline, None, upserts, self.buckets, metadata, self.partition_field, avro=avro))

    def replace(self, rows: pa.Table, metadata: Mapping[str, str]) -> None:
        """The same in the place of a table with another layout, whose history ends.

        On a store there is no table in between, since nothing can be moved there. Raises UnsupportedRowsError as
        `write`, and NodeError as `replace_table`; then the table is as it was.
        """
        avro = table_schema(self)
        if not is_store(self.uri):
            replace_table(self.uri, self.name, partial(self._build, avro, _as_upserts(rows), metadata))
            return
        from sqlmesh_like.hudi.recovery.store_drop import drop_on_store  # needs obstore

        require_no_savepoint(self.uri)
        settled_timeline(self.uri)
        drop_on_store(self.uri)
        self.write(rows, metadata)

    def overwrite(self, timeline: Timeline, previous: str, rows: pa.Table, metadata: Mapping[str, str]) -> None:
        """Replace all rows of the table, which has this layout and the frontier `previous`, in one commit.

        Raises UnsupportedRowsError, and RetryableError where another writer was there; then nothing is committed.
        """
        field, upserts, avro = self.partition_field, _as_upserts(rows), table_schema(self)
        upsert(Upsert(timeline, previous, upserts, self.buckets, metadata, field, avro=avro, overwrites=True))

    def _build(self, avro: str, rows: pa.Table, metadata: Mapping[str, str], beside: str) -> None:
        root = Path(folder(beside).path)
        (root / ".hoodie" / "timeline" / "history").mkdir(parents=True)
        (root / ".hoodie" / "hoodie.properties").write_bytes(self._properties())
        upsert(Upsert(Timeline(beside), None, rows, self.buckets, metadata, self.partition_field, avro=avro))

    def _properties(self) -> bytes:
        """The content of the file that makes a folder a table. Raises UnsupportedRowsError for names beyond ASCII."""
        text = "".join(f"{name}={value}\n" for name, value in table_properties(self).items())
        if not text.isascii() or "\\" in text:
            raise UnsupportedRowsError(f"the names of {self.name}")
        return text.encode("ascii")


def _as_upserts(rows: pa.Table) -> pa.Table:
    return rows.append_column(IS_DELETED, pa.repeat(pa.scalar(False), rows.num_rows))


def table_name(table: TableName) -> str:
    """The name by which Hudi knows the table of a node."""
    return str(table).replace(".", "_")


def table_properties(table: NewTable) -> dict[str, str]:
    """Hudi's properties of the table."""
    is_partitioned = table.partition_field is not None
    return {
        **_PROPERTIES,
        **(_ordered_by(table.ordering) if table.ordering else {}),
        "hoodie.table.name": table.name,
        "hoodie.table.checksum": str(crc32(f".{table.name}".encode())),  # of database and table
        "hoodie.table.partition.fields": table.partition_field or "",
        "hoodie.table.keygenerator.type": "SIMPLE" if is_partitioned else "NON_PARTITION",
        "hoodie.table.partition_extractor_class": _EXTRACTOR
        + ("HiveStylePartitionValueExtractor" if is_partitioned else "NonPartitionedExtractor"),
    }


def _ordered_by(ordering: Sequence[str]) -> dict[str, str]:
    return {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING", "hoodie.table.ordering.fields": ",".join(ordering)}


def table_schema(table: NewTable) -> str:
    """The table's Avro schema. Raises UnsupportedRowsError for maps and other types."""
    fields: list[object] = []
    for column in table.columns:
        type_ = avro_type(f"hoodie.{table.name}.{table.name}_record", column.name, column.type or "")
        fields.append({"name": column.name, "type": ["null", type_], "default": None})
    fields.append({"name": IS_DELETED, "type": "boolean"})
    record = {"type": "record", "name": f"{table.name}_record", "namespace": f"hoodie.{table.name}", "fields": fields}
    return json.dumps(record, separators=(",", ":"))


def avro_type(record: str, column: str, type_: str) -> object:
    """The Avro type of a column, of a struct's field or an array's element, in the record of this full name.

    Raises UnsupportedRowsError as `table_schema`.
    """
    if type_ in _AVRO:
        return _AVRO[type_]
    if element := element_of(type_):
        return {"type": "array", "items": ["null", avro_type(record, column, element)]}
    if fields := typed_fields_of(type_):
        types = [(name, ["null", avro_type(f"{record}.{column}", name, part)]) for name, part in fields]
        own = [{"name": name, "type": part, "default": None} for name, part in types]
        return {"type": "record", "name": column, "namespace": record, "fields": own}
    if (decimal := _DECIMAL.fullmatch(type_)) is None:
        raise UnsupportedRowsError(f"{column} of the type {type_}")
    precision, scale = int(decimal[1]), int(decimal[2])
    return {
        "type": "fixed", "name": "fixed", "namespace": f"{record}.{column}",
        "size": _bytes_of(precision), "logicalType": "decimal", "precision": precision, "scale": scale,
    }  # fmt: skip


def _bytes_of(precision: int) -> int:
    """The fewest bytes that hold all numbers of so many digits and their sign.

    >>> _bytes_of(12), _bytes_of(18), _bytes_of(22), _bytes_of(38)
    (6, 8, 10, 16)
    """
    largest: int = 10**precision - 1
    return largest.bit_length() // 8 + 1
