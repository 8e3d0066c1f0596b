"""MySQL's zero dates (`0000-00-00`), which no calendar has. Owns reading them as NULL, and the advice to do so."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmesh_like.cdc.formats.row_images import IMAGES, EventShape
from sqlmesh_like.cdc.formats.source_types import SourceField, quoted_name, sql_literal

_IS_ZERO = "^0000-00-00([ T]00:00:00([.]0+)?Z?)?$"
_ADVICE = " (MySQL's zero date: `zero_dates: null` in the source's `ingest` reads it as NULL)"


def without_zero_dates(shape: EventShape) -> str:
    """Spark SQL of `texts` (`row_images.image_texts`) with NULL for zero dates of date and timestamp columns."""
    images = ", ".join(f"{sql_literal(name)}, {_image(f'texts.{name}', shape.fields)}" for name in IMAGES)
    return f"named_struct({images})"


def _image(texts: str, fields: Sequence[SourceField]) -> str:
    values = []
    for field in fields:
        text = f"{texts}.{quoted_name(field.member)}"
        is_moment = field.type in ("date", "timestamp")
        value = f"if({text} rlike {sql_literal(_IS_ZERO)}, null, {text})" if is_moment else text
        values.append(f"{sql_literal(field.member)}, {value}")
    return f"if({texts} is null, null, named_struct({', '.join(values)}))"


def with_advice(unreadable: str) -> str:
    """Spark SQL of the message for unreadable values, with advice where a zero date is one of them."""
    is_zero = f"{unreadable} rlike {sql_literal(': cannot read 0000-00-00')}"
    return f"if({is_zero}, concat({unreadable}, {sql_literal(_ADVICE)}), {unreadable})"
