"""Rows of a Hudi table as a reader that is not ours sees them: hudi-rs, and Hudi's own for a release.

hudi-rs needs no Spark job, each of which costs the suite more than most assertions; `make test-all` reads by Spark.
https://hudi.apache.org/docs/hudi_rs
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

from sqlmesh_like.names import is_hidden
from tests.levels import IS_DEEP, IS_RELEASE

_TWO_ORDERING_FIELDS = re.compile(r"^hoodie\.table\.ordering\.fields=.*,", re.MULTILINE)
Rows = list[tuple[Any, ...]]


def stored_rows(spark: SparkSession, uri: str, columns: Sequence[str] = ()) -> Rows:
    """The rows with these columns, or with all but hidden ones, in no particular order; values are those of PySpark."""
    names = [name.strip("`") for name in columns]
    rows = None if IS_RELEASE or IS_DEEP else _read_without_spark(uri, names)
    return _read_by_spark(spark, uri, names) if rows is None else rows


def _read_without_spark(uri: str, columns: Sequence[str]) -> Rows | None:
    """None where hudi-rs 0.5 does not read as Hudi.

    That is: two ordering fields, names beyond ASCII, log files, nested values, files of several schemas.
    """
    if _TWO_ORDERING_FIELDS.search(Path(uri, ".hoodie/hoodie.properties").read_text()):
        return None
    table = HudiTableBuilder.from_base_uri(uri).build()
    if table.is_mor:
        return None
    try:
        schema, batches = table.get_schema(), table.read()
    except Exception as error:  # hudi-rs exports no class of its errors
        if "Invalid field name" in str(error):
            return None
        raise
    names = list(columns) or [name for name in schema.names if not is_hidden(name)]
    is_plain = all(not pa.types.is_nested(schema.field(name).type) for name in names)
    if not is_plain or any(batch.schema.field(name) != schema.field(name) for batch in batches for name in names):
        return None
    columns_of = ((batch[name].to_pylist() for name in names) for batch in batches)
    return [tuple(map(_value, row)) for lists in columns_of for row in zip(*lists, strict=True)]


def _read_by_spark(spark: SparkSession, uri: str, columns: Sequence[str]) -> Rows:
    frame = spark.read.format("hudi").load(uri)
    names = columns or [name for name in frame.columns if not is_hidden(name)]
    return [tuple(row) for row in frame.select(*(f"`{name}`" for name in names)).collect()]


def _value(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.replace(tzinfo=None)  # sessions are in UTC
    return bytearray(value) if isinstance(value, bytes) else value
