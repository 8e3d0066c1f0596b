"""Functions of a project as its author meets them: declared in YAML, called by models, tests and questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb}, lake: {type: spark, warehouse: lake}}}\n",
    "dbt_project.yml": "name: shop\nmodels: {+materialized: incremental}\nvars: {rate: 19}\n",
    "functions/cents.sql": "-- of an amount\nround(amount * 100)",
    "functions/gross.sql": "{{ function('cents') }}(net) * (100 + {{ var('rate') }}) / parts",
    "functions/money.yml": """version: 2
functions:
  - name: cents
    description: An amount in cents.
    arguments: [{name: amount, data_type: "decimal(12,2)", description: In euros.}]
    returns: {data_type: bigint}
    config: {volatility: deterministic}
  - name: gross
    arguments:
      - {name: net, data_type: "decimal(12,2)"}
      - {name: parts, data_type: int, default_value: 1}
    returns: {data_type: double}
""",
    "models/sources.yml": """version: 2
sources:
  - name: ods
    tables:
      - name: orders
        columns: [{name: id, data_type: int}, {name: amount, data_type: "decimal(10,2)"}, {name: buyer, data_type: int}]
""",
    "models/m.sql": "select id, {{ function('cents') }}(amount) as c,\n  gross(amount) as g\n"
    "from {{ source('ods', 'orders') }}",
    "models/totals.sql": "select buyer, sum(cents(amount)) as total\nfrom {{ source('ods', 'orders') }} group by buyer",
    "fixtures/ods/orders.csv": "id,amount,buyer\n1,2.50,7\n2,,7\n3,10,8\n",
}


class Shop:
    """The project above, and what a call on it prints."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
        self.root, self._monkeypatch, self._capsys = root, monkeypatch, capsys

    def call(self, *words: str, files: dict[str, str] | None = None, code: int = 0) -> str:
        enter_project(self.root, self._monkeypatch, {**FILES, **(files or {})})
        ended = main([*words])
        shown = self._capsys.readouterr()
        assert ended == code, shown
        return shown.out + shown.err

    def rows(self, *words: str, files: dict[str, str] | None = None) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = json.loads(self.call(*words, "--output", "json", files=files))
        return sorted(rows, key=str)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Shop:
    return Shop(tmp_path, monkeypatch, capsys)


UNIT_TESTS = """unit_tests:
  - name: in_cents
    model: totals
    given:
      - input: source('ods', 'orders')
        rows: [{id: 1, amount: 2.5, buyer: 7}, {id: 2, amount: 1, buyer: 7}, {id: 3, amount: 4, buyer: 8}]
    changes:
      - input: source('ods', 'orders')
        upsert: [{id: 1, amount: 3, buyer: 8}]
        delete: [{id: 3}]
        key: [id]
    expect:
      rows: [{buyer: 7, total: 100}, {buyer: 8, total: 300}]
  - name: another_rate
    model: m
    overrides: {vars: {rate: 7}}
    given:
      - input: source('ods', 'orders')
        rows: [{id: 1, amount: 2}]
    expect:
      rows: [{id: 1, c: 200, g: 21400}]
"""


def test_models_unit_tests_data_tests_and_questions_call_functions(shop: Shop) -> None:
    files = {
        "models/tests.yml": UNIT_TESTS,
        "tests/no_debts.sql": "select id from {{ ref('m') }} where cents(c) < 0",
    }
    assert "PASS=5 WARN=0 ERROR=0" in shop.call("build", files=files)
    expected = [{"id": 1, "c": 250, "g": 29750.0}, {"id": 2, "c": None, "g": None}, {"id": 3, "c": 1000, "g": 119000.0}]
    assert shop.rows("show", "m") == sorted(expected, key=str)
    inline = "select cents(amount) as c from {{ source('ods', 'orders') }} where id = 3"
    assert shop.rows("show", "--inline", inline) == [{"c": 1000}]


