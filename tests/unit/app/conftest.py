"""What tests of operations share: a call that would start Spark fails, and says so."""

from __future__ import annotations

import pytest


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this must not need Spark")

    monkeypatch.setattr("sqlmesh_like.app.lakes.lake.spark_engine", refuse)
