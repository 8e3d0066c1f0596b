"""`unit_tests:` as a user runs them: on DuckDB, with no JVM and no lake; what differs, and what is wrong, is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, MemoryLake

Shown = pytest.CaptureFixture[str]
Ask = Callable[..., tuple[int, str]]

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, warehouse: nowhere}, b: {type: duckdb}}}\n",
    "models/s.yml": """
sources:
  - name: ods
    tables:
      - name: orders
        columns:
          - {name: id, data_type: int}
          - {name: dt, data_type: date}
          - {name: amount, data_type: "decimal(10,2)"}
          - {name: note, data_type: string}
      - {name: users}
models:
  - {name: orders, columns: [{name: id, data_tests: [unique]}]}
""",
    "models/orders.sql": "select id, dt, amount, note from {{ source('ods', 'orders') }}\n"
    "where amount > {{ var('least', 0) }}",
    "models/daily.sql": "select dt, sum(amount) as total, count(*) as n from {{ ref('orders') }} group by dt",
    "models/cities.sql": "select city, count(*) as n from {{ source('ods', 'users') }} group by city",
    "models/sounds.sql": "select soundex(note) as s from {{ ref('orders') }}",
    "models/casts.sql": "select cast(note as int) as n from {{ ref('orders') }}",
    "models/recent.sql": "{{ config(materialized='view') }}\n"
    "select * from {{ ref('orders') }} where dt = current_date()",
    "models/top.sql": "select max(amount) as most from {{ ref('recent') }}",
    "models/delta.sql": "select id from {{ ref('orders') }}"
    "{% if is_incremental() %} where id > (select max(id) from {{ this }}){% endif %}",
}
GIVEN = """
    given:
      - input: ref('orders')
        rows: [{id: 1, dt: 2024-01-02, amount: 5.00}, {id: 2, dt: 2024-01-02, amount: 7.00}]
