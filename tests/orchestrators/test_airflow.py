"""Airflow runs the root project by astronomer-cosmos: each model and its tests are tasks. No JVM."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sqlmesh_like.cli.app import main
from tests.environments import python_of
from tests.orchestrators.root_project import EXAMPLES, copy_root_project, environment

HERE = Path(__file__).parent
EXAMPLE = "airflow_dag.py"
DOWNSTREAM = {
    "dwd_user.run": ["dwd_user.test"],
    "dwd_user.test": ["user_agg.run"],
    "user_agg.run": ["user_agg.test"],
    "user_agg.test": [],
}


@cache
def python_of_airflow() -> Path:
    return python_of("airflow", HERE / "airflow.txt")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    copy_root_project(tmp_path / "project")
    (tmp_path / "airflow/dags").mkdir(parents=True)
    shutil.copy(EXAMPLES / EXAMPLE, tmp_path / "airflow/dags")
    return tmp_path / "project"


def run_program(words: list[str], project: Path, **variables: str) -> str:
    """Run a program of Airflow's environment and return its standard output."""
    airflow = {
        "AIRFLOW_HOME": str(project.parent / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__COSMOS__ENABLE_CACHE": "false",
        "AIRFLOW__COSMOS__ENABLE_TELEMETRY": "false",
    }
    known = environment(project.parent / "bin", SML_PROJECT=str(project), SML_TARGET="test", **airflow, **variables)
    done = subprocess.run(words, capture_output=True, text=True, timeout=900, env=known)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def read_tasks(project: Path, **variables: str) -> dict[str, Any]:
    """Return the answer of run_dag.py."""
    words = [str(python_of_airflow()), str(HERE / "run_dag.py"), str(project.parent / "airflow/dags")]
    answer: dict[str, Any] = json.loads(run_program(words, project, **variables).splitlines()[-1])
    assert answer["problems"] == {}, "".join(answer["problems"].values())
    return answer


@pytest.mark.release
def test_models_and_their_tests_are_tasks_that_sml_does(project: Path) -> None:
    run_program([str(python_of_airflow().with_name("airflow")), "db", "migrate"], project)
    ran = read_tasks(project)
    assert ran["downstream"] == DOWNSTREAM  # as `sml ls` lists them
    assert ran["states"] == dict.fromkeys(DOWNSTREAM, "success")


@pytest.mark.release
def test_cosmos_reads_the_manifest_where_there_is_one(project: Path) -> None:
    assert main(["parse", "-q", "-t", "test", "--project-dir", os.fspath(project)]) == 0
    (project / "models/dws/user_agg.sql").unlink()  # `sml ls` would no longer list it
    assert read_tasks(project, LOAD_ONLY="1")["downstream"] == DOWNSTREAM
