"""A run that DuckDB computes and this process commits needs no Spark, and imports none of its modules."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from tests.faults.shop import MODELS, Shop

RUN = """
import sys
from sqlmesh_like import Project

with Project.load(".") as project:
    for result in project.run().results:
        print(result.model.unique_id, result.status, result.engine, sep="|")
print(*sorted({"pyspark", "py4j"} & set(sys.modules)), sep="|")
"""


def test_a_local_run_imports_no_module_of_spark(tmp_path: Path) -> None:
    shop = Shop.made(tmp_path)
    dice = random.Random(20240501)
    for _ in range(3):
        shop.change(dice)
    done = subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *results, modules = done.stdout.splitlines()
    assert sorted(line.split("|") for line in results) == sorted([name, "success", "duckdb"] for name in MODELS)
    assert modules == ""
    for name in MODELS:
        assert shop.stored(name) == shop.expected(name), name
