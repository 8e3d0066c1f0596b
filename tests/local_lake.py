"""A lake made without Spark: one copy-on-write table a folder, as Hudi's files describe it, its rows by pyarrow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from tests.unit.hudi.test_timeline import Lake, at

_AVRO: Mapping[str, object] = {
    "int32": "int",
    "int64": "long",
    "string": "string",
    "double": "double",
    "bool": "boolean",
    "date32[day]": {"type": "int", "logicalType": "date"},
    "timestamp[us, tz=UTC]": {"type": "long", "logicalType": "timestamp-micros"},
    "list<item: string>": {"type": "array", "items": "string"},
}


def make_table(root: Path, rows: pa.Table, record: str | None = None) -> None:
    """A table of one commit with these rows and our hidden key; `record` is what a run says of its commit."""
    lake = Lake(root)
    text = (root / ".hoodie/hoodie.properties").read_text().replace("hoodie.table.partition.fields=p:SIMPLE\n", "")
    (root / ".hoodie/hoodie.properties").write_text(text)
    fields: list[dict[str, object]] = [{"name": "_sml_key", "type": "string"}]
    fields += [{"name": field.name, "type": ["null", _avro(field.type)]} for field in rows.schema]
    schema = json.dumps({"type": "record", "name": "t", "fields": fields})
    lake.commit(1, ["a"], extra={"schema": schema, **({"sml.record": record} if record else {})})
    keyed = rows.add_column(0, "_sml_key", pa.array([str(number) for number in range(rows.num_rows)], pa.string()))
    parquet.write_table(keyed, root / f"p=1/a_0-1-2_{at(1)}.parquet")


def _avro(type_: pa.DataType) -> object:
    if pa.types.is_decimal(type_):
        return {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
    return _AVRO[str(type_)]
