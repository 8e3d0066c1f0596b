"""The line of an error: with its caret, and never with a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.printing.source_excerpt import source_excerpt
from sqlmesh_like.errors import Location
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake:\n  target: a\n  outputs:\n    a: {type: duckdb, threads: hunter2}\n",
    "models/a.sql": "select 1 as one,\n\t'茶' as tea frm t\n",
    "models/s.yml": "sources:\n  - name: shop\n    ingest:\n      password: hunter2\n",
    "models/b.sql": "select " + ", ".join(f"{n} as c{n}" for n in range(90)) + " frm t",
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


def test_the_caret_stands_below_the_column_whatever_is_before_it(project: Path) -> None:
    excerpt = source_excerpt(project, Location("models/a.sql", 2, 13))
    assert excerpt == "  2 |  '茶' as tea frm t\n    |              ^"


def test_of_a_long_line_the_part_around_the_column_is_shown(project: Path) -> None:
    column = FILES["models/b.sql"].index("frm") + 1
    excerpt = source_excerpt(project, Location("models/b.sql", 1, column))
    assert excerpt is not None
    line, caret = excerpt.splitlines()
    assert len(line) <= 110 and line[caret.index("^") :].startswith("frm t")


@pytest.mark.parametrize(
    "place",
    [
        Location("models/a.sql"), Location("models/a.sql", 99, 1), Location("../outside.sql", 1, 1),
        Location("/etc/hostname", 1, 1), Location("--vars", 1, 1),
    ],
)  # fmt: skip
def test_where_there_is_no_line_of_the_project_none_is_shown(project: Path, place: Location) -> None:
    (project.parent / "outside.sql").write_text("select 1")
    assert source_excerpt(project, place) is None


def test_of_files_with_secrets_keys_alone_are_shown(project: Path) -> None:
    assert (
        source_excerpt(project, Location("models/s.yml", 4, 17)) == "  4 |       password: …\n    |                 ^"
    )
    assert source_excerpt(project, Location("models/s.yml", 4, 20)) == source_excerpt(
        project, Location("models/s.yml", 4, 17)
    )  # how long the value is, is not shown
    assert source_excerpt(project, Location("models/s.yml", 4, 7)) == "  4 |       password: …\n    |       ^"


def test_no_secret_of_a_profile_is_told(project: Path, capsys: Shown) -> None:
    (project / "models/s.yml").unlink()
    assert main(["compile"]) == 2
    message = capsys.readouterr().err
    assert "profiles.yml:4:" in message and "hunter2" not in message


def test_several_errors_have_a_line_each(project: Path, capsys: Shown) -> None:
    (project / "profiles.yml").write_text("lake: {target: a, outputs: {a: {type: duckdb}}}\n")
    (project / "models/s.yml").unlink()
    (project / "models/c.sql").write_text("select 1 as a gruop by a")
    assert main(["compile", "--project-dir", str(project / "models")]) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: 3 nodes cannot be run\nmodels/a.sql:")
    assert message.count(" | ") == 6 and message.count("^") == 3


def test_json_has_the_message_alone(project: Path, capsys: Shown) -> None:
    assert main(["compile", "--log-format", "json"]) == 2
    assert "^" not in capsys.readouterr().err
