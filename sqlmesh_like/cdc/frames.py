"""Frames of Spark or of this process, from SQL texts: a few literal rows, and queries over other frames.

Rows of Spark are created within the JVM: `createDataFrame` pickles them and starts Python processes to read them, which
takes half a second of each small batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias, cast
from uuid import uuid4

from sqlmesh_like.cdc.formats.source_types import sql_literal
from sqlmesh_like.cdc.in_process.queries import query_rows
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frame: TypeAlias = "DataFrame | RowFrame"
"""Rows of a batch, in Spark or in this process (`in_process`); the same texts of SQL run over both."""


def literal_frame(spark: SparkSession, rows: Sequence[Sequence[str | int | None]], schema: str) -> DataFrame:
    """A frame of these rows. `schema`: Spark DDL of strings and integers, e.g. `file STRING, size BIGINT`."""
    names = [column.split()[0] for column in schema.split(",")]
    text = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    struct = ", ".join(f"{name}: {kind}" for name, kind in (column.split() for column in schema.split(",")))
    return spark.sql(f"select inline(from_json({sql_literal(text)}, 'array<struct<{struct}>>'))")


def frame_query(text: str, **frames: Frame) -> Frame:
    """Run a query in which `{name}` refers to the frame of that name; other braces are left as they are.

    All frames are of one kind, and there is one. pyspark's own `sql(text, name=frame)` formats the whole text: a brace
    in an event's value raises KeyError.
    """
    named = re.compile(rf"\{{({'|'.join(map(re.escape, frames))})\}}")
    here = {name: frame for name, frame in frames.items() if isinstance(frame, RowFrame)}
    if here:
        return RowFrame(*query_rows(named.sub(r"\1", text), {name: (f.columns, f.rows) for name, f in here.items()}))
    views = {name: f"_sml_frame_{uuid4().hex}" for name in frames}
    spark: SparkSession | None = None
    for name, frame in frames.items():
        in_spark(frame).createOrReplaceTempView(views[name])
        spark = in_spark(frame).sparkSession
    assert spark is not None
    try:
        return spark.sql(named.sub(lambda result: views[result[1]], text))
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)


def union_frames(frames: Sequence[Frame]) -> Frame:
    """The rows of all frames, which are of one kind and have the same columns."""
    if all(isinstance(frame, RowFrame) for frame in frames):
        return reduce(RowFrame.unionByName, cast("Sequence[RowFrame]", frames))
    return reduce(lambda left, right: left.unionByName(right), map(in_spark, frames))


def in_spark(frame: Frame, what: str = "a step that only Spark does") -> DataFrame:
    """The frame for `what` only Spark does. Raises NotProvenError for rows of this process."""
    if isinstance(frame, RowFrame):
        raise NotProvenError(what)
    return frame


@dataclass(frozen=True)
class HeldFrame:
    """A frame in memory until `release`. `origin`: what Spark has cached for it; None: nothing."""

    frame: Frame
    origin: DataFrame | None = None

    def release(self) -> None:
        if self.origin is not None:
            self.origin.unpersist()


def held(frame: Frame) -> HeldFrame:
    """Keep a frame that is read several times in memory; the caller releases it."""
    if isinstance(frame, RowFrame):
        return HeldFrame(frame)
    from sqlmesh_like.spark.frames.cached_frame import cached

    kept = cached(frame)
    return HeldFrame(kept.frame, kept.origin)
