"""How values of typed files become those of columns, as text: no engine runs here."""

from __future__ import annotations

from sqlmesh_like.cdc.formats import columnar
from sqlmesh_like.cdc.formats.dms import ROW
from sqlmesh_like.cdc.formats.format_registry import MESSAGE_STYLES
from sqlmesh_like.cdc.formats.row_images import shape_of
from sqlmesh_like.cdc.formats.source_types import SourceField
from sqlmesh_like.cdc.schema import creation_contract
from sqlmesh_like.cdc.schema.column_record import _SPELLINGS
from sqlmesh_like.cdc.sources import batch_marker
from sqlmesh_like.hudi.bucket_count import CARRIED
from sqlmesh_like.hudi.file_sizing import buckets_for, fits_in_a_file
from sqlmesh_like.names import Column

SCHEMA = (("id", "int"), ("price", "decimal(9,2)"), ("note", "string"))


def images(*types: str) -> dict[str, str]:
    fields = [SourceField(name, kind) for (name, _), kind in zip(SCHEMA, types, strict=True)]
    columns = tuple(Column(field.name, field.type) for field in fields)
    return columnar.images(shape_of(MESSAGE_STYLES[ROW], fields, ()), SCHEMA, columns, partial=False)


def test_values_of_the_columns_own_types_are_taken_as_they_are() -> None:
    sql = images("int", "decimal(9,2)", "string")
    assert sql["after"] == (
        "if(kind = 'delete', null, named_struct('id', raw.`id`, 'price', raw.`price`, 'note', raw.`note`))"
    )
    assert sql["unreadable"] == "coalesce(wrong, cast(null as string))", "every value fits"


def test_wider_types_are_cast_and_others_read_as_texts() -> None:
    sql = images("bigint", "decimal(12,3)", "int")
    assert "'id', cast(raw.`id` as bigint), 'price', cast(raw.`price` as decimal(12,3))" in sql["after"]
    assert "'note', try_cast(cast(raw.`note` as string) as int)" in sql["after"]
    assert sql["unreadable"].count("cannot read") == 1


def test_a_value_for_whose_name_the_table_has_no_column_is_not_lost() -> None:
    schema = (("id", "int"), ("a-b", "int"), ("a b", "int"))
    shape = shape_of(MESSAGE_STYLES[ROW], [SourceField(name, kind) for name, kind in schema], ())
    sql = columnar.images(shape, schema, (Column("id", "int"), Column("a_b", "int")), partial=False)
    assert "if(raw.`a b` is not null, 'column a b: another column of the row is a_b in the table" in sql["unreadable"]


def test_a_load_file_has_one_kind_of_row() -> None:
    assert columnar.envelope(SCHEMA, "Op")["kind"] == "'upsert'"
    assert "raw.Op" in columnar.envelope((("Op", "string"), *SCHEMA), "Op")["kind"]


def test_a_rewrite_carries_all_that_ingestion_remembers_in_metadata() -> None:
    assert set(CARRIED) == {batch_marker.MARKER_KEY, creation_contract.CONTRACT_KEY, _SPELLINGS}


def test_buckets_are_those_of_a_partition_of_that_many_bytes() -> None:
    assert buckets_for(84 * 10**8, 84, {}) == 1 and buckets_for(84 * 10**9, 84, {}) == 8
    assert buckets_for(31 * 120 * 1024 * 1024 - 1, 1, {}) == 32, "the last digit of a key would choose its bucket"
    assert buckets_for(10**12, 1, {"hoodie.bucket.index.num.buckets": 31}) == 31, "who asks for it gets it"
    assert fits_in_a_file(10**6, {}) and not fits_in_a_file(10**6, {"hoodie.parquet.max.file.size": 10**5})
