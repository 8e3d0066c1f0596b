"""A project that was read is not read again until something that reading looked at is other."""

from __future__ import annotations

import gc
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.context import freeze_objects
from sqlmesh_like.render import renderer

Put = Callable[..., None]
KAFKA = ", ingest: {format: canal, kafka: {bootstrap_servers: b, topics: [t], options: {password: w}}}"
SOURCE = "sources: [{name: shop, tables: [{name: t, columns: [{name: id, data_type: int}]}]%s}]\n"
FILES = {
    "dbt_project.yml": "name: p\nvars: {n: 1}\n",
    "profiles.yml": "lake: {target: a, outputs: {a: {type: duckdb, schema: dws}, b: {type: duckdb, schema: dev}}}\n",
    "models/m.sql": "select id from {{ source('shop', 't') }} where id > {{ var('n') }}",
    "models/n.sql": "select id, '{{ env_var('WORD', 'none') }}' as w from {{ ref('m') }}",
    "models/s.yml": SOURCE % "",
    "macros/one.sql": "{% macro one() %}1{% endmacro %}",
}


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    def written(**files: str) -> None:
        for path, text in files.items():
            (tmp_path / "p" / path).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / "p" / path).write_text(text)

    written(**FILES)
    monkeypatch.chdir(tmp_path / "p")
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("DBT_PARTIAL_PARSE", "true")
    return written


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that the project was really read."""
    reads: list[int] = []
    render = renderer.render_project

    def counted(*given: object, **named: object) -> object:
        reads.append(1)
        return render(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(renderer, "render_project", counted)
    return reads


def compiled() -> str:
    return json.dumps(json.loads(Path("target/manifest.json").read_text())["nodes"], sort_keys=True)


def test_what_is_the_same_is_read_once_and_gives_the_same(put: Put, readings: list[int]) -> None:
    assert main(["parse", "-q"]) == 0
    first = compiled()
    Path("target/manifest.json").unlink()
    assert main(["parse", "-q"]) == 0
    assert main(["ls", "-q"]) == 0
    assert main(["compile", "-q"]) == 0
    assert readings == [1] and compiled() == first


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("models/m.sql", "select id + 1 as id from {{ source('shop', 't') }}"),
        ("models/new.sql", "select 1 as a"),
        ("models/deep/below.sql", "select 1 as a"),
        ("models/s.yml", SOURCE % ", description: it"),
        ("macros/one.sql", "{% macro one() %}2{% endmacro %}"),
        ("seeds/s.csv", "a\n1\n"),
        ("tests/t.sql", "select * from {{ ref('m') }}"),
        ("dbt_project.yml", "name: p\nvars: {n: 2}\n"),
        ("profiles.yml", FILES["profiles.yml"].replace("dws", "dwd")),
        ("packages.yml", "packages: []\n"),
        ("dbt_packages/tools/dbt_project.yml", "name: tools\n"),
    ],
)
def test_any_change_of_a_file_is_seen(put: Put, readings: list[int], path: str, text: str) -> None:
    assert main(["parse", "-q"]) == 0
    put(**{path: text})
    assert main(["parse", "-q"]) == 0
    assert readings == [1, 1]


def test_a_file_that_is_gone_a_variable_and_flags_are_seen(
    put: Put, readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [["parse"], ["parse", "--vars", "{n: 3}"], ["parse", "-t", "b"], ["parse"], ["parse", "-t", "b"]]
    assert [main([*call, "-q"]) for call in calls] == [0] * 5
    assert readings == [1, 1, 1]  # the last two are kept
    monkeypatch.setenv("WORD", "other")
    assert main(["parse", "-q"]) == 0
    assert len(readings) == 4 and "'other' as w" in compiled()
    Path("models/n.sql").unlink()
    assert main(["parse", "-q"]) == 0
    assert len(readings) == 5 and "model.p.n" not in compiled()
    monkeypatch.setenv("DBT_PARTIAL_PARSE", "false")
    assert main(["parse", "-q"]) == 0
    assert len(readings) == 6


@pytest.mark.parametrize(
    "files",
    [
        {"models/m.sql": "{{ config(tags=[run_started_at | string]) }} select 1 as id"},
        {"macros/one.sql": "{% macro generate_schema_name(n, m) %}s{{ run_started_at.microsecond }}{% endmacro %}"},
        {
            "models/m.sql": "select '{{ run_started_at }}' as at",
            "models/u.yml": "unit_tests: [{name: u, model: m, given: [], expect: {rows: [{at: x}]}}]",
        },
        {
            "models/s.yml": SOURCE
            % ", ingest: {format: canal, kafka: {bootstrap_servers: b, topics: [t], options: {p: w}}}"
        },
    ],
)
def test_what_must_not_be_kept_is_not(put: Put, readings: list[int], files: dict[str, str]) -> None:
    put(**files)
    assert [main(["parse", "-q"]) for _ in range(2)] == [0, 0]
    assert readings == [1, 1]


CLOCKED = {
    "models/m.sql": "{{ config(alias='mm') }}{{ log('said by m', info=true) }} select '{{ run_started_at }}' as at",
    "models/n.sql": "select at, '{{ env_var('WORD', 'none') }}' as w from {{ ref('m') }}",
    "models/o.sql": "{{ tick() }} select '{{ modules.re.sub('a', 'b', 'a') }}' as b",
    "macros/two.sql": "{% macro tick() %}{{ exceptions.warn('careful') }}{% endmacro %}"
    "{% macro tock() %}{{ return(modules.datetime.datetime.now()) }}{% endmacro %}",
    "tests/t.sql": "select * from {{ ref('m') }} where at = '{{ tock() }}' or at = '{{ invocation_id }}'",
    "analyses/a.sql": "select '{{ run_started_at.isoformat() }}' as at from {{ ref('m') }}",
    "models/d.sql": "{{ config(enabled=run_started_at is none) }} select 1 as id",
}


def test_only_nodes_that_ask_the_clock_are_rendered_anew(
    put: Put, readings: list[int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """They get the time of the call; what they and the others said is said again, as often as it was."""
    put(**CLOCKED)
    names, texts, said = [], [], []
    for _ in range(3):
        assert main(["parse"]) == 0
        output = capsys.readouterr().err
        said.append([output.count(words) for words in ("said by m", "careful")])
        nodes = json.loads(Path("target/manifest.json").read_text())["nodes"]
        assert main(["compile", "-q"]) == 0
        texts.append([(tmp_path / "p/target/compiled" / path).read_text() for path in sorted(_compiled_files())])
        names.append({name: node["alias"] for name, node in nodes.items()})
        assert "model.p.d" not in nodes
    assert readings == [1]  # `compile` is served too
    assert said[0] == said[1] == said[2] and said[0][1] == 1 and said[0][0] > 0
    assert names[0] == names[1] == names[2] and names[0]["model.p.m"] == "mm"
    changing = [[text for text in group if "20" in text] for group in texts]
    assert len(changing[0]) >= 1 and changing[0] != changing[1] != changing[2]
    assert [text for text in texts[0] if text not in changing[0]] == [t for t in texts[1] if t not in changing[1]]


def _compiled_files() -> list[str]:
    root = Path("target/compiled")
    return [str(path.relative_to(root)) for path in root.rglob("*.sql")]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("macros/two.sql", CLOCKED["macros/two.sql"] + "{% macro third() %}{% endmacro %}"),
        ("models/m.sql", CLOCKED["models/m.sql"] + ", 1 as more"),
        ("dbt_packages/tools/dbt_project.yml", "name: tools\n"),
    ],
)
def test_a_change_is_seen_beside_the_clock(put: Put, readings: list[int], path: str, text: str) -> None:
    put(**CLOCKED)
    assert main(["parse", "-q"]) == 0
    put(**{path: text})
    assert main(["parse", "-q"]) == 0
    assert readings == [1, 1]


def test_templates_that_ask_the_lake_and_print_are_kept(
    put: Put, readings: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    put(
        **{
            "models/m.sql": "{% set rows = run_query('select 1 as n') %}{{ log('asking', true) }}"
            "{% if execute %}select {{ rows.columns[0].values()[0] }} as id{% else %}select 0 as id{% endif %}",
            "macros/one.sql": "{% macro one() %}{% do adapter.get_columns_in_relation(this) %}1{% endmacro %}",
            "models/n.sql": "select id, {{ one() }} as n from {{ ref('m') }}",
        }
    )
    said = []
    for _ in range(2):
        assert main(["parse"]) == 0
        said.append(capsys.readouterr().err.count("asking"))
    assert readings == [1] and said[0] == said[1] > 0
    put(**{"models/m.sql": "{{ log('asking', true) }}{{ log('more', true) }}select 1 as id"})
    assert main(["parse"]) == 0
    assert "more" in capsys.readouterr().err and readings == [1, 1]


def test_a_word_alone_asks_no_clock(put: Put, readings: list[int]) -> None:
    put(**{"models/m.sql": "-- run_started_at\n{% set d = modules.datetime.date(2024, 1, 2) %} select '{{ d }}' as d"})
    assert [main(["parse", "-q"]) for _ in range(2)] == [0, 0]
    assert readings == [1] and "2024-01-02" in compiled()


def test_what_templates_say_is_said_again(put: Put, readings: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    put(**{"models/m.sql": "{{ log('said', info=true) }}{{ exceptions.warn('careful') }} select 1 as id"})
    said = []
    for _ in range(2):
        assert main(["parse"]) == 0
        shown = capsys.readouterr().err
        said.append((shown.count("said"), shown.count("careful")))
    assert said[0] == said[1] and said[0][1] == 1
    assert readings == [1]


def test_the_cache_is_the_users_own_and_damage_costs_time_only(put: Put, readings: list[int], tmp_path: Path) -> None:
    assert main(["parse", "-q"]) == 0
    (kept,) = (tmp_path / "cache/projects").glob("*.pickle")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600 and stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    kept.write_bytes(b"\x80\x05nonsense")
    assert main(["parse", "-q"]) == 0
    assert readings == [1, 1]


def test_what_stands_for_java_objects_is_never_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py4j", object())
    before = gc.get_freeze_count()
    with freeze_objects():
        assert not gc.isenabled()
    assert (gc.isenabled(), gc.get_freeze_count()) == (True, before)
