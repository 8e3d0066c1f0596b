"""Errors of Jinja's parser, in terms of the text that was written. Owns message, hint and position.

Jinja reports where it gave up, often the end of the file; a user wants the tag or quote that is not closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlmesh_like.errors import nearest

TAGS = (
    *("if", "elif", "else", "for", "set", "macro", "call", "filter", "block", "raw", "do", "with", "include", "import"),
    *("snapshot", "test", "materialization", "docs"),
)
_TAG = re.compile(r"\{%[-+]?\s*(\w+)")
_WORDS = {
    "end of statement block": "%}",
    "end of print statement": "}}",
    "begin of statement block": "{%",
    "begin of print statement": "{{",
}


@dataclass(frozen=True)
class TemplateSyntaxFault:
    """Why text is not valid Jinja; `offset` is the position in the text, None where Jinja's own line is the place."""

    message: str
    offset: int | None = None
    hint: str | None = None


def template_syntax_fault(raw: str, line: int, said: str) -> TemplateSyntaxFault:
    """The fault in a template that Jinja's parser refused at a line with a message.

    >>> template_syntax_fault("{% if a %} b", 1, "Unexpected end of template. … needs to be closed is 'if'.")
    TemplateSyntaxFault(message='invalid Jinja: this `if` is never closed', offset=0, hint='end it with {% endif %}')
    """
    text = re.sub(r"\{#.*?#\}", lambda comment: re.sub(r"[^\n]", " ", comment[0]), raw, flags=re.DOTALL)
    if said.startswith("Missing end of comment"):
        return _fault("this comment is never closed", text.rfind("{#"), "end it with #}")
    if (quote := _open_quote(text)) is not None:
        return _fault("this quote is never closed", quote)
    inner = re.search(r"needs to be closed is '(\w+)'", said)
    if said.startswith("Unexpected end of template") and inner:
        value = "give it a value by =, or " if inner[1] == "set" else ""
        hint = f"{value}end it with {{% end{inner[1]} %}}"
        return _fault(f"this `{inner[1]}` is never closed", _last_open(text, inner[1]), hint)
    if unknown := re.match(r"Encountered unknown tag '(\w+)'", said):
        return _unknown_tag(text, line, unknown[1], inner[1] if inner else None)
    if re.match(r"Expected an expression, got 'end of (print statement|statement block)'", said):
        tag = next(_TAG.finditer(text, _line_start(text, line)), None)
        name = "in {{ }}" if "print" in said or tag is None else f"after `{tag[1]}`"
        return _fault(f"something is missing {name}", tag.start() if tag and "print" not in said else None)
    if re.match(r"unexpected '[)\]}]'$", said) and (single := re.compile(r"\{\{[^{}]*(\})(?!\})").search(text)):
        return _fault("one brace closes what two have opened", single.start(1), "end it with }}")
    if expected := re.match(r"expected token '(.+)', got '(.+)'$", said):
        wanted, got = (_WORDS.get(word, word) for word in expected.groups())
        return _missing_before(text, line, wanted, got)
    if expected := re.match(r"unexpected '(.+)', expected '(.+)'$", said):
        return _missing_before(text, line, expected[2], expected[1])
    if filter_ := re.match(r"No (filter|test) named '(\w+)'", said):
        return _fault(f"no {filter_[1]} is named {filter_[2]!r}")
    return _fault(said.rstrip("."))


def _fault(message: str, offset: int | None = None, hint: str | None = None) -> TemplateSyntaxFault:
    return TemplateSyntaxFault(f"invalid Jinja: {message}", None if offset == -1 else offset, hint)


def _missing_before(text: str, line: int, wanted: str, got: str) -> TemplateSyntaxFault:
    tag = re.compile(r"\{[{%]").search(text, _line_start(text, line))
    match = re.compile(rf"(?<!\w){re.escape(got)}(?!\w)").search(text, tag.end() if tag else 0)
    return _fault(f"`{wanted}` is missing before `{got}`", match.start() if match else None)


def _unknown_tag(text: str, line: int, tag: str, inner: str | None) -> TemplateSyntaxFault:
    match = re.compile(rf"\{{%[-+]?\s*({tag})\b").search(text, _line_start(text, line))
    offset = match.start(1) if match else None
    if inner is not None and tag.startswith("end") and tag.removeprefix("end") in TAGS:
        place = _last_open(text[:offset], inner)
        where = f" of line {text.count(chr(10), 0, place) + 1}" if place != -1 else ""
        return _fault(
            f"`{tag}` stands where the `{inner}`{where} is open", offset, f"close that first: {{% end{inner} %}}"
        )
    opener = tag.removeprefix("end") if tag.startswith("end") else "if" if tag in ("else", "elif") else None
    if opener in TAGS:
        return _fault(
            f"no `{opener}` is open here", offset, f"leave {{% {tag} %}} out, or begin with {{% {opener} … %}}"
        )
    return _fault(f"there is no tag `{tag}`", offset, nearest(tag, [*TAGS, *(f"end{known}" for known in TAGS)]))


def _last_open(text: str, name: str) -> int:
    """Where the innermost tag of a name begins that is not closed; -1: all are."""
    opened: list[int] = []
    for tag in _TAG.finditer(text):
        if tag[1] == f"end{name}":
            del opened[-1:]
        elif tag[1] == name and not (name == "set" and "=" in text[tag.end() : text.find("%}", tag.end())]):
            opened.append(tag.start())
    return opened[-1] if opened else -1


def _open_quote(text: str) -> int | None:
    """Where a quote in a tag begins that is closed behind the end of its line or of the tag, or nowhere."""
    first: dict[int, int] = {}  # of each tag the first quoted text that goes over its line
    for tag, start, end in _quotes(text):
        content = text[start:end]
        if "\n" in content:
            first.setdefault(tag, start)
        if end == len(text) or "}}" in content or "%}" in content:
            return first.get(tag, start)
    return None


def _quotes(text: str) -> Iterator[tuple[int, int, int]]:
    """Where its tag begins, begin and end of each quoted text in tags; one that is not closed ends with the text."""
    for opening in re.finditer(r"\{[{%]", text):
        at = opening.end()
        while (token := re.compile(r"[}%]\}|['\"]").search(text, at)) and token[0] in "'\"":
            closing = re.compile(rf"(?:\\.|[^\\{token[0]}])*{token[0]}", re.DOTALL).match(text, token.end())
            at = closing.end() if closing else len(text)
            yield opening.start(), token.start(), at


def _line_start(text: str, line: int) -> int:
    offset = 0
    for _ in range(line - 1):
        offset = text.find("\n", offset) + 1
    return offset
