"""Removing history: file slices that no retained commit needs, and their commits. Owns the calls into Hudi's client.

Hudi's SQL procedures require a table of the catalog; its write client requires only a path.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.stores.commit_guard import guarded_commit
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.instant import require_clock_past
from sqlmesh_like.hudi.writer.open_commit import finish_interrupted

_ARCHIVE_SLACK = 2


def clean_history(session: SparkSession, uri: str, retain: int) -> None:
    """Keep the newest `retain` data commits of a table readable as they were, and drop what only older ones need.

    Raises RetryableError where the call's locks are lost.
    """
    finish_interrupted(uri)
    require_clock_past(Timeline(uri))
    options = {
        "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
        "hoodie.clean.automatic": "true",
        "hoodie.clean.commits.retained": str(retain),
        # Hudi requires that the timeline keeps more commits than the cleaner.
        "hoodie.archive.automatic": "true",
        "hoodie.keep.min.commits": str(retain + _ARCHIVE_SLACK),
        "hoodie.keep.max.commits": str(retain + 2 * _ARCHIVE_SLACK),
        "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false",
    }
    jvm = session.sparkContext._jvm
    assert jvm is not None, "a running session has a JVM"
    scala_options = jvm.PythonUtils.toScalaMap(options)
    java_session = session._jsparkSession
    client = jvm.org.apache.hudi.HoodieCLIUtils.createHoodieWriteClient(
        java_session, uri, scala_options, jvm.scala.Option.empty()
    )
    try:
        with guarded_commit(uri, session.sparkContext.cancelAllJobs):
            client.clean()
            fault_point("maintain.cleaned")
            client.archive()
            fault_point("maintain.archived")
    finally:
        client.close()
