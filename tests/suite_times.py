"""How long each test took, fixtures included: `--times FILE` writes it, `python -m tools.suite_times` prints it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", type=Path, metavar="FILE", help="write the seconds of each test into this file")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--times")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Times(path), "suite-times")


class _Times:
    """Seconds by test, set-up and teardown included; written at the end, also of a run that is cut short."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration  # type: ignore[assignment]

    def pytest_sessionfinish(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps({name: round(took, 3) for name, took in self._seconds.items()}))
