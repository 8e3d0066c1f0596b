"""Writes what the product consists of: `python -m tools.sbom target/sbom.json`, a CycloneDX document.

Python's packages are those of `requirements/run.txt`, the jars those of `jars.lock.toml`; all with their hashes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from sqlmesh_like.spark.jvm.jars import Jar, locked_jars

PACKAGES = Path(__file__).parents[1] / "requirements" / "run.txt"


def jar_component(jar: Jar) -> dict[str, object]:
    """
    >>> jar_component(Jar("org.x", "lib", "1.0", "ab"))["purl"]
    'pkg:maven/org.x/lib@1.0'
    """
    purl = f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}"
    hashes = [{"alg": "SHA-256", "content": jar.sha256}]
    named = {"group": jar.group, "name": jar.artifact, "version": jar.version}
    return {"type": "library", "bom-ref": purl, **named, "hashes": hashes, "purl": purl}


def main(path: Path) -> None:
    made = subprocess.run(
        ["cyclonedx-py", "requirements", "--output-format", "JSON", "--output-reproducible", str(PACKAGES)],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": str(Path(sys.executable).parent)},
    )
    bom = json.loads(made.stdout)
    bom["components"] += [jar_component(jar) for jar in locked_jars("kafka")]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(bom, indent=2) + "\n", encoding="utf-8")
    print(f"Wrote {path}: {len(bom['components'])} components")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
