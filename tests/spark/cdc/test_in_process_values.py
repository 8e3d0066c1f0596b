"""Every function of `cdc.in_process` beside Spark's own: the same value, or none."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.formats import base64_numbers, json_text, time_values
from sqlmesh_like.cdc.formats.encoding import Encoding
from sqlmesh_like.cdc.formats.source_types import sql_literal
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError, Rewritten, Row, Value
from sqlmesh_like.cdc.schema.limits import is_shallow_json
from tests.levels import count

_AT_ONCE = 150
_FRACTIONS = count(40, 40, 3000)
_TEXTS = [sql_literal(text) for text in ("", " ", "a", "A|b:c", "größe", "it's", "a,b,c", "𝄞x", "12", "-7", "x\ty")]
_NUMBERS = ["0", "1", "-1", "2", "3", "7", "-9", "2147483647", "cast(9000000000 as bigint)", "null"]
_DECIMALS = ["1.50BD", "-0.001BD", "0BD", "12345678901234567890123BD", "cast('1.5' as decimal(38,30))"]
_LISTS = ["array('b', 'a', null, 'b')", "array('a')", "cast(array() as array<string>)", "array('c', 'd')"]
_PATTERNS = [r"^-?[0-9]+$", r"[^A-Za-z0-9_.-]", "(a)(b)?", r"\s", r"(?i)^A", "b|c", ","]
_JSON = [
    '{"a": 1, "b": "x", "c": null, "d": [1, {"e": "f"}], "g": true, "h": 12345678901234567890}',
    '{"a": "1", "b": {"c": {"d": "deep"}, "e": []}, "z": "\\u00e9\\n\\t\\"q\\""}',
    '{"a": 1.50, "b": -0.0, "c": 1e3, "n": {"m": 2.5}}',
    "{}", '{"a": [], "b": {}, "c": ""}', "[1, 2]", '"text"', "null", "", "  ", "12", "nonsense", '{"a": 1} more',
    "{'a': 'quotes'}", '{"a": NaN}', '{"a": 1, "a": 2}', '{"A": 1, "a": "b"}', '{"a": "NaN", "b": "Infinity"}',
    '{"b": {"a": 5, "c": "seven", "d": [1]}, "a": "no number"}', '{"a": 99999999999, "b": 0.1}',
    '{"a": 1', '{"a": 1,}', '{"a": tru, "b": "x"}', "{a: 1}", '{"a": 01}', '{"b": "x\\q"}', '{"b": "\t"}',
    "plain words", "<a/>", '{"a" 1}', '"open', '{"b": "x", "d": [1, }', '{"a": 1 "b": 2}', "42 1", "truex", "-",
    '{"a": 1e}', '{"a": 1.}', '{"a": .5}', '{"a": +1}', '{"b": "x', '{"b": {"c": "x"}, "a": 1', "null x", "nullx",
    "[1", '{"a": -INF}', "NaN", "//x", '{"b": "\\ud800"', '{"a": 1, "b": "x"}}', "{,}", '{"b": "\\u12"}', "#{}",
    "+1", "nothing", '{"a": 1} {"a"',
]  # fmt: skip
_SCHEMAS = [
    "a INT, b STRING, _corrupt_record STRING", "a BIGINT, c STRING", "STRUCT<a: STRING, b: STRING, n: STRING>",
    "a DECIMAL(38,30), b DOUBLE", "a BOOLEAN, g BOOLEAN, b STRUCT<a: INT, c: INT, d: ARRAY<INT>>",
    "map<string, string>", "b STRUCT<c: STRUCT<d: STRING>>, d ARRAY<STRING>",
]  # fmt: skip
_MOMENTS = [
    "1970-01-01 00:00:00", "2024-02-29T23:59:59.999999Z", "0001-01-01 00:00:00", "9999-12-31 23:59:59.9",
    "2022-13-45", "2022-02-30", "2022-01-01T25:00:00Z", "0000-01-01", "2023-02-29 00:00:00", "2022-01-01 00:60:00",
    "2024-06-01 12:00:00+02:00", "2024-06-01T12:00:00.5-11:30", "1900-01-01 00:00:00.000001", "2024-1-2", "12:30", "x",
    " 2024-06-01 12:00:00 ", " 2024-06-01 ", "", " ",
]  # fmt: skip
_NUMBERS_IN_TEXT = ["0", "-1", "1700000000", "253402300799999", "-62135596800000", "19000", "abc", "1.5", " 7", "86399"]
_NO_BASE64 = ["not base64!", "a.b", "AP8-", "a", "AA=", "A A=="]
_BASE64 = ["AA==", "AQ==", "/w==", "gAAAAAAAAAA=", "f/////////8=", "ASNFZ4mrze8BI0VniavN7w==", "MDk=", "", "!", "8A=="]


def _texts() -> Iterator[str]:
    for text in _TEXTS:
        yield from (f"{name}({text})" for name in ("length", "octet_length", "trim", "ltrim", "upper", "lower", "hex"))
        yield from (f"sha2({text}, 256)", f"base64({text})", f"encode({text}, 'ISO-8859-1')", f"split({text}, '')")
        yield from (f"cast(cast({text} as binary) as string)", f"translate({text}, 'a|:', 'X')", f"reverse({text})")
        yield from (f"substring_index({text}, ',', {count})" for count in (1, 2, -1, 5))
        yield from (f"{name}({text}, {count})" for name in ("left", "right", "repeat") for count in (-1, 0, 1, 3))
        yield from (f"{name}({text}, {count}, '0')" for name in ("lpad", "rpad") for count in (0, 1, 5))
        yield from (f"substr({text}, {start}, {size})" for start in (-3, -1, 0, 1, 2, 9) for size in (0, 1, 5))
        yield from (f"trim(trailing 'c' from {text})", f"replace({text}, 'b', '--')", f"concat({text}, 1, {text})")
        for pattern in map(sql_literal, _PATTERNS):
            yield from (
                f"{text} rlike {pattern}",
                f"regexp_replace({text}, {pattern}, '<$0>')",
                f"split({text}, {pattern})",
            )
            yield from (f"regexp_extract({text}, {pattern}, 0)", f"regexp_extract_all({text}, {pattern}, 0)")
        yield from (f"contains({text}, {other})" for other in _TEXTS[:5])
        yield from (f"{text} {sign} {other}" for sign in ("=", "<", "<=>") for other in _TEXTS)
        yield from (
            f"{cast}({text} as {kind})" for cast, kind in product(("try_cast",), ("int", "bigint", "double", "date"))
        )


def _numbers() -> Iterator[str]:
    for left, right in product(_NUMBERS, _NUMBERS[:6]):
        yield from (f"{left} {sign} {right}" for sign in ("+", "-", "div", "%", "=", "<", "<=>", "/"))
        yield from (f"greatest({left}, {right})", f"least({left}, {right})", f"nullif({left}, {right})")
        yield from (f"if({left} > {right}, 'more', 'less')", f"{left} between {right} and 5", f"{left} in ({right}, 3)")
        yield from (f"shiftright({left}, 1)", f"format_string('%02d:%04d', {left}, {right})")
    for left, right in product(_DECIMALS, _DECIMALS[:3]):
        yield from (f"{left} {sign} {right}" for sign in ("=", "<", "<=>"))
    for value in (*_DECIMALS, *_NUMBERS):
        yield from (
            f"cast({value} as string)",
            f"try_cast({value} as decimal(38,4))",
            f"abs({value})",
            f"floor({value})",
        )
    refused = (
        "'abc'",
        "'12x'",
        "'1,5'",
        "'maybe'",
        "'3000000000'",
        "'-99999999999999999999'",
        "'7'",
        "'{\"a\":1}'",
        "'wide'",
    )
    rounded = ("'1.235'", "'-1.235'", "'1.2349999'", "'99999999.994'", "'99999999.995'", "'123456789.5'", "'0.005'")
    plain = ("'1.50'", "'-0'", "'1e3'", "'00012'", "'99999999999999999999999999999999999999'", "'0.0000001'")
    for text in (
        *plain,
        *refused,
        *rounded,
        "'TRUE'",
        "'[1]'",
        "'true'",
        "'12:30'",
        "'NaN'",
        "'0x1p3'",
        "'1d'",
        "'inf'",
        *(
            "''",
            "' '",
            "' 5 '",
            "'5.0'",
            "'-0.5'",
            "'-7.99'",
            "' true '",
            "'. 5'",
            "'5.'",
            "'.5'",
            "'5 0'",
            "' -1.50 '",
        ),
    ):
        yield from (f"try_cast({text} as decimal({digits}))" for digits in ("10,2", "38,0", "38,10"))
        yield from (f"try_cast({text} as {kind})" for kind in ("int", "bigint", "double", "float", "boolean"))
    yield from (f"try_cast('{text}' as float)" for text in ("0.1", "16777217", "3.4028235e38", "1e-40", "16777216.5"))
    yield from (f"conv('{text}', 16, 10)" for text in ("0", "FF", "FFFFFFFFFFFFFFFF", "8000000000000000"))


def _fractions() -> Iterator[str]:
    """Doubles and floats as texts, decimals and numbers in JSON: of all sizes, and where Java's digits differ."""
    dice = Random(5)
    shortest = (dice.randrange(10 ** dice.randrange(1, 17)) / 10 ** dice.randrange(1, 20) for _ in range(_FRACTIONS))
    powers = (2.0**power for power in (*range(-60, -20, 3), -9, -1, 51, 52, 53))
    odd = (0.001, 9999999.999999998, 1e7, 1e-3 - 2**-62, 2e-3, 1.0e23, 2e23, 4503599627370497.5, 1e16, 1.5e300, 5e-324)
    for value in (0.0, -0.0, *shortest, *powers, *odd, -1.1, 123456789.125, 2097153.1):
        double, single = f"cast('{value!r}' as double)", f"cast(cast('{value!r}' as double) as float)"
        for number in (double, single):
            yield from (f"cast({number} as string)", f"concat('a', {number})", f"cast({number} as double)")
            yield from (f"try_cast({number} as decimal({digits}))" for digits in ("12,2", "38,18", "30,0"))
        yield from (f"{single} = {single}", f"greatest({double}, 1.5D)")
        document = sql_literal(f'{{"a": {value!r}, "b": {{"c": [{value!r}, "x", {{"d": -0.50}}]}}}}')
        yield from (f"get_json_object({document}, '{path}')" for path in ("$.a", "$.b", "$"))
        yield f"from_json({document}, 'a STRING, b STRING')"


