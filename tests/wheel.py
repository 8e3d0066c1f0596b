"""The wheel of this repository, and environments of several Pythons that have it and what it needs.

Import `wheel` where tests use it: it is built once for their module.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from filelock import FileLock

from sqlmesh_like.spark.jvm.jars import CACHE_VARIABLE, cache_dir

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
_REQUIREMENTS = ROOT / "requirements" / "run.txt"
_SECONDS = 1200  # pyspark is fetched as source: 300 MB


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the pinned hatchling where it is installed, as `make` does, else by one that pip fetches."""
    return built(tmp_path_factory.mktemp("wheel"))


def built(folder: Path, root: Path = ROOT) -> Path:
    """The wheel of a checkout, in a folder."""
    pinned = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    words = ["-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps", *pinned, "-w", folder, root]
    done = subprocess.run([sys.executable, *map(os.fspath, words)], capture_output=True, text=True, check=False)
    if done.returncode and not pinned:
        pytest.skip("hatchling is not installed, and no registry is in reach")
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def installed(wheel: Path, folder: Path, version: str) -> Path:
    """`sml` of a new environment of this Python that has the wheel, and finds the packages that it needs in another."""
    python, packages = _packages(version)
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    words = ["-m", "pip", "--disable-pip-version-check", "--python", folder, "install", "--quiet", "--no-deps", wheel]
    subprocess.run([sys.executable, *map(os.fspath, words)], check=True)
    # Other packages are found there, after the environment's; what that folder's .pth files name, a checkout, is not.
    (_site(folder) / "others.pth").write_text(f"{packages}\n")
    return folder / "bin" / "sml"


def called(program: Path, folder: Path, *words: str, cache: Path | None = None) -> str:
    """What a program writes in a folder; a user's environment has nothing of ours, nor a cache that is not given."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {CACHE_VARIABLE: str(cache or folder.parent / "cache")}
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run([program, *words], cwd=folder, env=environment, **both, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def _packages(version: str) -> tuple[Path, Path]:
    """A Python of this version and a folder with the pinned packages: ours, else those of an environment in the cache.

    It is made once, by uv, which finds or fetches the Python; skips where it cannot be made.
    """
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable), Path(sysconfig.get_path("purelib"))
    pins = hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:12]
    folder = cache_dir() / f"python-{version}-{pins}"
    python, uv = folder / "bin" / "python", [sys.executable, "-m", "uv", "--quiet"]
    cache_dir().mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            _run_or_skip([*uv, "venv", "--clear", "--python", version, folder], version)
            fetch = ["pip", "install", "--python", python, "--require-hashes", "--no-deps", "-r", _REQUIREMENTS]
            _run_or_skip([*uv, *fetch], version)
            (folder / "done").touch()
    return python, _site(folder)


def _run_or_skip(words: list[str | Path], version: str) -> None:
    # Where pyenv has this Python, its `python3.x` works only if it is told so, and with the system's shell.
    path = os.pathsep.join([os.environ.get("PATH", ""), os.defpath])
    environment = os.environ | {"PYENV_VERSION": version, "PATH": path}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["without a word"])[0]
        pytest.skip(f"no environment of Python {version} can be made here: {reason}")


def _site(environment: Path) -> Path:
    (folder,) = (environment / "lib").glob("python*/site-packages")
    return folder
