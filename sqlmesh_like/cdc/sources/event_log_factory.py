"""Which log a source has. Owns the choice alone."""

from __future__ import annotations

from sqlmesh_like.cdc.sources.event_log import Log
from sqlmesh_like.cdc.sources.file_log import FileLog
from sqlmesh_like.cdc.sources.kafka_log import KafkaLog
from sqlmesh_like.cdc.sources.parquet_log import ParquetLog
from sqlmesh_like.cdc.sources.source_check import files_glob
from sqlmesh_like.project.nodes import ParsedProject, Source


def log_of(project: ParsedProject, source: Source) -> Log:
    """The log that a checked source reads."""
    ingest = source.ingest
    assert ingest is not None
    if ingest.files is None:
        return KafkaLog(ingest.kafka or {}, ingest.max_events_per_batch)
    glob = files_glob(project, ingest.files)
    # DMS alone writes rows, not messages; its JSON files are lines.
    kind = ParquetLog if ingest.format == "dms" and glob.endswith(".parquet") else FileLog
    return kind(glob, ingest.max_files_per_batch)
