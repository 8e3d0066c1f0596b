"""Descriptions as HTML. Owns their format: Markdown, in which HTML is shown as text and nothing is loaded."""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt


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
    """
    return _parser().render(text) if text.strip() else ""
