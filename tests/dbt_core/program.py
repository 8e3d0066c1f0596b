"""dbt-core as a program beside this one. Owns its environment, and asking it many things in one process."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path

from tests.environments import python_of

HERE = Path(__file__).parent
QUIET = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1", "DBT_USE_COLORS": "false"}


@cache
def python_of_dbt() -> Path:
    """Python of an environment with dbt: `SML_DBT_PYTHON`, else one in the cache, made once; skips without."""
    if chosen := os.environ.get("SML_DBT_PYTHON"):
        return Path(chosen)
    return python_of("dbt-core", HERE / "requirements.txt")


def asked(project: Path, calls: list[list[str]]) -> list[dict[str, object]]:
    """What dbt answers to each call: `success`, `nodes` with their status, or `names` that are listed."""
    words = [str(python_of_dbt()), str(HERE / "answer.py"), json.dumps(calls)]
    done = subprocess.run(words, cwd=project, capture_output=True, text=True, timeout=600, env={**os.environ, **QUIET})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    answers: list[dict[str, object]] = json.loads(done.stdout.splitlines()[-1])
    return answers
