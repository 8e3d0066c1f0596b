"""The hooks of pre-commit, run by pre-commit itself: a commit of sound SQL is made, one of broken SQL is refused."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.browser import SYSTEM_PATH
from tests.projects import enter_project

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {outputs: {t: {type: duckdb, schema: dws}}}\n",
    "seeds/rates.csv": "code,rate\na,1\n",
    "models/doubled.sql": "select\n  rate * 2 as rate\nfrom {{ ref('rates') }}\n",
}
ENVIRONMENT = {
    "PIP_NO_BUILD_ISOLATION": "0",  # as --no-build-isolation: hatchling is the one that is installed here
    "PIP_NO_DEPS": "1",
    # What the package needs is found there, the package is not.
    "PYTHONPATH": os.pathsep.join([str(ROOT / "tests/no_jvm"), sysconfig.get_path("purelib")]),
    "PATH": SYSTEM_PATH,
    "npm_config_offline": "true",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}

pytestmark = [
    pytest.mark.release,  # pre-commit makes an environment of its own; `test_plugs` holds the hooks in the suite
    pytest.mark.skipif(importlib.util.find_spec("pre_commit") is None, reason="pre-commit is not installed"),
    pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone of the repository"),
]


def test_a_sound_model_is_committed_and_a_broken_one_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (ENVIRONMENT | {"PRE_COMMIT_HOME": str(tmp_path / "environments")}).items():
        monkeypatch.setenv(name, value)
    copy_repository(tmp_path / "hooks")
    assert commit(tmp_path / "hooks").returncode == 0
    revision = git(tmp_path / "hooks", "rev-parse", "HEAD").stdout.strip()
    hooks = "[{id: sml-parse}, {id: sml-compile}]"
    configuration = f"repos: [{{repo: '{tmp_path}/hooks', rev: {revision}, hooks: {hooks}}}]\n"
    project = tmp_path / "shop"
    enter_project(project, monkeypatch, FILES | {".pre-commit-config.yaml": configuration})
    git(project, "init", "--quiet")
    subprocess.run([sys.executable, "-m", "pre_commit", "install"], check=True, capture_output=True)

    sound = commit(project)
    assert sound.returncode == 0, sound.stderr
    assert re.findall(r"^(sml \w+)\.+(\w+)$", sound.stderr, re.M) == [
        ("sml parse", "Passed"),
        ("sml compile", "Passed"),
    ]

    (project / "models/doubled.sql").write_text("select\n  rat * 2 as rate\nfrom {{ ref('rates') }}\n")
    broken = commit(project)
    assert broken.returncode == 1
    assert "models/doubled.sql:2:3" in broken.stderr
    assert "Traceback" not in broken.stderr
    assert git(project, "rev-list", "--count", "HEAD").stdout == "1\n", "it was not committed"


def copy_repository(folder: Path) -> None:
    """Copy the files of this repository as they are, committed or not."""
    for name in git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout.split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    git(folder, "init", "--quiet")


def commit(folder: Path) -> subprocess.CompletedProcess[str]:
    git(folder, "add", "--all")
    return git(folder, "commit", "--quiet", "--message", "some", check=False)


def git(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=check)
