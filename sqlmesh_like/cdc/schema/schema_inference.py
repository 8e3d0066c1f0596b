"""Columns of events without a schema, inferred from their values.

Owns the inference; `schema_evolution` decides what it changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.formats.message import Message
from sqlmesh_like.cdc.formats.row_images import image_maps
from sqlmesh_like.cdc.formats.source_types import SourceField, decimal_parts, normal_type, sql_literal
from sqlmesh_like.cdc.frames import Frame
from sqlmesh_like.cdc.in_process.inference import Inferred, infer_type
from sqlmesh_like.cdc.in_process.row_frame import RowFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_EMPTY = r"""""|''|[\[{]\s*+[\]}]|null\s*+[\]}]"""
HOLDS_EMPTY = f"value rlike {sql_literal(_EMPTY)}"
"""Spark SQL that is true for each event with a value from which Spark infers no type: an empty text, object or list, or
nulls in one."""


def inferred_schema(
    frame: Frame,
    message: Message,
    *,
    in_order: bool,
    members: Collection[str] | None = None,
    may_hold_empty: bool = True,
) -> tuple[SourceField, ...]:
    """Infer columns and types from all values of events (`value`); a column with only NULLs is left out.

    Inference sorts the names; `in_order` gives them the order of the first event, which takes another read. `members`:
    names in the rows, None where they are not known. `may_hold_empty`: whether an event may be one of `HOLDS_EMPTY`.
    """
    body = infer_type(row[0] for row in frame.select("value").rows) if isinstance(frame, RowFrame) else _by_spark(frame)
    for name in message.path:
        body = _child(body, name)
    rows = [_child(body, name) for name in reversed(message.members)] if message.members else [body]
    types: dict[str, str] = {}
    nested: set[str] = set()
    for name, shown in (member for row in rows for member in row.items()):
        if not isinstance(shown, str):
            nested.add(name)
        kind = (normal_type(shown) if isinstance(shown, str) else None) or "string"
        types[name] = _common(types.get(name, kind), kind)
    fields = [
        SourceField(name, kind, is_inferred=True, is_nested=True if name in nested else None)
        for name, kind in types.items()
        if name not in message.ignored
    ]
    known = {"", *types, *message.ignored}
    if may_hold_empty and (members is None or set(members) - known):
        empty = [name for name in _with_values(frame, message) if name not in known]
        fields += [SourceField(name, "string", is_inferred=True, is_unseen=True) for name in empty]
    if in_order:
        places = _places(frame, message)
        fields.sort(key=lambda field: places.get(field.name, len(places)))
    return tuple(fields)


def _with_values(frame: Frame, message: Message) -> list[str]:
    """Names of members that have a value other than NULL, in events with one of which Spark infers no type.

    It takes an empty text for NULL, as careless writers of JSON mean it.
    """
    rows = f"filter({image_maps(message)}, row -> row is not null)"
    names = "transform(filter(map_entries(row), entry -> entry.value is not null), entry -> entry.key)"
    named = (
        frame.where(HOLDS_EMPTY).selectExpr(f"explode(flatten(transform({rows}, row -> {names}))) as name").distinct()
    )
    return sorted(row[0] for row in named.collect())


def _common(left: str, right: str) -> str:
    """The type that holds the values of both images of a row, as Spark infers it from values of one.

    >>> _common("bigint", "double"), _common("decimal(20,0)", "bigint"), _common("boolean", "bigint")
    ('double', 'decimal(20,0)', 'string')
    """
    kinds = {left, right}
    if len(kinds) == 1:
        return left
    if kinds == {"bigint", "double"}:
        return "double"
    # A JSON number that no bigint holds; one with a fraction is a double.
    wide = next((kind for kind in kinds if decimal_parts(kind)), None)
    return wide if wide and kinds - {wide} == {"bigint"} else "string"


def _places(frame: Frame, message: Message) -> dict[str, int]:
    path = "".join(f".{name}" for name in message.path)
    item = "[0]" if message.is_list else ""
    rows = [f"get_json_object(value, '${path}[\\'{name}\\']{item}')" for name in message.members] or ["value"]
    row = frame.selectExpr(f"json_object_keys(coalesce({', '.join(rows)}))").first()
    return {name: place for place, name in enumerate((row[0] if row else None) or ())}


def _by_spark(frame: DataFrame) -> Mapping[str, Inferred]:
    """The members of the messages with their types."""
    from pyspark.sql import DataFrame

    spark = frame.sparkSession
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    # pyspark reads JSON from text rows only through Python workers; Spark itself takes a Dataset[String].
    texts = getattr(frame.select("value")._jdf, "as")(jvm.org.apache.spark.sql.Encoders.STRING())
    reader = spark.read.option("dropFieldIfAllNull", "true")._jreader
    body = _inferred_type(DataFrame(reader.json(texts), spark).schema)
    return body if isinstance(body, dict) else {}


def _inferred_type(kind: DataType) -> Inferred:
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(kind, StructType):
        return {field.name: _inferred_type(field.dataType) for field in kind.fields}
    return [_inferred_type(kind.elementType)] if isinstance(kind, ArrayType) else kind.simpleString()


def _child(parent: Mapping[str, Inferred], name: str) -> Mapping[str, Inferred]:
    """The members of a member, if it is an object or a list of objects; otherwise none."""
    kind = parent.get(name)
    kind = kind[0] if isinstance(kind, list) else kind
    return kind if isinstance(kind, dict) else {}
