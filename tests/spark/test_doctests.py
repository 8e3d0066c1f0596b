"""Examples in the docstrings of modules that import Spark, which they need not start: `tests/unit` has no pyspark."""

from __future__ import annotations

import doctest
import importlib

import pytest

from tests.unit.test_doctests import MODULES


@pytest.mark.parametrize("folder", ["app", "cdc", "spark"])
def test_examples_in_docstrings_are_true(folder: str) -> None:
    modules = [name for name in MODULES if name.startswith(f"sqlmesh_like.{folder}.")]
    assert modules
    assert not [name for name in modules if doctest.testmod(importlib.import_module(name)).failed]