def test_a_wrong_call_in_a_generic_test_is_located_at_its_entry(shop: Shop) -> None:
    tests = 'models:\n  - name: m\n    data_tests:\n      - unique: {column_name: id, config: {where: "%s > 3"}}\n'
    assert "1 of" in shop.call("build", files={"models/t.yml": tests % "cents(c)"})
    assert "models/t.yml:4:9: 'cents' has 1 argument, not 2" in shop.call(
        "parse", files={"models/t.yml": tests % "cents(c, 2)"}, code=2
    )


def test_plans_are_those_of_the_expression_written_out(shop: Shop) -> None:
    (totals, m) = (
        json.loads(shop.call("explain", "-t", "lake", "-s", name, "--output", "json"))["models"][0]
        for name in ("totals", "m")
    )
    assert totals["strategy"] == "aggregate_merge" and m["strategy"] == "row_based"
    assert [(one["class"], one["line"], one["column"]) for one in totals["aggregates"]] == [("mergeable", 1, 15)]
    shop.call("compile")
    assert (
        (shop.root / "target/compiled/shop/models/totals.sql")
        .read_text()
        .startswith("select buyer, sum(cast((round(cast((amount) as decimal(12,2)) * 100)) as bigint)) as total\n")
    )


def test_an_error_in_an_argument_is_that_of_the_model(shop: Shop) -> None:
    files = {"models/m.sql": "select id,\n  {{ function('gross') }}(amuont) as g\nfrom {{ source('ods', 'orders') }}"}
    assert "models/m.sql:2:27: " in shop.call("compile", files=files, code=2)
    files["models/m.sql"] = "select {{ function('cent') }}(id) as g\nfrom {{ source('ods', 'orders') }}"
    said = shop.call("compile", files=files, code=2)
    assert "models/m.sql:1:11: there is no function 'cent'" in said and "did you mean 'cents'?" in said


def test_a_changed_function_changes_the_models_that_call_it(shop: Shop) -> None:
    shop.call("compile")
    (shop.root / "target").rename(shop.root / "before")
    select = ("ls", "-s", "state:modified", "--state", "before")
    assert shop.call("ls", "-s", "state:modified", "--state", "before", code=0).count("shop.") == 0
    changed = {"functions/gross.sql": "{{ function('cents') }}(net) * 2 / parts"}
    assert shop.call(*select, "--resource-type", "model", files=changed).split() == ["shop.m"]
    changed = {"functions/cents.sql": "floor(amount * 100)"}
    assert shop.call(*select, "--resource-type", "model", files=changed).split() == ["shop.m", "shop.totals"]


def test_the_manifest_lists_functions_and_who_calls_them(shop: Shop) -> None:
    shop.call("compile")
    manifest = json.loads((shop.root / "target/manifest.json").read_text())
    cents = manifest["functions"]["function.shop.cents"]
    assert cents["arguments"][0]["data_type"] == "decimal(12,2)" and cents["returns"]["data_type"] == "bigint"
    assert cents["raw_code"] == FILES["functions/cents.sql"] and cents["config"]["volatility"] == "deterministic"
    node = manifest["nodes"]["model.shop.m"]
    assert node["depends_on"]["nodes"] == ["source.shop.ods.orders", "function.shop.cents", "function.shop.gross"]
    assert node["functions"] == [["cents"], ["gross"]]
    assert manifest["functions"]["function.shop.gross"]["depends_on"]["nodes"] == ["function.shop.cents"]
    assert manifest["child_map"]["function.shop.cents"] == ["function.shop.gross", "model.shop.m", "model.shop.totals"]


def test_functions_of_packages_are_called_as_ones_own(shop: Shop) -> None:
    declared = "functions: [{name: half, arguments: [{name: a, data_type: double}], returns: {data_type: double}}]\n"
    files = {
        "dbt_packages/kit/dbt_project.yml": "name: kit\n",
        "dbt_packages/kit/functions/half.sql": "a / 2",
        "dbt_packages/kit/functions/half.yml": declared,
        "models/m.sql": "select {{ function('kit', 'half') }}(3) as c, half(1) as g",
    }
    assert shop.rows("show", "m", files=files) == [{"c": 1.5, "g": 0.5}]
    files |= {"functions/half.sql": "a", "functions/half.yml": declared}
    assert "function 'half' is declared twice" in shop.call("compile", files=files, code=2)


