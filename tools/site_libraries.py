"""Fetches the JavaScript libraries of the documentation site: `python -m tools.site_libraries`.

They are pinned in `sqlmesh_like/docs/assets/libraries/package-lock.json`, fetched from the registry that npm is
configured for, checked by npm against the hashes of that file, and put beside it with their licences. This is also
hatchling's build hook: every build or installation fetches them, and a wheel contains them. Without npm or a network
the package is built without them, unless SML_DEMAND_LIBRARIES is set; the site then lists its graph instead of drawing
it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DEMAND_VARIABLE = "SML_DEMAND_LIBRARIES"
FOLDER = Path("sqlmesh_like/docs/assets/libraries")
LOCK = "package-lock.json"
STAMP = "fetched"
"""File with the hash of the lock whose libraries are in the folder; written when all of them are."""
_PATIENCE_SECONDS = 300


class Library(NamedTuple):
    """An npm package and the files that are needed of it, `code` and `licence`. `name` is their base name here."""

    package: str
    name: str
    code: str
    licence: str


LIBRARIES = (
    Library("cytoscape", "cytoscape", "dist/cytoscape.min.js", "LICENSE"),
    Library("@dagrejs/dagre", "dagre", "dist/dagre.min.js", "LICENSE"),
    Library("minisearch", "minisearch", "dist/umd/index.js", "LICENSE.txt"),
)


class FetchError(Exception):
    """The libraries cannot be fetched; the message says why, and what to do."""


class BuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 (hatchling's signature)
        try:
            fetch(Path(self.root) / FOLDER)
        except FetchError as error:
            if os.environ.get(DEMAND_VARIABLE):
                raise
            self.app.display_warning(f"without the libraries of the documentation site: {error}")


def is_fetched(folder: Path) -> bool:
    """Whether the folder contains the libraries of its lock."""
    stamp = folder / STAMP
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == _lock_hash(folder)


def fetch(folder: Path, libraries: tuple[Library, ...] = LIBRARIES) -> bool:
    """Fetch the libraries of the folder's lock into it; False if it has them already. Raises FetchError."""
    if is_fetched(folder):
        return False
    npm = shutil.which("npm")
    if npm is None:
        raise FetchError("there is no npm: install Node.js, then run `make site-libraries`")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for file in ("package.json", LOCK):
            shutil.copy(folder / file, work)
        _install(npm, work)
        (folder / STAMP).unlink(missing_ok=True)
        for library in libraries:
            package = work / "node_modules" / library.package
            shutil.copyfile(package / library.code, folder / f"{library.name}.js")
            shutil.copyfile(package / library.licence, folder / f"{library.name}.LICENSE.txt")
    (folder / STAMP).write_text(_lock_hash(folder), encoding="utf-8")
    return True


def _install(npm: str, work: Path) -> None:
    # No script of a package is run: only its files are needed.
    words = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(words, cwd=work, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        raise FetchError(f"npm did not answer in {_PATIENCE_SECONDS} s: run `make site-libraries` later") from None
    if done.returncode:
        reason = next((line for line in done.stderr.splitlines() if "npm error" in line), "npm cannot fetch them")
        raise FetchError(f"{reason.strip()}: see `npm ping`, then run `make site-libraries`")


def _lock_hash(folder: Path) -> str:
    return hashlib.sha256((folder / LOCK).read_bytes()).hexdigest()


def main() -> int:
    try:
        is_new = fetch(Path(__file__).resolve().parents[1] / FOLDER)
    except FetchError as error:
        print(f"note: no libraries for `sml docs generate`, which then lists the graph: {error}", file=sys.stderr)
        return 1 if os.environ.get(DEMAND_VARIABLE) else 0
    if is_new:
        print(f"fetched {', '.join(library.package for library in LIBRARIES)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
