"""Seeds: what CSV text means as typed rows, and every error with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.render.rendered import RenderedSeed
from sqlmesh_like.run.seeds import SeedReader, SeedTable, read_seed
from sqlmesh_like.run.values.seed_types import declared_type, infer_type


def read(root: Path, text: str | bytes, types: Mapping[str, str] | None = None, **config: object) -> SeedTable:
    (root / "s.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    seed = RenderedSeed(NodeId("seed", "p", "s"), "s", "s.csv", TableName("dws", "s"), types or {}, config)
    return read_seed(seed, root)


def test_quoted_fields_hold_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    table = read(tmp_path, 'a,b\r\n"x,y","say ""hi"""\r\n"two\nlines",z\r\n')
    assert table.rows == (("x,y", 'say "hi"'), ("two\nlines", "z"))


def test_what_dbt_takes_for_null_is_null_in_every_column(tmp_path: Path) -> None:
    table = read(tmp_path, 'a,b,c\nx,1,null\n"",null,t\nNULL,""," "\n')
    assert table.rows == (("x", 1, None), (None, None, "t"), (None, None, None))
    assert read(tmp_path, 'a\nnull\n""\nx\n', {"a": "string"}).rows == ((None,), (None,), ("x",))


def test_a_short_row_and_a_blank_line_are_filled_with_null(tmp_path: Path) -> None:
    assert read(tmp_path, "a,b\n1\n\n2,3\n").rows == ((1, None), (None, None), (2, 3))


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    assert [column.name for column in read(tmp_path, "\ufeffa,b\n1,2\n").schema] == ["a", "b"]


def test_another_delimiter_is_configured(tmp_path: Path) -> None:
    assert read(tmp_path, "a;b\nx,5;2\n", delimiter=";").rows == (("x,5", 2),)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["1", "-2"], "int"),
        (["1", "2147483648"], "bigint"),
        (["9223372036854775808"], "decimal(38,0)"),
        (["1", "2.50", "10.125"], "decimal(18,3)"),
        (["1.12345678901234567890"], "decimal(38,20)"),
        (["1234567890123456.789", "-1"], "decimal(38,3)"),
        (["0.1", "1" * 37], "decimal(38,1)"),
        (["0.1", "1" * 38], "double"),
        (["1e3", "2"], "double"),
        (["True", "false"], "boolean"),
        (["2024-02-29"], "date"),
        (["2024-02-30"], "string"),
        (["2024-02-29", "2024-02-29T10:00:00Z"], "timestamp"),
        (["2024-02-29 10:00:00.123456+02:00"], "timestamp"),
        (["007", "8"], "string"),
        (["+49301234"], "string"),
        (["1_000"], "string"),
        (["٣"], "string"),
        (["nan"], "string"),
        (["yes", "no"], "string"),
        ([], "int"),  # as in dbt,
    ],
)
def test_the_narrowest_safe_type_of_a_test_s_rows_is_inferred(values: list[str], type_: str) -> None:
    assert infer_type(values).name == type_


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [  # what dbt-core 1.11 reads from each, in Spark's type
        ("007", "int", 7),
        ("+5", "int", 5),
        ('"1,000"', "int", 1000),
        ("$5", "int", 5),
        ("2.50%", "decimal(18,2)", Decimal("2.50")),
        ("1_000", "int", 1000),
        ("1e3", "int", 1000),
        ("5e-1", "decimal(18,1)", Decimal("0.5")),
        ("2147483648", "bigint", 2147483648),
        ("-9223372036854775809", "decimal(38,0)", Decimal("-9223372036854775809")),
        ("1234567890123456.789", "decimal(38,3)", Decimal("1234567890123456.789")),
        ("1e40", "double", 1e40),
        ("TRUE", "boolean", True),
        ("yes", "string", "yes"),
        ("2024-2-29", "date", date(2024, 2, 29)),
        ("2024-02-30", "string", "2024-02-30"),
        ("2018-01-01 7:00:00", "timestamp", datetime(2018, 1, 1, 7, tzinfo=UTC)),
        ("2018-01-01T07:00:00+02:00", "timestamp", datetime(2018, 1, 1, 5, tzinfo=UTC)),
        ("2018-01-01 07:00", "string", "2018-01-01 07:00"),
        ("0001-01-01T00:00:00+02:00", "string", "0001-01-01T00:00:00+02:00"),
        (" x ", "string", " x "),
    ],
)
def test_a_text_is_what_dbt_reads_from_it(tmp_path: Path, text: str, type_: str, value: object) -> None:
    table = read(tmp_path, f"a\n{text}\n")
    assert (table.schema[0].type, table.rows) == (type_, ((value,),))


