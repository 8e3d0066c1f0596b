"""Spark frames from SQL texts: of a few rows that are known here, and of queries over other frames.

Rows are created within the JVM: `createDataFrame` pickles them and starts processes of Python that read them, which
takes half a second of each small batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.cdc.formats.source_types import sql_literal


def literal_frame(spark: SparkSession, rows: Sequence[Sequence[str | int]], schema: str) -> DataFrame:
    """The rows as a frame; `schema` is Spark's, of texts and whole numbers, e.g. `file STRING, size BIGINT`."""
    names = [column.split()[0] for column in schema.split(",")]
    text = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    struct = ", ".join(f"{name}: {kind}" for name, kind in (column.split() for column in schema.split(",")))
    return spark.sql(f"select inline(from_json({sql_literal(text)}, 'array<struct<{struct}>>'))")


def frame_query(spark: SparkSession, text: str, **frames: DataFrame) -> DataFrame:
    """The frame of a query in which `{name}` stands for the frame of this name, and no other brace has a meaning.

    pyspark's own `sql(text, name=frame)` formats the whole text: braces in a value of an event end it by KeyError.
    """
    views = {name: f"_sml_frame_{uuid4().hex}" for name in frames}
    for name, view in views.items():
        frames[name].createOrReplaceTempView(view)
    named = re.compile(rf"\{{({'|'.join(map(re.escape, views))})\}}")
    try:
        return spark.sql(named.sub(lambda result: views[result[1]], text))
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)
