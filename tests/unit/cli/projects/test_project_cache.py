"""A project that was read is not read again until something that reading looked at is other."""

from __future__ import annotations

import gc
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlmesh_like.app.loading import loaded
from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.context import staying

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
    found: list[int] = []
    render = loaded.render_project

    def counted(*given: object, **named: object) -> object:
        found.append(1)
        return render(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(loaded, "render_project", counted)
    return found


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
        {"models/m.sql": "select '{{ run_started_at }}' as at"},
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
    with staying():
        assert not gc.isenabled()
    assert (gc.isenabled(), gc.get_freeze_count()) == (True, before)
