"""The columns that base files were written with. Owns who says them: the commit or, where it is archived, a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.commits import Slice
from sqlmesh_like.hudi.spark_schema import spark_schema_of
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import Schema


def paths_by_schema(timeline: Timeline, slices: Iterable[Slice]) -> Mapping[Schema, list[str]]:
    """Paths of base files, relative to the table, by the columns that they were written with.

    All files of a commit have the same. Raises NodeError where none is told.
    """
    by_instant: dict[str, list[str]] = defaultdict(list)
    for file_slice in slices:
        by_instant[file_slice.instant].append(file_slice.path)
    entries: dict[Schema, list[str]] = defaultdict(list)
    for instant, paths in by_instant.items():
        entries[_schema(timeline, instant, paths[0])] += paths
    return entries


def _schema(timeline: Timeline, instant: str, path: str) -> Schema:
    if written := timeline.schema_json(f"{instant}_"):
        return schema_of(written)
    footer = timeline.footer(path)
    if avro := footer.get("parquet.avro.schema"):
        return schema_of(avro)
    if spark := footer.get("org.apache.spark.sql.parquet.row.metadata"):
        return spark_schema_of(spark)
    raise NodeError(f"{timeline.uri}/{path} does not say its schema", hint="rewrite the table once")
