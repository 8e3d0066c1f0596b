"""Known vulnerabilities of what we ship and build with: `python -m tools.audit`. Exit code 1 where one must be mended.

That is one in what users get (`requirements/run.txt`, jars, the site's libraries) for which a fixed version is there,
unless `tools/accepted_vulnerabilities.toml` names it with the reason why it cannot harm here, and a date. All others
are printed. Python packages are checked by `pip-audit`, jars and libraries with OSV (https://osv.dev); if a database
cannot be reached, its check is skipped with a message.
"""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import requests

from sqlmesh_like.spark.jvm.jars import locked_jars
from tools.site_libraries import FOLDER, LOCK

OSV = "https://api.osv.dev/v1"
ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "requirements" / "run.txt"
ACCEPTED = Path(__file__).with_name("accepted_vulnerabilities.toml")


class Published(NamedTuple):
    """A version of a package, in OSV's terms."""

    ecosystem: str
    name: str
    version: str


class Finding(NamedTuple):
    """A vulnerability of a package, by its names, with the versions that mend it."""

    package: str
    version: str
    ids: frozenset[str]
    fixed: tuple[str, ...]
    is_shipped: bool

    def __str__(self) -> str:
        place = "" if self.is_shipped else ", which only builds or tests"
        mended = f"fixed in {', '.join(self.fixed)}" if self.fixed else "no fixed version"
        return f"{self.package} {self.version}{place}: {', '.join(sorted(self.ids))}, {mended}"


class Acceptance(NamedTuple):
    """Why a vulnerability of a package may stay, and until when that is believed."""

    package: str
    id: str
    reason: str
    until: datetime.date


def accepted(text: str) -> list[Acceptance]:
    """Return the entries of the list of accepted vulnerabilities.

    >>> accepted('[[accepted]]\\npackage = "a"\\nid = "CVE-1"\\nreason = "not called"\\nuntil = 2030-01-01')[0].id
    'CVE-1'
    """
    entries = [Acceptance(**entry) for entry in tomllib.loads(text).get("accepted", ())]
    for entry in entries:
        if not entry.reason.strip() or not isinstance(entry.until, datetime.date):
            raise ValueError(f"{entry.package} {entry.id}: an accepted vulnerability has a reason and a date")
    return entries


def must_be_mended(finding: Finding, entries: Iterable[Acceptance], today: datetime.date) -> bool:
    """Whether CI fails: users get the package, a fixed version is there, and nobody has accepted it for now."""
    is_accepted = any(
        entry.package == finding.package and entry.id in finding.ids and today <= entry.until for entry in entries
    )
    return finding.is_shipped and bool(finding.fixed) and not is_accepted


def shipped_packages(text: str) -> frozenset[str]:
    """Return the normal names of the packages of a file of requirements.

    >>> sorted(shipped_packages("Py_Yaml==6.0 \\\\\\n    --hash=sha256:1\\nagate==1.14.2"))
    ['agate', 'py-yaml']
    """
    return frozenset(map(_normal, re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==", text, re.MULTILINE)))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def package_findings(dependencies: Sequence[Mapping[str, object]], shipped: frozenset[str]) -> Iterator[Finding]:
    """Yield what pip-audit's JSON reports."""
    for each in dependencies:
        vulnerabilities = each.get("vulns")
        for one in vulnerabilities if isinstance(vulnerabilities, list) else ():
            name = _normal(str(each["name"]))
            ids = frozenset((one["id"], *one.get("aliases", ())))
            yield Finding(name, str(each["version"]), ids, tuple(one.get("fix_versions", ())), name in shipped)


def packages() -> list[Finding]:
    """Return the vulnerabilities of Python packages; none where pip-audit cannot ask."""
    command = [str(Path(sys.executable).parent / "pip-audit"), "--local", "--skip-editable"]
    command += ["--progress-spinner", "off", "--format", "json"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        known = json.loads(asked.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"Python packages: skipped, pip-audit cannot ask: {(asked.stderr.strip().splitlines() or [''])[-1]}")
        return []
    judged = sum("vulns" in each for each in known)
    unknown = len(known) - judged
    print(f"Python packages: {judged} audited, {unknown} skipped (the database cannot be reached, or lacks them)")
    return list(package_findings(known, shipped_packages(SHIPPED.read_text(encoding="utf-8"))))


def published(what: str, known: Sequence[Published]) -> list[Finding]:
    """Return the vulnerabilities of these packages, all of which users get; none where OSV cannot be reached."""
    queries = [{"package": {"ecosystem": each.ecosystem, "name": each.name}, "version": each.version} for each in known]
    try:
        results = _asked("POST", f"{OSV}/querybatch", {"queries": queries})["results"]
        findings = [
            Finding(each.name, each.version, *_details(_asked("GET", f"{OSV}/vulns/{entry['id']}"), each), True)
            for each, result in zip(known, results, strict=True)
            for entry in result.get("vulns", ())
        ]
    except (requests.RequestException, ValueError, KeyError) as error:
        print(f"{what}: skipped, OSV cannot be asked ({type(error).__name__})")
        return []
    print(f"{what}: {len(known)} audited")
    return findings


def _asked(method: str, address: str, body: object = None) -> dict[str, list[dict[str, list[dict[str, str]]]]]:
    answer = requests.request(method, address, json=body, timeout=20)
    answer.raise_for_status()
    data: dict[str, list[dict[str, list[dict[str, str]]]]] = answer.json()
    return data


def _details(record: Mapping[str, object], package: Published) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of a vulnerability of OSV's form, and the versions of the package that mend it."""
    aliases, affected = record.get("aliases"), record.get("affected")
    fixed = [
        event["fixed"]
        for entry in (affected if isinstance(affected, list) else ())
        if entry["package"]["name"] == package.name
        for ranges in entry.get("ranges", ())
        if ranges["type"] != "GIT"
        for event in ranges.get("events", ())
        if "fixed" in event
    ]
    return frozenset((str(record["id"]), *(aliases if isinstance(aliases, list) else ()))), tuple(dict.fromkeys(fixed))


def jars() -> list[Published]:
    return [Published("Maven", f"{jar.group}:{jar.artifact}", jar.version) for jar in locked_jars("kafka")]


def libraries() -> list[Published]:
    """Return the libraries of the documentation site."""
    packages = json.loads((FOLDER / LOCK).read_text(encoding="utf-8"))["packages"]
    return [
        Published("npm", place.removeprefix("node_modules/"), packages[place]["version"]) for place in packages if place
    ]


def main() -> int:
    findings = [*packages(), *published("jars", jars()), *published("libraries", libraries())]
    entries = accepted(ACCEPTED.read_text(encoding="utf-8"))
    failing = [one for one in findings if must_be_mended(one, entries, datetime.datetime.now(datetime.UTC).date())]
    for finding in findings:
        print(f"{'MEND' if finding in failing else 'known'}: {finding}")
    if failing:
        print(f"`make lock LOCK=--upgrade`, or a reason in {ACCEPTED.relative_to(ROOT)}")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
