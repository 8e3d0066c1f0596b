"""One table's events of a batch as typed rows.

Owns which of them cannot be ingested, and why; `event_layouts` knows their columns, `table_batch` commits them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from sqlmesh_like.cdc.decode.event_layouts import EventGroup, groups_of, shape_of_group
from sqlmesh_like.cdc.decode.event_validation import LINE, OF_FILE, validate_events
from sqlmesh_like.cdc.decode.events import Share
from sqlmesh_like.cdc.formats import columnar
from sqlmesh_like.cdc.formats.format_registry import FILE_OPERATIONS
from sqlmesh_like.cdc.formats.message import BEGINS, ENDS, READS_AGAIN
from sqlmesh_like.cdc.formats.row_images import (
    IMAGES,
    NO_SHAPE,
    EventShape,
    image_rows,
    image_texts,
    items,
    missing,
    parsed_images,
    row_image,
    unreadable,
    unwritten,
)
from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.formats.zero_dates import with_advice, without_zero_dates
from sqlmesh_like.cdc.frames import Frame, HeldFrame, held, union_frames
from sqlmesh_like.cdc.in_process.commits import stored_rows
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.merge.counts import EventCounts, count_events
from sqlmesh_like.cdc.merge.defaults import defaults_of_new_columns, fill_earlier_events, stated_default
from sqlmesh_like.cdc.merge.deleted_rows import with_kept_values
from sqlmesh_like.cdc.merge.unchanged_value_backfill import with_unchanged_values
from sqlmesh_like.cdc.merge.unsure_placement import unsure_rows
from sqlmesh_like.cdc.schema import typed_parse
from sqlmesh_like.cdc.schema.column_record import spellings_of
from sqlmesh_like.cdc.schema.creation_contract import has_ascii_names, key_spelling_of
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.cdc.schema.schema_evolution import EvolvedSchema, evolve_schema
from sqlmesh_like.cdc.sources.batch_marker import Reread, open_rereads
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.project.reading.patterns import names_of

_log = logging.getLogger("sqlmesh_like.cdc")


@dataclass(frozen=True)
class Truncate:
    """A truncate of a source table at a position in the log. `origin`: which table, where several are merged.

    `reads_again`: the source still has its rows, and has read all of them again since. A row that was read and could
    not be ingested stays in the table as it is.
    """

    position: str
    origin: str | None
    reads_again: bool = False


@dataclass(frozen=True)
class Decoded:
    """A table's events as typed images, in memory until released.

    Grain: one row of a line. `row` is the before image of a delete, else the after image. `reason`: why the event
    cannot be ingested, or NULL. `lacks_before_position`: the event does not say, or with `order_by` need not say,
    where its row is stored. `defaults`: Spark SQL of the values that stored rows get in new columns. `bytes`: estimated
    size of the rows in a table. `is_of_files`: they are rows of typed files, and have the columns `OF_FILE`.
    `retained`: deletions that the table does not follow (`deletes: retention`), which are not among the events.
    `letter_rows`: the table's dead letters of earlier batches, None where it has none. `rereads`: what of the table is
    being read again after the batch, by origin; `has_other_rereads`: something else than before it.
    """

    layout: OdsLayout
    held: HeldFrame
    counts: EventCounts
    settled: EvolvedSchema
    truncates: tuple[Truncate, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    bytes: int = 0
    is_of_files: bool = False
    retained: int = 0
    letter_rows: Frame | None = None
    rereads: Mapping[str, Reread] = field(default_factory=dict)
    has_other_rereads: bool = False

    @property
    def events(self) -> Frame:
        return self.held.frame

    @property
    def good(self) -> Frame:
        """The events that can be ingested."""
        return self.events.where("reason is null")

    def release(self) -> None:
        """Free the memory that the events use."""
        self.held.release()


def decode(
    place: SourcePaths,
    share: Share,
    events: Frame | None,
    letter_rows: Frame | None = None,
    *,
    in_order: bool,
    again: bool = False,
) -> Decoded:
    """Read a table's events as rows of its next layout. Raises IngestError for a change of columns it cannot make.

    `events`: None where the rows are in files with types of their own. `letter_rows`: the table's dead letters; None
    where it has none, or where they are the events (`again`). `in_order`: the whole log has one order; otherwise only
    events of one partition are ordered.
    """
    assert share.table.ingest is not None and place.source.ingest is not None
    uri = place.table_uri(share.table)
    timeline = Timeline(uri)
    stored = _stored_columns(timeline)
    is_older = has_ascii_names(uri)
    ascii_names = frozenset(column.name for column in stored) if is_older else frozenset()
    placeholder = place.source.ingest.unavailable_value_placeholder
    groups = [
        (group, shape_of_group(group, share, stored, placeholder, ascii_names=ascii_names))
        for group in groups_of(share, events, place.source.ingest.format)
    ]
    readable = [(group.frame, shape) for group, shape in groups if shape is not None]
    settled = evolve_schema(
        *(share.table, share.table.ingest, stored, [shape for _, shape in readable]),
        *(place.source.ingest.on_schema_change, spellings_of(uri)),
    )
    layout = replace(settled.layout, key_spelling=key_spelling_of(uri), ascii_names=is_older)
    defaults = defaults_of_new_columns(layout, (*stored, *(Column(name) for name in settled.renamed)), settled.shapes)
    frames = [(frame, shape) for (frame, _), shape in zip(readable, settled.shapes, strict=True)]
    shapes = fill_earlier_events(frames, defaults, in_order=in_order)
    own = (group for group, shape in groups if shape is not None)
    judged = [
        _validated_events(number, group, shape, layout)
        for number, (group, shape) in enumerate(zip(own, shapes, strict=True))
    ]
    kept = OF_FILE if events is None else ()
    unread = [_without_rows(group.frame, layout, _NO_SCHEMA, kept) for group, shape in groups if shape is None]
    known = open_rereads(timeline)
    of_tables = (
        _table_events(events, layout, share, known)
        if events is not None and share.has_truncates
        else _TableEvents((), known)
    )
    unread += [] if of_tables.refused is None else [_without_rows(of_tables.refused, layout, _WHOSE_TRUNCATE)]
    if events is not None and not judged and not unread:
        unread = [_without_rows(events.where("false"), layout, "")]
    judged += [validate_events(frame, layout, also_kept=kept) for frame in unread]
    is_read_twice = bool(stored) or events is not None
    frame = union_frames(judged)
    # Not cached: typed files that are only counted and written, which are faster to read twice.
    kept_events = held(frame) if is_read_twice else HeldFrame(frame)
    counts = count_events(kept_events.frame, layout)
    decoded = Decoded(
        *(layout, kept_events, counts, settled, of_tables.truncates, defaults if stored else {}, share.bytes),
        is_of_files=events is None,
        letter_rows=letter_rows,
    )
    decoded = _complete_events(decoded, shapes, uri if stored else None, letter_rows, again=again)
    if place.source.ingest.database is not None:
        _require_rows(decoded, {**known, **of_tables.rereads})
    fits = decoded.counts.good > 0
    rereads = {origin: replace(each, fits=each.fits or fits) for origin, each in of_tables.rereads.items()}
    decoded = replace(decoded, rereads=rereads, has_other_rereads=of_tables.rereads != known)
    return _without_deletes(decoded) if share.table.ingest.deletes == "retention" else decoded


def _require_rows(decoded: Decoded, rereads: Mapping[str, Reread]) -> None:
    """Raise IngestError where a table is read again and none of its rows can be, or one has no key that can be read.

    A single row becomes a dead letter, as of every event, and stays as it is in the table; all of them do where the
    source has changed a type that is declared otherwise here. Of a row without a key it is not known which one stays.
    `rereads`: what was being read again before the batch, or began in it.
    """
    counts = decoded.counts
    if not counts.bad or not (rereads or any(each.reads_again for each in decoded.truncates)):
        return
    letters = decoded.events.where("reason is not null and op = 'r'")
    fits = counts.good > 0 or any(each.fits for each in rereads.values())
    if fits:
        letters = letters.where(f"{decoded.layout.missing_key('row')} is not null")
    if (first := letters.selectExpr("reason").first()) is None:
        return
    which = "one of its rows cannot be" if fits else f"none of {counts.bad} rows can be"
    raise IngestError(
        f"{decoded.layout.table.table} is read again, and {which}: {first[0]}",
        hint="its rows stay as they are; correct the type under `columns:`, then run `sml ingest` again",
    )


def _without_deletes(decoded: Decoded) -> Decoded:
    """The events without deletions, which are counted: the source no longer keeps these rows, and the table does."""
    retained = decoded.events.where(_IS_DELETE).count()
    if retained:
        decoded = with_events(decoded, decoded.events.where(f"not ({_IS_DELETE})"))
    retained += len(decoded.truncates)
    return replace(decoded, truncates=(), retained=retained, rereads={}, has_other_rereads=False)


def _complete_events(
    decoded: Decoded, shapes: Sequence[EventShape], uri: str | None, letter_rows: Frame | None, *, again: bool
) -> Decoded:
    """Complete the events: read `unsure` ones again, fill values that were left out, find rows of unsure placement.

    `uri`: of the table; None before its first commit.
    """
    layout = decoded.layout
    if decoded.counts.unsure:
        decoded = with_events(decoded, _reread(decoded.events, shapes, layout))
    keeps_deleted = layout.ingest.deletes == "soft"
    if decoded.counts.partial or (keeps_deleted and decoded.counts.rekeyed):
        table = None if uri is None else _stored_in_layout(decoded, uri)
        events = with_unchanged_values(decoded.events, layout, table, letter_rows, again=again)
        if keeps_deleted:
            events = with_kept_values(events, layout, table)
        decoded = with_events(decoded, events)
    # Before its first commit, a table has no row that could be in another partition.
    if uri and layout.partition_field and layout.has_key and (decoded.counts.bad or letter_rows is not None):
        decoded = with_events(decoded, unsure_rows(decoded.events, layout, letter_rows))
    return decoded


def stored_table(events: Frame, uri: str) -> Frame:
    """All rows of the table with hidden columns, where the events are: in Spark or here."""
    if isinstance(events, RowFrame):
        return stored_rows(Timeline(uri))
    return events.sparkSession.read.format("hudi").load(uri)


def _stored_in_layout(decoded: Decoded, uri: str) -> Frame:
    """The stored rows, with the values that the next commit gives them in columns that are new or have a new name."""
    stored = stored_table(decoded.events, uri)
    values = {new: quoted_name(old) for new, old in decoded.settled.renamed.items()} | dict(decoded.defaults)
    return stored.selectExpr("*", *(f"{value} as {quoted_name(name)}" for name, value in values.items()))


_NO_SCHEMA = "its schema cannot be read"
_WHOSE_TRUNCATE = "a truncate of one of several merged tables: declare `origin`, so that its rows can be identified"


def with_events(decoded: Decoded, events: Frame) -> Decoded:
    """Replace the events by others with the same columns. Caches and counts them, and releases the former ones."""
    kept = held(events)
    counts = count_events(kept.frame, decoded.layout)
    decoded.release()
    return replace(decoded, held=kept, counts=counts)


_IS_DELETE = "kind <=> 'delete'"


def warn_of_unknown_types(decoded: Decoded) -> None:
    """Say which columns have a semantic type that is not known, and as what they are ingested."""
    table = decoded.layout.table
    fields = {field.name: field for shape in decoded.settled.shapes for field in shape.fields if field.unknown_type}
    if fields:
        named = ", ".join(f"{name} ({field.unknown_type}, as {field.type})" for name, field in fields.items())
        _log.warning("warning: %s: columns of unknown semantic types are taken as sent: %s", table.table, named)


def _stored_columns(timeline: Timeline) -> Schema:
    """The table's current columns; empty before its first commit. Needs no JVM: Spark would list its files."""
    if timeline.frontier is None:
        return ()
    texts = (commit.extra.get("schema") for commit in timeline.newest_first())
    return schema_of(next(text for text in texts if text))


