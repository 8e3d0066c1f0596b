"""Known vulnerabilities of installed and fetched components: `python -m tools.audit`. Exit code 1 where there are some.

Python packages are checked by `pip-audit`, jars and the site's libraries with OSV (https://osv.dev). If a database
cannot be reached, its check is skipped with a message.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import requests

from sqlmesh_like.spark.jvm.jars import locked_jars
from tools.site_libraries import FOLDER, LOCK

OSV = "https://api.osv.dev/v1/querybatch"


class Published(NamedTuple):
    """A version of a package, in OSV's terms."""

    ecosystem: str
    name: str
    version: str


def packages() -> bool:
    """Print the vulnerabilities of Python packages; return whether pip-audit finds none or cannot check."""
    command = [
        str(Path(sys.executable).parent / "pip-audit"),
        "--local",
        "--skip-editable",
        "--progress-spinner",
        "off",
    ]
    asked = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=False)
    try:
        known = json.loads(asked.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"Python packages: skipped, pip-audit cannot ask: {(asked.stderr.strip().splitlines() or [''])[-1]}")
        return True
    judged = [each for each in known if "vulns" in each]
    for each in judged:
        for vulnerability in each["vulns"]:
            print(f"{each['name']} {each['version']}: {vulnerability['id']}")
    unknown = len(known) - len(judged)
    print(f"Python packages: {len(judged)} audited, {unknown} skipped (the database cannot be reached, or lacks them)")
    return not any(each["vulns"] for each in judged)


def published(what: str, known: Sequence[Published]) -> bool:
    """Print the vulnerabilities of these packages; return whether OSV knows none or cannot be reached."""
    queries = [{"package": {"ecosystem": each.ecosystem, "name": each.name}, "version": each.version} for each in known]
    try:
        answer = requests.post(OSV, json={"queries": queries}, timeout=20)
        answer.raise_for_status()
        results = answer.json()["results"]
    except (requests.RequestException, ValueError, KeyError) as error:
        print(f"{what}: skipped, OSV cannot be asked ({type(error).__name__})")
        return True
    judged = [
        (each, [entry["id"] for entry in result.get("vulns", [])]) for each, result in zip(known, results, strict=True)
    ]
    for each, names in judged:
        print(f"{each.name} {each.version}: {', '.join(names) or 'nothing known'}")
    return not any(names for _, names in judged)


def jars() -> list[Published]:
    return [Published("Maven", f"{jar.group}:{jar.artifact}", jar.version) for jar in locked_jars("kafka")]


def libraries() -> list[Published]:
    """Return the libraries of the documentation site."""
    packages = json.loads((FOLDER / LOCK).read_text(encoding="utf-8"))["packages"]
    return [
        Published("npm", place.removeprefix("node_modules/"), packages[place]["version"]) for place in packages if place
    ]


if __name__ == "__main__":
    sys.exit(0 if all([packages(), published("jars", jars()), published("libraries", libraries())]) else 1)
