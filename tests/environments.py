"""Programs that tests call, each in an environment of its own in the user's cache, made once from locked versions."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from sqlmesh_like.spark.jvm.jars import cache_dir


def python_of(name: str, requirements: Path) -> Path:
    """Return the Python of the environment `name`, which has exactly these requirements, with checked hashes.

    Skips the test where it cannot be installed.
    """
    folder = cache_dir() / f"{name}-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    cache_dir().mkdir(parents=True, exist_ok=True)
    with FileLock(str(folder) + ".lock"):
        if not (folder / "done").exists():
            problem = _problem([sys.executable, "-m", "venv", str(folder)])
            fetched = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(requirements)]
            problem = problem or _problem([str(python), "-m", "pip", "install", "--quiet", *fetched])
            if problem:
                pytest.skip(f"{name} cannot be installed here: {problem}")
            (folder / "done").touch()
    return python


def _problem(words: list[str]) -> str:
    """Return the last line of what went wrong, empty where nothing did."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no word why"])[-1]