def _validated_events(number: int, group: EventGroup, shape: EventShape, layout: OdsLayout) -> Frame:
    if group.schema is None:
        return validate_events(_row_images(number, group.frame, shape, layout), layout, defaults=_defaults(shape))
    own = tuple(column for column in layout.columns if column.name != layout.ingest.origin)
    partial = layout.ingest.updates == "partial"
    images = columnar.images(shape, group.schema, own, partial=partial)
    images |= {name: _with_origin(images[name], layout) for name in IMAGES}
    # A row does not say in which partition it was before, not even when it is deleted.
    images |= {"item": "0", "is_told": "false"}
    row = group.frame.selectExpr(
        "*", *_as_aliases(columnar.envelope(group.schema, FILE_OPERATIONS[group.variant.message]))
    )
    line = columnar.line(group.schema, f"{columnar.RAW}.")
    # Only dead letters need the text. A partial update may still become one when its missing values are looked up.
    value = line if partial else f"if(reason is null, cast(null as string), {line})"
    return validate_events(row.selectExpr("*", *_as_aliases(images), _SURE), layout, value, OF_FILE)


def _row_images(number: int, frame: Frame, shape: EventShape, layout: OdsLayout) -> Frame:
    """The events of a shape as images; `unsure` is the shape's number where an event must be read again, or NULL."""
    if not typed_parse.can_be_typed(shape, partial=layout.ingest.updates == "partial"):
        return _images(frame, shape, layout).selectExpr("*", _SURE)
    own = tuple(column for column in layout.columns if column.name != layout.ingest.origin)
    # In one step: Spark analyses the whole frame again for every step.
    entries = {
        "item": "0",
        "all_typed": typed_parse.read_typed(shape),
        **typed_parse.typed_rows(shape),
        **{name: _with_origin(typed_parse.typed_image(shape, name, own), layout) for name in IMAGES},
        "unreadable": "cast(null as string)",
        "missing": NO_SHAPE,
        "is_told": shape.message.tells_partition,
        "unsure": f"if({typed_parse.unsure(shape)}, {number}, null)",
    }
    return frame.selectExpr("*", *_as_aliases(entries))


