"""Which layouts the events of a table have: those that their schemas state, that are declared, or are inferred."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlmesh_like.cdc.decode.event_validation import LINE
from sqlmesh_like.cdc.decode.events import Share, Variant
from sqlmesh_like.cdc.formats.columnar import FileSchema, stated
from sqlmesh_like.cdc.formats.encoding import Encoding
from sqlmesh_like.cdc.formats.format_registry import FILE_ROWS, MESSAGE_STYLES
from sqlmesh_like.cdc.formats.message import CHANGES, Message
from sqlmesh_like.cdc.formats.row_images import EventShape, has_member, shape_of
from sqlmesh_like.cdc.formats.source_types import SourceField, sql_literal
from sqlmesh_like.cdc.formats.unavailable_values import placeholder_texts
from sqlmesh_like.cdc.frames import Frame
from sqlmesh_like.cdc.schema.schema_inference import inferred_schema
from sqlmesh_like.names import Schema
from sqlmesh_like.project.nodes import CdcFormat, SourceTable

_IS_CHANGE = f"kind in ({', '.join(map(sql_literal, CHANGES))})"


@dataclass(frozen=True)
class EventGroup:
    """Events of a table that have the same layout. `schema`: the columns of their files, None for messages."""

    variant: Variant
    frame: Frame
    schema: FileSchema | None = None


def groups_of(share: Share, events: Frame | None, form: CdcFormat) -> list[EventGroup]:
    """The events of a table by their layout. `events`: None where the rows are in files with types of their own."""
    if events is None:
        layout = FILE_ROWS[form]
        origin = "concat_ws('.', log_database, log_table) as origin"
        return [
            EventGroup(Variant(layout, "", stated(files.schema)), files.frame.selectExpr("*", origin), files.schema)
            for files in share.files
        ]
    # Events of a variant that carry rows, reduced to the columns of `LINE` so that later names cannot clash.
    own = (
        (variant, events.where(f"{variant.condition} and {_IS_CHANGE}").select(*LINE))
        for variant in sorted(share.variants)
    )
    return [EventGroup(variant, part) for variant, frame in own for part in _by_names(frame, variant, share.table)]


def _by_names(frame: Frame, variant: Variant, table: SourceTable) -> Sequence[Frame]:
    """Split events without a schema by whether they still use the former names of renamed columns."""
    if not table.renamed or variant.schema_text:
        return (frame,)
    message = MESSAGE_STYLES[variant.message]
    has_old = " or ".join(
        f"({has_member(message, old)} and not {has_member(message, new)})" for new, old in table.renamed.items()
    )
    return (frame.where(has_old), frame.where(f"not ({has_old})"))


def shape_of_group(
    group: EventGroup, share: Share, stored: Schema, placeholder: str, *, ascii_names: frozenset[str]
) -> EventShape | None:
    """The layout of the events; None where the schema that they state cannot be read."""
    ingest, variant, frame = share.table.ingest, group.variant, group.frame
    assert ingest is not None
    message, known = MESSAGE_STYLES[variant.message], {*ingest.primary_key, *(column.name for column in stored)}
    is_marked = message.marks_unavailable and variant.has_unavailable
    if variant.schema_text and message.fields:
        try:
            fields = message.fields(variant.schema_text)
        except (ValueError, LookupError, TypeError, AttributeError):
            return None
    else:
        fields = _declared_fields(share) or inferred_schema(
            *(frame, message), in_order=not stored, members=share.members, may_hold_empty=share.has_empty
        )
        fields = tuple(replace(field, unit=Encoding.DAYS) if message.counts_days else field for field in fields)
    keys = tuple(
        SourceField(name, "string", is_inferred=True, is_unseen=True)
        for name in ingest.primary_key
        if name != ingest.origin
    )
    fields = _without_metadata(fields, message, share.table)
    unavailable = placeholder_texts(placeholder) if is_marked else ()
    return shape_of(message, fields or keys, known, unavailable, ascii_names=ascii_names)


def _without_metadata(fields: Sequence[SourceField], message: Message, table: SourceTable) -> tuple[SourceField, ...]:
    """The fields that are columns of the source's table, or declared as if they were."""
    if message.metadata is None or table.ingest is None:
        return tuple(fields)
    by = table.ingest.partition_by
    declared = {*table.ingest.primary_key, *table.ingest.order_by, *(column.name for column in table.columns)}
    declared |= {by.column} if by else set()
    own = (field for field in fields if field.name in declared or not re.fullmatch(message.metadata or "", field.name))
    return tuple(own)


def _declared_fields(share: Share) -> tuple[SourceField, ...]:
    """The columns of events without a schema if all of them are declared with types; otherwise empty."""
    stated = {column.name.lower() for column in share.table.columns if column.type}
    names = share.members or {}
    is_known = not share.table.renamed and all(name.lower() in stated for name in names)
    return tuple(SourceField(name, "string", is_inferred=True) for name in names) if is_known else ()
