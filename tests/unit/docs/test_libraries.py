"""The JavaScript libraries: fetched by the hashes of a lock, with their licences, and what is without them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from sqlmesh_like.app.operations import docs_content
from sqlmesh_like.cli.app import main
from sqlmesh_like.docs.libraries import Library, site_libraries
from tests.browser import needs_libraries
from tests.unit.docs.conftest import make_project
from tools import site_libraries as fetching

ROOT = Path(__file__).resolve().parents[3]


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
