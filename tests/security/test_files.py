"""The door to files: no pipe, device, link out or other user's file is opened, in any place that a command reads."""

from __future__ import annotations

import ast
import json
import os
import threading
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.regular_files import read_followed, read_regular, write_new
from tests.projects import enter_project
from tools.file_access import opened

SETTINGS = "name: shop\nprofile: shop\n"
FILES = {
    "dbt_project.yml": SETTINGS,
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "models/m.sql": "select * from {{ source('shop', 'orders') }}",
    "models/sources.yml": "sources: [{name: shop, tables: [{name: orders}]}]\n",
    "fixtures/shop/orders.csv": "id\n1\n",
    "seeds/s.csv": "a\n1\n",
}
Shown = pytest.CaptureFixture[str]

READ = (
    ("models/m.sql", ["ls"]),
    ("models/sources.yml", ["ls"]),
    ("seeds/s.csv", ["seed"]),
    ("fixtures/shop/orders.csv", ["build"]),
    ("dbt_project.yml", ["ls"]),
    ("pyproject.toml", ["ls"]),
    ("profiles.yml", ["ls"]),
    ("packages.yml", ["deps", "-t", "t"]),
    ("package-lock.yml", ["deps", "-t", "t"]),
    ("selectors.yml", ["ls", "--selector", "x"]),
    ("report.yml", ["report"]),
    ("target/run_results.json", ["retry"]),
    ("target/checked.json", ["compile"]),
    ("state/manifest.json", ["ls", "-s", "state:modified", "--state", "state"]),
)
"""Files that a command reads, and one that does."""


def project(root: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    files = {name: text for name, text in FILES.items() if name != path}
    if path == "package-lock.yml":
        files |= {"packages.yml": "packages: [{local: ../kit}]\n", "../kit/dbt_project.yml": "name: kit\n"}
    enter_project(root, monkeypatch, files)
    (root / path).parent.mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize(("path", "words"), READ, ids=lambda value: value if isinstance(value, str) else value[0])
def test_a_pipe_in_the_place_of_a_file_keeps_no_command_waiting(
    path: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    project(tmp_path / "shop", monkeypatch, path)
    os.mkfifo(tmp_path / "shop" / path)
    ended = threading.Event()

    def free_the_reader() -> None:
        """A reader that waits gets an end, so that the test fails instead of hanging."""
        if not ended.wait(60):
            os.close(os.open(tmp_path / "shop" / path, os.O_WRONLY | os.O_NONBLOCK))

    thread = threading.Thread(target=free_the_reader)
    thread.start()
    try:
        main(words)
    finally:
        waited = ended.is_set()
        ended.set()
        thread.join()
    assert not waited and "unexpected" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("path", "words"), [each for each in READ if each[0] != "state/manifest.json"], ids=lambda value: value[0]
)
def test_what_a_link_leads_to_is_not_shown(
    path: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    project(tmp_path / "shop", monkeypatch, path)
    (tmp_path / "secret").write_text("password-1: [")
    (tmp_path / "shop" / path).symlink_to("../" * (path.count("/") + 1) + "secret")
    code = main(words)
    shown = "".join(capsys.readouterr())
    assert "password-1" not in shown and "unexpected" not in shown and "Traceback" not in shown
    if path not in ("pyproject.toml", "target/checked.json", "target/run_results.json"):
        assert code == 2 and "link that leaves the project" in shown, shown


def test_a_folder_of_fixtures_that_is_a_link_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    project(tmp_path / "shop", monkeypatch, "fixtures/shop/orders.csv")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "orders.csv").write_text("password\npassword-1\n")
    (tmp_path / "shop" / "fixtures" / "shop").rmdir()
    (tmp_path / "shop" / "fixtures" / "shop").symlink_to(tmp_path / "elsewhere")
    assert main(["show", "m"]) == 2
    shown = "".join(capsys.readouterr())
    assert "fixtures/shop: this is a link that leaves the project" in shown and "password" not in shown


@pytest.mark.parametrize("linked", ["target/compiled", "target/compiled/shop", "target/compiled/shop/models"])
def test_compiled_sql_is_not_written_through_a_link(
    linked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    project(tmp_path / "shop", monkeypatch, linked)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "shop" / linked).symlink_to(tmp_path / "elsewhere")
    assert main(["compile"]) == 2 and "is a link" in capsys.readouterr().err
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_artifact_that_is_a_link_is_replaced_and_what_it_leads_to_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path / "shop", monkeypatch, "target/manifest.json")
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "shop/target/manifest.json").symlink_to(tmp_path / "precious")
    assert main(["parse"]) == 0
    assert (tmp_path / "precious").read_text() == "precious"
    assert "metadata" in json.loads((tmp_path / "shop/target/manifest.json").read_text())


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 100_000)
    assert read_regular(path, 100_000) == path.read_bytes() and read_regular(path) == path.read_bytes()
    with pytest.raises(OSError, match="larger than"):
        read_regular(path, 99_999)
    path.write_bytes(b"")
    assert read_regular(path, 0) == b""


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/tty", "folder", "pipe", "link", "absent"])
def test_only_regular_files_are_read(path: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    write_new(tmp_path / "file", b"1")
    (tmp_path / "link").symlink_to("file")
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError):  # noqa: PT011 (of which kind depends on the system)
        read_regular(tmp_path / path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert read_followed(tmp_path / "link") == b"1"


def test_nothing_is_written_over_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "link", b"1")
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_another_user_put_into_a_shared_folder_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    shared = tmp_path / "shared"
    enter_project(shared / "mine", monkeypatch, {"x": ""})
    (shared / "dbt_project.yml").write_text(SETTINGS)
    (shared / "profiles.yml").write_text(FILES["profiles.yml"])
    monkeypatch.setattr("os.getuid", lambda: 4711)
    if (shared / "dbt_project.yml").stat().st_uid == 0:
        os.chown(shared / "dbt_project.yml", 4712, -1)
    assert main(["ls"]) == 0, "an own folder of another user is a container's"
    capsys.readouterr()
    shared.chmod(0o1777)
    assert main(["ls"]) == 2
    assert "another user's, in a folder that everybody can write to" in capsys.readouterr().err


def test_a_call_that_opens_a_file_is_found_by_the_linter() -> None:
    text = (
        "x = Path(a).read_bytes()\nwith open(b) as f: pass\nimport os\nos.open(a, 0)\np.write_text('')\nread_text(p, r)"
    )
    assert sorted(line for _, line in opened(ast.parse(text))) == [1, 2, 4, 5]
