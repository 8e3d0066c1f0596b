"""Row images of files that have types of their own.

Owns using typed values directly; `row_images` reads those that are text.

A value whose type is its column's is never converted to text. One of another type becomes a text and is decoded as
every text is, unless a cast cannot alter it: what can be ingested, and as what, does not depend on how it arrived.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sqlmesh_like.cdc.formats.dms import OPS, ROW_OPS
from sqlmesh_like.cdc.formats.message import op_of, whens
from sqlmesh_like.cdc.formats.row_images import NO_SHAPE, EventShape, advice, clash_reason
from sqlmesh_like.cdc.formats.source_types import (
    SourceField,
    decimal_parts,
    decoder,
    exact_type,
    normal_type,
    quoted_name,
    sql_literal,
)
from sqlmesh_like.cdc.formats.time_values import MAX_DAYS, MAX_MILLIS, MIN_DAYS, MIN_MILLIS, local
from sqlmesh_like.names import Schema

RAW = "raw"
"""Column that holds a row of a file as a struct of its columns."""
FileSchema = Sequence[tuple[str, str]]
"""Names and Spark types of a file's columns."""

_WITH_MICROSECONDS = (
    "map('timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", "
    "'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")"
)
"""Spark SQL of options for JSON: by default times within nested values lose digits behind the millisecond."""
_YEARS = {
    "date": ("unix_date({0})", MIN_DAYS, MAX_DAYS),
    "timestamp": ("unix_micros({0})", MIN_MILLIS * 1000, MAX_MILLIS * 1000 + 999),
}
"""Dates and timestamps of the years 1 to 9999: Spark SQL of the number, its least and its greatest value."""


def stated(schema: FileSchema) -> str:
    """The columns of a file as the log states them in `log_schema`: a JSON list of (name, ODS column type)."""
    return json.dumps([[name, column_type(kind)] for name, kind in schema])


def column_type(kind: str) -> str:
    """The ODS column type for values of a Spark type.

    >>> column_type("smallint"), column_type("timestamp_ntz"), column_type("array<int>")
    ('int', 'timestamp', 'string')
    """
    return "timestamp" if kind == "timestamp_ntz" else normal_type(kind) or "string"


def row_text(column: str, kind: str) -> str:
    """Spark SQL of a value as text from which it can be read back exactly.

    >>> row_text("raw.id", "int"), row_text("raw.b", "binary")
    ('cast(raw.id as string)', 'base64(raw.b)')
    """
    if kind == "binary":
        return f"base64({column})"
    if kind.startswith(("struct", "array", "map")):
        return f"to_json({column}, {_WITH_MICROSECONDS})"
    return f"cast({column} as string)"


def line(schema: FileSchema, row: str = "") -> str:
    """Spark SQL of a row as one JSON object whose values are all texts. `row`: prefix of its columns, if any."""
    values = ", ".join(f"{sql_literal(name)}, {row_text(row + quoted_name(name), kind)}" for name, kind in schema)
    return f"to_json(named_struct({values}), map('ignoreNullFields', 'false'))"


def envelope(schema: FileSchema, operation: str) -> dict[str, str]:
    """Spark SQL of a row's `kind`, its `op`, and `wrong`: why its operation is not valid, or NULL.

    `operation`: the column that says it, if the file has it.
    """
    if all(name != operation for name, _ in schema):
        return {"kind": "'upsert'", "op": "'r'", "wrong": "cast(null as string)"}
    said = f"coalesce(cast({RAW}.{operation} as string), 'load')"
    return {
        "kind": f"coalesce(case {said} {whens({name: kind for name, (kind, _) in ROW_OPS.items()})} end, 'bad')",
        "op": op_of(said, OPS),
        "wrong": f"if({said} in ({', '.join(map(sql_literal, ROW_OPS))}), null,"
        f" concat('unknown ', if(op is null, 'operation', {sql_literal(operation)}), ' `', {said}, '`'))",
    }


def images(shape: EventShape, schema: FileSchema, columns: Schema, *, partial: bool) -> dict[str, str]:
    """Spark SQL over `RAW` and `envelope`: before and after image, unreadable values, columns an update leaves out."""
    kinds = dict(schema)
    fields = {field.name.lower(): field for field in shape.fields if field.member in kinds}
    values = ((column, fields.get(column.name.lower())) for column in columns)
    row = ", ".join(
        f"{sql_literal(c.name)}, {shape.absent_value(c) if f is None else _value(f, kinds)}" for c, f in values
    )
    whole = f"named_struct({row})"
    checks = [check for field in fields.values() if (check := _check(field, kinds))]
    checks += [
        f"if({RAW}.{quoted_name(member)} is not null, {clash_reason(shape, member)}, null)"
        for member in shape.clashes
        if member in kinds
    ]
    bad = f"nullif(concat_ws('; ', {', '.join(checks)}), '')" if checks else "cast(null as string)"
    left_out = [sql_literal(column.name) for column in columns if column.name.lower() not in fields] if partial else []
    return {
        "before": f"if(kind = 'delete', {whole}, null)",
        "after": f"if(kind = 'delete', null, {whole})",
        "unreadable": f"coalesce(wrong, {bad})",
        "missing": f"if(kind = 'upsert' and op = 'u', array({', '.join(left_out)}), {NO_SHAPE})"
        if left_out
        else NO_SHAPE,
    }


def _value(field: SourceField, kinds: Mapping[str, str]) -> str:
    value, kind = f"{RAW}.{quoted_name(field.member)}", kinds[field.member]
    if _can_be_cast(kind, field.type):
        plain = value if kind == field.type else f"cast({value} as {field.type})"
        if field.type not in _YEARS:
            return plain
        if field.time_zone is not None and column_type(kind) == "timestamp":
            plain = local(plain, field.time_zone, is_key=field.is_key)
        count, first, last = _YEARS[field.type]
        return f"if({count.format(plain)} between {first} and {last}, {plain}, null)"
    spelt, exact = row_text(value, kind), exact_type(field)
    # A decimal is read as `row_images` would read it, by JSON's own parser.
    member = sql_literal(f"v {exact}")
    return decoder(field, spelt, f"from_json(to_json(named_struct('v', {spelt})), {member}).v" if exact else spelt)


def _can_be_cast(kind: str, to: str) -> bool:
    """Whether a cast gives the same value as decoding the value's text.

    >>> _can_be_cast("smallint", "bigint"), _can_be_cast("float", "double")
    (True, False)
    >>> _can_be_cast("decimal(5,2)", "decimal(9,3)"), _can_be_cast("decimal(5,2)", "decimal(9,1)")
    (True, False)
    """
    known = column_type(kind)
    if known == to and not kind.startswith(("struct", "array", "map")):
        return known != "string" or kind == "string"
    old, new = decimal_parts(known), decimal_parts(to)
    if old and new:
        return old[1] <= new[1] and old[0] - old[1] <= new[0] - new[1]
    return (known, to) == ("int", "bigint")


def _check(field: SourceField, kinds: Mapping[str, str]) -> str | None:
    """Spark SQL of the message for a value that does not fit its column; None where every value fits."""
    value, kind = f"{RAW}.{quoted_name(field.member)}", kinds[field.member]
    if field.type == "string" or (_can_be_cast(kind, field.type) and field.type not in _YEARS):
        return None
    spelt = row_text(value, kind)
    return (
        f"if({value} is not null and {_value(field, kinds)} is null, concat('column ', "
        f"{sql_literal(quoted_name(field.name))}, "
        f"': cannot read ', left({spelt}, 80), {sql_literal(' as ' + field.expected)}, {advice(field, spelt)}), null)"
    )