def _reread(judged: Frame, shapes: Sequence[EventShape], layout: OdsLayout) -> Frame:
    """The events (grain: event), with the `unsure` ones read again value by value."""
    partial = layout.ingest.updates == "partial"
    typed_once = (each for each in enumerate(shapes) if typed_parse.can_be_typed(each[1], partial=partial))
    again = ((number, _images(judged.where(f"unsure = {number}"), shape, layout)) for number, shape in typed_once)
    read = (
        validate_events(frame.selectExpr("*", _SURE), layout, defaults=_defaults(shapes[number]))
        for number, frame in again
    )
    return union_frames([judged.where("unsure is null"), *read])


def _defaults(shape: EventShape) -> dict[str, str]:
    """Spark SQL of the defaults that events state of their columns."""
    return {field.name: stated_default(field) for field in shape.fields if field.default is not None}


_SURE = "cast(null as int) as unsure"


def _images(frame: Frame, shape: EventShape, layout: OdsLayout) -> Frame:
    """Add the typed before and after images, the values that cannot be read, and the columns that are missing."""
    partial = layout.ingest.updates == "partial"
    read = frame.selectExpr(*LINE, *_as_aliases(parsed_images(shape, partial=partial)))
    row = read.selectExpr("*", items(shape)).selectExpr(*LINE, "item", *_as_aliases(image_rows(shape, partial=partial)))
    if shape.message.is_list:
        columns = {name: name for name in row.columns} | {"position": "concat(position, '|', lpad(item, 6, '0'))"}
        row = row.selectExpr(*(f"{sql} as {quoted_name(name)}" for name, sql in columns.items()))
    kept = [*LINE, "item", *(["mentioned"] if partial else [])]
    text = row.selectExpr(*kept, *_as_aliases(image_texts(shape)))
    if layout.ingest.zero_dates == "null":
        others = [quoted_name(name) for name in text.columns if name != "texts"]
        text = text.selectExpr(*others, f"{without_zero_dates(shape)} as texts")
    own = tuple(column for column in layout.columns if column.name != layout.ingest.origin)
    images = text.selectExpr(
        "*", *(f"{_with_origin(row_image(shape, name, own), layout)} as {name}" for name in IMAGES)
    )
    entries = {
        "unreadable": f"coalesce({with_advice(unreadable(shape))}, {unwritten(shape)})",
        "missing": missing(shape, own, partial=partial, of_deletes=layout.ingest.deletes == "soft"),
        "is_told": shape.message.tells_partition,
    }
    return images.selectExpr(*LINE, "item", *IMAGES, *_as_aliases(entries))


