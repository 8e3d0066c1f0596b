"""dbt-core as a program beside this one. Owns its environment, and asking it many things in one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock

from sqlmesh_like.spark.jvm.jars import cache_dir

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"
QUIET = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1", "DBT_USE_COLORS": "false"}


@cache
def python_of_dbt() -> Path:
    """Python of an environment with dbt: `SML_DBT_PYTHON`, else one in the cache, made once; skips without."""
    if chosen := os.environ.get("SML_DBT_PYTHON"):
        return Path(chosen)
    folder = cache_dir() / "dbt-core-1.11.16"
    python = folder / "bin" / "python"
    cache_dir().mkdir(parents=True, exist_ok=True)
    with FileLock(str(folder) + ".lock"):
        if not (folder / "done").exists():
            made = _ran([sys.executable, "-m", "venv", str(folder)])
            fetched = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(REQUIREMENTS)]
            made = made or _ran([str(python), "-m", "pip", "install", "--quiet", *fetched])
            if made:
                pytest.skip(f"dbt-core 1.11.16 cannot be installed here: {made}")
            (folder / "done").touch()
    return python


def _ran(words: list[str]) -> str:
    """What went wrong, in a line; empty where nothing did."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no word why"])[-1]


def asked(project: Path, calls: list[list[str]]) -> list[dict[str, object]]:
    """What dbt answers to each call: `success`, `nodes` with their status, or `names` that are listed."""
    words = [str(python_of_dbt()), str(HERE / "answer.py"), json.dumps(calls)]
    done = subprocess.run(words, cwd=project, capture_output=True, text=True, timeout=600, env={**os.environ, **QUIET})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    answers: list[dict[str, object]] = json.loads(done.stdout.splitlines()[-1])
    return answers
