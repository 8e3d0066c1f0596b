"""Record keys of rows for which no plan derives one. Owns keys by content."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from sqlmesh_like.names import KEY


def keyed_by_content(frame: DataFrame) -> DataFrame:
    """Key rows by a hash of their content and a number among equal rows: unchanged rows keep their keys."""
    content = F.to_json(F.struct(*[F.col(f"`{name}`") for name in frame.columns]), {"ignoreNullFields": "false"})
    hashed = frame.withColumn(KEY, F.sha2(content, 256))
    among_equals = F.row_number().over(Window.partitionBy(KEY).orderBy(KEY))
    return hashed.withColumn(KEY, F.concat_ws(".", F.col(KEY), among_equals.cast("string")))