def test_defaults_are_values_of_sql(shop: Shop) -> None:
    arguments = (
        "{name: d, data_type: date, default_value: 2024-02-03}, {name: b, data_type: boolean, default_value: no}"
    )
    files = {
        "functions/f.sql": "concat(d, ' ', b)",
        "functions/f.yml": f"functions: [{{name: f, arguments: [{arguments}], returns: {{data_type: string}}}}]\n",
        "models/m.sql": "select f() as c, f(date '2020-01-01', true) as g",
    }
    assert shop.rows("show", "m", files=files) == [{"c": "2024-02-03 false", "g": "2020-01-01 true"}]


def test_a_changed_function_below_another_one_changes_what_calls_that(shop: Shop) -> None:
    files = {"models/m.sql": "select id, gross(amount) as g from {{ source('ods', 'orders') }}"}
    shop.call("compile", files=files)
    (shop.root / "target").rename(shop.root / "before")
    files["functions/cents.sql"] = "floor(amount * 100)"
    select = ("ls", "-s", "state:modified.macros", "--state", "before", "--resource-type", "model")
    assert shop.call(*select, files=files).split() == ["shop.m", "shop.totals"]


RETURNS = "returns: {data_type: int}"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (f"name: gone, {RETURNS}", "1:20: function 'gone' has no file"),
        ("name: f", "1:13: function 'f' needs 'returns'"),
        ("name: f, returns: {data_type: intt}", "1:44: there is no type 'intt'"),
        ("name: f, returns: {data_type: int64}", "1:44: there is no type 'int64' in Spark"),
        ("name: f, returns: {data_type: 'int) , (x'}", "is not a type"),
        ("name: f, returns: {data_type: varchar(3)}", "values cannot be cast to varchar"),
        (f"name: f, {RETURNS}, config: {{volatility: stabel}}", "did you mean 'stable'?"),
        (
            f"name: f, {RETURNS}, arguments: [{{name: a, data_type: int}}, {{name: A, data_type: int}}]",
            "declared twice",
        ),
        (f"name: f, {RETURNS}, arguments: [{{name: a}}]", "argument 'a' needs 'data_type'"),
        (f"name: f, {RETURNS}, arguments: [{{name: 1a, data_type: int}}]", "'1a' cannot be the name of an argument"),
        (
            f"name: f, {RETURNS}, arguments: [{{name: a, data_type: int, default_value: 1}}, "
            "{name: b, data_type: int}]",
            "argument 'b' has no default, but the one before it has",
        ),
        (f"name: f, {RETURNS}}}, {{name: f, {RETURNS}", "function 'f' is declared twice"),
    ],
)
def test_a_wrong_declaration_is_an_error_with_its_place(shop: Shop, entry: str, said: str) -> None:
    files = {"functions/f.sql": "1", "functions/f.yml": f"functions: [{{{entry}}}]\n"}
    shown = shop.call("parse", files=files, code=2)
    assert said in shown and "functions/f.yml:1:" in shown


def test_a_file_without_an_entry_is_left_out_with_a_warning(shop: Shop) -> None:
    files = {"functions/f.sql": "1"}
    assert "functions/f.sql:1:1: this function has no entry in properties YAML" in shop.call("parse", files=files)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("type: aggregate", "'f' is an aggregate"),
        ("volatility: non-deterministic", "'f' is declared non-deterministic"),
    ],
)
def test_kinds_that_are_not_supported_are_refused_where_they_are_called(shop: Shop, config: str, said: str) -> None:
    files = {"functions/f.sql": "1", "functions/f.yml": f"functions: [{{name: f, config: {{{config}}}}}]\n"}
    assert f"functions/f.yml:1:20: function {said}" in shop.call("parse", files=files)
    files["models/m.sql"] = "select\n f() as x"
    assert f"models/m.sql:2:2: function {said}" in shop.call("parse", files=files, code=2)


