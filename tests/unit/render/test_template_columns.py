"""`api.Column` in templates: what dbt's macros ask of a column."""

from __future__ import annotations

import pytest

from sqlmesh_like.render.results.column import ColumnOf

KINDS = {
    "varchar(9)": ("is_string",), "string": ("is_string",), "decimal(10,2)": ("is_numeric", "is_number"),
    "BIGINT": ("is_number", "is_integer"), "double": ("is_number", "is_float"), "date": (),
}  # fmt: skip


@pytest.mark.parametrize("type_", KINDS)
def test_the_kind_of_a_column_is_that_of_its_type(type_: str) -> None:
    column = ColumnOf("a", type_)
    asked = ("is_string", "is_numeric", "is_number", "is_integer", "is_float")
    assert tuple(name for name in asked if getattr(column, name)()) == KINDS[type_]


def test_a_column_is_written_as_spark_reads_it() -> None:
    column = ColumnOf.create("a b", "TEXT")
    assert (column.quoted, column.dtype, column.literal("null")) == ("`a b`", "string", "cast(null as string)")
    assert (str(column), column.string_size(), ColumnOf("a", "char", 3).string_size()) == (
        "<Column a b (string)>", 256, 3
    )  # fmt: skip
    assert (ColumnOf.string_type(7), ColumnOf.numeric_type("numeric", 5, 2)) == ("varchar(7)", "decimal(5,2)")
    assert ColumnOf.numeric_type("double", None, None) == "double" and not column.can_expand_to(column)


def test_columns_are_the_same_by_name_and_type() -> None:
    assert len({ColumnOf("a", "int"), ColumnOf("a", "int"), ColumnOf("a", "bigint"), ColumnOf("b", "int")}) == 3
    assert ColumnOf("a", "int") != "a"
