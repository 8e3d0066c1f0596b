"""Flags of dbt that whatever drives it passes along: accepted, or refused with what to do instead."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "models/a.sql": "select 1 as id",
}
SWITCHES = [
    *("--anonymous-usage-stats", "--cache-selected-only", "--introspect", "--log-cache-events", "--macro-debugging"),
    *("--partial-parse", "--partial-parse-file-diff", "--populate-cache", "--print", "--send-anonymous-usage-stats"),
    *("--static-parser", "--use-colors-file", "--use-experimental-parser", "--use-fast-test-edges"),
    *("--version-check", "--write-json", "--debug", "--quiet", "--defer", "--fail-fast"),
]
WITH_VALUES = [
    *("--log-file-max-bytes=1", "--log-format-file=json", "--log-level=debug", "--log-level-file=none"),
    *("--log-path=logs", "--partial-parse-file-path=x", "--printer-width=120"),
]
REFUSED = {
    "--empty": "`sml compile` checks SQL without rows",
    "--sample": "leave it out",
    "--favor-state": "--defer reads from --state",
    "--single-threaded": "--threads 1",
    "--export-saved-queries": "publish a model",
    "--event-time-start=2024-01-01": "leave it out",
    "--event-time-end=2024-01-01": "leave it out",
    "--record-timing-info=x": "run_results.json",
    "--warn-error-options={}": "severity: error",
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


def test_harmless_flags_are_accepted_before_and_after_the_command() -> None:
    negated = [f"--no-{switch.removeprefix('--')}" for switch in SWITCHES]
    harmless = [switch for switch in SWITCHES if switch != "--defer"]
    assert main([*negated, "--use-colors", "run", "-q", *WITH_VALUES]) == 0
    assert main([*WITH_VALUES, "build", *harmless]) == 0


def test_they_change_nothing(project: Path, capsys: Shown) -> None:
    assert main(["ls", "--output", "json"]) == 0
    plain = capsys.readouterr().out
    assert main(["ls", "--output", "json", "--no-print", "--no-write-json", "--log-path", "elsewhere"]) == 0
    assert capsys.readouterr().out == plain
    assert not (project / "elsewhere").exists()


@pytest.mark.parametrize("flag", REFUSED)
@pytest.mark.parametrize("command", ["run", "compile"])
def test_what_would_change_a_result_is_refused_with_what_to_do(command: str, flag: str, capsys: Shown) -> None:
    assert main([command, flag]) == 2
    message = capsys.readouterr().err
    name = flag.partition("=")[0]
    assert f"{name} is dbt's alone: " in message and REFUSED[flag] in message


def test_help_lists_none_of_them(capsys: Shown) -> None:
    assert main(["run", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--printer-width" not in shown and "--target-path" in shown


@pytest.mark.parametrize("place", ["before", "after"])
def test_artifacts_go_where_the_call_says(project: Path, capsys: Shown, place: str) -> None:
    flags = ["--target-path", "elsewhere/t"]
    assert main([*flags, "build"] if place == "before" else ["build", *flags]) == 0
    folder = project / "elsewhere/t"
    assert {"manifest.json", "run_results.json"} <= {path.name for path in folder.iterdir()}
    assert not (project / "target").exists()
    assert main(["retry", *flags]) == 0
    assert "Nothing to retry" in capsys.readouterr().out
    assert main(["compile", "--target-path", os.fspath(project.parent / "absolute")]) == 0
    manifest = json.loads((project.parent / "absolute/manifest.json").read_text())
    assert manifest["nodes"]["model.shop.a"]["compiled_path"].startswith(os.fspath(project.parent / "absolute"))


def test_without_partial_parse_files_are_read_anew(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBT_PARTIAL_PARSE", raising=False)
    asked: list[bool] = []
    monkeypatch.setattr("sqlmesh_like.app.loading.project_cache._load_entry", lambda _path: asked.append(True))
    assert main(["parse", "--no-partial-parse", "-q"]) == 0
    assert asked == []
    assert main(["parse", "-q"]) == 0
    assert asked == [True]
