"""Descriptions as HTML. Owns their format: Markdown, in which HTML is shown as text and nothing is loaded."""

from __future__ import annotations

import html
from functools import cache

from markdown_it import MarkdownIt

_LONGEST = 100_000
"""Characters of a text that is read as Markdown, which takes the square of a text's length where it is all brackets."""


@cache
def _parser() -> MarkdownIt:
    # Images would be fetched from elsewhere; the site makes no requests.
    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")


def as_html(text: str) -> str:
    """Return a description as HTML that is safe to insert: the author's own tags are escaped.

    >>> as_html("all *users* <script>alert(1)</script>")
    '<p>all <em>users</em> &lt;script&gt;alert(1)&lt;/script&gt;</p>\\n'
    >>> as_html("")
    ''
    >>> as_html("*" * 200_000)[:8]
    '<pre>***'
    """
    if len(text) > _LONGEST:
        return f"<pre>{html.escape(text)}</pre>\n"
    return _parser().render(text) if text.strip() else ""
