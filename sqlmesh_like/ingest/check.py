"""What can be wrong with a source before any event is seen. Owns what ingestion supports so far; needs no engine."""

from __future__ import annotations

from sqlmesh_like.engine.storage import folder
from sqlmesh_like.errors import UsageError
from sqlmesh_like.ingest.layout import check_declaration
from sqlmesh_like.project.spec import IngestSource, ParsedProject, Source


def check_source(project: ParsedProject, source: Source) -> str:
    """The glob of the source's files, made absolute, once all its settings are known to be supported.

    Raises UsageError and ProjectError. Needs no engine.
    """
    for table in source.tables:
        check_declaration(table)
    files = _supported_files(source, source.ingest)
    path = files if "://" in files else str(project.root / files)
    base = _fixed_part(path)
    if not folder(base).exists():
        raise UsageError(
            f"source {source.name!r} reads {files}, but there is no folder {_fixed_part(files) or '.'}",
            location=source.declared_at,
            hint="create it, or change files: {path: …}",
        )
    return path


def _supported_files(source: Source, ingest: IngestSource | None) -> str:
    def unsupported(what: str) -> UsageError:
        return UsageError(f"{what} of source {source.name!r} is not supported yet", location=source.declared_at)

    if ingest is None:
        raise UsageError(f"source {source.name!r} has no `ingest` block", location=source.declared_at)
    if ingest.files is None:
        raise unsupported("kafka")
    if ingest.format != "debezium":
        raise unsupported(f"format {ingest.format}")
    if ingest.on_schema_change != "evolve":
        raise unsupported(f"on_schema_change: {ingest.on_schema_change}")
    if ingest.max_events_per_batch is not None:
        raise unsupported("max_events_per_batch for files")
    return ingest.files


def _fixed_part(path: str) -> str:
    """The folder in front of the first wildcard.

    >>> _fixed_part("landing/shop/*.jsonl"), _fixed_part("a/b.jsonl")
    ('landing/shop', 'a')
    """
    parts = path.split("/")
    fixed = next((index for index, part in enumerate(parts) if any(sign in part for sign in "*?[{")), len(parts) - 1)
    return "/".join(parts[:fixed])
