"""The JavaScript libraries: fetched by the hashes of a lock, with their licences, and what is without them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from sqlmesh_like.app.operations import docs_content
from sqlmesh_like.cli.app import main
from sqlmesh_like.docs.libraries import Library, site_libraries
from tests.browser import SYSTEM_PATH, needs_libraries
from tests.unit.docs.conftest import make_project
from tools import site_libraries as fetching

ROOT = Path(__file__).resolve().parents[3]
needs_npm = pytest.mark.skipif(shutil.which("npm", path=SYSTEM_PATH) is None, reason="no npm here: install Node.js")


def test_the_lock_has_exact_versions_and_hashes_and_no_address() -> None:
    text = (ROOT / fetching.FOLDER / fetching.LOCK).read_text()
    packages = json.loads(text)["packages"]
    asked = json.loads((ROOT / fetching.FOLDER / "package.json").read_text())["dependencies"]
    assert {library.package for library in fetching.LIBRARIES} == set(asked)
    for name, version in asked.items():
        assert packages[f"node_modules/{name}"]["version"] == version
    locked = [each for name, each in packages.items() if name]
    assert all(each["integrity"].startswith("sha512-") and each["license"] == "MIT" for each in locked)
    assert "://" not in text


@needs_libraries
def test_each_library_stands_in_the_page_with_its_licence() -> None:
    libraries = site_libraries()
    assert [library.package for library in libraries] == [library.package for library in fetching.LIBRARIES]
    for library in libraries:
        assert library.script.startswith(f"/*! {library.package} {library.version}\n")
        assert "Permission is hereby granted, free of charge" in library.script.partition("*/")[0]
        assert "sourceMappingURL" not in library.script
        assert not re.search("</script|<!--", library.script, re.IGNORECASE), "which would end it within the page"


def test_a_licence_cannot_end_the_comment_that_holds_it() -> None:
    script = Library("x", "1", "a */ alert(1) /*", "code()").script
    assert script.count("*/") == 1 and script.endswith("code()")


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


@needs_npm
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


@needs_npm
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


def test_without_npm_it_says_so_and_goes_on_unless_they_are_demanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / fetching.FOLDER
    folder.mkdir(parents=True)
    shutil.copy(ROOT / fetching.FOLDER / fetching.LOCK, folder)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(fetching, "__file__", str(tmp_path / "tools/site_libraries.py"))
    monkeypatch.delenv(fetching.DEMAND_VARIABLE, raising=False)
    assert fetching.main() == 0
    assert "there is no npm: install Node.js, then run `make site-libraries`" in capsys.readouterr().err
    monkeypatch.setenv(fetching.DEMAND_VARIABLE, "1")
    assert fetching.main() == 1


def bare_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The site of an installation that has no libraries."""
    monkeypatch.setattr(docs_content, "site_libraries", tuple)
    root = make_project(tmp_path)
    assert main(["docs", "generate", "--project-dir", str(root), "--profiles-dir", str(root)]) == 0
    return root / "target/index.html"


def test_a_site_without_libraries_is_written_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = bare_site(tmp_path, monkeypatch).read_text()
    assert "warning: this installation has no libraries to draw with" in capsys.readouterr().out
    assert len(re.findall("<script>", text)) == 1
