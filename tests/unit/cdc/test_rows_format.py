"""Rows instead of change events: upserted by their key, or appended."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from sqlmesh_like.cdc.decode.events import events_of
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.sources.csv_files import csv_row_files
from sqlmesh_like.cdc.sources.row_files import Listed
from sqlmesh_like.errors import IngestError, ProjectError
from sqlmesh_like.project.nodes import CsvFormat, IngestSource
from tests.unit.cdc.test_small_batches import ONE, TWO, Lake, declared, spark

TYPES = {"id": "bigint", "name": "string", "price": "decimal(9,2)"}


def test_a_row_replaces_the_one_that_has_its_key(tmp_path: Path) -> None:
    """Plain ones, and those of a converter that writes their schema; an empty line is none."""
    lake = Lake(tmp_path, (declared(types=TYPES, database=None, table="landing"),), "rows")
    lake.ingest({**ONE, "Op": "D", "__op": "d"}, "", TWO)
    fields = [{"field": "id", "type": "int64"}, {"field": "name", "type": "string", "optional": True}]
    lake.ingest({"schema": {"type": "struct", "fields": fields}, "payload": {"id": 1, "name": "new"}}, {"id": 4})
    assert [{name: row[name] for name in TYPES} for row in lake.rows()] == [
        {"id": 1, "name": "new", "price": None},
        {**TWO, "price": Decimal("0.10")},
        {"id": 4, "name": None, "price": None},
    ]
    assert lake.commits() == 2


def test_rows_without_a_key_are_appended(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(types={"id": "int"}, database=None, table="landing", primary_key=()),), "rows")
    lake.ingest({"id": 1}, {"id": 1})
    lake.ingest({"id": 1})
    assert [row["id"] for row in lake.rows()] == [1] * 3


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("id,Name,name", r"1\.csv has the column 'name' twice"),
        ('id,"' + "x" * 200_000, "record of .*1.csv cannot be read"),
        ('id,"name', r"1\.csv:1: a quote that is not closed"),
    ],
)
def test_a_file_whose_columns_are_not_certain_is_named(tmp_path: Path, header: str, why: str) -> None:
    (path := tmp_path / "1.csv").write_text(f"{header}\n1,2,3\n", encoding="utf-8")
    with pytest.raises(IngestError, match=why):
        csv_row_files(spark, [Listed(str(path), 1, None, "t")], CsvFormat(True), lambda _: None, "_sml_op")  # type: ignore[arg-type]


def test_a_message_without_a_value_deletes_the_row_of_its_key() -> None:
    lines = [
        ("null", '{"id": 3}', "t"),
        (None, '{"schema": {"type": "struct"}, "payload": {"id": 4}}', "t"),
        ("null", "3", "t"),
        ("", None, "t"),
        ('{"id": 5}', None, None),
        ("[1]", None, "t"),
        ('{"schema": {"type": "x"}, "payload": 7}', None, "t"),
    ]
    columns = ("file", "line", "position", "value", "logged_at")
    columns += ("log_database", "log_table", "log_schema", "log_key")
    rows = [("f", str(n), str(n), value, n, None, table, None, key) for n, (value, key, table) in enumerate(lines)]
    with events_of(RowFrame(columns, rows), IngestSource("rows")) as events:
        read = [(row["kind"], row["value"], row["reason"]) for row in events.collect()]
    assert read == [
        ("delete", '{"_sml_op":"D","id": 3}', None),
        ("delete", '{"_sml_op":"D","id":4}', None),
        ("bad", "null", "a message without a value, and its key is not a JSON object: which row is deleted?"),
        ("tombstone", "", None),
        ("bad", '{"id": 5}', "no table: neither a topic nor a folder of its name"),
        ("bad", "[1]", "not a JSON object of a row"),
        ("bad", '{"schema": {"type": "x"}, "payload": 7}', "`payload` is not a row"),
    ]


def test_partial_updates_are_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(updates="partial"),), "rows")
    with pytest.raises(ProjectError, match="whole rows"):
        lake.ingest({"id": 1})
