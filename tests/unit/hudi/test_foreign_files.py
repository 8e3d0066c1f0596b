"""Files of other writers that DuckDB and pyarrow would misread: Spark reads these tables."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.table_reader import whole_files
from sqlmesh_like.plan.history import TableRecord
from tests.local_lake import make_table

ROWS = pa.table({"d": [date(1, 1, 1)], "at": pa.array([datetime(2024, 1, 1)], pa.timestamp("us", "UTC")), "s": ["é"]})
SPARK = {"org.apache.spark.version": "3.5.1"}
LEGACY = {**SPARK, "org.apache.spark.legacyDateTime": "", "org.apache.spark.timeZone": "UTC"}
BYTES = ROWS.set_column(2, "s", ROWS["s"].cast(pa.binary()))


def is_read_without_spark(root: Path, rows: pa.Table, record: str | None = None, **options: Any) -> bool:
    """Whether all readers without Spark agree to read a table whose one file has these rows."""
    make_table(root, ROWS, record)
    (path,) = root.glob("p=1/*.parquet")
    key = parquet.read_table(path).select(["_sml_key"])
    stored = rows.add_column(0, "_sml_key", key[0]).replace_schema_metadata(rows.schema.metadata)
    parquet.write_table(stored, path, **options)
    state = LakeHistory().state(str(root))
    table = local_table(state, MergedSlices(), hidden=False)
    assert table is not None and state.frontier is not None
    is_read = whole_files(state) is not None
    if is_read:
        table.rows(state.frontier)
    else:
        with pytest.raises(Unproven):
            table.rows(state.frontier)
    return is_read


@pytest.mark.parametrize("footer", [LEGACY, {"org.apache.spark.version": "2.4.8"}])
def test_days_of_the_julian_calendar_are_read_by_spark(tmp_path: Path, footer: dict[str, str]) -> None:
    assert not is_read_without_spark(tmp_path, ROWS.replace_schema_metadata(footer))


def test_texts_that_are_stored_as_bytes_are_read_by_spark(tmp_path: Path) -> None:
    assert not is_read_without_spark(tmp_path, BYTES)


def test_timestamps_as_int96_are_read_by_spark(tmp_path: Path) -> None:
    assert not is_read_without_spark(tmp_path, ROWS, use_deprecated_int96_timestamps=True)


@pytest.mark.parametrize("footer", [{}, SPARK])
def test_usual_files_of_others_need_no_spark(tmp_path: Path, footer: dict[str, str]) -> None:
    assert is_read_without_spark(tmp_path, ROWS.replace_schema_metadata(footer))


def test_files_of_this_project_are_not_looked_at(tmp_path: Path) -> None:
    """Their writers set no other calendar, and each look is a request on a store."""
    record = TableRecord("model.p.t", "f", {}, "2024-01-01T00:00:00+00:00", "full_refresh")
    assert is_read_without_spark(tmp_path, ROWS.replace_schema_metadata(LEGACY), record.to_json())
