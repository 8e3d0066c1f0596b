"""Fetches the jars of services that `make test` starts, while something else computes (`.ci/run`)."""

from __future__ import annotations

import sys

from sqlmesh_like.cdc.sources.database.engine import engine_jars
from sqlmesh_like.errors import MachineError
from sqlmesh_like.spark.jvm.jars import ensure_jars, locked_jars
from tests.services.process import pinned

SERVICES = ("kafka", "connect", "debezium", "hdfs")
"""Lock files of this folder."""


def fetch() -> int:
    """Fetch them into the user's cache, and return how many there are. Raises MachineError where one cannot be had."""
    own = ensure_jars((*locked_jars("kafka"), *engine_jars("mysql"), *engine_jars("postgresql")))
    return len(own) + sum(len(pinned(name)) for name in SERVICES)


if __name__ == "__main__":
    try:
        print(f"{fetch()} jars of services are there")
    except MachineError as error:
        # The tests that need them skip, or fail where they must run.
        sys.exit(f"warning: {error}")
