"""A `duckdb` target: the whole DAG and its data tests over fixture files, with no JVM; what is not trusted is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main

Shown = pytest.CaptureFixture[str]
Ask = Callable[..., tuple[int, str]]

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: t, outputs: {t: {type: duckdb, schema: dws}, s: {type: spark, warehouse: w}}}\n",
    "models/s.yml": """
sources:
  - name: ods
    ingest: {format: debezium, files: {path: 'landing/*'}}
    tables:
      - name: orders
        ingest: {primary_key: [id], partition_by: {column: at, format: yyyyMM, as: year_month}}
        columns:
          - {name: id, data_type: int}
          - {name: at, data_type: timestamp}
          - {name: amount, data_type: "decimal(10,2)"}
          - {name: note, data_type: string}
      - name: users
models:
  - {name: orders, columns: [{name: id, data_tests: [unique, not_null]}]}
  - name: monthly
    columns:
      - name: year_month
        data_tests: [unique, {accepted_values: {values: ['202401', '202402']}}]
""",
    "models/orders.sql": "select * from {{ source('ods', 'orders') }} where amount > 0",
    "models/monthly.sql": "select year_month, sum(amount) as total, count(*) as n from {{ ref('orders') }} group by 1",
    "models/recent.sql": "{{ config(materialized='view') }} select * from {{ ref('orders') }} where at > now()",
    "models/named.sql": "select o.id, u.name, r.rate from {{ ref('orders') }} o\n"
    "join {{ source('ods', 'users') }} u on u.id = o.id left join {{ ref('rates') }} r on r.id = o.id",
    "seeds/rates.csv": "id,rate\n1,0.5\n",
    "tests/no_empty_month.sql": "select * from {{ ref('monthly') }} where n < 1",
    "fixtures/ods/orders.csv": "id,at,amount,note\n1,2024-01-31 23:59:59,5.00,a\n2,2024-02-01 00:00:00,7,\n3,,0,c\n",
    "fixtures/ods/users.yml": "- {id: 1, name: Ada}\n- {id: 2}\n",
}


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Ask:
    """Writes more files and calls `sml`; its exit code and all it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)

    def call(*words: str, **files: str) -> tuple[int, str]:
        for path, text in {**FILES, **files}.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text)
        code = main([*words])
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return code, shown.out + shown.err

    return call


def test_a_build_goes_through_the_whole_graph_and_its_tests(ask: Ask) -> None:
    code, message = ask("build")
    assert code == 0, message
    assert "Done. PASS=10 WARN=0 ERROR=0 SKIP=0 NO-OP=0 TOTAL=10" in message
    assert "OK created sql incremental model dws.monthly" in message
    results = json.loads(Path("target/run_results.json").read_text())["results"]
    assert {row["status"] for row in results} == {"success", "pass"}


def test_what_is_read_is_built_whether_it_is_selected_or_not(ask: Ask) -> None:
    code, message = ask("test", "-s", "monthly,test_type:generic")
    assert (code, "TOTAL=2" in message) == (0, True)
    code, message = ask("run", "-s", "named")
    assert (code, "1 of 1 OK created sql incremental model dws.named" in message) == (0, True)


def test_what_is_read_may_be_below_what_is_selected(ask: Ask) -> None:
    same = "select m.n from {{ ref('monthly') }} m join {{ ref('orders') }} o on o.id = m.n where o.id < 0"
    code, message = ask("build", "-s", "+orders", **{"tests/same.sql": same})
    assert (code, "PASS same" in message) == (0, True), message


def test_show_computes_what_it_shows(ask: Ask) -> None:
    code, message = ask("show", "monthly", "--output", "json")
    assert sorted(json.loads(message), key=lambda row: row["year_month"]) == [
        {"year_month": "202401", "total": "5.00", "n": 1},
        {"year_month": "202402", "total": "7.00", "n": 1},
    ]
    code, message = ask("show", "--output", "csv", "--inline", "select count(*) as n from {{ ref('recent') }}")
    assert (code, message) == (0, "n\n0\n")
    assert "rate" in ask("show", "named")[1]


