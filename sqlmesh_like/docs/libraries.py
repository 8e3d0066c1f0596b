"""The JavaScript libraries of the page, each with its licence. Owns reading them; `tools/site_libraries.py` fetches.

They are part of a package that was built with npm; an installation without them writes a site without drawings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

_NAMES = {"cytoscape": "cytoscape", "dagre": "@dagrejs/dagre", "minisearch": "minisearch"}
"""Files, and the packages of npm that they are of."""
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)


@dataclass(frozen=True)
class Library:
    """One library: its package's name in npm, version, licence and code."""

    package: str
    version: str
    licence: str
    code: str

    @property
    def script(self) -> str:
        """The code as a page may hold it: its licence asks to stand with each copy, and maps lie elsewhere."""
        licence = self.licence.replace("*/", "* /").strip()
        return f"/*! {self.package} {self.version}\n\n{licence}\n*/\n{_SOURCE_MAP.sub('', self.code)}"


def site_libraries() -> tuple[Library, ...]:
    """What draws and searches the site; none where this installation was built without."""
    folder = files(__package__).joinpath("assets", "libraries")
    return tuple(_read(folder)) if folder.joinpath("fetched").is_file() else ()


def _read(folder: Traversable) -> Iterator[Library]:
    lock = json.loads(folder.joinpath("package-lock.json").read_text(encoding="utf-8"))["packages"]
    for name, package in _NAMES.items():
        licence = folder.joinpath(f"{name}.LICENSE.txt").read_text(encoding="utf-8")
        code = folder.joinpath(f"{name}.js").read_text(encoding="utf-8")
        yield Library(package, lock[f"node_modules/{package}"]["version"], licence, code)