def test_a_function_of_the_clock_is_declared_stable(shop: Shop) -> None:
    declared = "functions: [{name: age, arguments: [{name: d, data_type: date}], returns: {data_type: int}%s}]\n"
    files = {
        "functions/age.sql": "datediff(current_date, d)",
        "functions/age.yml": declared % ", config: {volatility: deterministic}",
        "models/m.sql": "select id, age(date '2024-01-01') as g from {{ source('ods', 'orders') }}",
    }
    assert "function 'age' reads the clock, but is declared deterministic" in shop.call("parse", files=files, code=2)
    for config in ("", ", config: {volatility: stable}"):
        files["functions/age.yml"] = declared % config
        (m,) = json.loads(shop.call("explain", "-t", "lake", "-s", "m", "--output", "json", files=files))["models"]
        assert m["strategy"] == "row_based" and "CLK001" in {reason["rule"] for reason in m["reasons"]}


PYTHON = {
    "functions/score.py": "print('the file runs')\n\n\ndef main(amount, name='x'):\n    return 1\n",
    "functions/score.yml": """version: 2
functions:
  - name: score
    arguments: [{name: amount, data_type: "decimal(12,2)"}, {name: name, data_type: string}]
    returns: {data_type: int}
    config: {volatility: deterministic, entry_point: main, runtime_version: "3.11"}
""",
    "models/scores.sql": "select id, {{ function('score') }}(amount, 'x') as s\nfrom {{ source('ods', 'orders') }}",
}


def test_a_python_function_is_called_by_a_name_that_holds_its_text(shop: Shop) -> None:
    names = []
    for text in ("return 1", "return 2"):
        source = PYTHON["functions/score.py"].replace("return 1", text)
        shown = shop.call("compile", "-s", "scores", files={**PYTHON, "functions/score.py": source})
        assert "the file runs" not in shown
        compiled = (shop.root / "target/compiled/shop/models/scores.sql").read_text()
        names.append(compiled.partition("cast((")[2].partition("(")[0])
        assert compiled.startswith(
            f"select id, cast(({names[-1]}(cast((amount) as decimal(12,2)), cast(('x') as string)))"
        )
    assert names[0] != names[1]
    manifest = json.loads((shop.root / "target/manifest.json").read_text())["functions"]["function.shop.score"]
    assert (manifest["language"], manifest["config"]["entry_point"]) == ("python", "main")


def test_what_a_python_function_decides_is_as_it_is_declared(shop: Shop) -> None:
    assert "row_based" in shop.call("explain", "-t", "lake", "-s", "scores", files=PYTHON)
    entry = PYTHON["functions/score.yml"].replace("volatility: deterministic, ", "")
    said = shop.call("explain", "-t", "lake", "-s", "scores", files={**PYTHON, "functions/score.yml": entry})
    assert "FUN001" in said and "full_refresh" in said
    said = shop.call("run", "-s", "scores", files=PYTHON, code=1)
    assert "not checkable here: the Python function score" in said


@pytest.mark.parametrize(
    ("path", "change", "error"),
    [
        ("functions/score.yml", ("entry_point: main, ", ""), ":3:11: function 'score' in Python has no entry_point"),
        ("functions/score.yml", ("main,", "mian,"), ":6:54: functions/score.py has no function 'mian'"),
        ("functions/score.yml", ("data_type: string", "data_type: timestamp"), ":4:85: argument 'name' has type"),
        ("functions/score.yml", ("data_type: int", "data_type: array<int>"), ":5:26: what function 'score'"),
        ("functions/score.py", ("amount, name='x'", "amount"), ":4:1: 'main' is not a function of 2"),
        ("functions/score.py", ("return 1", "return (1"), ":5:12: this is not Python"),
        ("models/scores.sql", ("(amount, 'x')", "(amount)"), ":1:12: 'score' has 2 arguments, not 1"),
    ],
)  # fmt: skip
def test_a_wrong_python_function_is_an_error_with_its_place(
    shop: Shop, path: str, change: tuple[str, str], error: str
) -> None:
    assert f"error: {path}{error}" in shop.call(
        "compile", files={**PYTHON, path: PYTHON[path].replace(*change)}, code=2
    )


def test_a_python_function_without_its_file_is_an_error(shop: Shop) -> None:
    files = {name: text for name, text in PYTHON.items() if not name.endswith(".py")}
    assert "function 'score' has no file" in shop.call("compile", files=files, code=2)
