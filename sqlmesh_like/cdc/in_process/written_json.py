"""The members and elements of JSON as they are written in a text. Owns finding where each begins and ends."""

from __future__ import annotations

import re
from collections.abc import Iterable
from json.decoder import scanstring  # type: ignore[attr-defined]

from sqlmesh_like.cdc.in_process.json_values import JSON_READER, json_value
from sqlmesh_like.cdc.in_process.values import NotProvenError


def written_members(text: str) -> list[tuple[str, str]]:
    """Each member of an object: its name and its value as they are written."""
    return [(text[name], text[value]) for name, value in _spans(text, is_object=True)]


def written_elements(text: str) -> list[str]:
    """Each element of a list as it is written."""
    return [text[value] for _, value in _spans(text, is_object=False)]


_BLANK = re.compile(r"[ \t\r\n]*")


def _spans(text: str, *, is_object: bool) -> Iterable[tuple[slice, slice]]:
    """The places of names and values; the text is JSON."""
    if not isinstance(json_value(text), dict if is_object else list):
        raise NotProvenError("a JSON value of another kind")
    at = _past(text, _past(text, 0) + 1)
    while text[at] not in "]}":
        name = slice(at, at)
        if is_object:
            _, end = scanstring(text, at + 1)
            name, at = slice(at, end), _past(text, _past(text, end) + 1)
        _, end = JSON_READER.raw_decode(text, at)
        yield name, slice(at, end)
        at = _past(text, end)
        at = _past(text, at + 1) if text[at] == "," else at


def _past(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()
