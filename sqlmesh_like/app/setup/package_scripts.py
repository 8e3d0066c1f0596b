"""The scripts of a package. Owns their text: `run_sml.py` runs a command, `submit.sh` gives that to a cluster."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable

from sqlmesh_like.plan.router import runs_here
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.spark.jvm.jars import Jar
from sqlmesh_like.spark.jvm.spark_settings import JARS, submitted_settings

RUN, SUBMIT = "run_sml.py", "submit.sh"
_PYTHON = sys.version_info[:2]
_RUN = '''"""Runs a command of sml from this folder, on this machine or in a Spark job: run_sml.py run -s orders"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

HOME = Path(os.environ.get("SML_PACKAGE") or Path(__file__).parent).resolve()
if sys.version_info[:2] != @PYTHON@:
    print("error: this package needs Python @VERSION@, not", sys.version.split()[0], file=sys.stderr)
    print("  name it: SML_PYTHON for submit.sh, spark.pyspark.python for Spark", file=sys.stderr)
    sys.exit(2)
sys.path.insert(0, str(HOME / "site-packages"))
if find_spec("pyspark") is None and "SPARK_HOME" in os.environ:
    sys.path += map(str, Path(os.environ["SPARK_HOME"], "python", "lib").glob("*.zip"))
os.environ.setdefault("SML_CACHE_DIR", str(HOME / "cache"))
os.environ.setdefault("DBT_PROJECT_DIR", str(HOME / "project"))
os.environ.setdefault("DBT_TARGET", @TARGET@)
os.environ.setdefault("DBT_TARGET_PATH", str(Path("target").resolve()))

from sqlmesh_like.cli.submitted import main

sys.exit(main())
'''
_SUBMIT = """#!/bin/sh
# Runs a command of sml on the cluster of the target: ./submit.sh run -s orders
#   SML_PYTHON          Python @VERSION@ of the machines (default: python@VERSION@)
#   SML_ARCHIVE         the package, if it is not beside this folder: a path or an address, such as one on HDFS
#   SML_SUBMIT_OPTIONS  more options of spark-submit, which win over those below
set -eu
home=$(cd "$(dirname "$0")" && pwd)
python=${SML_PYTHON:-python@VERSION@}
exec spark-submit \\
@OPTIONS@
  ${SML_SUBMIT_OPTIONS:-} "$home/run_sml.py" "$@"
"""


def run_script(target: Target) -> str:
    """`run_sml.py` of a package for this target."""
    words = {"@PYTHON@": repr(tuple(_PYTHON)), "@VERSION@": "{}.{}".format(*_PYTHON), "@TARGET@": repr(target.name)}
    return _filled(_RUN, words)


def submit_script(name: str, target: Target, jars: Iterable[Jar], *, with_kafka: bool) -> str:
    """`submit.sh` of a project's package. On YARN the driver runs in the cluster too; elsewhere where it is called.

    Settings that hold secrets are left out: `sml` passes them on by itself, from the profile and its variables.
    """
    is_yarn = target.master == "yarn"
    paths = [f'"$home/cache/jars/{jar.file_name}"' for jar in jars]
    more_jars = [shlex.quote(target.spark[JARS])] if JARS in target.spark else []
    # By a setting: with the variable, a Spark that pip has installed would look for itself in that Python.
    python = '"spark.pyspark.python=$python"'
    options = [("--name", shlex.quote(name)), ("--jars", ",".join(paths + more_jars)), ("--conf", python)]
    if not runs_here(target.master):
        options.append(("--master", shlex.quote(target.master)))
    if is_yarn:
        options += [
            ("--deploy-mode", "cluster"),
            ("--archives", '"${SML_ARCHIVE:-$home.tar.gz}#sml"'),
            ("--conf", "spark.yarn.maxAppAttempts=1"),
            ("--conf", "spark.yarn.appMasterEnv.SML_PACKAGE=sml"),
            ("--conf", "spark.executorEnv.PYTHONPATH=sml/site-packages"),
        ]
    settings = submitted_settings(target, with_kafka=with_kafka)
    options += [("--conf", shlex.quote(f"{key}={value}")) for key, value in sorted(settings.items())]
    lines = "\n".join(f"  {option} {value} \\" for option, value in options)
    return _filled(_SUBMIT, {"@VERSION@": "{}.{}".format(*_PYTHON), "@OPTIONS@": lines})


def _filled(text: str, words: dict[str, str]) -> str:
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text
