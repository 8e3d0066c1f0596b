"""Functions of texts and bytes. Owns which characters and forms are certain."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from zlib import crc32

from sqlmesh_like.cdc.in_process import regexes
from sqlmesh_like.cdc.in_process.json_values import get_json_object, json_object_keys
from sqlmesh_like.cdc.in_process.strict import Function, strict
from sqlmesh_like.cdc.in_process.values import NotProvenError, Rewritten, Value, certain, decoded, group_of, number_text


def _texts(function: Function) -> Function:
    """Arguments are texts or whole numbers, which are written as texts where a text is expected."""

    def called(first: Value, *rest: Value) -> Value:
        if isinstance(first, bool | float | Decimal | date | bytes | list):
            raise NotProvenError(f"a function of texts over {type(first).__name__}")
        return function(str(first) if isinstance(first, int) else first, *rest)

    return strict(called)


def _concat(*values: Value) -> Value:
    if None in values:
        return None
    if all(isinstance(value, list) for value in values):
        return [each for value in values for each in value]
    return "".join(as_text(value) for value in values)


def as_text(value: Value) -> str:
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise NotProvenError(f"a {type(value).__name__} in a text")
    return str(certain(value))


def _concat_ws(sign: str, *values: Value) -> str:
    parts = (each for value in values if value is not None for each in (value if isinstance(value, list) else [value]))
    return sign.join(as_text(part) for part in parts if part is not None)


def _left(text: str, length: int) -> Value:
    # Of a text that may be written otherwise, only the sign that begins an object or a list is sure.
    if type(text) is Rewritten and (length != 1 or text[:1] not in "{["):
        raise NotProvenError("the beginning of a JSON number")
    return str.__getitem__(text, slice(0, max(length, 0)))


def _contains(text: Value, part: str) -> Value:
    # Of a text that may be written otherwise, commas are sure: digits have none, and members keep those between them.
    if isinstance(text, Rewritten) and part != ",":
        raise NotProvenError("a part of a JSON number")
    return _texts(lambda whole, own: own in whole)(text, part)


def _ltrim(*arguments: str) -> str:
    """The text without leading blanks, or signs, which come first then."""
    *signs, text = arguments
    stripped = text.lstrip(signs[0] if signs else " ")
    return type(text)(stripped)


def _pad(text: str, length: int, sign: str, *, is_left: bool) -> str:
    if not sign:
        raise NotProvenError("padding with nothing")
    filled = (sign * length)[: max(0, length - len(text))]
    return (filled + text if is_left else text + filled)[:length]


def _substr(text: Value, start: int, length: int | None = None) -> Value:
    """From a place, from 1, or from the end, from -1."""
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if length is None else begin + max(length, 0)
    return text[max(begin, 0) : max(end, 0)]


def _substring_index(text: str, sign: str, count: int) -> str:
    if not sign or not count:
        raise NotProvenError("substring_index of nothing")
    parts = text.split(sign)
    return sign.join(parts[:count] if count > 0 else parts[count:])


def _translate(text: str, signs: str, to: str) -> str:
    if not set(to) & set(signs) and len(set(signs)) == len(signs):
        for place, sign in enumerate(signs):  # much faster than a table, in long texts
            text = text.replace(sign, to[place] if place < len(to) else "")
        return text
    table: dict[int, str] = {}
    for place, sign in enumerate(signs):
        table.setdefault(ord(sign), to[place] if place < len(to) else "")
    return text.translate(table)


def _change_case(text: str, *, upper: bool) -> str:
    if not text.isascii():
        raise NotProvenError("the case of letters beyond ASCII")
    return text.upper() if upper else text.lower()


_SPECIFIER = re.compile(r"%0?([0-9]*)[ds]")


def _format(pattern: str, *values: Value) -> str:
    left = list(values)

    def filled(match: re.Match[str]) -> str:
        value = left.pop(0)
        if value is None:
            return "null".rjust(int(match[1] or 0))
        if not isinstance(value, str | int):
            raise NotProvenError(f"a formatted {type(value).__name__}")
        return str(match[0] % value)

    return _SPECIFIER.sub(filled, pattern)


_NOT_BASE64 = re.compile(r"[!-*,.:-<>-@\[-`{-~-]")
"""Signs of ASCII for which `try_to_binary` is NULL; it skips blanks."""


def _bytes_or_null(text: str, *form: str) -> bytes | None:
    return None if _NOT_BASE64.search(text) else _from_base64(text, *form)


def _from_base64(text: str, *form: str) -> bytes:
    if form not in ((), ("BASE64",)):
        raise NotProvenError(f"the form {form}")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NotProvenError("a text that is not base64") from None


def _encode(text: str, charset: str) -> bytes:
    try:
        return text.encode({"UTF-8": "utf-8", "ISO-8859-1": "latin-1"}[charset])
    except (KeyError, UnicodeEncodeError):
        raise NotProvenError(f"a text in {charset}") from None


def _decode(value: bytes, charset: str) -> str:
    if charset != "UTF-8":
        raise NotProvenError(f"bytes in {charset}")
    return decoded(value)


def _sha2(text: Value, bits: int) -> str:
    if bits != 256:
        raise NotProvenError("another hash")
    return hashlib.sha256(text if isinstance(text, bytes) else as_text(text).encode()).hexdigest()


def _any_number(*values: Value) -> int:
    """In the place of `xxhash64`: any number that is the same for the same values, for choosing examples and groups."""
    return crc32(repr([group_of(value) for value in values]).encode())


TEXT_FUNCTIONS: Mapping[str, Function] = {
    "concat": _concat,
    "concat_ws": _concat_ws,
    "contains": strict(_contains),
    "startswith": _texts(lambda text, part: text.startswith(part)),
    "length": _texts(len),
    "octet_length": strict(lambda text: len(text if isinstance(text, bytes) else as_text(text).encode())),
    "left": _texts(_left),
    "right": _texts(lambda text, length: text[-length:] if length > 0 else ""),
    "trim": _texts(lambda text: text.strip(" ")),
    "ltrim": _texts(_ltrim),
    "trim_trailing": _texts(lambda text, sign: text.rstrip(sign)),
    "lpad": _texts(lambda text, length, sign: _pad(text, length, sign, is_left=True)),
    "rpad": _texts(lambda text, length, sign: _pad(text, length, sign, is_left=False)),
    "repeat": _texts(lambda text, count: text * max(count, 0)),
    "replace": _texts(lambda text, part, new: text.replace(part, new) if part else text),
    "translate": _texts(_translate),
    "upper": _texts(lambda text: _change_case(text, upper=True)),
    "lower": _texts(lambda text: _change_case(text, upper=False)),
    "substr": strict(_substr),
    "substring_index": _texts(_substring_index),
    "format_string": _format,
    "rlike": _texts(regexes.rlike),
    "regexp_extract": _texts(regexes.regexp_extract),
    "regexp_extract_all": _texts(regexes.regexp_extract_all),
    "regexp_replace": _texts(regexes.regexp_replace),
    "split": _texts(regexes.split),
    "hex": strict(lambda value: (value if isinstance(value, bytes) else as_text(value).encode()).hex().upper()),
    "base64": strict(lambda value: base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()),
    "unbase64": strict(_from_base64),
    "try_to_binary": strict(_bytes_or_null),
    "encode": strict(_encode),
    "decode": strict(_decode),
    "sha2": strict(_sha2),
    "xxhash64": _any_number,
    "get_json_object": get_json_object,
    "json_object_keys": json_object_keys,
}
