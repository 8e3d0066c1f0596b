"""Known vulnerabilities of what is installed and fetched: `python -m tools.audit`. Exit code 1 where there are some.

Python's packages are asked of by `pip-audit`, jars of OSV (https://osv.dev). A database that cannot be reached is
skipped, and said to be.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import requests

from sqlmesh_like.spark.jvm.jars import Jar, locked_jars

OSV = "https://api.osv.dev/v1/querybatch"


def packages() -> bool:
    """Whether pip-audit finds nothing, or cannot ask."""
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


def jars(known: tuple[Jar, ...]) -> bool:
    """Whether OSV knows nothing of these, or cannot be asked."""
    queries = [
        {"package": {"ecosystem": "Maven", "name": f"{jar.group}:{jar.artifact}"}, "version": jar.version}
        for jar in known
    ]
    try:
        answer = requests.post(OSV, json={"queries": queries}, timeout=20)
        answer.raise_for_status()
        results = answer.json()["results"]
    except (requests.RequestException, ValueError, KeyError) as error:
        print(f"jars: skipped, OSV cannot be asked ({type(error).__name__})")
        return True
    found = [
        (jar, [each["id"] for each in result.get("vulns", [])]) for jar, result in zip(known, results, strict=True)
    ]
    for jar, names in found:
        print(f"{jar}: {', '.join(names) or 'nothing known'}")
    return not any(names for _, names in found)


if __name__ == "__main__":
    sys.exit(0 if all([packages(), jars(locked_jars("kafka"))]) else 1)
