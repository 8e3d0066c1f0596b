"""Spark of these tests runs in processes of its own: one that stays in this process would become the suite's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _starts_no_jvm_here() -> Iterator[None]:
    from pyspark import SparkContext

    before = SparkContext._gateway
    yield
    assert SparkContext._gateway is before, "this test started Spark in this process: call another one"
