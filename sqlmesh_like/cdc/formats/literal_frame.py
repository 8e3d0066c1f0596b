"""Spark frames from SQL texts: a few literal rows, and queries over other frames.

Rows are created within the JVM: `createDataFrame` pickles them and starts Python processes to read them, which takes
half a second of each small batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.cdc.formats.source_types import sql_literal


def literal_frame(spark: SparkSession, rows: Sequence[Sequence[str | int | None]], schema: str) -> DataFrame:
    """A frame of these rows. `schema`: Spark DDL of strings and integers, e.g. `file STRING, size BIGINT`."""
    names = [column.split()[0] for column in schema.split(",")]
    text = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    struct = ", ".join(f"{name}: {kind}" for name, kind in (column.split() for column in schema.split(",")))
    return spark.sql(f"select inline(from_json({sql_literal(text)}, 'array<struct<{struct}>>'))")


def frame_query(spark: SparkSession, text: str, **frames: DataFrame) -> DataFrame:
    """Run a query in which `{name}` refers to the frame of that name; other braces are left as they are.

    pyspark's own `sql(text, name=frame)` formats the whole text: a brace in an event's value raises KeyError.
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
