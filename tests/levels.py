"""Which tests run when. Owns the levels: a folder has one, and the markers `release` and `deep` lift a test above it.

| level | `make` | what stands there |
|---|---|---|
| fast | `test-fast` | what needs no JVM: `FAST` |
| suite | `test` | every other folder, on Spark and beside other programs |
| release | `test-all` | marked `release`: further cases, and all that a release needs (`SML_RELEASE=1`) |
| deep | `test-deep` | marked `deep`: hours; and the random tests again, with many more cases (`SML_DEEP=1`) |
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from _pytest.mark import MarkDecorator, ParameterSet

TESTS = Path(__file__).parent
FAST = ("unit", "properties", "security")
"""Folders whose tests need no JVM, and get none."""
SUITE = ("dbt_core", "faults", "orchestrators", "packaging", "pages", "spark")
"""Folders whose tests need Spark or other programs."""
Level = Literal["fast", "suite", "release", "deep"]


IS_RELEASE = os.environ.get("SML_RELEASE") == "1"
IS_DEEP = os.environ.get("SML_DEEP") == "1"


def count(suite: int, release: int, deep: int) -> int:
    """How many random cases a test draws at the level that runs."""
    return deep if IS_DEEP else release if IS_RELEASE else suite


@cache
def is_fast(path: Path) -> bool:
    """Whether a file or folder of tests needs no JVM."""
    return any(path.is_relative_to(TESTS / folder) for folder in FAST)


def level_of(item: pytest.Item) -> Level | None:
    """The level of a test; None where its folder has none."""
    if item.get_closest_marker("deep"):
        return "deep"
    if item.get_closest_marker("release"):
        return "release"
    if is_fast(item.path):
        return "fast"
    return "suite" if item.path.relative_to(TESTS).parts[0] in SUITE else None


def parametrize(names: str | tuple[str, ...], *, suite: Iterable[object], release: Iterable[object]) -> MarkDecorator:
    """As `pytest.mark.parametrize`, of one behaviour: these cases are part of the suite, those of a release alone."""
    is_one = isinstance(names, str) and "," not in names
    return pytest.mark.parametrize(names, [*suite, *(_released(case, is_one) for case in release)])


def sample(names: str, cases: Iterable[object], *, every: int) -> MarkDecorator:
    """As `pytest.mark.parametrize`, of one behaviour: one case in so many is part of the suite, each of a release."""
    numbered = enumerate(cases)
    return pytest.mark.parametrize(
        names, [case if number % every == 0 else _released(case, True) for number, case in numbered]
    )


def _released(case: object, is_one: bool) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.release], id=case.id)
    values = (case,) if is_one or not isinstance(case, tuple) else case
    return pytest.param(*values, marks=pytest.mark.release)
