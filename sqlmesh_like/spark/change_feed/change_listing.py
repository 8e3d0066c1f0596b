"""A change for people. Owns what each signed row is called."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from sqlmesh_like.names import KEY, WEIGHT


def described(signed: DataFrame) -> DataFrame:
    """Signed rows of a table as `_change` and its columns; what was written again as it was is left out.

    An update is a key that leaves and enters. Rows whose values repeat under one key cancel out one by one.
    """
    columns = [f"`{name}`" for name in signed.columns if name not in (KEY, WEIGHT)]
    netted = signed.groupBy(f"`{KEY}`", *columns).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)
    row = Window.partitionBy(KEY)
    is_update = (F.min(WEIGHT).over(row) < 0) & (F.max(WEIGHT).over(row) > 0)
    called = (
        F.when(is_update & (F.col(WEIGHT) < 0), "update_before")
        .when(is_update, "update_after")
        .when(F.col(WEIGHT) < 0, "delete")
        .otherwise("insert")
    )
    named = netted.withColumn("_change", called).orderBy(KEY, WEIGHT)
    return named.select("_change", *columns)
