"""Spark of these tests runs in processes of its own: one that stays in this process would become the suite's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.shop import Shop


@pytest.fixture(autouse=True)
def _starts_no_jvm_here() -> Iterator[None]:
    from pyspark import SparkContext

    before = SparkContext._gateway
    yield
    assert SparkContext._gateway is before, "this test started Spark in this process: call another one"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A shop before its first event, which a module copies."""
    return Shop.made(tmp_path_factory.mktemp("shop"))
