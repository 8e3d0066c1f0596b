"""Lines of a log as change events: their kind and table. Owns an event's columns; formats say how to read one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.decode.repeated_schemas import NO_SCHEMAS, RepeatedSchemas
from sqlmesh_like.cdc.formats.format_registry import FORMATS
from sqlmesh_like.cdc.formats.message import CHANGES, NO_KEY, NO_MEMBERS, MessageDialect
from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.formats.unavailable_values import may_hold
from sqlmesh_like.cdc.frames import Frame, frame_query
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.registry.decoded_rows import decoded_rows
from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.cdc.registry.wire_header import FAULT, fault_without_registry, referenced_schema
from sqlmesh_like.cdc.report import UNDECLARED
from sqlmesh_like.cdc.schema.limits import TOO_DEEP, TOO_LONG, is_shallow_json, is_short
from sqlmesh_like.cdc.schema.schema_inference import HOLDS_EMPTY
from sqlmesh_like.cdc.sources.database.spool import spool_of
from sqlmesh_like.cdc.sources.discover import SourceName, discover, with_discovered
from sqlmesh_like.cdc.sources.route import route
from sqlmesh_like.cdc.sources.row_files import LOG_COLUMNS, RowFiles
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.project.nodes import IngestSource, SourceTable

if TYPE_CHECKING:
    from pyspark.sql import Row as SparkRow

    from sqlmesh_like.cdc.in_process.values import Row

    Group = SparkRow | Row

_SOURCE = ("database", "source_schema", "source_table")
EVENT_COLUMNS = (
    *("value", "file", "line", "position", "kind", "op", "reason"),
    *(*_SOURCE, "message", "schema_id", "members", "key_columns", "logged_at", *LOG_COLUMNS),
)
_EVENTS_PER_TASK = 50_000
_TEXT_FOR_A_BYTE = 8
"""About how many times larger a row is as a message than in a table's compressed columns."""
_SAID_OF = ("value", *LOG_COLUMNS)
"""Columns that envelopes are read from."""
_NUMBER = "xxhash64(position)"
"""Number of an event. Two events may share one; for choosing an example that does no harm."""
_IS_SHORT = f"{is_short('value')} and {is_short('log_key')}"
_READ = f"if(is_shallow and {FAULT} is null, value, null)"
# Spark silently replaces invalid bytes wherever it reads text.
_IS_UTF8 = "encode(decode(cast(value as binary), 'UTF-8'), 'UTF-8') = cast(value as binary)"


@dataclass(frozen=True, order=True)
class Variant:
    """Events of a table that share one message layout and one stated schema (`schema_id` '': they state none).

    `has_unavailable`: some may hold a placeholder for a value that was not logged.
    """

    message: str
    schema_id: str
    schema_text: str
    has_unavailable: bool = False

    @property
    def condition(self) -> str:
        """Spark SQL that is true for its events."""
        return f"message = '{self.message}' and coalesce(schema_id, '') = '{self.schema_id}'"


@dataclass
class Share:
    """The part of a batch for one declared table: the source tables and variants of its events.

    `logged_at`: when the newest of its `lines` was logged (ms since 1970). `members`: member names in the rows of
    events without a schema, None where they are not known. `has_empty`: some of these events are `HOLDS_EMPTY`.
    `files`: those whose rows have types of their own. `bytes`: estimated size of the rows in a table.
    """

    table: SourceTable
    sources: set[SourceName] = field(default_factory=set)
    variants: set[Variant] = field(default_factory=set)
    has_truncates: bool = False
    has_empty: bool = False
    lines: int = 0
    logged_at: int | None = None
    members: dict[str, None] | None = field(default_factory=dict)
    files: list[RowFiles] = field(default_factory=list)
    bytes: int = 0

    def name(self, members: str | None) -> None:
        """Add member names, one a line, in their order; None: from now on they are not known."""
        known = self.members is not None and members is not None
        self.members = {**(self.members or {}), **dict.fromkeys((members or "").split("\n"))} if known else None

    def count(self, lines: int, logged_at: int | None) -> None:
        """Add a number of lines; `logged_at` is that of the newest."""
        self.lines += lines
        self.logged_at = max(filter(None, (self.logged_at, logged_at)), default=None)

    def add(self, variant: Variant) -> None:
        """Add a variant; two that differ only in `has_unavailable` become one that has it."""
        other = replace(variant, has_unavailable=not variant.has_unavailable)
        if other in self.variants:
            self.variants.discard(other)
            variant = replace(variant, has_unavailable=True)
        self.variants.add(variant)


@dataclass(frozen=True)
class Routed:
    """The lines of a batch by the table that ingests them. `skipped` counts lines without a table, by reason.

    `undeclared`: the source tables of those that no declaration takes.
    """

    shares: Mapping[str, Share]
    skipped: Mapping[str, int]
    lines: int
    bad: int
    undeclared: frozenset[SourceName] = frozenset()


