"""A table whose files became too many or too large gets another number of buckets. Owns the rewrite of its rows.

With another number of buckets an upsert would look for a key in the wrong file and duplicate it, so all rows move in
one commit, which also records the number. It is a service like clustering: no row changes, so no frontier moves, and
consumers need not read anything again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.bucket_count import BUCKETS_KEY, CARRIED, best_buckets, known_buckets
from sqlmesh_like.hudi.commits import REWRITE, STATE_PREFIX
from sqlmesh_like.hudi.file_sizing import tasks_for
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, KEY
from sqlmesh_like.plan.history import RECORD_KEY, TableRecord
from sqlmesh_like.run.ports import Rebucketed
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.tables.hudi_table import HudiTable, write


def rebucket(session: SparkSession, uri: str, options: Mapping[str, str]) -> Rebucketed | None:
    """Rewrite a table whose size calls for another number of buckets; None where it is kept as it is.

    Raises RetryableError while a commit is under way.
    """
    timeline = Timeline(uri)
    frontier, known = timeline.frontier, known_buckets(timeline)
    if frontier is None or known is None or timeline.properties.get("hoodie.table.recordkey.fields") != KEY:
        return None
    newest = next(commit for commit in timeline.newest_first() if commit.is_data)
    if timeline.pending or newest.instant.frontier != frontier:
        raise RetryableError(f"a commit to {uri} is under way or was cut short", hint="let its writer run once more")
    if not newest.is_ours:
        return None
    before = LakeHistory().volume(uri, frontier)
    buckets = best_buckets(before, known, options)
    if buckets == known or not before.rows:
        return None
    feed = change_feed(session, timeline)
    names = [column.name for column in feed.schema(frontier) if not column.name.startswith("_hoodie_")]
    rows = feed.current(frontier, hidden=True).select(*[F.col(f"`{name}`") for name in names])
    table = replace(table_as_it_is(timeline, options, buckets), tasks=tasks_for(before.bytes, options))
    metadata = {**carried_metadata(timeline, buckets), REWRITE: f"{known} buckets → {buckets}"}
    write(rows.withColumn(IS_DELETED, F.lit(False)), table, "insert_overwrite_table", metadata)
    after = LakeHistory().volume(uri, frontier)
    return Rebucketed((known, buckets), (before.files, after.files))


def table_as_it_is(timeline: Timeline, options: Mapping[str, str], buckets: int) -> HudiTable:
    """The layout of a table as its properties have it."""
    properties = timeline.properties
    ordering = properties.get("hoodie.table.ordering.fields", "")
    return HudiTable(
        uri=timeline.uri,
        name=properties["hoodie.table.name"],
        key=(KEY,),
        partition_field=next(iter(timeline.partition_fields), None),
        ordering=tuple(ordering.split(",")) if ordering else (),
        table_type="cow" if timeline.is_cow else "mor",
        buckets=buckets,
        options=options,
    )


def carried_metadata(timeline: Timeline, buckets: int) -> dict[str, str]:
    """Metadata of the table that its newest commit must have, with the new number of buckets."""
    text = {key: timeline.extra(STATE_PREFIX + key) for key in CARRIED}
    if record := timeline.extra(STATE_PREFIX + RECORD_KEY):
        text[RECORD_KEY] = replace(TableRecord.from_json(record), buckets=buckets).to_json()
    if timeline.extra(STATE_PREFIX + BUCKETS_KEY) is not None:
        text[BUCKETS_KEY] = str(buckets)
    return {key: value for key, value in text.items() if value is not None}
