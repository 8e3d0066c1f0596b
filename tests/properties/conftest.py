"""What a property test fails on is kept: the next runs try it before they draw anything."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.properties.failed_cases import keep


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo is not None and report.failed and "test_failed_cases" not in item.nodeid:
        path = keep(call.excinfo.value, item.name)
        if path:
            report.sections.append(("kept as a fixture", str(path)))
    return report
