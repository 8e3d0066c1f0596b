"""The context that all batches of a source share. `ingest_run` creates it; batches and catching up read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.cdc.sources.event_log import Log
from sqlmesh_like.cdc.sources.source_paths import SourcePaths

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class IngestContext:
    """One source in one warehouse. `root`: the project's folder. `log`: where the source's events are read from.

    `session`: gives Spark, which it may have to start. `registry`: has the schemas of its messages; None where they are
    JSON.
    """

    session: Callable[[], SparkSession]
    place: SourcePaths
    root: Path
    log: Log
    registry: SchemaRegistry | None = None

    @property
    def spark(self) -> SparkSession:
        return self.session()
