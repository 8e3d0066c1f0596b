"""The columns that base files were written with. Owns their source: the commit or, if it is archived, a file.

A file's footer has Avro's schema, or Spark's (JSON), which is read here without Spark. What Hudi's row writer wrote (a
bulk insert) has neither: then the columns of the file itself count, whose Parquet types are Spark's.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.commits import Slice
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import Column, Schema

SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""Key of a footer under which Spark writes the columns of a file, as JSON."""


def paths_by_schema(timeline: Timeline, slices: Iterable[Slice]) -> Mapping[Schema, list[str]]:
    """Paths of base files, relative to the table, by the columns that they were written with.

    All files of a commit have the same columns. Raises NodeError where neither commit nor file states them.
    """
    by_instant: dict[str, list[str]] = defaultdict(list)
    for base in slices:
        by_instant[base.instant].append(base.path)
    by_schema: dict[Schema, list[str]] = defaultdict(list)
    for instant, paths in by_instant.items():
        by_schema[_schema(timeline, instant, paths[0])] += paths
    return by_schema


def _schema(timeline: Timeline, instant: str, path: str) -> Schema:
    if written := timeline.schema_json(f"{instant}_"):
        return schema_of(written)
    footer = timeline.footer(path)
    if avro := footer.get("parquet.avro.schema"):
        return schema_of(avro)
    if spark := footer.get(SPARK_SCHEMA):
        return spark_schema_of(spark)
    try:
        return tuple(Column(field.name, _type_of_arrow(field.type)) for field in timeline.file_columns(path))
    except TypeError as error:
        raise NodeError(
            f"{timeline.uri}/{path} does not say its schema: {error}", hint="rewrite the table once"
        ) from None


_SHORT = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def spark_schema_of(text: str) -> Schema:
    """Columns of a struct that Spark wrote as JSON.

    >>> spark_schema_of('{"type":"struct","fields":[{"name":"a","type":{"type":"array","elementType":"long"}}]}')
    (Column(name='a', type='array<bigint>'),)
    """
    return tuple(Column(field["name"], _type(field["type"])) for field in json.loads(text)["fields"])


_PLAIN = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float": "float", "double": "double",
    "bool": "boolean", "string": "string", "binary": "binary", "date32[day]": "date",
    "timestamp[us, tz=UTC]": "timestamp", "timestamp[us]": "timestamp_ntz",
}  # fmt: skip


def _type_of_arrow(type_: Any) -> str:
    """Spark's type of a column as pyarrow reads it. Raises TypeError for one that Spark does not write.

    >>> import pyarrow as pa
    >>> _type_of_arrow(pa.struct({"a": pa.list_(pa.decimal128(12, 2)), "b": pa.map_(pa.string(), pa.date32())}))
    'struct<a:array<decimal(12,2)>,b:map<string,date>>'
    """
    import pyarrow as pa  # as in `Timeline.footer`

    if plain := _PLAIN.get(str(type_)):
        return plain
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_list(type_):
        return f"array<{_type_of_arrow(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"map<{_type_of_arrow(type_.key_type)},{_type_of_arrow(type_.item_type)}>"
    if pa.types.is_struct(type_):
        fields = (f"{field.name}:{_type_of_arrow(field.type)}" for field in type_)
        return f"struct<{','.join(fields)}>"
    raise TypeError(f"a column of {type_}")


def _type(type_: str | Mapping[str, Any]) -> str:
    """Spark's short name of a type in its JSON."""
    if isinstance(type_, str):
        return _SHORT.get(type_, type_)
    if type_["type"] == "struct":
        fields = (f"{field['name']}:{_type(field['type'])}" for field in type_["fields"])
        return f"struct<{','.join(fields)}>"
    if type_["type"] == "map":
        return f"map<{_type(type_['keyType'])},{_type(type_['valueType'])}>"
    return f"array<{_type(type_['elementType'])}>"
