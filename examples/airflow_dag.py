"""A project's models and their tests as tasks of an Airflow DAG, by astronomer-cosmos; each task is a call of `sml`.

`SML_PROJECT` is the project's folder; it has a dbt_project.yml, which Cosmos asks for, and an absolute `warehouse:` in
profiles.yml: Cosmos runs each task in a temporary copy of the project. `sml` is on the PATH.
"""

import os
import shutil
from datetime import datetime
from pathlib import Path

from cosmos import DbtDag, ExecutionConfig, ProfileConfig, ProjectConfig, RenderConfig
from cosmos.constants import InvocationMode

PROJECT = Path(os.environ["SML_PROJECT"])
# Written by `sml parse` when the project is deployed; without it Cosmos asks `sml ls` each time it reads this file.
MANIFEST = PROJECT / "target" / "manifest.json"
TARGET = os.environ.get("SML_TARGET", "local")
SML = shutil.which("sml")

tables = DbtDag(
    dag_id="tables",
    schedule=None,
    start_date=datetime(2024, 1, 1),
    catchup=False,
    max_active_runs=1,
    project_config=ProjectConfig(PROJECT, manifest_path=MANIFEST if MANIFEST.exists() else None),
    profile_config=ProfileConfig(
        profile_name="lake", target_name=TARGET, profiles_yml_filepath=PROJECT / "profiles.yml"
    ),
    # `sml` is a program, not a library of Airflow's Python.
    execution_config=ExecutionConfig(dbt_executable_path=SML, invocation_mode=InvocationMode.SUBPROCESS),
    render_config=RenderConfig(
        select=["+user_agg"], dbt_executable_path=SML, invocation_mode=InvocationMode.SUBPROCESS
    ),
    # Tasks that write to the same lake at the same time wait for one another.
    operator_args={"dbt_cmd_flags": ["--lock-timeout", "3600"]},
)
