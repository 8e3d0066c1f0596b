"""What is taken from a cache: only what this user alone can have put there."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import MachineError
from sqlmesh_like.own_files import read_own, require_own
from tests.projects import enter_project

PROJECT = {
    "dbt_project.yml": "name: shop\n",
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "models/m.sql": "select 1 as a",
}


class Program:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (Path("ran"),)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder of parsed projects after one call."""
    enter_project(tmp_path / "shop", monkeypatch, PROJECT)
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("DBT_PARTIAL_PARSE", "true")
    assert main(["parse"]) == 0
    capsys.readouterr()
    return tmp_path / "cache" / "projects"


def poison(cache: Path) -> Path:
    (path,) = cache.glob("*.pickle")
    path.write_bytes(pickle.dumps(Program()))
    return path


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o622, 0o602])
def test_a_file_that_others_can_write_is_not_read(cache: Path, mode: int) -> None:
    path = poison(cache)
    path.chmod(mode)
    assert main(["parse"]) == 0 and not Path("ran").exists()


def test_a_link_is_not_read(cache: Path, tmp_path: Path) -> None:
    path = poison(cache)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert main(["parse"]) == 0 and not Path("ran").exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_refused(cache: Path, mode: int, capsys: pytest.CaptureFixture[str]) -> None:
    poison(cache)
    cache.chmod(mode)
    assert main(["parse"]) == 2 and "others can write there" in capsys.readouterr().err
    assert not Path("ran").exists()


def test_a_folder_and_a_file_of_another_user_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    file = folder / "file"
    file.write_bytes(b"x")
    if os.getuid() == 0:
        os.chown(folder, 12345, 12345)
        os.chown(file, 12345, 12345)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(MachineError, match="another user's"):
        require_own(folder)
    assert read_own(file) is None
