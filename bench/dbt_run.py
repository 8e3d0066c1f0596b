"""A `dbt run` in an environment of its own. Owns the call; the suites own their projects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.lake import Call, Lake, node_runs
from bench.program import run_program

_QUIET = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1", "DBT_USE_COLORS": "false"}


def dbt_run(python: Path, project: Lake, *arguments: str, environment: Mapping[str, str] | None = None) -> Call:
    """Run the models of a project whose profile stands beside it. `python`: that of dbt's environment."""
    words = [str(python), "-c", "from dbt.cli.main import cli; cli()", "run", "--profiles-dir", "."]
    done = run_program([*words, *arguments], project.root, {**_QUIET, **(environment or {})})
    return Call(done.seconds, done.peak_bytes, node_runs(project.root / "target" / "run_results.json"))