def _lists() -> Iterator[str]:
    for left in _LISTS:
        yield from (f"{name}({left})" for name in ("size", "array_distinct", "reverse"))
        yield from (f"array_join({left}, '/')", f"concat_ws('-', {left}, 'x', null)", f"{left}[0]", f"get({left}, 7)")
        yield from (f"element_at({left}, {place})" for place in (1, -1, 9))
        yield from (f"filter({left}, x -> x is not null)", f"transform({left}, (x, i) -> concat(x, i))")
        yield from (f"exists({left}, x -> x = 'b')", f"array_contains({left}, 'a')", f"to_json({left})")
        yield from (f"aggregate({left}, 0, (s, x) -> s + 1, s -> s * 2)", f"array_repeat({left}, 2)")
        yield from (f"{name}({left}, {right})" for name in ("array_union", "array_except") for right in _LISTS)
        yield from (f"zip_with({left}, {right}, (x, y) -> concat(x, coalesce(y, '?')))" for right in _LISTS)
        yield from (f"flatten(array({left}, {right}))" for right in _LISTS)
    yield from ("sequence(1, 9, 4)", "size(cast(null as array<string>))", "map_keys(map('a', 1, 'b', 2))")


def _of_json() -> Iterator[str]:
    for text in map(sql_literal, _JSON):
        yield from (f"from_json({text}, {sql_literal(schema)})" for schema in _SCHEMAS)
        options = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '_c')"
        yield f"from_json({text}, 'a INT, b STRUCT<c: STRING>, _c STRING', {options})"
        yield from (f"get_json_object({text}, {sql_literal(path)})" for path in ("$.a", "$.b.c", "$['b']['e']", "$.d"))
        yield from (
            f"json_object_keys({text})",
            is_shallow_json(text),
            f"map_entries(from_json({text}, 'map<string,string>'))",
        )
        yield from (
            json_text.member_text(text, "b"),
            json_text.written_row(text),
            json_text.written_row(text, compact=True),
        )
    for text in ('\'[1, {"a": 2}, "x"]\'', "'[]'"):
        yield json_text.element_texts(text)
    for text in _broken_messages():
        # Of what is before the break, Spark keeps parts.
        read = f"from_json({sql_literal(text)}, 'op STRING, after STRUCT<a: INT, b: STRING>, _corrupt_record STRING')"
        yield f"{read}._corrupt_record"
    deep = sql_literal("[" * 120 + "]" * 120)
    yield from (is_shallow_json(deep), is_shallow_json(sql_literal('{"a":[{}]}' * 40)))


