"""One HTML file from the content. Owns how it is assembled: styles, scripts, libraries and data inline.

Its Content-Security-Policy forbids all requests, and all scripts except these, which are identified by their hashes.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence

from sqlmesh_like.docs.libraries import Library
from sqlmesh_like.inline_html import policy_hash, read_asset

_SCRIPTS = (
    "dom", "search", "selection", "sql", "groups", "layout", "drawing", "minimap", "gestures", "graph", "lineage",
    "panels", "health", "pages", "app",
)  # fmt: skip
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def site_page(content: Mapping[str, object], libraries: Sequence[Library]) -> str:
    """Return the site as HTML, deterministic for given content. Without libraries the page lists its graph."""
    style, scripts = (
        read_asset(__package__, "site.css"),
        "\n".join(read_asset(__package__, f"{name}.js") for name in _SCRIPTS),
    )
    script = f'(() => {{\n"use strict";\n{scripts}\n}})();\n'  # all in one function scope
    codes = [library.script for library in libraries]
    hashes = " ".join(map(policy_hash, (*codes, script)))
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src {policy_hash(style)}; img-src data:; "
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
    return re.sub(r"@@(\w+)@@", lambda match: parts[match[1]], read_asset(__package__, "page.html"))
