"""The wheel, installed outside of the repository: a first project builds on Spark, by each Python that is supported."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.spark.jvm.jars import cache_dir
from tests.wheel import VERSIONS, called, installed
from tests.wheel import wheel as wheel


@pytest.mark.release
@pytest.mark.parametrize("version", VERSIONS)
def test_a_first_project_builds_on_spark_outside_of_the_repository(wheel: Path, tmp_path: Path, version: str) -> None:
    sml = installed(wheel, tmp_path / "env", version)
    called(sml, tmp_path, "init", "shop", cache=cache_dir())
    first = called(sml, tmp_path / "shop", "build", cache=cache_dir())
    assert "Started Spark" in first and "PASS=4 WARN=0 ERROR=0" in first
    assert "[full_refresh 2 rows in" in first
    assert "coffee" in called(sml, tmp_path / "shop", "show", "product_sales", cache=cache_dir())
    again = called(sml, tmp_path / "shop", "build", cache=cache_dir())
    assert "Started Spark" not in again and "PASS=2 WARN=0 ERROR=0 SKIP=0 NO-OP=2" in again, "both data tests ran"
