"""What other repositories copy or name of this one does what it says: hooks of pre-commit, a workflow of GitHub."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

ROOT = Path(__file__).resolve().parents[2]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
WORKFLOW = yaml.safe_load((ROOT / "examples/github_actions.yml").read_text("utf-8"))
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {outputs: {t: {type: duckdb, schema: dws}}}\n",
    "seeds/rates.csv": "code,rate\na,1\n",
    "models/doubled.sql": "select code, rate * 2 as rate from {{ ref('rates') }}\n",
    "models/schema.yml": "unit_tests: [{name: doubles, model: doubled,"
    " given: [{input: ref('rates'), rows: [{code: a, rate: 2}]}], expect: {rows: [{code: a, rate: 4}]}}]\n",
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_lets_a_sound_project_pass_and_stops_another(hook: dict[str, object], project: Path) -> None:
    program, *words = shlex.split(str(hook["entry"]))
    assert program == "sml" and hook["language"] == "python" and hook["pass_filenames"] is False
    assert all(re.search(str(hook["files"]), path) for path in FILES)
    assert main(words) == 0
    (project / "models/doubled.sql").write_text("select code from {{ ref('rate') }}\n")
    assert main(words) == 2


def test_the_workflow_marks_the_lines_that_are_wrong(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = [step["run"] for step in WORKFLOW["jobs"]["compile"]["steps"] if step.get("run", "").startswith("sml ")]
    assert calls == [
        "sml deps",
        "sml compile --output github",
        "sml lint --output github",
        "sml test --select test_type:unit",
    ]
    for call in calls[1:]:
        assert main(shlex.split(call)[1:]) == 0, call
    assert "PASS=1" in capsys.readouterr().out
    (project / "models/doubled.sql").write_text("select\n  cod from {{ ref('rates') }}\n")
    assert main(shlex.split(calls[1])[1:]) == 2
    assert re.search(r"^::error file=models/doubled\.sql,line=2,col=3.*::", capsys.readouterr().out, re.MULTILINE)
