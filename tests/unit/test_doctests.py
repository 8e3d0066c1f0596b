"""Every example in a docstring is true. Those of modules that import Spark are tried in `tests/spark`."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import sqlmesh_like

_PACKAGE = Path(sqlmesh_like.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in _PACKAGE.rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if "is blocked" not in str(error):
            raise
        pytest.skip("needs a JVM")
    assert doctest.testmod(module).failed == 0
