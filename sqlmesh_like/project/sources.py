"""`sources:` of properties YAML. Owns reading them, `ingest:` blocks included; `properties` reads their data tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, cast, get_args

from sqlmesh_like.errors import ProjectError, nearest
from sqlmesh_like.names import Column, NodeId, TableName, storable_name
from sqlmesh_like.project.doc_blocks import Descriptions
from sqlmesh_like.project.freshness import parse_freshness
from sqlmesh_like.project.keys.database_keys import parse_database
from sqlmesh_like.project.keys.registry_keys import parse_registry
from sqlmesh_like.project.keys.shape import Shape
from sqlmesh_like.project.keys.source_keys import (
    CSV,
    FILES,
    INGEST_TABLE,
    KAFKA,
    PARTITION_BY,
    SOURCE,
    SOURCE_COLUMN,
    STREAM,
    TABLE,
    time_unit,
)
from sqlmesh_like.project.keys.time_zones import time_zone
from sqlmesh_like.project.nodes import (
    CdcFormat,
    CsvFormat,
    DatabaseSettings,
    IngestSource,
    IngestTable,
    PartitionBy,
    Source,
    SourceTable,
    TableType,
    TimeUnit,
    ZeroDates,
)
from sqlmesh_like.project.reading.column_types import type_fault
from sqlmesh_like.project.reading.hudi_options import read_hudi_options
from sqlmesh_like.project.reading.patterns import PatternError, compile_pattern
from sqlmesh_like.project.reading.yaml_node import YamlNode


def parse_source(node: YamlNode, project: str, descriptions: Descriptions) -> Source:
    """One entry of `sources:`. Raises ProjectError at the first wrong key or value."""
    SOURCE.check(node)
    name = required_text(node, "name", "a source")
    schema = node.text_of("schema") or name
    ingest = node.get("ingest")
    stream = None if ingest is None else _stream(ingest)
    tags, event_time = _config_texts(node, "tags"), _event_time(node)
    freshness = parse_freshness(node)
    return Source(
        name=name,
        schema=schema,
        ingest=stream,
        tables=tuple(
            replace(
                _table(table, (project, name, schema), tags, stream, descriptions),
                freshness=parse_freshness(table, freshness),
                event_time=_event_time(table) or event_time,
                loader=table.text_of("loader") or node.text_of("loader") or "",
            )
            for table in node.elements_of("tables")
        ),
        description=descriptions.of(node),
        declared_at=node.location,
    )


def _table(
    node: YamlNode,
    within: tuple[str, str, str],
    tags: tuple[str, ...],
    stream: IngestSource | None,
    descriptions: Descriptions,
) -> SourceTable:
    project, source, schema = within
    TABLE.check(node)
    name = required_text(node, "name", "a source table")
    ingest = node.get("ingest")
    if ingest is not None and stream is None:
        raise ingest.error(f"table {name!r} has an ingest block, but its source {source!r} has none")
    for column in () if node.get("columns") is None else node.children["columns"].sequence("columns"):
        SOURCE_COLUMN.check_keys(column)
    columns, docs = parse_columns(node), descriptions.columns(node)
    if ingest is not None:
        _refuse_misspelt_columns(ingest, columns)
        columns = tuple(Column(storable_name(column.name), column.type) for column in columns)
        docs = {storable_name(column): doc for column, doc in docs.items()}
    return SourceTable(
        unique_id=NodeId("source", project, source, name),
        source_name=source,
        name=name,
        table=TableName(schema, node.text_of("identifier") or name),
        location=node.text_of("location"),
        format=str(TABLE.value(node, "format")),
        ingest=None if ingest is None or stream is None else _ingest_table(ingest, name, stream),
        columns=columns,
        description=descriptions.of(node),
        tags=tuple(sorted({*tags, *_config_texts(node, "tags")})),
        meta=_meta(node),
        declared_at=node.location,
        column_docs=docs,
        renamed=_column_renames(node),
        units=_units(node, columns),
        time_zones=_time_zones(node, columns),
    )


def _refuse_misspelt_columns(ingest: YamlNode, columns: tuple[Column, ...]) -> None:
    """Raise ProjectError for an unknown column in keys or order that resembles a declared one, if all have types."""
    names = [column.name for column in columns if column.type is not None]
    if len(names) < len(columns):
        return
    for key in ("primary_key", "order_by", "partition_by"):
        child = ingest.mapping("ingest").get(key)
        child = child.get("column") if child is not None and isinstance(child.value, dict) else child
        for one in () if child is None else child.elements or (child,):
            is_known = str(one.value).lower() in map(str.lower, names)
            if not is_known and (hint := nearest(str(one.value), names)):
                raise ProjectError(
                    f"{key} names {one.value!r}, which is not a column", location=one.location, hint=hint
                )


def _column_renames(node: YamlNode) -> Mapping[str, str]:
    """Columns that declare `renamed_from`, with that name."""
    renames = (
        (required_text(column, "name", "a column"), column.text_of("renamed_from"))
        for column in node.elements_of("columns")
    )
    return {name: before for name, before in renames if before is not None}


def _column_values(node: YamlNode, columns: tuple[Column, ...], key: str) -> Iterator[tuple[YamlNode, Column]]:
    """The values of a key of columns, each with its column, where it is declared."""
    for entry, column in zip(node.elements_of("columns"), columns, strict=True):
        if (value := entry.get(key)) is not None:
            yield value, column


def _units(node: YamlNode, columns: tuple[Column, ...]) -> Mapping[str, TimeUnit]:
    """Columns that declare `unit`, with it. Raises ProjectError where a column of that type counts nothing so."""
    units: dict[str, TimeUnit] = {}
    for unit, column in _column_values(node, columns, "unit"):
        units[column.name] = time_unit(unit, "unit")
        allowed = next((units for kind, units in _COUNTED.items() if kind.match(column.type or "")), None)
        if allowed is None:
            kind = f"is {column.type}" if column.type else "has no data_type"
            hint = "declare data_type: timestamp, date, or string for a time of day"
            raise unit.error(f"unit of column {column.name!r}, which {kind}", hint)
        if units[column.name] not in allowed:
            raise unit.error(f"unit of column {column.name!r} is {units[column.name]}", f"use {', '.join(allowed)}")
    return units


def _zone_of_table(node: YamlNode, stream: IngestSource) -> str | None:
    own = cast(str | None, INGEST_TABLE.value(node, "time_zone")) or stream.time_zone
    return None if own == "UTC" else own


def _time_zones(node: YamlNode, columns: tuple[Column, ...]) -> Mapping[str, str]:
    """Columns that declare `time_zone`, with it. Raises ProjectError where a column is not declared a timestamp."""
    zones: dict[str, str] = {}
    for zone, column in _column_values(node, columns, "time_zone"):
        zones[column.name] = time_zone(zone, "time_zone")
        if not (column.type or "timestamp").strip().lower().startswith("timestamp"):
            raise zone.error(f"time_zone of column {column.name!r}, which is {column.type}", "remove it")
    return zones


_SINCE_MIDNIGHT = ("seconds", "millis", "micros", "nanos")
_COUNTED = {
    re.compile(r"\s*(?:date\s*$|timestamp)", re.IGNORECASE): get_args(TimeUnit),
    re.compile(r"\s*(?:string|text|(?:var)?char\b)", re.IGNORECASE): _SINCE_MIDNIGHT,
}
"""The units of numbers in a column, by its type."""


def _stream(node: YamlNode) -> IngestSource:
    STREAM.check(node)
    files, kafka, database = node.get("files"), node.get("kafka"), parse_database(node)
    given = [name for name in ("files", "kafka", "database") if node.get(name) is not None]
    if len(given) != 1:
        problem = f"both {' and '.join(given)}" if given else "neither files nor kafka nor database"
        raise node.error(
            f"ingest has {problem}", "give exactly one: files: {path: …}, kafka: {…} or database: {url: …}"
        )
    return IngestSource(
        format=_format(node, database),
        files=None if files is None else _files(files),
        max_files_per_batch=None if files is None else cast(int | None, FILES.value(files, "max_files_per_batch")),
        csv=CsvFormat() if files is None else _csv(files),
        kafka=None if kafka is None else _kafka(kafka),
        database=database,
        registry=parse_registry(node),
        trigger=str(STREAM.value(node, "trigger")),
        max_events_per_batch=cast(int | None, STREAM.value(node, "max_events_per_batch")),
        concurrency=cast(int, STREAM.value(node, "concurrency")),
        on_schema_change=cast(Literal["evolve", "lenient", "ignore", "fail"], STREAM.value(node, "on_schema_change")),
        on_bad_record=cast(Literal["dead_letter", "fail"], STREAM.value(node, "on_bad_record")),
        unavailable_value_placeholder=str(STREAM.value(node, "unavailable_value_placeholder")),
        discover=STREAM.value(node, "discover") is True,
        zero_dates=_zero_dates(node, STREAM) or "dead_letter",
        time_zone=cast(str | None, STREAM.value(node, "time_zone")),
        declared_at=(kafka.children["bootstrap_servers"] if kafka is not None else node).key_location,
    )


def _format(node: YamlNode, database: DatabaseSettings | None) -> CdcFormat:
    given = cast(CdcFormat | None, STREAM.value(node, "format"))
    if database is not None and given not in (None, "debezium"):
        raise node.children["format"].error(f"events of a database are not in {given!r}", "remove it")
    if given is None and database is None:
        raise node.error("ingest needs 'format'", "add format: debezium")
    return given or "debezium"


def _files(node: YamlNode) -> str:
    FILES.check(node)
    return str(FILES.value(node, "path"))


def _csv(node: YamlNode) -> CsvFormat:
    child = node.get("csv")
    if child is None:
        return CsvFormat()
    CSV.check(child)
    delimiter = str(CSV.value(child, "delimiter"))
    if len(delimiter) != 1:
        raise child.error(f"delimiter {delimiter!r} must be one character")
    null, encoding = str(CSV.value(child, "null_value")), str(CSV.value(child, "encoding"))
    return CsvFormat(CSV.value(child, "header") is True, null, delimiter, encoding)


def _kafka(node: YamlNode) -> Mapping[str, object]:
    KAFKA.check(node)
    required_text(node, "bootstrap_servers", "kafka")
    if (node.get("topics") is None) == (node.get("topic_pattern") is None):
        raise node.error("kafka needs exactly one of topics and topic_pattern")
    return {key: child.value for key, child in node.items()}


def _ingest_table(node: YamlNode, name: str, stream: IngestSource) -> IngestTable:
    """How a table is ingested; its columns have the names that they get there, as declared or as in events."""
    INGEST_TABLE.check(node)
    key = node.get("primary_key")
    if key is None:
        hint = "add primary_key: [column, …]; [] says that it has none, and every insert becomes a row"
        raise node.error(f"table {name!r} is ingested without primary_key", hint)
    for key_of_name in ("database", "table"):
        _check_pattern(node, key_of_name)
    # GoldenGate leaves out what the trail does not have.
    is_partial = stream.format == "ogg" and node.get("updates") is None
    partition, origin = node.get("partition_by"), node.text_of("origin")
    return IngestTable(
        database=node.text_of("database"),
        table=node.text_of("table") or name,
        primary_key=tuple(map(storable_name, key.texts("primary_key"))),
        order_by=tuple(map(storable_name, node.texts_of("order_by"))),
        partition_by=None if partition is None else _partition(partition),
        table_type=cast(TableType, INGEST_TABLE.value(node, "table_type")),
        deletes=cast(Literal["hard", "soft", "retention"], INGEST_TABLE.value(node, "deletes")),
        updates="partial" if is_partial else cast(Literal["full", "partial"], INGEST_TABLE.value(node, "updates")),
        zero_dates=_zero_dates(node, INGEST_TABLE) or stream.zero_dates,
        origin=None if origin is None else storable_name(origin),
        hudi=read_hudi_options(node.get("hudi")),
        unit=cast(TimeUnit | None, INGEST_TABLE.value(node, "unit")),
        time_zone=_zone_of_table(node, stream),
    )


def _zero_dates(node: YamlNode, shape: Shape) -> ZeroDates | None:
    # YAML reads the bare word `null` as no value, which elsewhere means that a key is not given.
    child = node.children.get("zero_dates")
    return (
        "null" if child is not None and child.value is None else cast(ZeroDates | None, shape.value(node, "zero_dates"))
    )


def _check_pattern(node: YamlNode, key: str) -> None:
    pattern = node.text_of(key) or ""
    try:
        compile_pattern(pattern)
    except PatternError as error:
        hint = "patterns are matched in linear time, by RE2: without lookarounds, backreferences and the like"
        message = f"{key} {pattern!r} is not a regular expression that can be used: {error}"
        raise node.children[key].error(message, hint) from error


def _partition(node: YamlNode) -> PartitionBy:
    if isinstance(node.value, str):
        column = storable_name(node.value)
        return PartitionBy(column, None, column)
    PARTITION_BY.check(node)
    column = required_text(node, "column", "partition_by")
    form = node.text_of("format")
    if form is not None and node.text_of("as") is None:
        raise node.error("partition_by with a format needs a name", f"add as: {column}_partition")
    named = storable_name(node.text_of("as") or column)
    return PartitionBy(storable_name(column), form, named)


def parse_columns(node: YamlNode) -> tuple[Column, ...]:
    """The declared columns of a model, seed or source table, with their types where given."""
    columns = node.get("columns")
    if columns is None:
        return ()
    return tuple(
        Column(required_text(column.mapping("a column"), "name", "a column"), _data_type(column))
        for column in columns.sequence("columns")
    )


def _data_type(column: YamlNode) -> str | None:
    child = column.get("data_type")
    text = column.text_of("data_type")
    fault = None if text is None else type_fault(text)
    if child is not None and fault is not None:
        message, hint = fault
        raise ProjectError(message, location=child.location, hint=hint)
    return text


def _config_texts(node: YamlNode, key: str) -> tuple[str, ...]:
    inner = node.mapping_of("config").texts_of(key)
    return (*node.texts_of(key), *inner)


def _event_time(node: YamlNode) -> str | None:
    return node.mapping_of("config").text_of("event_time")


def _meta(node: YamlNode) -> Mapping[str, object]:
    config = node.get("config")
    levels = [node.get("meta"), None if config is None else config.get("meta")]
    return {key: child.value for level in levels if level is not None for key, child in level.mapping("meta").items()}


def required_text(node: YamlNode, key: str, what: str) -> str:
    """The text under a required key. Raises ProjectError if it is missing."""
    child = node.get(key)
    if child is None:
        raise node.error(f"{what} needs {key!r}", f"add {key}: …")
    return child.text(key)