def test_a_failing_test_is_a_failure_and_skips_what_follows(ask: Ask) -> None:
    code, message = ask("build", **{"fixtures/ods/orders.csv": "id,amount\n1,1\n1,2\n"})
    assert code == 1
    assert "FAIL 1 unique_orders_id" in message
    assert "SKIP sql incremental model dws.monthly" in message


def test_a_source_without_a_fixture_is_named_with_the_file_to_make(ask: Ask) -> None:
    more = "sources: [{name: pay, tables: [{name: bills}]}]"
    code, message = ask("build", **{"models/p.yml": more, "models/m.sql": "select * from {{ source('pay', 'bills') }}"})
    assert code == 1  # what does not read it is built
    assert "models/p.yml:1:" in message and "make fixtures/pay/bills.csv" in message
    assert ask("run", "-s", "monthly")[0] == 0  # it does not read it


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,amount\n1,x\n", "fixtures/ods/orders.csv:2:3: 'x' is not a decimal(10,2) for column 'amount'"),
        ("id,amout\n1,2\n", "did you mean 'amount'?"),
        ("id,amount\n1\n", "fixtures/ods/orders.csv:2"),
    ],
)
def test_a_wrong_fixture_is_refused_at_its_place(ask: Ask, text: str, message: str) -> None:
    code, said = ask("build", **{"fixtures/ods/orders.csv": text})
    assert code == 2 and message in said


def test_a_fixture_of_nothing_is_warned_of(ask: Ask) -> None:
    code, message = ask("build", **{"fixtures/ods/ordres.csv": "id\n1\n"})
    assert code == 0
    assert "fixtures/ods/ordres.csv is not the fixture of any source or model (did you mean 'ods/orders'?)" in message


SOUNDS = {"models/sounds.sql": "select soundex(note) as s, id from {{ ref('orders') }}"}
SOUNDS |= {"models/heard.sql": "select s, count(*) as n from {{ ref('sounds') }} group by s"}


def test_what_duckdb_is_not_trusted_with_fails_by_name_and_skips_its_readers(ask: Ask) -> None:
    code, message = ask("build", **SOUNDS)
    assert code == 1
    assert "models/sounds.sql: not checkable here: function SOUNDEX" in message
    assert "fixtures/ref/sounds.csv can stand for it" in message
    assert "ERROR=1 SKIP=1" in message


def test_a_value_on_which_the_engines_differ_fails_by_name(ask: Ask) -> None:
    models = {"models/casts.sql": "select cast(note as int) as n from {{ ref('orders') }}"}
    fixture = {"fixtures/ods/orders.csv": "id,amount,note\n1,1,1.9\n"}
    code, message = ask("run", "-s", "casts", **models, **fixture)
    assert code == 1 and "not checkable here: the cast to INT of 1.9" in message


def test_text_is_not_joined_with_numbers(ask: Ask) -> None:
    models = {"models/joined.sql": "select o.id from {{ ref('orders') }} o join {{ ref('rates') }} r on o.note = r.id"}
    code, message = ask("run", "-s", "joined", **models)
    assert code == 1 and "not checkable here: a comparison of VARCHAR and INTEGER" in message


DIVIDED = {
    "models/divided.sql": "with w as (select id, cast(amount as decimal(12,2)) as a\n"
    "from {{ source('ods', 'orders') }}) select id, a / id as q from w",
    "models/divided.yml": """
unit_tests:
  - name: all_digits
    model: divided
    given: [{input: "source('ods', 'orders')", rows: [{id: 7, amount: -1.50}]}]
    expect: {rows: [{id: 7, q: -0.2142857142857}]}
""",
    "fixtures/ods/orders.csv": "id,amount\n7,-1.50\n",
}


def test_a_quotient_of_decimals_has_the_digits_of_spark(ask: Ask) -> None:
    code, message = ask("show", "divided", "--output", "csv", **DIVIDED)
    assert code == 0 and message.splitlines()[-1] == "7,-0.2142857142857"
    code, message = ask("test", "-s", "test_type:unit")
    assert code == 0 and "PASS divided::all_digits" in message


