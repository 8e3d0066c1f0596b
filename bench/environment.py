"""Separate Python environments for programs to compare with. Owns creating them, once, in the user's cache."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from bench.result import Unavailable
from sqlmesh_like.spark.jvm.jars import cache_dir

BUILD_TOOLS = Path(__file__).parents[1] / "requirements" / "build.txt"


def python_of(name: str, folder: Path) -> Path:
    """Return the Python of an environment with exactly the `requirements.txt` of a folder, with checked hashes.

    Raises Unavailable where it cannot be installed.
    """
    home = cache_dir() / name
    python = home / "bin" / "python"
    cache_dir().mkdir(parents=True, exist_ok=True)
    with FileLock(f"{home}.lock"):
        if not (home / "done").exists():
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
            pip += ["--no-deps", "--no-build-isolation", "--only-binary", ":all:", "--no-binary", "pyspark", "-r"]
            for words in (
                [sys.executable, "-m", "venv", str(home)],
                [*pip, str(BUILD_TOOLS)],
                [*pip, str(folder / "requirements.txt")],
            ):
                done = subprocess.run(words, capture_output=True, text=True)
                if done.returncode:
                    why = (done.stderr.strip().splitlines() or ["pip does not say why"])[-1]
                    raise Unavailable(f"{name} cannot be installed here: {why}")
            (home / "done").touch()
    return python
