"""Merging the log files of a merge-on-read table into new base files. Owns the calls of Hudi's procedure."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sqlmesh_like.hudi.stores.commit_guard import guarded_commit
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.instant import require_clock_past
from sqlmesh_like.hudi.writer.open_commit import finish_interrupted
from sqlmesh_like.sql_text import spark_literal

_OPTIONS = "hoodie.compact.inline.max.delta.commits=1,hoodie.metadata.enable=false,hoodie.embed.timeline.server=false"
"""One delta commit is enough for a compaction."""


def compact(session: SparkSession, uri: str) -> int:
    """Compact all file groups that have log files, and finish an interrupted compaction. Returns how many groups.

    Raises RetryableError where the call's locks are lost.
    """
    finish_interrupted(uri)
    require_clock_past(Timeline(uri))
    call = f"path => {spark_literal(uri)}, options => '{_OPTIONS}'"
    with guarded_commit(uri, session.sparkContext.cancelAllJobs):
        session.sql(f"call run_compaction(op => 'schedule', {call})").collect()
        done = session.sql(f"call run_compaction(op => 'run', {call})").collect()
    return sum(int(row["operation_size"]) for row in done)