@pytest.mark.parametrize("text", ["nan", "-inf", "1" * 39, "1e999"])
def test_a_number_that_no_type_holds_stays_text(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, f"a\n{text}\n").rows == ((text,),)


def test_a_column_of_dates_and_times_is_text_as_in_dbt(tmp_path: Path) -> None:
    assert read(tmp_path, "a\n2024-01-02\n2024-01-02 10:00:00\n").schema[0].type == "string"


def test_line_ends_in_a_field_are_those_of_the_text_that_python_reads(tmp_path: Path) -> None:
    assert read(tmp_path, 'a\r\n"x\r\ny"\r\n').rows == (("x\ny",),)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2018-01-01 7:00:00", datetime(2018, 1, 1, 7)),
        ("2018-1-1T7:5", datetime(2018, 1, 1, 7, 5)),
        ("2018-01-01 07:00:00.123456789", datetime(2018, 1, 1, 7, 0, 0, 123456)),
        ("2018-01-01 07:00:00 +2:00", datetime(2018, 1, 1, 5)),
        ("2018-01-01 07:00:00UTC", datetime(2018, 1, 1, 7)),
        ("2018-01-01 07:00:00+0200", datetime(2018, 1, 1, 5)),
        ("2018-01-01 07:00:00+2:5", datetime(2018, 1, 1, 4, 55)),
        ("2018-02", datetime(2018, 2, 1)),
    ],
)
def test_a_declared_timestamp_is_what_spark_casts(text: str, moment: datetime) -> None:
    assert declared_type("timestamp").convert(text) == moment.replace(tzinfo=UTC)
    assert declared_type("date").convert(text) == date(2018, moment.month, 1)


@pytest.mark.parametrize(
    "text",
    [  # Spark gives NULL, but for the first, which is another day tomorrow, and the zone's name
        *("07:00:00", "2018-01-01 7:00:00 CET", "2018-13-01", "2018-01-01 24:00:00", "18-01-01", "2018-01-01 07Z"),
        *("2018-01-01 07:00:00+18:30", "2018-01-01 07:00:00+020", "2018-01-01 07:00:00+02:60"),
    ],
)
def test_what_no_moment_can_be_told_from_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text) + "|day|month|hour|minute"):
        declared_type("timestamp").convert(text)


def test_declared_types_win_over_inferred_ones(tmp_path: Path) -> None:
    table = read(
        tmp_path, "id,a,t\n7,1.5,2024-01-02T01:00:00+01:00\n", {"ID": "string", "a": "numeric(6,2)", "t": "datetime"}
    )
    assert table.rows == (("7", Decimal("1.5"), datetime(2024, 1, 2, tzinfo=UTC)),)
    assert [column.type for column in table.schema] == ["string", "decimal(6,2)", "timestamp"]


def test_a_long_decimal_keeps_its_digits(tmp_path: Path) -> None:
    assert read(tmp_path, "d\n1234567890123456.789\n").rows == ((Decimal("1234567890123456.789"),),)


def test_dates_are_read_as_dates(tmp_path: Path) -> None:
    assert read(tmp_path, "d\n2024-01-02\n").rows == ((date(2024, 1, 2),),)


def test_a_decimal_with_too_many_digits_is_no_value_of_its_type() -> None:
    convert = declared_type("decimal(5,2)").convert
    assert convert("0123.450") == Decimal("123.45")
    for text in ("1234", "1.234", "x", ".", "1e2"):
        with pytest.raises(ValueError, match=text):
            convert(text)


def test_the_fingerprint_follows_text_and_types(tmp_path: Path) -> None:
    first = read(tmp_path, "a\n1\n")
    assert first.fingerprint == read(tmp_path, "a\n1\n").fingerprint
    others = [
        read(tmp_path, "a\n2\n"),
        read(tmp_path, "a\n1\n", {"a": "bigint"}),
        read(tmp_path, "a\n1\n", unique_key="a"),
    ]
    assert first.fingerprint not in {table.fingerprint for table in others}


