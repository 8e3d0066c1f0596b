"""Which log a source has: a topic of Kafka, files of lines or rows, or the spool of a database."""

from __future__ import annotations

from sqlmesh_like.cdc.formats.format_registry import FILE_OPERATIONS, FILE_ROWS
from sqlmesh_like.cdc.sources.database.spool import SEGMENT_EVENTS, spool_of
from sqlmesh_like.cdc.sources.event_log import Log
from sqlmesh_like.cdc.sources.file_log import FileLog, SpoolLog
from sqlmesh_like.cdc.sources.kafka_log import KafkaLog
from sqlmesh_like.cdc.sources.parquet_log import CsvLog, ParquetLog
from sqlmesh_like.cdc.sources.source_check import files_glob, is_csv
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.project.nodes import ParsedProject, Source, Target

_EVENTS_OF_A_BATCH = 500_000
"""Of a database: the first batches are all of its rows."""


def event_log_of(project: ParsedProject, target: Target, source: Source) -> Log:
    """The log that a checked source reads."""
    ingest = source.ingest
    assert ingest is not None
    if ingest.database is not None:
        files = max(1, (ingest.max_events_per_batch or _EVENTS_OF_A_BATCH) // SEGMENT_EVENTS)
        return SpoolLog(spool_of(SourcePaths(target, source)).glob, files, source.tables)
    if ingest.files is None:
        return KafkaLog(ingest.kafka or {}, ingest.max_events_per_batch)
    glob = files_glob(project, ingest.files)
    layout = FILE_ROWS.get(ingest.format)
    if layout is not None and is_csv(glob):
        return CsvLog(glob, ingest.max_files_per_batch, source.tables, ingest.csv, FILE_OPERATIONS[layout])
    kind = ParquetLog if layout is not None and glob.endswith(".parquet") else FileLog  # JSON is read as lines
    return kind(glob, ingest.max_files_per_batch, source.tables)
