"""Which known vulnerabilities fail CI."""

from __future__ import annotations

import datetime

import pytest

from tools.audit import ACCEPTED, Acceptance, Finding, accepted, must_be_mended, package_findings

TODAY = datetime.date(2026, 11, 27)
ONE = Finding("requests", "2.0", frozenset({"PYSEC-1", "CVE-1"}), ("2.1",), is_shipped=True)


@pytest.mark.parametrize(
    ("finding", "entries", "fails"),
    [
        (ONE, [], True),
        (ONE._replace(fixed=()), [], False),
        (ONE._replace(is_shipped=False), [], False),
        (ONE, [Acceptance("requests", "CVE-1", "never called", TODAY)], False),
        (ONE, [Acceptance("requests", "CVE-1", "never called", TODAY - datetime.timedelta(1))], True),
        (ONE, [Acceptance("other", "CVE-1", "never called", TODAY)], True),
        (ONE, [Acceptance("requests", "CVE-2", "never called", TODAY)], True),
    ],
)
def test_a_vulnerability_with_a_fix_in_what_users_get_fails(
    finding: Finding, entries: list[Acceptance], fails: bool
) -> None:
    assert must_be_mended(finding, entries, TODAY) is fails


def test_what_pip_audit_reports_is_read() -> None:
    reported = [
        {"name": "Py_YAML", "version": "5", "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["6"]}]},
        {"name": "pytest", "version": "1", "vulns": [{"id": "PYSEC-2", "fix_versions": []}]},
        {"name": "sound", "version": "1", "vulns": []},
        {"name": "unknown", "skip_reason": "not on PyPI"},
    ]
    first, second = package_findings(reported, frozenset({"py-yaml"}))
    assert first == Finding("py-yaml", "5", frozenset({"PYSEC-1", "CVE-1"}), ("6",), True)
    assert not second.is_shipped and "which only builds or tests" in str(second)


def test_an_acceptance_has_a_reason_and_a_date() -> None:
    accepted(ACCEPTED.read_text(encoding="utf-8"))
    entry = '[[accepted]]\npackage = "a"\nid = "CVE-1"\nreason = "{}"\nuntil = {}'
    for reason, until in (("", "2030-01-01"), ("why", '"soon"')):
        with pytest.raises(ValueError, match="a reason and a date"):
            accepted(entry.format(reason, until))
