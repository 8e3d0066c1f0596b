"""Programs that tests call, each in an environment of its own in the user's cache, made once from locked versions."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from sqlmesh_like.spark.jvm.jars import cache_dir

_SECONDS = 900
_PROBLEMS: dict[Path, str] = {}
"""Environments that could not be made: not tried again by each test of a process."""


def python_of(name: str, requirements: Path) -> Path:
    """Return the Python of the environment `name`, which has exactly these requirements, with checked hashes.

    Skips the test where it cannot be installed.
    """
    folder = cache_dir() / f"{name}-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    cache_dir().mkdir(parents=True, exist_ok=True)
    with FileLock(str(folder) + ".lock"):
        if folder not in _PROBLEMS and not (folder / "done").exists():
            if problem := _problem_of_making(folder, requirements):
                _PROBLEMS[folder] = problem
            else:
                (folder / "done").touch()
    if folder in _PROBLEMS:
        pytest.skip(f"{name} cannot be installed here: {_PROBLEMS[folder]}")
    return folder / "bin" / "python"


def _problem_of_making(folder: Path, requirements: Path) -> str:
    """Return the last line of what went wrong, empty where nothing did."""
    uv = [sys.executable, "-m", "uv", "--quiet"]  # a third of what pip takes, for hundreds of packages
    pinned = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", str(requirements)]
    make, fetch = ["venv", "--clear", "--python", sys.executable], ["pip", "install", "--python"]
    return _problem([*uv, *make, str(folder)]) or _problem([*uv, *fetch, str(folder / "bin" / "python"), *pinned])


def _problem(words: list[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return f"not done in {_SECONDS} seconds"
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no word why"])[-1]
