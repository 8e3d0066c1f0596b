"""Values of YAML, CSV and rows: what they become as Spark's types, as JSON, and where two count as the same."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from sqlmesh_like.publish.columns import _as_json
from sqlmesh_like.run.plain_values import flat, plain
from sqlmesh_like.run.row_diff import _same
from sqlmesh_like.run.values.fixture_values import convert_value, type_of

EAST = timezone(timedelta(hours=2))
TYPED = [
    (None, "int", None),
    ([1, None, "3"], "array<int>", [1, None, 3]),
    ([[1], []], "array<array<int>>", [[1], []]),
    ({"a": 1}, "struct<a:int>", {"a": 1}),
    ({"a": 1}, "map<string,int>", {"a": 1}),
    (b"\x00", "binary", b"\x00"),
    ("é", "binary", "é".encode()),
    (True, "string", "true"),
    (Decimal("1.50"), "string", "1.50"),
    (Decimal("1E+2"), "decimal(5,1)", Decimal("100.0")),
    (1e3, "string", "1000.0"),
    (float("nan"), "string", "nan"),
    (date(2024, 1, 2), "string", "2024-01-02"),
    (datetime(2024, 1, 2, 3, tzinfo=EAST), "timestamp", datetime(2024, 1, 2, 1)),
    (datetime(2024, 1, 2, 3), "timestamp_ntz", datetime(2024, 1, 2, 3)),
    ("2024-01-02T03:00:00+02:00", "timestamp", datetime(2024, 1, 2, 1)),
    ("  7 ", "bigint", 7),
]
WRONG = [
    (1, "array<int>", "write a list"),
    ([1], "struct<a:int>", "write a mapping"),
    ("x", "map<string,int>", "write a mapping"),
    ([1], "int", ""),
    ({"a": 1}, "string", ""),
    (0.12345678901234567, "decimal(18,17)", "put it in quotes: as a number of YAML it may have lost digits"),
    ("x", "int", ""),
    ("maybe", "boolean", ""),
    ("9999-13-01", "date", "month must be in 1..12"),
]
PLAIN = [
    (b"\x01\x02", "AQI="),
    (bytearray(b"\x01"), "AQ=="),
    (float("inf"), "inf"),
    (timedelta(days=1, seconds=2), "1 day, 0:00:02"),
    ({1: Decimal("1E+2"), "d": date(2024, 1, 2)}, {"1": "100", "d": "2024-01-02"}),
    ([datetime(2024, 1, 2, 3, tzinfo=EAST), (None, 1)], ["2024-01-02T01:00:00Z", [None, 1]]),
    (datetime(2024, 1, 2), "2024-01-02T00:00:00Z"),
]


@pytest.mark.parametrize(("value", "type_", "expected"), TYPED)
def test_a_value_becomes_one_of_its_columns_type(value: object, type_: str, expected: object) -> None:
    result = convert_value(value, type_)
    assert (result, type(result)) == (expected, type(expected))


@pytest.mark.parametrize(("value", "type_", "hint"), WRONG)
def test_what_cannot_become_one_says_how_to_write_it(value: object, type_: str, hint: str) -> None:
    with pytest.raises(ValueError, match=f"^{hint}$"):
        convert_value(value, type_)


def test_types_are_inferred_from_all_values() -> None:
    assert type_of([[1, None], [2.5]]) == "array<decimal(18,1)>"
    assert type_of([[], []]) == "array<string>"
    assert (
        type_of([[1], "x"]) == type_of([{"a": 1}]) == type_of([True, 1]) == type_of(["", ""], is_text=True) == "string"
    )
    assert type_of([True, False]) == "boolean"


@pytest.mark.parametrize(("value", "expected"), PLAIN)
def test_a_value_has_one_form_in_json(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_a_nested_value_is_one_line() -> None:
    assert flat([Decimal("1.0"), "é", True]) == '["1.0", "é", true]'
    assert (flat(None), flat(True), flat(2)) == ("None", "true", "2")


def test_a_nested_value_is_published_as_json() -> None:
    value = {"a": [Decimal("1E+2"), b"\x01", None, True], "t": datetime(2024, 1, 2, tzinfo=UTC), "m": [("k", 1.5)]}
    assert _as_json(value) == '{"a": ["100", "AQ==", null, true], "t": "2024-01-02T00:00:00+00:00", "m": [["k", 1.5]]}'


def test_values_of_two_engines_are_the_same_where_their_texts_would_differ() -> None:
    assert _same({"b": 2, "a": [1, bytearray(b"x")]}, {"a": (1, b"x"), "b": 2})
    assert _same(float("nan"), float("nan")) and _same(0.1 + 0.2, 0.3)
    assert not _same({"a": 1}, {"a": 2}) and not _same(1.0, 1.1)