@pytest.mark.parametrize(
    ("text", "earlier", "is_kept"),
    [
        ("a,b,c\n1,x,2024-01-02\n,,\n", "9afd7797741e75761be52179169c8397", True),
        ("a,b\n1,null\n", "94a28420ae9665a488b1dd9b4f0f7519", False),
        ('a,b\n1,""\n2,x\n', "7ffe5777fa6589ef98f430667cda8ac4", False),
        ("a,b\nx,1\n\ny,2\n", "f59dc83b49d876a113de9ad5e3bc1b98", False),
    ],
)
def test_a_seed_of_an_earlier_version_is_loaded_again_only_if_its_rows_differ(
    tmp_path: Path, text: str, earlier: str, is_kept: bool
) -> None:
    assert (read(tmp_path, text).fingerprint == earlier) is is_kept


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "s.csv:1:1: the file is empty"),
        ("a,A\n", "s.csv:1:3: the column 'A' is there twice"),
        ("a,b c\n", "s.csv:1:3: 'b c' cannot be the name of a column"),
        ("a,b🙂\n", "s.csv:1:3: 'b🙂' cannot be the name of a column"),
        (f"a,{'b' * 768}\n", "s.csv:1:3: 'bbbbbbbbbbbbbbbbbbbb…' cannot be the name of a column"),
        ("_sml_key\n", "s.csv:1:1: '_sml_key' cannot be the name of a column"),
        ('a,b\n"x\ny",1,2\n', "s.csv:3:6: this line has 3 fields, the header has 2"),
        ('a\n"x', "s.csv:2:1: this quote is never closed"),
        ('a\n"x"y\n', "s.csv:2:4: text follows the closing quote"),
        (b"a\n\xff\n", "s.csv:2: the byte 0xff is not UTF-8 text"),
    ],
)
def test_a_malformed_file_is_an_error_with_its_place(tmp_path: Path, text: str | bytes, expected: str) -> None:
    with pytest.raises(ProjectError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(expected)


def test_a_value_that_is_not_of_its_declared_type_is_found(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"s\.csv:3:3: 'x' is not an int"):
        read(tmp_path, "a,b\n1,2\n1,x\n", {"b": "int"})


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"amount": "strng"}, "did you mean 'string'"),
        ({"amount": "decimal(40,2)"}, "1 to 38"),
    ],
)
def test_wrong_column_types_name_what_was_meant(tmp_path: Path, types: dict[str, str], message: str) -> None:
    with pytest.raises(ProjectError, match=message):
        read(tmp_path, "amount\n1\n", types)


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ("a,b\n1,2\n1,3\n", "a", r"s\.csv:3:1: unique_key \(a\) repeats"),
        ("a,b\n,2\n", "a", r"s\.csv:2:1: unique_key \(a\) is NULL here"),
        ("a,b\n1,2\n", "c", "unique_key names 'c'"),
    ],
)
def test_a_unique_key_must_identify_each_row(tmp_path: Path, text: str, key: str, message: str) -> None:
    with pytest.raises(ProjectError, match=message):
        read(tmp_path, text, unique_key=key)


@pytest.mark.parametrize("delimiter", ["", "::", '"', "\n", 3])
def test_a_delimiter_is_one_character(tmp_path: Path, delimiter: object) -> None:
    with pytest.raises(ProjectError, match="must be one character"):
        read(tmp_path, "a\n1\n", delimiter=delimiter)


def test_a_seed_that_is_the_same_is_typed_once(tmp_path: Path) -> None:
    def seed(**config: object) -> RenderedSeed:
        return RenderedSeed(NodeId("seed", "p", "s"), "s", "s.csv", TableName("dws", "s"), {}, config)

    reader, file = SeedReader(), tmp_path / "s.csv"
    file.write_text("a,b\n1,2\n")
    first = reader.read(seed(), tmp_path)
    assert reader.read(seed(), tmp_path) is first and first.rows == ((1, 2),)
    file.write_text("a,b\n1,3\n")  # as long as before, maybe at the same moment
    assert reader.read(seed(), tmp_path).rows == ((1, 3),)
    file.write_text("a;b\n1;4\n")
    assert reader.read(seed(delimiter=";"), tmp_path).rows == ((1, 4),)
    file.write_text("a\n1,3\n")
    with pytest.raises(ProjectError, match="2 fields"):
        reader.read(seed(), tmp_path)
