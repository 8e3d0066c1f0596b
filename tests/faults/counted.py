"""Counts what came of faults other than kills, in tests marked with `fault`; `docs/generate_faults.py` adds them up."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.levels import IS_DEEP

COUNTS = Path(__file__).parents[2] / "target" / "faults"
"""Where the counts are written where `SML_DEEP=1`, a file for each process of tests."""
ENDS = ("recovers", "refuses")
"""What the next call must do: bring everything up to date, or change nothing and say what to do first."""

_tried: Counter[tuple[str, str, bool]] = Counter()
"""Test cases by fault, how it must end, and whether it did."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    marker = item.get_closest_marker("fault")
    if marker is not None and call.when == "call" and not report.skipped:
        (what,), ends = marker.args, marker.kwargs["ends"]
        assert ends in ENDS, ends
        _tried[what, ends, report.passed] += 1
    return report


def pytest_sessionfinish() -> None:
    if IS_DEEP and _tried:
        COUNTS.mkdir(parents=True, exist_ok=True)
        rows = [
            {"what": what, "ends": ends, "is_right": is_right, "tried": tried}
            for (what, ends, is_right), tried in sorted(_tried.items())
        ]
        (COUNTS / f"{os.getpid()}.json").write_text(json.dumps(rows, indent=1))
