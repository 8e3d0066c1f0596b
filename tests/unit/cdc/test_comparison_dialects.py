"""Canonical texts and literals of compared values: in DuckDB by running them, in servers as they are written.

What servers make of theirs is shown by the tests that compare whole tables with MariaDB and PostgreSQL.
"""

from __future__ import annotations

import struct

import duckdb
import pytest

from sqlmesh_like.cdc.sources.database.comparison.dialects import CanonicalColumn, DuckDb, MySql, PostgreSql
from sqlmesh_like.cdc.sources.database.comparison.value_kinds import Kind

MOMENT = "1717200000000001"
"""2024-06-01 00:00:00.000001 in UTC."""
VALUES = [
    (Kind.WHOLE, "bigint", "-7", "-7"),
    (Kind.DECIMAL, "decimal(10,2)", "1.50", "1.50"),
    (Kind.DATE, "date", "2024-02-29", "'2024-02-29'"),
    (Kind.MOMENT, "timestamp", MOMENT, "'2024-06-01 00:00:00.000001'"),
    (Kind.BYTES, "blob", "00ff", "unhex('00ff')"),
    (Kind.TEXT, "varchar", "it's \\ é", "'it''s \\ é'"),
]


@pytest.mark.parametrize(("kind", "type_", "text", "literal"), VALUES)
def test_a_literal_has_the_canonical_text_that_it_was_made_of(kind: Kind, type_: str, text: str, literal: str) -> None:
    dialect, column = DuckDb(), CanonicalColumn("a b", kind, type_)
    assert dialect.literal(column, text) == literal
    rows = duckdb.sql(f'select {dialect.text(column)} from (select cast({literal} as {type_}) as "a b")').fetchall()
    assert rows == [(text,)]


@pytest.mark.parametrize(
    ("kind", "lake", "value", "text"),
    [
        (Kind.WHOLE, "boolean", "true", "1"),
        (Kind.FLOAT, "double", "-cast(0 as double)", struct.pack(">d", -0.0).hex()),
        (Kind.FLOAT, "float", "cast(0.1 as float)", struct.pack(">d", 0.10000000149011612).hex()),
        (Kind.DIGITS, "string", "'1.500'", "1.5"),
        (Kind.DIGITS, "string", "'100'", "100"),
        (Kind.CLOCK, "string", "'-10:00:00.250000'", "-10:00:00.25"),
        (Kind.TEXT, "string", "null", None),
    ],
)  # fmt: skip
def test_a_value_has_one_text(kind: Kind, lake: str, value: str, text: str | None) -> None:
    sql = DuckDb().text(CanonicalColumn("a", kind, lake))
    assert duckdb.sql(f"select {sql} from (select {value} as a)").fetchall() == [(text,)]


def test_a_text_is_hashed_after_its_length() -> None:
    dialect = DuckDb()
    digits = "900150983cd24fb"  # of MD5("abc")
    assert duckdb.sql(f"select {dialect.hash(chr(39) + 'abc' + chr(39))}").fetchall() == [(int(digits, 16),)]
    assert duckdb.sql(f"select {dialect.with_length('x')} from (values ('é'), (null)) t(x)").fetchall() == [
        ("1:é",), (None,)
    ]  # fmt: skip


def test_servers_get_literals_that_no_setting_of_theirs_changes() -> None:
    text, moment = CanonicalColumn("t", Kind.TEXT, "string"), CanonicalColumn("m", Kind.MOMENT, "timestamp")
    local = CanonicalColumn("m", Kind.MOMENT, "timestamp", zone="Europe/Berlin")
    assert MySql().literal(text, "a'\\") == "_utf8mb4 x'61275c'"
    assert PostgreSql().literal(text, "a'\\") == "'a''\\'"
    assert MySql().literal(CanonicalColumn("b", Kind.BYTES, "binary"), "00ff") == "x'00ff'"
    assert PostgreSql().literal(CanonicalColumn("b", Kind.BYTES, "binary"), "00ff") == "'\\x00ff'::bytea"
    assert PostgreSql().literal(moment, MOMENT) == "'2024-06-01 00:00:00.000001'"
    assert PostgreSql().literal(local, MOMENT) == "'2024-06-01 02:00:00.000001'"
    assert PostgreSql().literal(moment, "infinity") is None
    assert MySql().literal(CanonicalColumn("b", Kind.WHOLE, "boolean", "tinyint(1)"), "1") is None
    assert MySql().literal(CanonicalColumn("f", Kind.FLOAT, "double"), "00") is None
    assert (MySql().name("a`b"), PostgreSql().name('a"b')) == ("`a``b`", '"a""b"')
