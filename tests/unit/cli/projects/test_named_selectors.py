"""selectors.yml and `--selector`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main

MODELS = {
    "models/a.sql": "{{ config(tags='daily') }}select 1 as x",
    "models/b.sql": "{{ config(tags=['daily', 'big']) }}select * from {{ ref('a') }}",
    "models/c.sql": "{{ config(materialized='table') }}select * from {{ ref('b') }}",
    "models/deep/d.sql": "select * from {{ ref('c') }}",
    "tests/both.sql": "select 1 from {{ ref('a') }} join {{ ref('c') }}",
}
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n[tool.sqlmesh_like.vars]\nwanted = "big"\n',
        "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: lake}}}\n",
    }
    for path, text in {**files, **MODELS}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    return tmp_path


def chosen(capsys: Shown, definition: str, *words: str) -> str:
    Path("selectors.yml").write_text(f"selectors:\n  - name: x\n    definition: {definition}\n")
    assert main(["ls", "--output", "name", *(words or ("--selector", "x"))]) == 0
    return " ".join(sorted(capsys.readouterr().out.split()))


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("tag:daily", "a b both"),
        ("'tag:big c'", "b both c"),
        ("'+b,tag:big'", "b"),
        ("{tag: big}", "b"),
        ("{tag: \"{{ var('wanted') }}\"}", "b"),
        ("{config.materialized: table}", "both c"),
        ("{method: fqn, value: b, parents: true}", "a b both"),
        ("{method: fqn, value: b, children: true, children_depth: 1}", "b both c"),
        ("{method: fqn, value: d, parents: true, parents_depth: 1}", "both c d"),
        ("{method: fqn, value: c, childrens_parents: true}", "a b both c d"),
        ("{method: tag, value: daily, exclude: [{tag: big}]}", "a both"),
        ("{method: fqn, value: [a, d], indirect_selection: empty}", "a d"),
        ("{method: fqn, value: a, indirect_selection: cautious}", "a"),
        ("{union: [{method: fqn, value: a, indirect_selection: cautious}, {fqn: d}, 'c']}", "a both c d"),
        ("{union: [a, {tag: big}, {exclude: [test_type:singular]}]}", "a b"),
        ("{intersection: [{tag: daily}, {method: fqn, value: b, parents: true}, {exclude: [b]}]}", "a both"),
        ("{union: [{intersection: [tag:daily, tag:big]}, {fqn: d}]}", "b d"),
        ("{path: models/deep}", "d"),
    ],
)
def test_a_definition_chooses(capsys: Shown, definition: str, expected: str) -> None:
    assert chosen(capsys, definition) == expected


def test_a_selector_may_name_another_in_any_order(capsys: Shown) -> None:
    other = "{method: selector, value: y}\n  - {name: y, definition: {tag: big}}"
    assert chosen(capsys, other) == "b"
    assert chosen(capsys, "{union: [{selector: y}, d]}\n  - {name: y, definition: {tag: big}}") == "b d"


def test_the_default_stands_where_a_call_chooses_nothing(capsys: Shown) -> None:
    assert chosen(capsys, "{tag: big}\n    default: true", "-q") == "b"
    assert chosen(capsys, "{tag: big}\n    default: true", "-s", "d") == "d"
    assert chosen(capsys, "{tag: big}\n    default: true", "--exclude", "b+") == "a"


def test_a_manifest_is_whole_whatever_is_the_default(capsys: Shown) -> None:
    chosen(capsys, "{tag: big}\n    default: true", "-q")
    assert main(["compile", "-q"]) == 0
    assert "model.shop.d" in Path("target/manifest.json").read_text()


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("{taag: big}", "selectors.yml:3:5: unknown method 'taag'\n  did you mean 'tag'?"),
        ("{tag: big, path: x}", "a definition needs `method` and `value`"),
        ("{method: tag}", "value is missing"),
        ("{method: tag, value: big, parent: true}", "unknown key 'parent' in a definition\n  did you mean 'parents'?"),
        ("{method: tag, value: big, parents: maybe}", "parents must be true or false"),
        ("{method: tag, value: big, indirect_selection: egaer}", "did you mean 'eager'?"),
        ("{union: [a], intersection: [b]}", "one of union and intersection"),
        ("{union: []}", "union holds nothing"),
        ("{union: [a, {exclude: [b]}, {exclude: [c]}]}", "more than one exclude"),
        ("{union: a}", "union must be a list"),
        ("{selector: z}", "no selector is named 'z'"),
        ("{selector: x}", "in a circle: x -> x"),
        ("'tagg:x'", "selectors.yml:3:17: selector 'tagg:x' has the unknown method 'tagg'"),
        ("[a, b]", "a definition must be a mapping"),
        ("a\n  - {name: x, definition: b}", "selector 'x' is defined twice"),
        ("a\n    default: true\n  - {name: y, definition: b, default: true}", "are both the default"),
        ("a\n  - {name: y}", "definition is missing"),
        ("{tag: nope}", "nothing is left of the selection of the selector"),
    ],
)
def test_a_wrong_definition_exits_2_with_its_place(capsys: Shown, definition: str, message: str) -> None:
    Path("selectors.yml").write_text(f"selectors:\n  - name: x\n    definition: {definition}\n")
    assert main(["ls", "--selector", "x"]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--selector", "nigthly"], "no selector is named 'nigthly'\n  did you mean 'nightly'?"),
        (["--selector", "nightly", "-s", "a"], "--selector replaces --select"),
    ],
)
def test_a_wrong_call_exits_2(capsys: Shown, words: list[str], message: str) -> None:
    Path("selectors.yml").write_text("selectors: [{name: nightly, definition: a}]")
    assert main(["ls", *words]) == 2
    assert message in capsys.readouterr().err


def test_without_a_file_there_are_no_selectors(capsys: Shown) -> None:
    assert main(["ls", "--selector", "x"]) == 2
    assert "there is no selectors.yml" in capsys.readouterr().err
