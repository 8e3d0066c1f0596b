"""The wheel, built and installed outside of the repository: all files, the licence, and a first project that builds."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from sqlmesh_like.docs.libraries import site_libraries

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.11", "3.12", "3.13")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the pinned hatchling where it is installed, as `make` does, else by one that pip fetches."""
    folder = tmp_path_factory.mktemp("wheel")
    pinned = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    words = ["-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps", *pinned, "-w", folder, ROOT]
    done = subprocess.run([sys.executable, *map(os.fspath, words)], capture_output=True, text=True, check=False)
    if done.returncode and not pinned:
        pytest.skip("hatchling is not installed, and no registry is in reach")
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_it_has_each_file_of_the_package_and_the_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = (path.relative_to(ROOT).as_posix() for path in (ROOT / "sqlmesh_like").rglob("*") if path.is_file())
    assert {name for name in files if "__pycache__" not in name} <= names
    licences = {name.rpartition("/")[2] for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "NOTICE"}
    assert not [name for name in names if name.startswith(("tests/", "docs/", "demo/", "bench/"))]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_first_project_builds_outside_of_the_repository(wheel: Path, tmp_path: Path, version: str) -> None:
    sml = installed(wheel, tmp_path / "env", version)
    called(sml, tmp_path, "init", "shop")
    assert "PASS=4 WARN=0 ERROR=0" in called(sml, tmp_path / "shop", "build", "-t", "test")
    assert "coffee" in called(sml, tmp_path / "shop", "show", "product_sales", "-t", "test")
    assert "aggregate_merge" in called(sml, tmp_path / "shop", "explain")
    called(sml, tmp_path / "shop", "docs", "generate")
    has_library = "/*! cytoscape " in (tmp_path / "shop/target/index.html").read_text()
    assert has_library == bool(site_libraries()), "the wheel brings what draws the site"
    where = called(sml.with_name("python"), tmp_path, "-c", "import sqlmesh_like; print(sqlmesh_like.__file__)")
    assert Path(where.strip()).is_relative_to(tmp_path / "env")


def installed(wheel: Path, folder: Path, version: str) -> Path:
    """`sml` of a new environment that has the wheel, and of everything else what these tests have."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" != version:
        pytest.skip(f"what the package needs is not installed for Python {version}")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    words = ["-m", "pip", "--disable-pip-version-check", "--python", folder, "install", "--quiet", "--no-deps", wheel]
    subprocess.run([sys.executable, *map(os.fspath, words)], check=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    # Other packages are found there, after the environment's; what that folder's .pth files name, a checkout, is not.
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder / "bin" / "sml"


def called(program: Path, folder: Path, *words: str) -> str:
    """What a program prints in a folder; a user's environment has nothing of ours."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {"SML_CACHE_DIR": str(folder.parent / "cache")}
    assert shutil.which(program) is not None
    done = subprocess.run([program, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