def _with_origin(row: str, layout: OdsLayout) -> str:
    """Spark SQL of the row with its columns in the table's order, including the origin."""
    if layout.ingest.origin is None:
        return row
    values = (
        f"{sql_literal(c.name)}, {'origin' if c.name == layout.ingest.origin else f'own.{quoted_name(c.name)}'}"
        for c in layout.columns
    )
    return f"transform(array({row}), own -> if(own is null, null, named_struct({', '.join(values)})))[0]"


def _as_aliases(expressions: Mapping[str, str]) -> list[str]:
    return [f"{sql} as {name}" for name, sql in expressions.items()]


def _without_rows(events: Frame, layout: OdsLayout, why: str, also_kept: Sequence[str] = ()) -> Frame:
    """Events that cannot be read at all: images are NULL, `unreadable` is the reason."""
    fields = ", ".join(f"{quoted_name(column.name)}: {column.type}" for column in layout.columns)
    empty = f"cast(null as struct<{fields}>)"
    columns = [f"{empty} as {name}" for name in IMAGES]
    return events.selectExpr(
        *LINE,
        *also_kept,
        "0 as item",
        *columns,
        f"{sql_literal(why)} as unreadable",
        f"{NO_SHAPE} as missing",
        "true as is_told",
        _SURE,
    )