@contextmanager
def events_of(
    lines: Frame,
    ingest: IngestSource,
    registry: SchemaRegistry | None = None,
    *,
    with_members: bool = False,
    schemas: RepeatedSchemas = NO_SCHEMAS,
) -> Iterator[Frame]:
    """Read the envelopes of lines (`EVENT_COLUMNS`; grain: line), for as long as the context is open.

    `registry`: has the schemas of messages in Avro. `with_members`: also the names in their rows. `schemas`: to which
    messages then refer. Raises IngestError where the registry does not answer.
    """
    if registry is None:
        messages = schemas.shortened(lines).selectExpr("*", f"{fault_without_registry(ingest.format)} as {FAULT}")
        yield _events_of(messages, ingest, schemas, with_members=with_members)
        return
    if isinstance(lines, RowFrame):
        yield _events_of(decoded_rows(lines, registry, ingest.format), ingest, NO_SCHEMAS, with_members=with_members)
        return
    from sqlmesh_like.cdc.registry.wire_format import decoded_lines  # needs Spark

    with decoded_lines(lines, registry, ingest.format) as decoded:
        yield _events_of(decoded, ingest, NO_SCHEMAS, with_members=with_members)


def _events_of(lines: Frame, ingest: IngestSource, schemas: RepeatedSchemas, *, with_members: bool) -> Frame:
    # As one text: Spark analyses a frame again for every step that is added to it, which takes longer than a small
    # batch's rows.
    readings = [
        _reading(lines.columns, condition, dialect, ingest, schemas.schema_id, with_members=with_members)
        for condition, dialect in FORMATS[ingest.format]
    ]
    return frame_query(" union all ".join(readings), lines=lines)


def _reading(
    columns: Sequence[str],
    condition: str,
    dialect: MessageDialect,
    ingest: IngestSource,
    schema_id: str,
    *,
    with_members: bool,
) -> str:
    """Spark SQL of the events that a dialect reads from lines (`{lines}`, with these columns)."""
    said = {
        **dialect.envelope(_READ),
        "key_columns": f"if(is_shallow, {dialect.key if ingest.discover else NO_KEY}, null)",
        "schema_id": schema_id,
        "members": f"if(schema_text is null, {dialect.members if with_members else NO_MEMBERS}, null)",
        "is_text": f"value is null or {_IS_UTF8}",
    }
    judged = {
        "kind": f"if(is_text and is_shallow and {FAULT} is null, kind, 'bad')",
        "reason": f"case when not ({_IS_SHORT}) then {sql_literal(TOO_LONG)} when {FAULT} is not null then {FAULT}"
        " when not is_text then 'invalid UTF-8'"
        f" when not is_shallow then {sql_literal(TOO_DEEP)} else reason end",
    }
    depth = f"{_IS_SHORT} and {is_shallow_json('log_key')} and ({FAULT} is not null or {is_shallow_json('value')})"
    read = f"(select *, {depth} as is_shallow from {{lines}} where {condition})"
    # A key too deep to be parsed is none: a reader of JSON would overflow Java's stack.
    value = f"if({FAULT} is null, {dialect.value}, value)" if dialect.value != "value" else "value"
    for name, sql in (("log_key", "if(is_shallow, log_key, null)"), ("value", value)):
        if sql != name:
            others = [quoted_name(column) for column in (*columns, "is_shallow") if column != name]
            read = f"(select {', '.join(others)}, {sql} as {name} from {read})"
    described = f"(select *, {', '.join(f'{sql} as {name}' for name, sql in said.items())} from {read})"
    return f"select {', '.join(f'{judged.get(name, name)} as {name}' for name in EVENT_COLUMNS)} from {described}"


def route_events(
    place: SourcePaths,
    events: Frame,
    registry: SchemaRegistry | None = None,
    schemas: RepeatedSchemas = NO_SCHEMAS,
) -> Routed:
    """Assign events to tables. Raises ProjectError where two declarations claim the same events.

    `registry`, `schemas`: have the schemas that events refer to.
    """
    by = ("kind", *_SOURCE, "message", "schema_id", "members")
    assert place.source.ingest is not None
    # Of a bad event nothing is read: its text may not be one.
    marked = f"kind <> 'bad' and ({may_hold('value', place.source.ingest.unavailable_value_placeholder)})"
    # Aggregate numbers only: for texts or lists, Spark would sort all events.
    columns = {"example": f"max({_NUMBER})", "lines": "count(*)", "marked": f"max({marked})"}
    columns["has_empty"] = f"coalesce(max(kind <> 'bad' and schema_id is null and {HOLDS_EMPTY}), false)"
    columns |= {"logged_at": "max(logged_at)", "bytes": "sum(octet_length(value))"}
    if place.source.ingest.discover:
        columns["key_columns"] = "first(key_columns, true)"
    named = ", ".join([*by, *(f"{sql} as {name}" for name, sql in columns.items())])
    groups = frame_query(f"select {named} from {{events}} group by {', '.join(by)}", events=events).collect()
    source_tables = _with_discovered(place, groups).source
    texts = _schema_texts(events, place.source.ingest, groups)
    stated = {schema_id: _fields_of_schema(place, schemas.fields(text), registry) for schema_id, text in texts.items()}
    shares: dict[str, Share] = {}
    skipped: Counter[str] = Counter()
    undeclared: set[SourceName] = set()
    for row in groups:
        kind, source = row["kind"], (row["database"], row["source_schema"], row["source_table"])
        if kind not in (*CHANGES, "truncate"):
            skipped[kind] += row["lines"]
            continue
        table = route(source_tables, *source)
        if table is None:
            skipped[_undeclared_reason(place, source)] += row["lines"]
            undeclared.add(source)
            continue
        share = shares.setdefault(table.name, Share(table))
        share.sources.add(source)
        share.count(row["lines"], row["logged_at"])
        share.bytes += (row["bytes"] or 0) // _TEXT_FOR_A_BYTE
        if kind == "truncate":
            share.has_truncates = True
        else:
            schema_id = row["schema_id"] or ""
            share.add(Variant(row["message"], schema_id, stated.get(schema_id, ""), row["marked"]))
            if not schema_id:
                share.has_empty |= row["has_empty"]
                share.name(row["members"])
    bad = skipped.pop("bad", 0)
    return Routed(shares, dict(skipped), sum(row["lines"] for row in groups), bad, frozenset(undeclared))