"""
REFUND = f"""unit_tests:
  - name: refund
    model: daily{GIVEN}
    changes:
      - input: ref('orders')
        upsert: [{{id: 1, dt: 2024-01-03}}]
        delete: [{{id: 2}}]
    expect:
      rows: [{{dt: 2024-01-03, total: 5.00}}]
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Ask:
    """Runs `sml` in a project whose unit tests are these; its exit code and all that it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)

    def run(tests: str, *words: str, **files: str) -> tuple[int, str]:
        for path, text in {**FILES, **files, "models/u.yml": tests}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        code = main([*(words or ("test", "-s", "test_type:unit")), "--no-color"])
        output = capsys.readouterr()
        return code, output.out + output.err

    return run


def unit(model: str, given: str, expect: str, more: str = "") -> str:
    return f"unit_tests:\n  - name: t\n    model: {model}\n    given: {given}\n    expect: {expect}\n{more}"


def ordered(*rows: str) -> str:
    return f"[{{input: ref('orders'), rows: [{', '.join(rows)}]}}]"


def test_changes_go_through_the_delta_program_to_the_final_table(ask: Ask, tmp_path: Path) -> None:
    code, shown = ask(REFUND)
    assert code == 0 and "PASS daily::refund" in shown and "PASS=1" in shown
    assert not (tmp_path / "nowhere").exists()
    result = json.loads((tmp_path / "target" / "run_results.json").read_text())["results"][0]
    assert (result["unique_id"], result["status"]) == ("unit_test.shop.daily.refund", "pass")
    assert result["adapter_response"] == {"strategy": "aggregate_merge"}


def test_names_of_rows_are_compared_without_case_from_row_to_row(ask: Ask) -> None:
    given = """[{input: "source('ods', 'users')", rows: [{city: Bonn}, {CITY: Bonn}, {City: Kiel}]}]"""
    code, shown = ask(unit("cities", given, "{rows: [{CITY: Bonn, n: 2}, {city: Kiel, N: 1}]}"))
    assert code == 0 and "PASS=1" in shown


def test_a_target_without_a_lake_will_do(ask: Ask) -> None:
    assert ask(REFUND, "test", "-s", "test_type:unit", "-t", "b")[0] == 0


def test_a_failing_test_shows_cell_by_cell_what_differs(ask: Ask) -> None:
    code, shown = ask(REFUND.replace("total: 5.00}", "total: 6.00}, {dt: 2024-01-09, total: 1}"))
    assert code == 1 and "FAIL 2 daily::refund" in shown
    assert "~ | 2024-01-03 | 6.00 → 5.00" in shown and "- | 2024-01-09 | 1.00" in shown
    assert "Failure in unit_test refund (models/u.yml:2:5)" in shown


def test_rows_that_are_not_expected_are_shown_with_all_columns(ask: Ask) -> None:
    code, shown = ask(unit("daily", ordered("{id: 1, dt: 2024-01-02, amount: 5}"), "{rows: []}"))
    assert code == 1 and "+ | 2024-01-02 | 5.00  | 1" in shown


def test_columns_not_mentioned_are_null_in_given_and_not_compared_in_expect(ask: Ask) -> None:
    rows = ordered("{id: 1, amount: 5}", "{id: 2, dt: 2024-01-02, amount: 1}")
    assert ask(unit("daily", rows, "{rows: [{dt: null, total: 5}, {dt: 2024-01-02, total: 1}]}"))[0] == 0


def test_equal_rows_are_counted(ask: Ask) -> None:
    rows = ordered("{id: 1, dt: 2024-01-02, amount: 5}", "{id: 2, dt: 2024-01-03, amount: 5}")
    code, shown = ask(unit("daily", rows, "{rows: [{total: 5}]}"))
    assert code == 1 and "1 not expected, 1 as expected" in shown


def test_rows_may_be_csv_or_sql_in_place_or_in_a_file(ask: Ask) -> None:
    given = "[{input: ref('orders'), format: csv, fixture: two}]"
    expect = "{format: sql, rows: \"select date '2024-01-02' as dt, 12 as total, 2 as n\"}"
    csv = {"tests/fixtures/two.csv": "id,dt,amount\n1,2024-01-02,5.00\n2,2024-01-02,7\n"}
    assert ask(unit("daily", given, expect), **csv)[0] == 0
    inline = (
        "\n      - input: ref('orders')\n        format: csv\n        rows: |\n          id,amount\n          1,5\n"
    )
    assert ask(unit("daily", inline, '{format: csv, rows: "total\\n5.00\\n"}'))[0] == 0


def test_columns_nobody_declares_follow_from_the_rows(ask: Ask) -> None:
    given = "[{input: \"source('ods', 'users')\", rows: [{id: 1, city: Rome}, {id: 2}]}]"
    assert ask(unit("cities", given, "{rows: [{city: Rome, n: 1}, {city: null, n: 1}]}"))[0] == 0


def test_variables_macros_environment_and_clock_can_be_overridden(ask: Ask) -> None:
    source = "[{input: \"source('ods', 'orders')\", rows: [{id: 1, amount: 5}, {id: 2, amount: 50}]}]"
    assert ask(unit("orders", source, "{rows: [{id: 2}]}", "    overrides: {vars: {least: 10}}\n"))[0] == 0
    this = "[{input: ref('orders'), rows: [{id: 1}, {id: 2}]}, {input: this, rows: [{id: 1}]}]"
    incremental = "    overrides: {macros: {is_incremental: true}}\n"
    assert ask(unit("delta", this, "{rows: [{id: 2}]}", incremental))[0] == 0
    rows = ordered("{id: 1, dt: 2024-01-02, amount: 5}", "{id: 2, dt: 2024-01-03, amount: 9}")
    assert ask(unit("top", rows, "{rows: [{most: 5}]}", "    overrides: {now: 2024-01-02T10:00:00Z}\n"))[0] == 0


def test_a_view_is_an_input_where_it_has_rows_else_its_query_is_read(ask: Ask) -> None:
    rows = "[{input: ref('recent'), rows: [{amount: 5}, {amount: 7}]}]"
    assert ask(unit("top", rows, "{rows: [{most: 7}]}"))[0] == 0


def test_what_duckdb_is_not_trusted_with_is_an_error_and_never_passes(ask: Ask) -> None:
    code, shown = ask(unit("sounds", ordered("{id: 1, note: a}"), "{rows: [{s: A000}]}"))
    assert code == 1 and "ERROR sounds::t" in shown and "not checkable here: function SOUNDEX" in shown


def test_a_value_on_which_the_engines_differ_is_an_error(ask: Ask) -> None:
    assert ask(unit("casts", ordered("{id: 1, note: '12'}"), "{rows: [{n: 12}]}"))[0] == 0
    code, shown = ask(unit("casts", ordered("{id: 1, note: '1.9'}"), "{rows: [{n: 1}]}"))
    assert code == 1 and "not checkable here: the cast to INT of 1.9" in shown


WRONG = {
    "an input that is no reference": (
        REFUND.replace("- input: ref('orders')\n        rows", "- input: orders\n        rows"),
        "5:16",
        "names nothing",
    ),
    "an unknown model": (
        REFUND.replace("- input: ref('orders')\n        rows", "- input: ref('order')\n        rows"),
        "5:16",
        "did you mean 'orders'?",
    ),
    "an input that the model does not read": (
        unit("daily", "[{input: ref('orders'), rows: []}, {input: ref('cities'), rows: []}]", "{rows: []}"),
        "4:55",
        "daily does not read ref('cities')",
    ),
    "an input without rows": (unit("daily", "[]", "{rows: []}"), "2:5", "has no rows for ref('orders')"),
    "an input given twice": (
        unit("daily", "[{input: ref('orders'), rows: []}, {input: ref('orders'), rows: []}]", "{rows: []}"),
        "4:55",
        "twice",
    ),
    "an unknown column": (unit("daily", ordered("{id: 1, amout: 5}"), "{rows: []}"), "4:51", "did you mean 'amount'?"),
    "an unknown expected column": (unit("daily", ordered(), "{rows: [{totl: 5}]}"), "5:22", "did you mean 'total'?"),
    "a value of another type": (unit("daily", ordered("{dt: x}"), "{rows: []}"), "4:44", "'x' is not a date"),
    "a decimal with too many digits": (
        unit("daily", ordered("{amount: 1.234}"), "{rows: []}"),
        "4:44",
        "is not a decimal(10,2)",
    ),
    "a line of CSV that is too long": (
        "unit_tests:\n  - name: t\n    model: daily\n    given:\n      - input: ref('orders')\n        format: csv\n"
        "        rows: |\n          id,dt\n          1,2024-01-02,5\n    expect: {rows: []}\n",
        "9",
        "this line has 3 fields",
    ),
    "a deleted row that is not there": (
        REFUND.replace("delete: [{id: 2}]", "delete: [{id: 3}]"),
        "11:18",
        "no row of ref('orders') is like this",
    ),
    "an upsert without its key": (
        REFUND.replace("[{id: 1, dt: 2024-01-03}]", "[{dt: 2024-01-03}]"),
        "10:18",
        "must give its key, 'id'",
    ),
    "an unknown macro": (
        REFUND + "    overrides: {macros: {is_incrementl: true}}\n",
        "2:5",
        "did you mean 'is_incremental'?",
    ),
    "a model without the test": (REFUND.replace("model: daily", "model: dayly"), "3:12", "did you mean 'daily'?"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_unit_test_is_refused_with_its_place_before_anything_runs(ask: Ask, case: str) -> None:
    text, place, message = WRONG[case]
    code, shown = ask(text)
    assert code == 2 and message in shown and "START" not in shown
    assert f"error: models/u.yml:{place}:" in shown


def test_which_row_an_upsert_replaces_is_asked_where_the_project_does_not_say(ask: Ask) -> None:
    given = "[{input: \"source('ods', 'users')\", rows: [{id: 1, city: Rome}]}]"
    change = "    changes:\n      - {input: \"source('ods', 'users')\", upsert: [{id: 1, city: Oslo}]%s}\n"
    code, shown = ask(unit("cities", given, "{rows: [{city: Oslo, n: 1}]}", change % ""))
    assert code == 2 and "add key: [column, …]" in shown
    assert ask(unit("cities", given, "{rows: [{city: Oslo, n: 1}]}", change % ", key: [id]"))[0] == 0


def test_unit_tests_come_with_their_model_and_stand_before_it(ask: Ask) -> None:
    code, shown = ask(REFUND, "ls", "-s", "daily")
    assert code == 0 and shown.split() == ["shop.daily", "unit_test:shop.refund"]
    assert ask(REFUND, "ls", "-s", "daily", "--resource-type", "unit_test")[1].split() == ["unit_test:shop.refund"]
    code, shown = ask(REFUND, "test", "-s", "test_type:data,daily")
    assert code == 2 and "matches nothing" in shown


def test_the_manifest_holds_unit_tests_as_dbt_has_them(ask: Ask, tmp_path: Path) -> None:
    ask(REFUND, "parse")
    manifest = json.loads((tmp_path / "target" / "manifest.json").read_text())
    entry = manifest["unit_tests"]["unit_test.shop.daily.refund"]
    assert (entry["model"], entry["given"][0]["input"]) == ("daily", "ref('orders')")
    assert entry["expect"] == {"rows": [{"dt": "2024-01-03", "total": 5.0}], "format": "dict", "fixture": None}
    assert entry["depends_on"]["nodes"] == ["model.shop.daily"]
    assert manifest["parent_map"]["unit_test.shop.daily.refund"] == ["model.shop.daily"]


def test_a_table_that_drifts_from_its_query_fails_whatever_is_expected(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_images_alone(
        lake: MemoryLake, compiled: CompiledModel, before: LakeSnapshot, after: LakeSnapshot
    ) -> None:
        lake._load("current", after)

    monkeypatch.setattr(MemoryLake, "apply", after_images_alone)
    code, shown = ask(REFUND.replace("dt: 2024-01-03, total: 5.00", "dt: 2024-01-02, total: 12.00"))
    assert code == 1 and "maintained by aggregate_merge differs from a full recompute" in shown
