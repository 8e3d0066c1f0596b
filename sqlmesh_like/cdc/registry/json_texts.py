"""Values as the JSON that Spark's `to_json` writes of them. Owns its spelling."""

from __future__ import annotations

import base64
import json
import re

_OTHER = re.compile(r"[\x00-\x07\x0b\x0e-\x1f]")
"""Characters that have no short escape."""


def json_string(text: str) -> str:
    r"""A text in quotation marks.

    >>> print(json_string('a"\n\x1f\u00fc'))
    "a\"\n\u001Fü"
    """
    written = json.encoder.encode_basestring(text)
    if not _OTHER.search(text):
        return written
    return re.sub(r"(\\\\)|\\u[0-9a-f]{4}", lambda match: match[1] or rf"\u{match[0][2:].upper()}", written)


def json_base64(data: bytes) -> str:
    """Bytes as a text in base64."""
    return f'"{base64.b64encode(data).decode()}"'
