"""What dbt accepts and nothing here uses is said once for a project, whatever the number of its places."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project
from tests.unit.cli.projects.test_mistakes import FILES

Shown = pytest.CaptureFixture[str]
GRANTS = (
    "config 'grants' has no effect here (grant privileges where the tables are read: catalog, storage or publishing)"
)


def configured(**config: str) -> dict[str, str]:
    """The project, with a config in each of two models."""
    call = ", ".join(f"{key}={value}" for key, value in config.items())
    return {**FILES, **{f: f"{{{{ config({call}) }}}}\n{FILES[f]}" for f in ("models/top.sql", "models/daily.sql")}}


def warnings(capsys: Shown, *args: str) -> list[str]:
    assert main(["parse", *args]) == 0
    lines = re.sub(r"(?m)^\d\d:\d\d:\d\d  ", "", capsys.readouterr().err).splitlines()
    return [line.removeprefix("warning: ") for line in lines if line.startswith("warning: ")]


def test_a_key_is_said_once_with_its_first_place_and_the_number_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    enter_project(tmp_path, monkeypatch, configured(grants="{'select': ['ann']}"))
    assert warnings(capsys) == [f"models/daily.sql:1:11: {GRANTS}, here and in 1 other place"]


def test_a_cached_project_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    enter_project(tmp_path / "shop", monkeypatch, configured(grants="{'select': ['ann']}", lookback="3"))
    first = warnings(capsys)
    assert len(first) == 2
    assert warnings(capsys, "--partial-parse") == first
    assert warnings(capsys, "--no-partial-parse") == first


def test_what_dbt_accepts_is_no_error_under_warn_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    enter_project(tmp_path, monkeypatch, configured(grants="{'select': ['ann']}"))
    assert warnings(capsys, "--warn-error") == [f"models/daily.sql:1:11: {GRANTS}, here and in 1 other place"]
    enter_project(tmp_path / "other", monkeypatch, configured(grant="{'select': ['ann']}"))
    assert main(["parse", "--warn-error"]) == 2
    assert "'grant'" in capsys.readouterr().err


def test_json_logs_have_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    enter_project(tmp_path, monkeypatch, configured(grants="{'select': ['ann']}"))
    assert main(["parse", "--log-format", "json"]) == 0
    shown = capsys.readouterr()
    infos = [json.loads(line)["info"] for line in (shown.out + shown.err).splitlines()]
    said = [info["msg"] for info in infos if info["level"] == "warn"]
    assert said == [f"warning: models/daily.sql:1:11: {GRANTS}, here and in 1 other place"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("batch_size", "'day'"),
        ("begin", "'2024-01-01'"),
        ("lookback", "2"),
        ("concurrent_batches", "true"),
        ("file_format", "'parquet'"),
        ("location_root", "'/lake'"),
        ("buckets", "4"),
        ("clustered_by", "'id'"),
        ("options", "{'compression': 'zstd'}"),
        ("tblproperties", "{'owner': 'ann'}"),
        ("database", "'raw'"),
        ("quoting", "{'identifier': true}"),
        ("sql_header", "'set x = 1'"),
        ("static_analysis", "'off'"),
    ],
)
def test_no_setting_is_ignored_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, key: str, value: str
) -> None:
    enter_project(tmp_path, monkeypatch, configured(**{key: value}))
    (said,) = warnings(capsys)
    assert re.match(
        rf"models/daily\.sql:1:\d+: config '{key}' has no effect here \(.+\), here and in 1 other place", said
    )


def test_a_setting_by_folder_is_at_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    settings = f"{FILES['dbt_project.yml']}    +grants: {{select: [ann]}}\n"
    enter_project(tmp_path, monkeypatch, {**FILES, "dbt_project.yml": settings})
    assert warnings(capsys) == [f"dbt_project.yml:9:5: {GRANTS}"]


@pytest.mark.parametrize("value", ["file_format='hudi'", "grants={}", "database=none"])
def test_a_value_that_asks_for_what_happens_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, value: str
) -> None:
    key, _, what = value.partition("=")
    enter_project(tmp_path, monkeypatch, configured(**{key: what}))
    assert warnings(capsys) == []


@pytest.mark.parametrize(
    ("file", "before", "after", "says"),
    [
        ("dbt_project.yml", "vars:", "require-dbt-version: '>=1.7'\nvars:",
         "dbt_project.yml:4:1: 'require-dbt-version' of the project's settings has no effect here"
         " (the version of dbt is not checked)"),
        ("models/schema.yml", "  - name: ods\n", "  - name: ods\n    database: raw\n",
         "models/schema.yml:4:5: 'database' of a source has no effect here"
         " (a target has one catalog; see `schema` and `location`)"),
        ("models/schema.yml", "      - name: total\n", "      - name: total\n        constraints: [{type: not_null}]\n",
         "models/schema.yml:35:9: 'constraints' of a column has no effect here"
         " (constraints are not enforced; write data tests)"),
    ],
)  # fmt: skip
def test_keys_of_yaml_are_said_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, file: str, before: str, after: str, says: str
) -> None:
    enter_project(tmp_path, monkeypatch, {**FILES, file: FILES[file].replace(before, after, 1)})
    assert warnings(capsys) == [says]


def test_what_stands_in_packages_is_not_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    package = {
        "dbt_packages/tools/dbt_project.yml": "name: tools\nversion: '1'\nrequire-dbt-version: '>=1.7'\n",
        "dbt_packages/tools/models/one.sql": "{{ config(grants={'select': ['ann']}) }} select 1 as id",
    }
    enter_project(tmp_path, monkeypatch, {**FILES, **package})
    assert warnings(capsys) == []