def test_a_fixture_stands_for_a_model_that_is_not_checkable_and_that_is_said(ask: Ask) -> None:
    code, message = ask("build", **SOUNDS, **{"fixtures/ref/sounds.csv": "s,id\nA100,1\nA100,2\n"})
    assert code == 0, message
    assert "WARN=1" in message
    assert "not checkable here: function SOUNDEX; its rows are those of fixtures/ref/sounds.csv" in message
    rows, warning = ask("show", "heard", "--output", "json")[1].splitlines()
    assert rows == '[{"s": "A100", "n": 2}]' and "warning: sounds, which is read: not checkable here" in warning


def test_a_data_test_that_is_not_checkable_is_an_error(ask: Ask) -> None:
    code, message = ask("test", **{"tests/odd.sql": "select 1 from {{ ref('orders') }} where soundex(note) = 'x'"})
    assert code == 1
    assert "not checkable here: function SOUNDEX" in message


LENIENT = {"profiles.yml": FILES["profiles.yml"].replace("schema: dws}", "schema: dws, on_unproven: warn}")}


def test_a_target_may_ask_for_rows_that_are_not_proven_and_each_node_says_so(ask: Ask) -> None:
    odd = {
        "models/odd.sql": "select sign(id) * id as n, cast(note as int) as m from {{ ref('orders') }}",
        "models/even.sql": "select n, count(*) as k from {{ ref('odd') }} group by n",
        "snapshots/s.yml": "snapshots: [{name: kept, relation: ref('odd'),"
        " config: {unique_key: n, strategy: check, check_cols: all}}]",
        "tests/right.sql": "select 1 from {{ ref('odd') }} where sign(n) < 0",
        "tests/wrong.sql": "select n from {{ ref('even') }} where sign(n) > 0",
    }
    rows = {"fixtures/ods/orders.csv": "id,amount,note\n1,5.00,1.9\n2,7,2\n"}
    code, message = ask("build", "-s", "+odd+", **LENIENT, **odd, **rows)
    why = "not checkable here: function SIGN; computed by DuckDB (on_unproven: warn), its rows may not be Spark's"
    assert code == 1 and message.count(why) >= 3, message
    assert "WARN 0 right" in message and "FAIL 2 wrong" in message
    assert "WARN=2 ERROR=1 SKIP=0" in message
    results = json.loads(Path("target/run_results.json").read_text())["results"]
    status = {result["unique_id"].split(".")[-1]: result["status"] for result in results}
    assert (status["odd"], status["even"], status["right"], status["wrong"]) == ("warn", "success", "warn", "fail")
    code, message = ask("show", "even", "--output", "csv", **LENIENT)
    assert code == 0 and "n,k\n1.0,1\n2.0,1\n" in message
    assert f"warning: odd, which is read: {why}" in message


def test_a_fixture_goes_before_rows_that_are_not_proven(ask: Ask) -> None:
    code, message = ask("build", "-s", "sounds+", **LENIENT, **SOUNDS, **{"fixtures/ref/sounds.csv": "s,id\nA100,1\n"})
    assert (
        code == 0 and "its rows are those of fixtures/ref/sounds.csv" in message and "computed by DuckDB" not in message
    )


def test_what_duckdb_cannot_compute_stays_an_error(ask: Ask) -> None:
    code, message = ask("build", "-s", "sounds+", **LENIENT, **SOUNDS)
    assert code == 1 and "ERROR=1" in message and "SKIP=1" in message and "models/sounds.sql" in message


@pytest.mark.parametrize("value", ["wran", "true", "[warn]"])
def test_on_unproven_takes_two_words(ask: Ask, value: str) -> None:
    profile = {"profiles.yml": LENIENT["profiles.yml"].replace("on_unproven: warn", f"on_unproven: {value}")}
    code, message = ask("parse", **profile)
    assert code == 2 and "profiles.yml:1:" in message and "on_unproven" in message


def test_on_unproven_means_nothing_on_spark_and_is_refused_there(ask: Ask) -> None:
    profile = {"profiles.yml": FILES["profiles.yml"].replace("warehouse: w", "warehouse: w, on_unproven: warn")}
    code, message = ask("parse", "-t", "s", **profile)
    assert code == 2 and "on_unproven is for outputs of type duckdb" in message and "profiles.yml:1:" in message


