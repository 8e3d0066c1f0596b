"""A table's Avro schema with more and wider columns, as Hudi 1.2.0 records it with the rows that bring them."""

from __future__ import annotations

import json

from sqlmesh_like.hudi.avro_schema import spark_type
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError
from sqlmesh_like.hudi.writer.new_table import avro_type
from sqlmesh_like.names import Schema


def grown_schema(avro: str, columns: Schema) -> str:
    """The schema for rows of `columns` (Spark's types): new ones follow its own, integers become longs.

    Its own fields stay as they are, in their order. Raises UnsupportedRowsError for other changes of a type.

    >>> from sqlmesh_like.names import Column
    >>> old = '{"type":"record","name":"r","namespace":"n","fields":[{"name":"a","type":["null","int"]}]}'
    >>> grown_schema(old, (Column("b", "string"), Column("a", "bigint"))).partition('"fields":')[2]
    '[{"name":"a","type":["null","long"]},{"name":"b","type":["null","string"],"default":null}]}'
    """
    record = json.loads(avro)
    known = {field["name"].lower(): field for field in record["fields"]}
    for column in columns:
        kind = column.type or ""
        if (field := known.get(column.name.lower())) is None:
            type_ = avro_type(f"{record['namespace']}.{record['name']}", column.name, kind)
            record["fields"].append({"name": column.name, "type": ["null", type_], "default": None})
        elif spark_type(field["type"]) == "int" and kind == "bigint":
            field["type"] = ["null", "long"]
        elif spark_type(field["type"]) != kind:
            raise UnsupportedRowsError(f"{column.name} changes from {spark_type(field['type'])} to {kind}")
    return json.dumps(record, separators=(",", ":"))
