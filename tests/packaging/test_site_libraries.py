"""The libraries of the documentation site, fetched by npm: what its lock names, once, and nothing with another hash."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.browser import SYSTEM_PATH
from tools import site_libraries as fetching

pytestmark = pytest.mark.skipif(shutil.which("npm", path=SYSTEM_PATH) is None, reason="no npm here: install Node.js")


def packed(folder: Path, version: str) -> Path:
    """A package of npm, as a file."""
    (folder / "package").mkdir(parents=True)
    (folder / "package/package.json").write_text(json.dumps({"name": "small", "version": version}))
    (folder / "package/small.js").write_text(f"// {version}\n")
    (folder / "package/LICENSE").write_text("as you like\n")
    made = folder / f"small-{version}.tgz"
    with tarfile.open(made, "w:gz") as archive:
        archive.add(folder / "package", "package")
    return made


SMALL = (fetching.Library("small", "little", "small.js", "LICENSE"),)


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder with the lock of a package that lies in a file, and that file."""
    monkeypatch.setenv("PATH", SYSTEM_PATH)
    file, folder = packed(tmp_path / "one", "1.0.0"), tmp_path / "libraries"
    folder.mkdir()
    (folder / "package.json").write_text(json.dumps({"dependencies": {"small": f"file:{file}"}}))
    words = ["npm", "install", "--package-lock-only", "--offline", "--no-audit", "--no-fund"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    lock = folder / fetching.LOCK
    lock.write_text(lock.read_text().replace("file:../", f"file:{tmp_path}/"))  # it is copied elsewhere
    return folder, file


def test_what_the_lock_names_is_fetched_once(locked: tuple[Path, Path]) -> None:
    folder, file = locked
    assert not fetching.is_fetched(folder)
    assert fetching.fetch(folder, SMALL)
    assert (folder / "little.js").read_text() == "// 1.0.0\n"
    assert (folder / "little.LICENSE.txt").read_text() == "as you like\n"
    file.unlink()
    assert not fetching.fetch(folder, SMALL), "it is there"
    assert sorted(each.name for each in folder.iterdir()) == [
        "fetched", "little.LICENSE.txt", "little.js", "package-lock.json", "package.json",
    ]  # fmt: skip


def test_a_library_with_another_hash_is_never_used(
    tmp_path: Path, locked: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, file = locked
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))  # the usual one still holds the right file
    packed(tmp_path / "two", "1.0.0")
    (tmp_path / "two/package/small.js").write_text("steal()")
    with tarfile.open(file, "w:gz") as archive:
        archive.add(tmp_path / "two/package", "package")
    with pytest.raises(fetching.FetchError, match="EINTEGRITY"):
        fetching.fetch(folder, SMALL)
    assert not (folder / "little.js").exists() and not fetching.is_fetched(folder)
