"""Steps at which tests end a process: every one has a name, and every name a step."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sqlmesh_like.fault_points import FAULT_VARIABLE, POINTS

CODE = Path(__file__).parents[2] / "sqlmesh_like"


def run(fault: str, *names: str) -> int:
    """The exit code of a process that gets to these steps."""
    text = "import sys\nfrom sqlmesh_like.fault_points import fault_point\n[fault_point(n) for n in sys.argv[1:]]"
    environment = {**os.environ, FAULT_VARIABLE: fault, "PYTHONPATH": str(CODE.parent)}
    return subprocess.run([sys.executable, "-c", text, *names], env=environment, check=False).returncode


def test_every_name_is_that_of_a_step_and_every_step_has_one() -> None:
    named: Counter[str] = Counter()
    for path in CODE.rglob("*.py"):
        if "fault_point(" not in (text := path.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fault_point":
                assert isinstance(node.args[0], ast.Constant), path
                named[str(node.args[0].value)] += 1
    assert set(named) == POINTS


def test_a_process_ends_the_time_that_is_wanted_and_not_before() -> None:
    step = "hudi.commit.staged"
    assert run(f"{step}:2", step, "swap.built") == 0
    assert run(f"{step}:2", step, "swap.built", step) == -signal.SIGKILL
    assert run("", step) == 0


@pytest.mark.parametrize("fault", ["hudi.commit.staggered", "swap.built:0", "swap.built:x", "swap.built:1:burn"])
def test_what_is_not_a_step_is_refused_before_anything_is_done(fault: str, tmp_path: Path) -> None:
    environment = {**os.environ, FAULT_VARIABLE: fault}
    call = subprocess.run(
        [sys.executable, "-m", "sqlmesh_like", "run"], env=environment, cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert call.returncode == 2 and fault in call.stderr and "Traceback" not in call.stderr
