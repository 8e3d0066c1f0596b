"""What tests of operations share: copies of a lake that a module has built, where starting Spark fails, and says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults.shop import Shop


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this must not need Spark")

    monkeypatch.setattr("sqlmesh_like.app.lakes.lake.spark_engine", refuse)


@pytest.fixture
def shop(built: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_spark: None) -> Shop:
    """A copy of the module's lake, in which the test stands."""
    shutil.copytree(built.root, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Shop(tmp_path, dict(built.rows_at), built.changes)
