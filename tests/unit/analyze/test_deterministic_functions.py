"""Which functions are the same in every run: a reviewed table, and what is left out of it on purpose."""

from __future__ import annotations

import pytest

from tests.properties.lake import compiled, schema

COLUMNS = schema(s="string", v="int", d="date", at="timestamp", arr="array<int>", st="struct<k:int>")

PURE = (
    "sin(v) + cbrt(v) + pi()", "pmod(v, 3)", "bround(v, 1)", "v & 3 | v ^ ~v", "shiftleft(v, 1)", "hex(v)",
    "instr(s, 'x')", "locate('x', s, 2)", "split(s, ',')[0]", "split_part(s, ',', 1)", "substring_index(s, '.', 2)",
    "translate(s, 'a', 'b')", "format_string('%s-%d', s, v)", "levenshtein(s, 'x')", "s ilike 'x%'", "nvl2(s, v, 0)",
    "sha1(s)", "xxhash64(s, v)", "crc32(s)", "base64(cast(s as binary))", "regexp_extract_all(s, 'x', 0)",
    "get_json_object(s, '$.a')", "from_json(s, 'a int').a", "to_json(struct(v, s))", "parse_url(s, 'HOST')",
    "url_encode(s)", "add_months(d, 1)", "months_between(d, d)", "next_day(d, 'MO')", "make_date(v, 1, 1)",
    "from_unixtime(v)", "unix_timestamp(at)", "unix_millis(at)",
    "from_utc_timestamp(at, 'Asia/Tokyo')", "dayofmonth(d)",
    "extract(month from d)", "date_part('year', d)", "timestampadd(hour, 1, at)", "timestampdiff(hour, at, at)",
    "weekday(d)", "array(v, 1)",
    "array_contains(arr, v)", "array_join(arr, ',')", "transform(arr, x -> x + v)", "filter(arr, (x, i) -> i > 0)",
    "aggregate(arr, 0, (acc, x) -> acc + x)", "exists(arr, x -> x = v)", "zip_with(arr, arr, (x, y) -> x * y)",
    "sort_array(arr)", "size(arr)", "sequence(1, v)", "element_at(arr, 1)", "arrays_overlap(arr, array(v))",
    "named_struct('a', v)", "try_divide(v, 0)", "isnan(v)", "typeof(v)", "width_bucket(v, 0, 10, 5)", "mask(s)",
)  # fmt: skip


@pytest.mark.parametrize("expression", PURE)
def test_a_deterministic_function_stands_on_an_incremental_path(expression: str) -> None:
    classification = compiled(f"select {expression} as r from ods.t", COLUMNS).classification
    assert classification.strategy == "row_based", classification.reasons


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ("shuffle(arr)", "FUN002"),
        ("current_user()", "FUN001"),
        ("current_database()", "FUN001"),
        ("input_file_name()", "FUN002"),
        ("aes_encrypt(s, s)", "FUN001"),
        ("java_method('java.util.UUID', 'randomUUID')", "FUN001"),
        ("map(s, v)", "FUN001"),
        ("str_to_map(s)", "FUN001"),
        ("from_json(s, 'map<string,int>')", "FUN001"),
        ("transform(arr, x -> x + rand())", "FUN002"),
    ],
)
def test_what_chance_session_or_place_decides_and_maps_are_not(expression: str, rule: str) -> None:
    classification = compiled(f"select {expression} as r from ods.t", COLUMNS).classification
    assert (classification.strategy, classification.reasons[0].rule) == ("full_refresh", rule)


def test_a_column_that_a_parameter_would_hide_is_not_read_inside_the_function() -> None:
    columns = schema(x="int", arr="array<int>")
    apart = compiled("select transform(arr, y -> y + t.x) as r from ods.t", columns).classification
    hidden = compiled("select transform(arr, x -> x + t.x) as r from ods.t", columns).classification
    assert (apart.strategy, hidden.strategy) == ("row_based", "full_refresh")
