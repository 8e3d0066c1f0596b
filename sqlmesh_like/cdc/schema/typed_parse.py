"""Row images parsed directly with the types of their columns. Owns which events can be, and which must be read again.

`row_images` reads every value as text and reports what is wrong with it. Most events have no error: one
`from_json` reads their values with half of the work. An event in which any value did not fit its column, or could
have been altered, is `unsure`; `row_images` then reads it once more.
"""

from __future__ import annotations

from sqlmesh_like.cdc.formats.encoding import Encoding
from sqlmesh_like.cdc.formats.json_text import may_be_rewritten
from sqlmesh_like.cdc.formats.row_images import IMAGES, EventShape, struct_of, within_path
from sqlmesh_like.cdc.formats.source_types import (
    COUNTS,
    SourceField,
    decoder,
    exact_type,
    is_number,
    quoted_name,
    sql_literal,
)
from sqlmesh_like.names import Schema

_CORRUPT = "_sml_corrupt"
"""Member that holds the text of an event in which a value did not fit its type."""
_AS_THEY_ARE = {"int", "bigint", "double", "boolean"}
"""Types that the JSON parser reads exactly as `row_images` does, or not at all (float goes through a double)."""
_LARGEST = "1.7976931348623157E308D"
_MAY_HAVE_COMMA = """value rlike '"[-+.eE0-9]*([0-9][-+.eE]*,|,[-+.,eE]*[0-9])'"""
"""Spark SQL: whether a text in an event may be a number with a comma, which the JSON parser leaves out of decimals."""
_ESCAPED_SIGN = "\\u002"
"""With which JSON may write a comma, among others."""


def can_be_typed(shape: EventShape, *, partial: bool) -> bool:
    """Whether the events have before and after images in members of their own, each with all of its values."""
    message = shape.message
    is_plain = message.style == "pair" and not message.is_list and not shape.unavailable
    # Nested values would have to be read again.
    return is_plain and not partial and not shape.clashes and not any(field.is_nested for field in shape.fields)


def member_type(field: SourceField) -> str:
    """The type with which a field's JSON value is read.

    >>> (member_type(SourceField("n", "int")), member_type(SourceField("at", "timestamp")),
    ... member_type(SourceField("p", "decimal(9,2)")))
    ('int', 'STRING', 'decimal(38,31)')
    """
    if field.encoding is not Encoding.PLAIN:
        return COUNTS.get(field.encoding, "STRING")
    return exact_type(field) or (field.type if field.type in _AS_THEY_ARE else "STRING")


def read_typed(shape: EventShape) -> str:
    """Spark SQL of an event's text (`value`) as a struct with both images."""
    row = struct_of([(field.member, member_type(field)) for field in shape.fields])
    schema = within_path(shape.message, row, f", {_CORRUPT}: STRING")
    return f"from_json(value, {sql_literal(schema)}, map('columnNameOfCorruptRecord', {sql_literal(_CORRUPT)}))"


def typed_rows(shape: EventShape) -> dict[str, str]:
    """Spark SQL over `read_typed` as `all_typed`: images `before` and `after` in `typed`; `is_read`: all was read."""
    message = shape.message
    at = "".join(f".{name}" for name in ("all_typed", *message.path))[1:]
    new, old = f"{at}.{quoted_name(message.new or '')}", f"{at}.{quoted_name(message.old or '')}"
    return {
        "typed": f"named_struct('before', coalesce({old}, if(kind = 'delete', {new}, null)),"
        f" 'after', if(kind = 'delete', null, {new}))",
        "is_read": f"all_typed.{_CORRUPT} is null",
    }


def typed_image(shape: EventShape, name: str, columns: Schema) -> str:
    """Spark SQL over `typed_rows`: one row image as a struct of these columns (NULL where the event has none)."""
    fields = {field.name.lower(): field for field in shape.fields}
    values = []
    for column in columns:
        field = fields.get(column.name.lower())
        value = shape.absent.get(column.name, f"cast(null as {column.type})") if field is None else _value(field, name)
        values.append(f"{sql_literal(column.name)}, {value}")
    return f"if(typed.{name} is null, null, named_struct({', '.join(values)}))"


def _value(field: SourceField, name: str) -> str:
    read = f"typed.{name}.{quoted_name(field.member)}"
    is_value = field.encoding is Encoding.PLAIN and field.unit is None and member_type(field).lower() == field.type
    return read if is_value else decoder(field, read, read)


def unsure(shape: EventShape) -> str:
    """Spark SQL over `typed_rows` and the images: whether the event must be read again."""
    checks = ["not is_read"]
    if any(member_type(field).startswith("decimal") for field in shape.fields):
        checks += [_MAY_HAVE_COMMA, f"contains(value, {sql_literal(_ESCAPED_SIGN)})"]
    for name in IMAGES:
        for field in shape.fields:
            read, value = f"typed.{name}.{quoted_name(field.member)}", f"{name}.{quoted_name(field.name)}"
            if member_type(field) == "double":
                # The parser also accepts words as numbers, and turns too large numbers into infinity.
                checks.append(f"not coalesce(abs({read}) <= {_LARGEST}, true)")
            elif _value(field, name) != read:
                checks.append(f"{read} is not null and {value} is null")
            if field.may_be_number:
                checks.append(f"coalesce({is_number(read)}, false)")
            if field.keeps_json:
                checks.append(f"coalesce({may_be_rewritten(read)}, false)")
    return " or ".join(f"({check})" for check in checks)