_MESSAGE = '{"op": "c", "after": {"a": -12, "b": "x\\"y", "d": [1.5, null, {}]}, "source": {"t": true}}'


def _broken_messages() -> Iterator[str]:
    """A message that breaks off anywhere, or in which some signs are lost, there twice or others."""
    yield from (_MESSAGE[:end] for end in range(1, len(_MESSAGE)))
    dice = Random(3)
    for _ in range(count(150, 150, 3000)):
        at = dice.randrange(len(_MESSAGE))
        other = dice.choice(("", dice.choice('{}[]",:\\x0-+.eE tfn'), 2 * _MESSAGE[at]))
        yield _MESSAGE[:at] + other + _MESSAGE[at + 1 :]


def _moments() -> Iterator[str]:
    for text in map(sql_literal, _MOMENTS):
        yield from (time_values.date(text), time_values.timestamp(text), time_values.is_local_text(text))
        moment = f"try_cast({text} as timestamp)"
        yield from (
            f"cast({moment} as string)",
            f"unix_micros({moment})",
            f"unix_millis({moment})",
            f"cast({moment} as date)",
        )
        yield from (
            f"date_format({moment}, '{form}')" for form in ("yyyyMM", "yyyy-MM-dd", "y_M_d", "HH.mm.ss", "yyMMdd")
        )
    for text in map(sql_literal, _NUMBERS_IN_TEXT):
        yield from (time_values.decode_time(encoding, text)[0] for encoding in Encoding if encoding in _DECODED)
    yield from (f"try_to_binary({text}, 'BASE64')" for text in map(sql_literal, _NO_BASE64))
    for text in map(sql_literal, _BASE64):
        yield from (base64_numbers.decimal(text, scale) for scale in (0, 2, 5))
        yield from (base64_numbers.decimal_text(text, scale) for scale in (0, 2, -2))
        yield from (base64_numbers.unsigned_number_sql(text), f"try_to_binary({text}, 'BASE64')")
    yield from (base64_numbers.plain_number(text) for text in ("'1E-7'", "'1.5E+3'", "'12'", "'-2.50e-2'"))
    parts = '{"year":2024,"month":2,"day":3,"hour":4,"minute":5,"second":6,"nanos":700000000,"offsetSeconds":3600}'
    for encoding in (Encoding.DATE_PARTS, Encoding.TIMESTAMP_PARTS, Encoding.TIME_PARTS):
        yield time_values.decode_time(encoding, sql_literal(parts))[0]