@dataclass(frozen=True)
class _TableEvents:
    """What a batch says of a table as a whole. `rereads`: what is being read again after it, by origin.

    `refused`: truncates of source tables whose rows cannot be told apart from others'.
    """

    truncates: tuple[Truncate, ...]
    rereads: Mapping[str, Reread]
    refused: Frame | None = None


def _table_events(events: Frame, layout: OdsLayout, share: Share, known: Mapping[str, Reread]) -> _TableEvents:
    """The last truncate of each source table, and of which all rows have been read again; else the events to refuse.

    Rows that were not read again go when all have been read: which of them could not be ingested is known then, however
    many batches they took. `known`: what was being read again before the batch.
    """
    frame = events.where("kind = 'truncate'")
    ingest = layout.ingest
    tables = ", ".join(map(sql_literal, names_of(ingest.table)))
    is_all = f"(source_table in ({tables}) or concat_ws('.', source_schema, source_table) in ({tables}))"
    if ingest.database is not None:
        is_all += f" and coalesce(database, '') in ({', '.join(map(sql_literal, names_of(ingest.database)))})"
    elif len(share.sources) > 1:
        is_all = "false"
    if ingest.origin is None and not frame.where(f"not {is_all}").isEmpty():
        return _TableEvents((), known, frame)
    mark = f"coalesce(get_json_object(value, '$.{READS_AGAIN}'), '') as mark"
    rows = frame.selectExpr("position", "origin", mark).collect()
    latest, rereads = dict[tuple[str, bool], Truncate](), dict(known)
    for position, of, said in sorted((row["position"], row["origin"], row["mark"]) for row in rows):
        origin = of if ingest.origin else ""
        if said == BEGINS:
            rereads[origin] = Reread(position)
            continue
        at = position
        if said == ENDS:
            if (begun := rereads.pop(origin, None)) is None:
                continue  # the table is as it was made since, or had no rows when it began
            at = begun.since
        truncate = Truncate(at, origin or None, reads_again=said in (ENDS, "true"))
        before = latest.get((origin, truncate.reads_again), truncate)
        latest[origin, truncate.reads_again] = max(before, truncate, key=attrgetter("position"))
    return _TableEvents(tuple(latest.values()), rereads)
