"""The JavaScript libraries of the page and their licences. Owns reading them; `tools/site_libraries.py` fetches them.

A package that was built with npm contains them; an installation without them writes a site without drawings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

_NAMES = {"cytoscape": "cytoscape", "dagre": "@dagrejs/dagre", "minisearch": "minisearch"}
"""The npm package of each file."""
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)


@dataclass(frozen=True)
class Library:
    """One library: name of its npm package, version, licence and code."""

    package: str
    version: str
    licence: str
    code: str

    @property
    def script(self) -> str:
        """The code to embed, with its licence, which each copy must include, and without a link to its source map."""
        licence = self.licence.replace("*/", "* /").strip()
        return f"/*! {self.package} {self.version}\n\n{licence}\n*/\n{_SOURCE_MAP.sub('', self.code)}"


def site_libraries() -> tuple[Library, ...]:
    """Return the libraries that draw and search the site; none where this installation was built without them."""
    folder = files(__package__).joinpath("assets", "libraries")
    return tuple(_read_libraries(folder)) if folder.joinpath("fetched").is_file() else ()


def _read_libraries(folder: Traversable) -> Iterator[Library]:
    lock = json.loads(folder.joinpath("package-lock.json").read_text(encoding="utf-8"))["packages"]
    for name, package in _NAMES.items():
        licence = folder.joinpath(f"{name}.LICENSE.txt").read_text(encoding="utf-8")
        code = folder.joinpath(f"{name}.js").read_text(encoding="utf-8")
        yield Library(package, lock[f"node_modules/{package}"]["version"], licence, code)
