"""Projects as people have them: what dbt takes is taken, as its users know it."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "dbt_project.yml": "name: shop\n",
}


class Project:
    """A dbt project in a temporary folder, and what a call on it prints."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
        self.root, self._monkeypatch, self._capsys = root, monkeypatch, capsys

    def call(self, *words: str, files: dict[str, str], code: int = 0) -> str:
        """What a call prints, standard error included."""
        enter_project(self.root, self._monkeypatch, {**FILES, **files})
        ended = main([*words])
        shown = self._capsys.readouterr()
        assert ended == code, shown
        assert "Traceback" not in shown.err
        return shown.out + shown.err

    def compiled(self, model: str, files: dict[str, str] | None = None, *words: str) -> str:
        """The text that a model comes to."""
        self.call("compile", *words, files={"models/m.sql": model, **(files or {})})
        return (self.root / "target/compiled/shop/models/m.sql").read_text().strip()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Project:
    return Project(tmp_path, monkeypatch, capsys)


def test_compile_and_show_know_when_they_started(project: Project) -> None:
    before = datetime.datetime.now(datetime.UTC)
    started = project.compiled("select '{{ run_started_at.isoformat() }}' as at").split("'")[1]
    inline = project.call("compile", "--inline", "{{ run_started_at.isoformat() }}", files={}).strip()
    after = datetime.datetime.now(datetime.UTC)
    assert before <= datetime.datetime.fromisoformat(started) <= datetime.datetime.fromisoformat(inline) <= after
