"""Every example in a docstring is true. Modules that need a JVM carry none."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import sqlmesh_like

_FOUND = pkgutil.walk_packages(sqlmesh_like.__path__, "sqlmesh_like.")
MODULES = sorted(module.name for module in _FOUND if not module.name.endswith("__main__"))


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if "is blocked" not in str(error):
            raise
        pytest.skip("needs a JVM")
    assert doctest.testmod(module).failed == 0