_DECODED = {
    Encoding.DAYS, Encoding.SECONDS, Encoding.MILLIS, Encoding.MICROS, Encoding.NANOS, Encoding.SECONDS_OF_DAY,
    Encoding.MILLIS_OF_DAY, Encoding.MICROS_OF_DAY, Encoding.NANOS_OF_DAY, Encoding.ISO_DATE, Encoding.ISO_TIME,
}  # fmt: skip
_GROUPS = {"texts": _texts, "numbers": _numbers, "fractions": _fractions, "lists": _lists, "json": _of_json,
           "moments": _moments}  # fmt: skip


def _here(expression: str) -> list[Value]:
    """The value in a list; nothing where it is Spark's."""
    try:
        value = RowFrame(["one"], [[1]]).selectExpr(f"{expression} as value").rows[0][0]
    except NotProvenError:
        return []
    return [] if isinstance(value, Rewritten) or "Rewritten" in _kinds(value) else [value]


def _kinds(value: Value) -> set[str]:
    if isinstance(value, list | tuple | dict):
        parts = value.values() if isinstance(value, dict) else value
        return {kind for each in parts for kind in _kinds(each)}
    return {type(value).__name__}


def _plain(value: Any) -> Any:
    """A value of Spark or of this process as comparable Python, with its type."""
    match value:
        case Row():
            return ("struct", *zip(value.names, map(_plain, value), strict=True))
        case tuple() if hasattr(value, "asDict"):
            return ("struct", *zip(value.__fields__, map(_plain, value), strict=True))  # type: ignore[attr-defined]
        case list() | tuple():
            return [_plain(each) for each in value]
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case bytearray() | bytes():
            return bytes(value)
        case None:
            return None
        case bool():
            return repr(value)
        case float():
            return ("float", repr(float(value)))
        case int() | Decimal():
            return str(value)
    return ("text", value)


@pytest.mark.parametrize("group", sorted(_GROUPS))
def test_a_value_of_this_process_is_sparks(spark: SparkSession, group: str) -> None:
    known = [(text, value[0]) for text in dict.fromkeys(_GROUPS[group]()) if (value := _here(text))]
    assert len(known) > 60, "most of these are certain"
    for start in range(0, len(known), _AT_ONCE):
        some = known[start : start + _AT_ONCE]
        # Of moments the text: Python's own are in the time zone of the machine.
        columns = (f"{_shown(text, value)} as c{place}" for place, (text, value) in enumerate(some))
        (row,) = spark.sql(f"select {', '.join(columns)}").collect()
        ours = [RowFrame(["one"], [[1]]).selectExpr(f"{_shown(text, value)} as v").rows[0][0] for text, value in some]
        differing = {
            text: (_plain(own), _plain(theirs))
            for (text, _), own, theirs in zip(some, ours, row, strict=True)
            if _plain(own) != _plain(theirs)
        }
        assert not differing


def _shown(text: str, value: Value) -> str:
    return f"cast({text} as string)" if "date" in type(value).__name__ else text
