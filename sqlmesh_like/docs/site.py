"""One HTML file from the content. Owns how it is assembled: styles, scripts, libraries and data inline.

Its Content-Security-Policy forbids all requests, and all scripts except these, which are identified by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files

from sqlmesh_like.docs.libraries import Library

_SCRIPTS = (
    "dom", "search", "selection", "sql", "groups", "layout", "drawing", "minimap", "gestures", "graph", "lineage",
    "panels", "health", "pages", "app",
)  # fmt: skip
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def site_page(content: Mapping[str, object], libraries: Sequence[Library]) -> str:
    """Return the site as HTML, deterministic for given content. Without libraries the page lists its graph."""
    style, scripts = _asset("site.css"), "\n".join(_asset(f"{name}.js") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{scripts}\n}})();\n'  # all in one function scope
    codes = [library.script for library in libraries]
    hashes = " ".join(map(_hash, (*codes, script)))
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    # Content as JSON in which no HTML parser can find the end of its script element.
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=str)
    for sign, escaped in _UNSAFE.items():
        data = data.replace(sign, escaped)
    parts = {
        "policy": policy,
        "title": html.escape(str(content["project"])),
        "style": style,
        "data": data,
        "libraries": "\n".join(f"<script>{code}</script>" for code in codes),
        "script": script,
    }
    # In one pass: an inserted part may contain the placeholder of another one.
    return re.sub(r"@@(\w+)@@", lambda match: parts[match[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
