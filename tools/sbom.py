"""Writes the software bill of materials, a CycloneDX document: `python -m tools.sbom target/sbom.json`.

Python packages are those of `requirements/run.txt`, the jars those of `jars.lock.toml`, the site's libraries those of
their `package-lock.json`; all with their hashes.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

from sqlmesh_like.spark.jvm.jars import Jar, locked_jars
from tools.site_libraries import FOLDER, LOCK

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


def npm_components(lock: str) -> list[dict[str, object]]:
    """
    >>> lock = '{"packages": {"": {}, "node_modules/@x/y": {"version": "1", "integrity": "sha512-q80="}}}'
    >>> npm_components(lock)[0]["hashes"]
    [{'alg': 'SHA-512', 'content': 'abcd'}]
    """
    components: list[dict[str, object]] = []
    for place, entry in json.loads(lock)["packages"].items():
        if name := place.removeprefix("node_modules/"):
            purl = f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}"
            digest = base64.b64decode(entry["integrity"].removeprefix("sha512-")).hex()
            hashes = [{"alg": "SHA-512", "content": digest}]
            named = {"name": name, "version": entry["version"]}
            components.append({"type": "library", "bom-ref": purl, **named, "hashes": hashes, "purl": purl})
    return components


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
    bom["components"] += npm_components((FOLDER / LOCK).read_text(encoding="utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(bom, indent=2) + "\n", encoding="utf-8")
    print(f"Wrote {path}: {len(bom['components'])} components")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
