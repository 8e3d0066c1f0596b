"""Record keys of rows for which no plan gives one. Owns keys by content."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from sqlmesh_like.names import KEY


def keyed_by_content(frame: DataFrame) -> DataFrame:
    """Rows keyed by a hash of their content and a number among equals: what did not change keeps its key."""
    content = F.to_json(F.struct(*[F.col(f"`{name}`") for name in frame.columns]), {"ignoreNullFields": "false"})
    hashed = frame.withColumn(KEY, F.sha2(content, 256))
    among_equals = F.row_number().over(Window.partitionBy(KEY).orderBy(KEY))
    return hashed.withColumn(KEY, F.concat_ws(".", F.col(KEY), among_equals.cast("string")))
