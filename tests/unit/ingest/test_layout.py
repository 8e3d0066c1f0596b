"""Declarations, layouts and routing of ODS tables: no JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlmesh_like.errors import IngestError, Location, ProjectError, UsageError
from sqlmesh_like.ingest import net
from sqlmesh_like.ingest.check import check_source
from sqlmesh_like.ingest.debezium import Shape
from sqlmesh_like.ingest.layout import Layout, check_declaration, settle
from sqlmesh_like.ingest.mark import mark_of
from sqlmesh_like.ingest.report import IngestReport, TableReport
from sqlmesh_like.ingest.route import route
from sqlmesh_like.ingest.types import Field
from sqlmesh_like.names import Column, Schema, TableName
from sqlmesh_like.project.spec import IngestSource, IngestTable, ParsedProject, PartitionBy, Source, SourceTable

AT = Location("models/ods/sources.yml", 9, 5)
INGEST = IngestTable("db", "t", ("id",), ("m",), PartitionBy("c", "yyyyMM", "year_month"))


def table(name: str = "t", columns: Schema = (), **changed: Any) -> SourceTable:
    ingest = replace(INGEST, **{"table": name, **changed})
    return SourceTable(
        f"source.p.s.{name}", "s", name, TableName("ods", name), None, "hudi", ingest, columns, "", (), {}, AT
    )


def source(*tables: SourceTable, **stream: Any) -> Source:
    return Source("shop", "ods", replace(IngestSource("debezium", files="in/*.jsonl"), **stream), tables, "", AT)


def settled(declared: SourceTable, stored: Schema, *fields: Field) -> Layout:
    assert declared.ingest is not None
    return settle(declared, declared.ingest, stored, [Shape(False, fields)])[0]


FIELDS = (Field("id", "int"), Field("m", "timestamp"), Field("c", "timestamp"))


def test_a_table_keeps_its_columns_and_takes_new_ones() -> None:
    stored = (
        Column("_hoodie_record_key", "string"),
        Column("id", "int"),
        Column("old", "date"),
        Column("year_month", "string"),
    )
    layout = settled(table(), stored, *FIELDS, Field("ID", "bigint"))
    assert layout.columns == (
        Column("id", "bigint"),
        Column("old", "date"),
        Column("m", "timestamp"),
        Column("c", "timestamp"),
    )


def test_a_declared_type_wins() -> None:
    declared = table(columns=(Column("m", "TIMESTAMP"), Column("c", "date")))
    layout = settled(declared, (), Field("id", "int"), Field("m", "string"), Field("c", "string", is_inferred=True))
    assert [column.type for column in layout.columns] == ["int", "timestamp", "date"]


def test_hidden_columns_order_rows_and_null_is_smallest() -> None:
    layout = settled(table(), (), *FIELDS)
    assert layout.order_columns == ("_sml_order_0", "_sml_position")
    assert layout.orders("row")[0].startswith("coalesce(unix_micros(row.`m`), cast('-9223372036854775808'")
    assert settled(table(order_by=()), (), *FIELDS).order_columns == ()


def test_a_null_partition_has_a_name_of_its_own() -> None:
    assert "then '__null__'" in settled(table(), (), *FIELDS).partition("row")


@pytest.mark.parametrize(
    ("changed", "field", "problem"),
    [
        ({}, Field("a-b", "int"), "column 'a-b' of ods.t cannot be a column of a Hudi table"),
        ({}, Field("_sml_x", "int"), "column '_sml_x'"),
        ({}, Field("year_month", "string"), "has a column 'year_month' already"),
        ({"order_by": ("modified",)}, Field("modify", "int"), "order_by column 'modified' of ods.t is in no event"),
        ({"order_by": ("f",)}, Field("f", "double"), "order_by column 'f' of ods.t is double"),
        ({"partition_by": PartitionBy("n", "yyyyMM", "x")}, Field("n", "int"), "partition column 'n' of ods.t is int"),
        (
            {"partition_by": PartitionBy("cc", "yyyyMM", "x")},
            Field("z", "int"),
            "partition column 'cc' of ods\\.t is in no",
        ),
    ],
)
def test_events_that_do_not_fit_the_declaration_are_refused(changed: Any, field: Field, problem: str) -> None:
    with pytest.raises(IngestError, match=problem):
        net.versions(settled(table(**changed), (), *FIELDS, field))


def test_an_order_that_changes_its_type_is_refused() -> None:
    stored = (Column("id", "int"), Column("m", "bigint"), Column("_sml_order_0", "bigint"))
    with pytest.raises(IngestError, match=r"order_by column of ods\.t changed from bigint to string"):
        settled(table(), stored, Field("id", "int"), Field("m", "string"))


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        (table(partition_by=PartitionBy("c", "yyyy/MM", "p")), "format 'yyyy/MM' is not safe in a path"),
        (table(partition_by=PartitionBy("c", "'", "p")), "is not safe in a path"),
        (table(partition_by=PartitionBy("c", None, "c")), "partition column of 't' needs its own name"),
        (table(columns=(Column("a", "strin"),)), "unknown type 'strin'"),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_place(declared: SourceTable, problem: str) -> None:
    with pytest.raises(ProjectError, match=problem) as caught:
        check_declaration(declared)
    assert str(caught.value).startswith("models/ods/sources.yml:9:5: ")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        ({"files": None, "kafka": {}}, "kafka of source 'shop' is not supported yet"),
        ({"format": "maxwell"}, "format maxwell of source 'shop' is not supported yet"),
        ({"on_schema_change": "fail"}, "on_schema_change: fail of source 'shop' is not supported yet"),
        ({"max_events_per_batch": 5}, "max_events_per_batch for files"),
        ({"files": "nowhere/*.jsonl"}, "there is no folder nowhere"),
    ],
)
def test_what_is_not_supported_is_said_before_anything_starts(tmp_path: Path, stream: Any, problem: str) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(UsageError, match=problem):
        check_source(project(tmp_path), source(**stream))


def test_a_good_source_gives_the_absolute_glob(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert check_source(project(tmp_path), source(table())) == f"{tmp_path}/in/*.jsonl"


def project(root: Path) -> ParsedProject:
    return ParsedProject("p", root, "", None, "target", (), {}, (), (), (), (), ())


def test_events_go_to_the_declared_table_by_name_or_pattern() -> None:
    shop = source(table("t"), table("shards", table=r"user_\d+"), table("any", table="u", database=None))
    found = [route(shop, *names) for names in (("db", "t"), ("db", "user_17"), ("other", "u"), (None, "u"))]
    assert [each.name if each else None for each in found] == ["t", "shards", "any", "any"]
    assert [route(shop, *names) for names in (("other", "t"), ("db", "tt"), ("db", None))] == [None] * 3


def test_events_that_two_tables_claim_are_refused() -> None:
    with pytest.raises(ProjectError, match="belong to both 't' and 'all'"):
        route(source(table("t"), table("all", table=".*")), "db", "t")


def test_a_batch_is_known_by_query_and_files_not_by_its_number() -> None:
    files = [(2, "b"), (1, "a")]
    assert mark_of("q", 1, files).digest == mark_of("q", 2, reversed_files := files[::-1]).digest
    assert reversed_files != files
    assert mark_of("q", 1, [*files, (3, "c")]).digest != mark_of("q", 1, files).digest


def test_a_table_without_commits_has_no_batch(tmp_path: Path) -> None:
    assert not mark_of("q", 1, [(1, "a")]).is_on(str(tmp_path))


def test_reports_of_batches_add_up_and_the_last_error_stands() -> None:
    name = TableName("ods", "t")
    both = TableReport(name, 1, 2, 3, 0.5).plus(TableReport(name, 10, 20, 30, 0.25, "broken"))
    assert (both.upserts, both.deletes, both.late, both.seconds, both.error) == (11, 22, 33, 0.75, "broken")
    assert IngestReport("shop", (both,)).failed
