"""The root project as an orchestrator finds it: a copy with a dbt_project.yml, and `sml` on the PATH."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
_FOLDERS = ("models", "seeds", "macros", "fixtures", "tests/data")


def copy_root_project(folder: Path) -> None:
    """Copy the root project; its settings become a dbt_project.yml, which orchestrators look for."""
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "profiles.yml", folder)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["sqlmesh_like"]
    settings["models"]["+materialized"] = "incremental"  # with dbt's file dbt's default applies: views
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(settings))


def environment(folder: Path, **variables: str) -> Mapping[str, str]:
    """Return the variables of a process that finds this `sml` on its PATH, put into `folder`; nothing else of ours."""
    program = folder / "sml"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m sqlmesh_like "$@"\n'
    )
    program.chmod(0o755)
    inherited = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH" and not name.startswith("DBT_")
    }
    return {**inherited, "PATH": f"{folder}:{os.environ['PATH']}", "DO_NOT_TRACK": "1", **variables}
