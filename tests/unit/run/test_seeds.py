"""Seeds: what CSV text means as typed rows, and every error with its place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.render.rendered import RenderedSeed
from sqlmesh_like.run.seed_types import declared_type, infer_type
from sqlmesh_like.run.seeds import SeedReader, SeedTable, read_seed


def read(root: Path, text: str | bytes, types: Mapping[str, str] | None = None, **config: object) -> SeedTable:
    (root / "s.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    seed = RenderedSeed(NodeId("seed", "p", "s"), "s", "s.csv", TableName("dws", "s"), types or {}, config)
    return read_seed(seed, root)


def test_quoted_fields_hold_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    table = read(tmp_path, 'a,b\r\n"x,y","say ""hi"""\r\n"two\nlines",z\r\n')
    assert table.rows == (("x,y", 'say "hi"'), ("two\nlines", "z"))


def test_an_empty_field_is_null_and_a_quoted_empty_one_is_text(tmp_path: Path) -> None:
    assert read(tmp_path, 'a,b\n,1\n"",""\nx,2\n').rows == ((None, 1), ("", None), ("x", 2))


def test_blank_lines_and_a_byte_order_mark_are_no_content(tmp_path: Path) -> None:
    table = read(tmp_path, "\ufeffa,b\n\n1,2\n\n")
    assert ([column.name for column in table.schema], table.rows) == (["a", "b"], ((1, 2),))


def test_another_delimiter_is_configured(tmp_path: Path) -> None:
    assert read(tmp_path, "a;b\n1,5;2\n", delimiter=";").rows == (("1,5", 2),)


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
def test_the_narrowest_safe_type_is_inferred(values: list[str], type_: str) -> None:
    assert infer_type(values).name == type_


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
    ("text", "expected"),
    [
        ("", "s.csv:1:1: the file is empty"),
        ("a,A\n", "s.csv:1:3: the column 'A' is there twice"),
        ("a,b c\n", "s.csv:1:3: 'b c' cannot be the name of a column"),
        ("_sml_key\n", "s.csv:1:1: '_sml_key' cannot be the name of a column"),
        ("a,b\n1\n", "s.csv:2:1: this line has 1 field, the header has 2"),
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
