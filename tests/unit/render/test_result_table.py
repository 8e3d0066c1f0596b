"""Results of queries in templates: agate's interface, with the values that dbt-core 1.11.16 gives."""

from __future__ import annotations

import datetime
import logging
from decimal import Decimal

import pytest

from sqlmesh_like.errors import JinjaError
from sqlmesh_like.render.jinja.templates import Templates
from sqlmesh_like.render.results.result_table import ResultTable

DAY = datetime.date(2024, 1, 2)
NAMES = ("id", "name", "amt", "day", "ratio")
ROWS = (
    (1, "b", Decimal("1.50"), DAY, 2.5),
    (2, "a", None, None, None),
    (3, "b", Decimal("1234.12345"), DAY, 3.0),
)


def shown(expression: str, table: ResultTable | None = None) -> str:
    scope = {"t": table or ResultTable(NAMES, ROWS), "is_b": lambda row: row["name"] == "b"}
    return Templates().render("m.sql", f"{{{{ {expression} }}}}", scope).compiled


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("t.columns[1].values()", "('b', 'a', 'b')"),
        ("t.columns['name'].values_distinct()", "('b', 'a')"),
        ("t.columns['name'].values() == ('b', 'a', 'b') and t.rows[0] == t.rows[0]", "True"),
        ("t.distinct(is_b).columns[0].values()", "(1, 2)"),
        ("t.order_by(is_b).columns[0].values()", "(2, 1, 3)"),
        ("t.columns['amt'].values_without_nulls_sorted()", "[Decimal('1.50'), Decimal('1234.12345')]"),
        ("t.columns['amt'].values_sorted()[2]", "None"),
        ("t.columns[1:3] | map(attribute='name') | list", "['name', 'amt']"),
        ("t.columns['ratio'].values()", "(Decimal('2.5'), None, Decimal('3.0'))"),
        ("t.columns[4].index ~ t.columns[4].name ~ t.columns[4].data_type", "4ratioNumber"),
        ("t.columns.keys()", "('id', 'name', 'amt', 'day', 'ratio')"),
        ("t.columns['name'].keys()", "None"),
        ("t.rows[0].values()", f"(1, 'b', Decimal('1.50'), {DAY!r}, Decimal('2.5'))"),
        ("t.rows[0].items()[:2]", "(('id', 1), ('name', 'b'))"),
        ("t.rows[0].dict()['name'] ~ t.rows[0].get('no', 'x')", "bx"),
        ("'b' in t.rows[0]", "True"),
        ("t.rows[0]", f"<agate.Row: (1, 'b', Decimal('1.50'), {DAY!r}, Decimal('2.5'))>"),
        ("t.rows.values() | length ~ t.rows.keys()", "3None"),
        ("t.rows | map(attribute='name') | list", "['b', 'a', 'b']"),
        ("t.select(['name', 'id']).column_names", "('name', 'id')"),
        ("t.exclude('amt').column_names", "('id', 'name', 'day', 'ratio')"),
        ("t.rename({'id': 'key'}).column_names[0] ~ t.rename(['a', 'b', 'c', 'd', 'e']).column_names[4]", "keye"),
        ("t.order_by('name').columns[0].values()", "(2, 1, 3)"),
        ("t.order_by(['name', 'id'], reverse=true).columns[0].values()", "(3, 1, 2)"),
        ("t.order_by('amt').columns[0].values()", "(1, 3, 2)"),
        ("t.limit(2).columns[0].values() ~ t.limit(1, 3).columns[0].values()", "(1, 2)(2, 3)"),
        ("t.limit(0, 3, 2).columns[0].values()", "(1, 3)"),
        ("t.where(is_b).columns[0].values() ~ t.find(is_b).id", "(1, 3)1"),
        ("t.distinct('name').columns[0].values() ~ t.select('name').distinct() | length", "(1, 2)2"),
        ("t.group_by('name').keys() ~ t.group_by('name')['b'].columns[0].values()", "('b', 'a')(1, 3)"),
    ],
)
def test_a_result_is_read_as_agate_tables_are(expression: str, expected: str) -> None:
    assert shown(expression) == expected


def test_values_are_those_of_dbt() -> None:
    table = ResultTable(("a", "a", "n", "b"), [(1, [1, None], {"x": 1.5}, bytearray(b"z"))])
    assert table.column_names == ("a", "a_2", "n", "b")
    assert table.rows.values()[0].values() == (1, "[1, null]", '{"x": 1.5}', "b'z'")
    assert not ResultTable(("a",), []) and ResultTable(("a",), []).columns["a"] is not None


def test_a_repeated_column_gets_a_name_that_no_other_column_has() -> None:
    table = ResultTable(("a", "a_2", "a"), [(1, 2, 3)])
    assert table.column_names == ("a", "a_2", "a_2_2")
    assert shown("t.columns['a_2_2'].values()", table) == "(3,)"


def test_what_prints_is_said_and_what_writes_a_file_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("sqlmesh_like.render")
    log.addHandler(caplog.handler)
    log.setLevel(logging.INFO)
    try:
        assert shown("t.print_table(max_columns=4)") == "None"
        assert shown("t.limit(1).print_csv() ~ t.limit(1).print_json() ~ t.print_structure()") == "NoneNoneNone"
    finally:
        log.removeHandler(caplog.handler)
    assert caplog.messages[0].splitlines() == [
        "| id | name |        amt |        day | ... |",
        "| -- | ---- | ---------- | ---------- | --- |",
        "|  1 | b    |     1.500… | 2024-01-02 | ... |",
        "|  2 | a    |            |            | ... |",
        "|  3 | b    | 1,234.123… | 2024-01-02 | ... |",
    ]
    messages = list(dict.fromkeys(caplog.messages))
    assert messages[1:3] == [
        "id,name,amt,day,ratio\n1,b,1.50,2024-01-02,2.5",
        '[{"id": 1, "name": "b", "amt": "1.50", "day": "2024-01-02", "ratio": "2.5"}]',
    ]
    assert messages[3].splitlines()[2:4] == ["| id     | Integer   |", "| name   | Text      |"]
    for method in ("to_csv", "to_json"):
        with pytest.raises(JinjaError, match=f"{method} would write a file, which a template may not"):
            shown(f"t.{method}('/tmp/x')")
