"""`sml` where `spark-submit` has started it. Owns what such a call does besides the command itself."""

from __future__ import annotations

import os

from sqlmesh_like.cli.app import main as run_command


def main() -> int:
    """Run the command of this process's arguments, and return its exit code.

    A driver in a cluster must have told it that it is there, also where the command has needed no Spark.
    """
    code = run_command()
    if code == 0 and "PYSPARK_GATEWAY_PORT" in os.environ:
        from sqlmesh_like.spark.jvm.submitted_driver import register_driver

        register_driver()
    return code
