"""Declarations, layouts and routing of ODS tables: no JVM."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlmesh_like.cdc.formats.debezium import DEBEZIUM_MESSAGES, PLAIN
from sqlmesh_like.cdc.formats.encoding import Encoding
from sqlmesh_like.cdc.formats.row_images import EventShape
from sqlmesh_like.cdc.formats.source_types import SourceField
from sqlmesh_like.cdc.merge import merge_sql
from sqlmesh_like.cdc.report import IngestReport, TableReport
from sqlmesh_like.cdc.schema.creation_contract import check_creation_contract, creation_contract
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout, check_declaration
from sqlmesh_like.cdc.schema.schema_evolution import EvolvedSchema, Policy, evolve_schema
from sqlmesh_like.cdc.sources.batch_marker import BatchMarker
from sqlmesh_like.cdc.sources.offset_range import Offsets, files_of, offset_range_from
from sqlmesh_like.cdc.sources.route import route
from sqlmesh_like.cdc.sources.source_check import check_source, files_glob
from sqlmesh_like.errors import IngestError, Location, ProjectError, UsageError
from sqlmesh_like.names import Column, Schema, TableName
from sqlmesh_like.project.nodes import IngestSource, IngestTable, ParsedProject, PartitionBy, Source, SourceTable

AT = Location("models/ods/sources.yml", 9, 5)
INGEST = IngestTable("db", "t", ("id",), ("m",), PartitionBy("c", "yyyyMM", "year_month"))


def table(name: str = "t", columns: Schema = (), **changed: Any) -> SourceTable:
    ingest = replace(INGEST, **{"table": name, **changed})
    return SourceTable(
        f"source.p.s.{name}", "s", name, TableName("ods", name), None, "hudi", ingest, columns, "", (), {}, AT
    )


def source(*tables: SourceTable, **stream: Any) -> Source:
    return Source("shop", "ods", replace(IngestSource("debezium", files="in/*.jsonl"), **stream), tables, "", AT)


def settled(declared: SourceTable, stored: Schema, *fields: SourceField) -> OdsLayout:
    assert declared.ingest is not None
    return evolve_schema(declared, declared.ingest, stored, [EventShape(DEBEZIUM_MESSAGES[PLAIN], fields)]).layout


FIELDS = (SourceField("id", "int"), SourceField("m", "timestamp"), SourceField("c", "timestamp"))


def test_a_table_keeps_its_columns_and_takes_new_ones() -> None:
    stored = (
        Column("_hoodie_record_key", "string"),
        Column("id", "int"),
        Column("old", "date"),
        Column("year_month", "string"),
    )
    layout = settled(table(), stored, *FIELDS, SourceField("ID", "bigint"))
    assert layout.columns == (
        Column("id", "bigint"),
        Column("old", "date"),
        Column("m", "timestamp"),
        Column("c", "timestamp"),
    )


@pytest.mark.checklist(35)
def test_a_declared_type_wins() -> None:
    declared = table(columns=(Column("m", "TIMESTAMP"), Column("c", "date")))
    layout = settled(
        declared, (), SourceField("id", "int"), SourceField("m", "string"), SourceField("c", "string", is_inferred=True)
    )
    assert [column.type for column in layout.columns] == ["int", "timestamp", "date"]


def test_hidden_columns_order_rows_and_null_is_smallest() -> None:
    layout = settled(table(), (), *FIELDS)
    assert layout.order_columns == ("_sml_order_0", "_sml_position")
    assert layout.orders("row")[0].startswith("coalesce(unix_micros(row.`m`), cast('-9223372036854775808'")
    assert settled(table(order_by=()), (), *FIELDS).order_columns == ()


def test_a_null_partition_has_a_name_of_its_own() -> None:
    assert "then '__null__'" in settled(table(), (), *FIELDS).partition("row")


@pytest.mark.checklist(12, 21)
@pytest.mark.parametrize(
    ("changed", "field", "problem"),
    [
        ({}, SourceField("_sml_x", "int"), "column '_sml_x'"),
        ({}, SourceField("year_month", "string"), "has a column 'year_month' already"),
        (
            {"order_by": ("modified",)},
            SourceField("modify", "int"),
            "order_by column 'modified' of ods.t is in no event",
        ),
        ({"order_by": ("f",)}, SourceField("f", "double"), "order_by column 'f' of ods.t is double"),
        (
            {"partition_by": PartitionBy("n", "yyyyMM", "x")},
            SourceField("n", "int"),
            "partition column 'n' of ods.t is int",
        ),
        (
            {"partition_by": PartitionBy("cc", "yyyyMM", "x")},
            SourceField("z", "int"),
            "partition column 'cc' of ods\\.t is in no",
        ),
    ],
)
def test_events_that_do_not_fit_the_declaration_are_refused(changed: Any, field: SourceField, problem: str) -> None:
    with pytest.raises(IngestError, match=problem):
        merge_sql.versions(settled(table(**changed), (), *FIELDS, field))


def test_an_order_that_changes_its_type_is_refused() -> None:
    stored = (Column("id", "int"), Column("m", "bigint"), Column("_sml_order_0", "bigint"))
    with pytest.raises(IngestError, match=r"order_by column of ods\.t changed from bigint to string"):
        settled(table(), stored, SourceField("id", "int"), SourceField("m", "string"))


@pytest.mark.checklist(12)
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
        ({"max_events_per_batch": 5}, "max_events_per_batch of source 'shop' is for Kafka"),
        ({"files": "nowhere/*.jsonl"}, "there is no folder nowhere"),
    ],
)
def test_what_is_not_supported_is_said_before_anything_starts(tmp_path: Path, stream: Any, problem: str) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(UsageError, match=problem):
        check_source(project(tmp_path), source(**stream))


@pytest.mark.parametrize("form", ["debezium", "flink_cdc", "canal", "maxwell", "dms"])
def test_every_format_has_a_log(tmp_path: Path, form: Any) -> None:
    assert files_glob(project(tmp_path), "in/*.jsonl") == f"{tmp_path}/in/*.jsonl"
    (tmp_path / "in").mkdir()
    check_source(project(tmp_path), source(table(), format=form))
    check_source(project(tmp_path), source(table(), format=form, files=None, kafka={"topics": ["a"]}))


def project(root: Path) -> ParsedProject:
    return ParsedProject("p", root, "", None, "target", (), {}, (), (), (), (), ())


@pytest.mark.checklist(4)
def test_events_go_to_the_declared_table_by_name_or_pattern() -> None:
    shop = source(table("t"), table("shards", table=r"user_\d+"), table("any", table="u", database=None))
    routed = [
        route(shop, names[0], None, names[1]) for names in (("db", "t"), ("db", "user_17"), ("other", "u"), (None, "u"))
    ]
    assert [each.name if each else None for each in routed] == ["t", "shards", "any", "any"]
    assert [route(shop, names[0], None, names[1]) for names in (("other", "t"), ("db", "tt"), ("db", None))] == [
        None
    ] * 3


def test_events_that_two_tables_claim_are_refused() -> None:
    with pytest.raises(ProjectError, match="belong to both 't' and 'all'"):
        route(source(table("t"), table("all", table=".*")), "db", None, "t")


@pytest.mark.checklist(8)
def test_a_schema_of_the_source_may_be_part_of_the_name() -> None:
    shop = source(table("t", table="public.t"), table("s", table="sales.t"))
    assert [declared.name for name in ("public", "sales") if (declared := route(shop, "db", name, "t"))] == ["t", "s"]
    assert route(shop, "db", "other", "t") is None


def test_a_batch_is_known_by_query_and_files_not_by_its_number() -> None:
    files = [(2, "b"), (1, "a")]
    assert files_of(files).summary == files_of(files[::-1]).summary
    assert files_of([*files, (3, "c")]).summary != files_of(files).summary
    ranges = Offsets((("t", 0, 5, 9), ("t", 1, 0, 2)))
    assert ranges.summary == {"t": {"0": [5, 9], "1": [0, 2]}}
    assert [offset_range_from(json.dumps(each.to_json())) for each in (files_of(files), ranges)] == [
        files_of(files),
        ranges,
    ]


def test_a_table_without_commits_has_no_batch(tmp_path: Path) -> None:
    assert not BatchMarker("q", 1, files_of([(1, "a")])).is_on(str(tmp_path))


def test_reports_of_batches_add_up_and_the_last_error_stands() -> None:
    name = TableName("ods", "t")
    both = TableReport(name, 1, 2, 3, 0.5).plus(TableReport(name, 10, 20, 30, 0.25, "broken"))
    assert (both.upserts, both.deletes, both.late, both.seconds, both.error) == (11, 22, 33, 0.75, "broken")
    assert IngestReport("shop", (both,)).failed
    a, b = (TableReport(TableName("ods", name), upserts=1) for name in "ab")
    first = IngestReport("shop", (b,), 1, 5, {"tombstone": 2}, dead_letters=1, seconds=0.5, first_dead_letter="one")
    later = IngestReport("shop", (a, b), 1, 7, {"skip": 1, "tombstone": 1}, seconds=0.25, discovered=(a.table,))
    total = IngestReport("shop").plus(first).plus(later)
    assert total == IngestReport(
        "shop", (b.plus(b), a), 2, 12, {"tombstone": 3, "skip": 1}, 1, discovered=(a.table,), seconds=0.75,
        first_dead_letter="one",
    )  # fmt: skip


STORED = (Column("id", "int"), Column("n", "boolean"), Column("_sml_position", "string"))


def evolved(policy: Policy, *fields: SourceField) -> EvolvedSchema:
    declared = table(order_by=(), partition_by=None)
    assert declared.ingest is not None
    return evolve_schema(
        declared,
        declared.ingest,
        STORED,
        [EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("id", "int"), *fields))],
        policy,
    )


def names_and_types(schema: EvolvedSchema) -> dict[str, str | None]:
    return {column.name: column.type for column in schema.layout.columns}


def test_lenient_takes_what_does_not_fit_into_a_column_of_its_own() -> None:
    schema = evolved("lenient", SourceField("n", "decimal(10,2)"), SourceField("new", "date"))
    assert names_and_types(schema) == {"id": "int", "n": "boolean", "n__decimal_10_2": "decimal(10,2)", "new": "date"}
    assert [(field.member, field.name) for field in schema.shapes[0].fields][1] == ("n", "n__decimal_10_2")
    assert schema.changes == ("+ n__decimal_10_2 decimal(10,2)", "+ new date")


def test_ignore_keeps_the_columns_and_reads_values_as_they_are_stored() -> None:
    schema = evolved("ignore", SourceField("n", "int"), SourceField("new", "date"))
    assert names_and_types(schema) == {"id": "int", "n": "boolean"}
    assert [(field.name, field.type) for field in schema.shapes[0].fields] == [("id", "int"), ("n", "boolean")]
    assert schema.changes == ()


@pytest.mark.checklist(35)
@pytest.mark.parametrize(
    ("field", "problem"),
    [
        (SourceField("new", "int"), "column 'new' is new in ods.t, and on_schema_change is fail"),
        (SourceField("id", "bigint"), "column 'id' would change from int to bigint"),
    ],
)
def test_fail_refuses_every_change(field: SourceField, problem: str) -> None:
    with pytest.raises(IngestError, match=problem) as caught:
        evolved("fail", field)
    assert caught.value.hint is not None
    assert names_and_types(evolved("fail", SourceField("n", "boolean"))) == {"id": "int", "n": "boolean"}


def test_changes_of_columns_are_told_in_words() -> None:
    assert evolved("evolve", SourceField("id", "bigint"), SourceField("new", "date")).changes == (
        "+ new date",
        "id int → bigint",
    )


def test_a_lenient_table_takes_both_of_two_types_from_its_first_batch_on() -> None:
    both = (SourceField("n", "binary", Encoding.BASE64), SourceField("n", "date", Encoding.DAYS))
    shapes = [EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("id", "int"), field)) for field in both]
    plain = table(columns=(), order_by=(), partition_by=None)
    assert plain.ingest is not None
    schema = evolve_schema(plain, plain.ingest, (), shapes, "lenient")
    assert names_and_types(schema) == {"id": "int", "n": "binary", "n__date": "date"}
    with pytest.raises(IngestError, match="changed from binary to date"):
        evolve_schema(plain, plain.ingest, (), shapes, "fail")


def test_names_that_no_table_can_have_are_made_safe_and_never_meet() -> None:
    schema = evolved("evolve", SourceField("a-b", "int"), SourceField("1x", "int"))
    assert names_and_types(schema) == {"id": "int", "n": "boolean", "a_b": "int", "_1x": "int"}
    assert [field.member for field in schema.shapes[0].fields] == ["id", "a-b", "1x"]
    with pytest.raises(IngestError, match=r"columns 'a-b' and 'a_b' of ods\.t would both be 'a_b'"):
        evolved("evolve", SourceField("a-b", "int"), SourceField("a_b", "int"))


def renaming(stored: Schema, *fields: SourceField, columns: Schema = (), policy: Policy = "evolve") -> EvolvedSchema:
    declared = replace(table(columns=columns, order_by=(), partition_by=None), renamed={"email": "mail"})
    assert declared.ingest is not None
    return evolve_schema(
        declared,
        declared.ingest,
        stored,
        [EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("id", "int"), *fields))],
        policy,
    )


MAIL = (Column("id", "int"), Column("mail", "string"))


@pytest.mark.parametrize("policy", ["evolve", "lenient", "ignore", "fail"])
def test_a_renamed_column_takes_its_rows_along_whichever_name_events_use(policy: Policy) -> None:
    for name in ("mail", "email"):
        schema = renaming(MAIL, SourceField(name, "string"), policy=policy)
        assert schema.layout.columns == (*MAIL, Column("email", "string"))
        assert (schema.renamed, schema.changes) == ({"email": "mail"}, ("mail is email string now",))
        assert [(field.name, field.member) for field in schema.shapes[0].fields] == [("id", "id"), ("email", name)]
    done = renaming((*MAIL, Column("email", "string")), SourceField("mail", "string"))
    assert (done.renamed, done.changes) == ({}, ())


def test_a_renamed_column_keeps_what_stored_rows_hold() -> None:
    stored = (Column("id", "int"), Column("mail", "bigint"))
    assert renaming(stored, SourceField("email", "string")).layout.columns[-1] == Column("email", "string")
    with pytest.raises(IngestError, match="column 'email' changed from date to timestamp"):
        renaming((Column("id", "int"), Column("mail", "date")), SourceField("email", "timestamp"))


def test_a_change_of_case_is_told_once() -> None:
    stored = (Column("id", "int"), Column("Name", "string"))
    first = renaming(stored, SourceField("name", "string"))
    assert first.changes == ("Name is spelt name in events: the table keeps Name",)
    declared = table(order_by=(), partition_by=None)
    assert declared.ingest is not None
    shapes = [EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("name", "string"),))]
    again = evolve_schema(declared, declared.ingest, stored, shapes, "evolve", first.spellings)
    assert (again.changes, again.spellings) == ((), {"Name": "name"})


@pytest.mark.parametrize(
    ("changed", "old", "new", "is_taken"),
    [
        ({}, "int", "string", True),
        ({}, "decimal(9,2)", "decimal(12,4)", True),
        ({}, "decimal(20,10)", "decimal(22,10)", True),
        ({}, "decimal(20,10)", "decimal(22,12)", False),
        ({}, "decimal(9,2)", "decimal(20,10)", False),
        ({"partition_by": PartitionBy("id", None, "p")}, "decimal(9,2)", "decimal(12,4)", False),
        ({}, "int", "double", False),
        ({}, "float", "string", False),
        ({"primary_key": ("x",), "partition_by": PartitionBy("id", None, "p")}, "int", "bigint", True),
        (
            {"primary_key": ("x",), "partition_by": PartitionBy("id", None, "p")},
            "decimal(9,2)",
            "decimal(12,4)",
            False,
        ),
    ],
)
def test_a_type_that_spells_keys_or_partitions_anew_is_refused(
    changed: Any, old: str, new: str, is_taken: bool
) -> None:
    declared = table(**{"order_by": (), "partition_by": None, **changed})
    stored = (Column("id", old), Column("x", "int"))
    if is_taken:
        assert settled(declared, stored, SourceField("id", new)).columns[0].type == new
        return
    with pytest.raises(IngestError, match=f"column 'id' of .* changed from {re.escape(old)} to {re.escape(new)}"):
        settled(declared, stored, SourceField("id", new))


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"primary_key": ("id", "m")}, r"primary_key of ods\.t was \['id'\] when the table was made"),
        ({"partition_by": PartitionBy("c", "yyyyMMdd", "year_month")}, "partition_by of ods.t was"),
        ({"order_by": ()}, "order_by of ods.t was"),
        ({"time_zone": "Asia/Tokyo"}, "time_zone of ods.t was None when the table was made"),
    ],
)
def test_what_a_table_was_made_with_does_not_change(changed: Any, what: str) -> None:
    first = settled(table(), (), *FIELDS)
    check_creation_contract(first, creation_contract(first))
    with pytest.raises(IngestError, match=what):
        check_creation_contract(settled(table(**changed), (), *FIELDS), creation_contract(first))
    with pytest.raises(IngestError, match="written by an earlier version"):
        check_creation_contract(first, None)


def test_events_without_any_column_change_no_type() -> None:
    declared = table(order_by=(), partition_by=None)
    assert declared.ingest is not None
    empty = EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("id", "string", is_inferred=True, is_unseen=True),))
    whole = EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("id", "bigint", is_inferred=True),))
    for stored in ((), (Column("id", "bigint"),)):
        schema = evolve_schema(declared, declared.ingest, stored, [empty, whole])
        assert schema.layout.columns == (Column("id", "bigint"),)
        assert schema.shapes[0].fields[0].type == "bigint"


def test_a_guess_is_no_change_where_changes_are_refused() -> None:
    declared = table(order_by=(), partition_by=None)
    assert declared.ingest is not None
    shapes = [EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("id", "bigint", is_inferred=True),))]
    schema = evolve_schema(declared, declared.ingest, (Column("id", "int"),), shapes, "fail")
    assert (schema.layout.columns, schema.changes) == ((Column("id", "int"),), ())
