"""A few rows that are known here as a frame of Spark. Owns doing so within the JVM.

`createDataFrame` pickles rows and starts processes of Python to read them: half a second of each small batch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.ingest.types import literal


def told(spark: SparkSession, rows: Sequence[Sequence[str | int]], schema: str) -> DataFrame:
    """The rows as a frame; `schema` is Spark's, of texts and whole numbers, e.g. `file STRING, size BIGINT`."""
    names = [column.split()[0] for column in schema.split(",")]
    text = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    struct = ", ".join(f"{name}: {kind}" for name, kind in (column.split() for column in schema.split(",")))
    return spark.sql(f"select inline(from_json({literal(text)}, 'array<struct<{struct}>>'))")
