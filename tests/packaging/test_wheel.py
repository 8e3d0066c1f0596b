"""The wheel, built and installed outside of the repository: all files, the licence, and a first project that builds."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from sqlmesh_like.docs.libraries import site_libraries
from tests.levels import parametrize
from tests.wheel import ROOT, VERSIONS, built, called, installed
from tests.wheel import wheel as wheel


def test_it_has_each_file_of_the_package_and_the_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = (path.relative_to(ROOT).as_posix() for path in (ROOT / "sqlmesh_like").rglob("*") if path.is_file())
    assert {name for name in files if "__pycache__" not in name} <= names
    licences = {name.rpartition("/")[2] for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "NOTICE"}
    assert not [name for name in names if name.startswith(("tests/", "docs/", "demo/", "bench/"))]


def test_it_is_built_twice_with_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    """At another time, in another folder, with files of other dates: whoever builds it can compare."""
    names = ("sqlmesh_like", "tools", "pyproject.toml", "README.md", "LICENSE", "NOTICE")
    for name in names:
        source, copy = ROOT / name, tmp_path / "checkout" / name
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
    for path in (tmp_path / "checkout").rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    again = built(tmp_path / "wheels", tmp_path / "checkout")
    assert again.name == wheel.name and again.read_bytes() == wheel.read_bytes()


@parametrize("version", suite=VERSIONS[:1], release=VERSIONS[1:])
def test_a_first_project_builds_outside_of_the_repository(wheel: Path, tmp_path: Path, version: str) -> None:
    sml = installed(wheel, tmp_path / "env", version)
    called(sml, tmp_path, "init", "shop")
    assert "PASS=4 WARN=0 ERROR=0" in called(sml, tmp_path / "shop", "build", "-t", "test")
    assert "coffee" in called(sml, tmp_path / "shop", "show", "product_sales", "-t", "test")
    assert "aggregate_merge" in called(sml, tmp_path / "shop", "explain")
    called(sml, tmp_path / "shop", "docs", "generate")
    has_library = "/*! cytoscape " in (tmp_path / "shop/target/index.html").read_text()
    assert has_library == bool(site_libraries()), "the wheel brings what draws the site"
    code = "import sys, sqlmesh_like; print(*sys.version_info[:2], sqlmesh_like.__file__)"
    *numbers, where = called(sml.with_name("python"), tmp_path, "-c", code).split()
    assert ".".join(numbers) == version
    assert Path(where).is_relative_to(tmp_path / "env")
