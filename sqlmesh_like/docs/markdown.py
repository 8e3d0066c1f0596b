"""Descriptions as HTML. Owns their format: Markdown, in which HTML is shown as text and nothing is loaded."""

from __future__ import annotations

import html
import re
from functools import cache

from markdown_it import MarkdownIt

_LONGEST, _MOST = 100_000, 300_000
"""Characters of a text, and marks of all texts, that are read as Markdown: a text that is all brackets takes the square
of its length, and a mark 30 µs."""
_MARK = re.compile(r"[^\w\s]|\n")


@cache
def _parser() -> MarkdownIt:
    # Images would be fetched from elsewhere; the site makes no requests.
    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")


class Markdown:
    """The descriptions of one site. What is too long, or comes after too many marks of others, is shown as written."""

    def __init__(self) -> None:
        self._left = _MOST

    def as_html(self, text: str) -> str:
        """Return a description as HTML that is safe to insert: the author's own tags are escaped.

        >>> Markdown().as_html("all *users* <script>alert(1)</script>")
        '<p>all <em>users</em> &lt;script&gt;alert(1)&lt;/script&gt;</p>\\n'
        >>> Markdown().as_html("")
        ''
        >>> Markdown().as_html("*" * 200_000)[:8]
        '<pre>***'
        """
        if not text.strip():
            return ""
        marks = len(_MARK.findall(text)) if len(text) <= _LONGEST else self._left + 1
        if marks > self._left:
            return f"<pre>{html.escape(text)}</pre>\n"
        self._left -= marks
        return str(_parser().render(text))