UNIT = """
unit_tests:
  - {name: said, model: odd, given: [{input: ref('orders'), rows: [{id: 3}]}], expect: {rows: [{n: 3}]}}
  - {name: cut, model: cut, given: [{input: ref('orders'), rows: [{note: '1.9'}]}], expect: {rows: [{n: 2}]}}
  - {name: wrong, model: odd, given: [{input: ref('orders'), rows: [{id: 3}]}], expect: {rows: [{n: 4}]}}
"""


def test_unit_tests_follow_it_and_never_pass_without_a_word(ask: Ask) -> None:
    models = {
        "models/odd.sql": "select sign(id) * id as n from {{ ref('orders') }}",
        "models/cut.sql": "select cast(note as int) as n from {{ ref('orders') }}",
        "models/units.yml": UNIT,
    }
    code, message = ask("test", "-s", "test_type:unit", **LENIENT, **models)
    assert code == 1 and "PASS=0 WARN=2 ERROR=1" in message, message
    assert "function SIGN; passed on DuckDB (on_unproven: warn), may fail on Spark" in message
    assert "the cast to INT of 1.9; passed on DuckDB" in message
    assert ask("test", "-s", "test_type:unit")[1].count("not checkable here") == 3


def test_a_unique_key_that_repeats_fails_as_on_spark(ask: Ask) -> None:
    model = "{{ config(unique_key='note') }} select 'a' as note from {{ ref('orders') }}"
    code, message = ask("run", "-s", "keyed", **{"models/keyed.sql": model})
    assert code == 1
    assert "unique_key (note) of dws.keyed repeats: up to 2 rows share one" in message


def test_columns_of_fixtures_are_known_when_compiling(ask: Ask) -> None:
    code, message = ask("compile", **{"models/bad.sql": "select nmae from {{ source('ods', 'users') }}"})
    assert code == 2 and "models/bad.sql:1:8" in message and "did you mean 'name'?" in message


def test_files_are_out_of_reach_of_a_model(ask: Ask) -> None:
    Path("secret.csv").write_text("a\n1\n")
    code, message = ask("show", "--inline", "select * from `secret.csv`")
    assert code != 0
    assert "1\n" not in message.splitlines()


@pytest.mark.checklist(70)
def test_the_demo_of_this_repository_passes(ask: Ask, tmp_path: Path) -> None:
    here = Path(__file__).resolve().parents[3]
    for folder in ("models", "macros", "seeds", "fixtures", "tests/data"):
        shutil.copytree(here / folder, tmp_path / "demo" / folder)
    for file in ("pyproject.toml", "profiles.yml"):
        shutil.copy(here / file, tmp_path / "demo")
    assert main(["build", "-t", "test", "-q", "--project-dir", str(tmp_path / "demo")]) == 0


def test_failures_that_are_to_be_stored_are_counted_and_nothing_is_stored(ask: Ask) -> None:
    config = "{{ config(store_failures=true, limit=1) }}"
    code, message = ask("test", "-s", "found", **{"tests/found.sql": config + "select * from {{ ref('orders') }}"})
    assert code == 1 and "Got 1 result, configured to fail if != 0" in message
    assert "sml show" not in message
    for command in ("test", "build"):
        assert "Got 1 result" in ask(command, "--store-failures")[1]


def test_a_watermark_is_warned_of_once_and_not_run(ask: Ask) -> None:
    query = "select id from {{ ref('orders') }}{% if is_incremental() %} where id > 9{% endif %}"
    code, message = ask("run", **{"models/marked.sql": query})
    warning = "models/marked.sql:1:41: CFG004 marked: the is_incremental() branch is not run"
    assert code == 0 and message.count(warning) == 1
    assert ask("show", "marked", "--output", "csv")[1].split() == ["id", "1", "2"]


def test_no_lake_is_made(ask: Ask) -> None:
    assert ask("build")[0] == 0
    assert not Path("warehouse").exists()
