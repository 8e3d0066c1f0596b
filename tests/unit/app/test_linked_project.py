"""A warehouse that would be made in a folder of links, as astronomer-cosmos makes one for each task."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main

SETTINGS = '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "models").mkdir(parents=True)
    (root / "pyproject.toml").write_text(SETTINGS)
    (root / "models" / "m.sql").write_text("select 1 as id")
    profile(root, "warehouse")
    return root


def profile(root: Path, warehouse: str) -> None:
    output = f"{{type: spark, schema: dws, warehouse: {warehouse}}}"
    (root / "profiles.yml").write_text(f"lake: {{target: a, outputs: {{a: {output}}}}}\n")


def said(project: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["parse", "--project-dir", str(root), "--profiles-dir", str(project)]) == 0
    printed = capsys.readouterr()
    return printed.out + printed.err


def linked(project: Path, root: Path) -> Path:
    root.mkdir()
    for path in project.iterdir():
        (root / path.name).symlink_to(path)
    return root


def test_a_warehouse_that_would_be_lost_is_warned_of(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = linked(project, tmp_path / "task")
    warning = f"warning: the warehouse {root / 'warehouse'} is in a folder of links to {project}"
    assert warning in said(project, root, capsys)
    assert warning in said(project, root, capsys), "also where the project is cached"


def test_elsewhere_or_where_it_exists_nothing_is_said(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "warning" not in said(project, project, capsys)
    profile(project, str(tmp_path / "lake"))
    assert "warning" not in said(project, linked(project, tmp_path / "task"), capsys)
    profile(project, "warehouse")
    (project / "warehouse").mkdir()
    assert "warning" not in said(project, linked(project, tmp_path / "later"), capsys)
