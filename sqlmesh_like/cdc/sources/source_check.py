"""Checks of a source before any event is read. Owns what ingestion supports so far; needs no engine."""

from __future__ import annotations

import json

from sqlmesh_like.cdc.formats.format_registry import FILE_ROWS
from sqlmesh_like.cdc.formats.source_types import normal_type
from sqlmesh_like.cdc.schema.ods_layout import check_declaration
from sqlmesh_like.errors import ProjectError, UsageError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.project.keys.value_types import DURATION
from sqlmesh_like.project.nodes import ParsedProject, Source


def check_source(project: ParsedProject, source: Source) -> None:
    """Check that a source's settings are supported and its folder exists. Raises UsageError and ProjectError."""
    for table in source.tables:
        check_declaration(table)
    ingest = source.ingest
    if ingest is None:
        raise UsageError(f"source {source.name!r} has no `ingest` block", location=source.declared_at)
    if ingest.format == "rows":
        _check_rows(source)
    if ingest.files is None:
        return
    if ingest.format in FILE_ROWS and is_csv(ingest.files):
        _check_csv(source)
    if ingest.max_events_per_batch is not None:
        hint = "files are ingested whole: set files: {max_files_per_batch: …}"
        raise UsageError(
            f"max_events_per_batch of source {source.name!r} is for Kafka", location=source.declared_at, hint=hint
        )
    if not folder(fixed_part(files_glob(project, ingest.files))).exists():
        raise UsageError(
            f"source {source.name!r} reads {ingest.files}, but there is no folder {fixed_part(ingest.files) or '.'}",
            location=source.declared_at,
            hint="create it, or change files: {path: …}",
        )


def is_csv(files: str) -> bool:
    """Whether a glob names CSV files."""
    return files.endswith((".csv", ".csv.gz"))


def _check_csv(source: Source) -> None:
    for table in source.tables:
        for column in table.columns:
            if table.ingest and normal_type(column.type or "") == "binary":
                raise ProjectError(
                    f"column {column.name!r} of {table.name!r} is binary, and CSV files hold texts",
                    location=table.declared_at,
                    hint="declare it as string, or use Parquet files (DMS: DataFormat: parquet of the S3 endpoint)",
                )


def _check_rows(source: Source) -> None:
    for table in source.tables:
        if table.ingest and table.ingest.updates == "partial":
            raise ProjectError(
                f"updates: partial of {table.name!r} is for change events; format: rows has whole rows",
                location=table.declared_at,
                hint="leave it out, or let the source write events (Debezium, …)",
            )


def check_start(source: Source, start: str | None) -> None:
    """Check where to start reading: earliest or, for Kafka, latest or offsets as JSON. Raises UsageError."""
    if start is None or start == "earliest":
        return
    if source.ingest is None or source.ingest.kafka is None:
        hint = "use --from earliest, or move read files away"
        raise UsageError(f"--from {start}: the files of source {source.name!r} have no such position", hint=hint)
    if start == "latest":
        return
    try:
        offsets = json.loads(start)
    except ValueError:
        offsets = None
    if not isinstance(offsets, dict) or not all(isinstance(parts, dict) for parts in offsets.values()):
        hint = """write earliest, latest or e.g. '{"topic": {"0": 42}}'"""
        raise UsageError(f"--from {start!r} is not a position in a topic", hint=hint)


def check_trigger(trigger: str | None, *, continuous: bool) -> None:
    """Check the interval between batches, which needs `continuous`. Raises UsageError."""
    if trigger is None:
        return
    if not continuous:
        raise UsageError("--trigger is for --continuous", hint="without it, everything is ingested at once")
    if not DURATION.fullmatch(trigger):
        raise UsageError(f"--trigger is {trigger!r}", hint="write it as: 30 seconds")


def files_glob(project: ParsedProject, files: str) -> str:
    """The glob of a source's files, made absolute."""
    return files if "://" in files else str(project.root / files)


def fixed_part(path: str) -> str:
    """The folder in front of the first wildcard.

    >>> fixed_part("landing/shop/*.jsonl"), fixed_part("a/b.jsonl")
    ('landing/shop', 'a')
    """
    parts = path.split("/")
    fixed = next((index for index, part in enumerate(parts) if any(sign in part for sign in "*?[{")), len(parts) - 1)
    return "/".join(parts[:fixed])
