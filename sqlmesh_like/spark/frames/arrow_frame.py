"""Arrow tables as frames, and frames as Arrow tables, for work that this process and Spark share."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def arrow_frame(session: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Rows as a frame that is part of its query: neither a job nor a Python worker makes it. Times are in UTC.

    The columns of `rows` are taken in the schema's order, whatever their names.
    """
    table = rows.rename_columns(schema.names).cast(to_arrow_schema(schema))
    jvm = session._jvm
    assert jvm is not None, "a running session has a JVM"
    with tempfile.TemporaryDirectory(prefix="sml-") as folder:
        path = Path(folder, "rows.arrow")
        with pa.ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table)
        batches = jvm.PythonSQLUtils.readArrowStreamFromFile(str(path))
        return DataFrame(jvm.PythonSQLUtils.toDataFrame(batches, schema.json(), session._jsparkSession), session)


def arrow_rows(frame: DataFrame, most: int) -> pa.Table | None:
    """The rows of a frame; None where there are more than `most`."""
    shown = frame.limit(most + 1)
    batches = shown._collect_as_arrow()
    if not batches:  # without rows there is no batch that would state the columns
        return to_arrow_schema(shown.schema).empty_table()
    arrived = pa.Table.from_batches(batches)
    return arrived if arrived.num_rows <= most else None