def _fields_of_schema(place: SourcePaths, text: str, registry: SchemaRegistry | None) -> str:
    """The `fields` that a message states or refers to."""
    assert place.source.ingest is not None
    return spool_of(place).schema(text) if place.source.ingest.database else referenced_schema(text, registry)


def routed_files(place: SourcePaths, row_files: Sequence[RowFiles]) -> Routed:
    """Assign files of rows to tables. Raises ProjectError where two declarations claim the same rows."""
    shares: dict[str, Share] = {}
    skipped: Counter[str] = Counter()
    undeclared: set[SourceName] = set()
    for files in row_files:
        table = route(place.source, *files.source)
        if table is None:
            skipped[_undeclared_reason(place, files.source)] += files.rows
            undeclared |= {(database, schema, name) for database, schema, name in (files.source,) if name}
            continue
        share = shares.setdefault(table.name, Share(table))
        share.files.append(files)
        share.bytes += files.bytes
        share.count(files.rows, max(file.listed.modified for file in files.files))
    return Routed(shares, dict(skipped), sum(files.rows for files in row_files), 0, frozenset(undeclared))


def _undeclared_reason(place: SourcePaths, source: tuple[str | None, str | None, str | None]) -> str:
    why = " (no key in its events)" if place.source.ingest and place.source.ingest.discover else ""
    return UNDECLARED + ".".join(filter(None, source)) + why


def _schema_texts(events: Frame, ingest: IngestSource, groups: Iterable[Group]) -> dict[str, str]:
    """The schemas that events state, by id. They are large and few, so they are not kept in memory with each event."""
    examples = {row["schema_id"]: row["example"] for row in groups if row["schema_id"] and row["kind"] in CHANGES}
    if not examples:
        return {}
    numbers = ", ".join(map(str, sorted(set(examples.values()))))
    few = events.where(f"{_NUMBER} in ({numbers})").select("schema_id", *_SAID_OF)
    entries: dict[str, str] = {}
    for condition, dialect in FORMATS[ingest.format]:
        said = (f"{sql} as {name}" for name, sql in dialect.envelope("value").items())
        described = few.where(condition).selectExpr("*", *said).where("schema_id is not null")
        entries |= {row[0]: row[1] for row in described.select("schema_id", "schema_text").distinct().collect()}
    return entries


def _with_discovered(place: SourcePaths, groups: Iterable[Group]) -> SourcePaths:
    if place.source.ingest is None or not place.source.ingest.discover:
        return place
    keys: dict[SourceName, list[str]] = {}
    for row in groups:
        if row["kind"] in CHANGES and row["key_columns"]:
            keys.setdefault((row["database"], row["source_schema"], row["source_table"]), row["key_columns"])
    return discover(with_discovered(place), keys)


def events_for(events: Frame, share: Share) -> Frame:
    """The events of one declared table, truncates included, with their `origin` (`database.table`)."""
    # A task has the overhead of reading a thousand events.
    frame = events.where(f"({_is_of(share)}) and {_IS_MATTER}").coalesce(max(1, share.lines // _EVENTS_PER_TASK))
    return frame.selectExpr("*", "concat_ws('.', database, source_schema, source_table) as origin")


def waiting(events: Frame, done: Iterable[Share]) -> Frame:
    """The lines (`file`, `line`) of events that belong to none of the tables in `done`."""
    is_done = " or ".join(map(_is_of, done)) or "false"
    return events.where(f"not ({is_done}) and {_IS_MATTER}").select("file", "line")


_IS_MATTER = f"kind in ({', '.join(map(sql_literal, (*CHANGES, 'truncate')))})"


def _is_of(share: Share) -> str:
    """Spark SQL: whether an event is of one of the share's source tables."""
    each = [
        " and ".join(
            f"{name} <=> {'null' if value is None else sql_literal(value)}"
            for name, value in zip(_SOURCE, source, strict=True)
        )
        for source in sorted(share.sources, key=repr)
    ]
    return " or ".join(f"({condition})" for condition in each) or "false"
