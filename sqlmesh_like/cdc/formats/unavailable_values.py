"""What Debezium writes for a value that the source did not log because it had not changed.

Owns the forms of the placeholder (`unavailable.value.placeholder`), which depend on a column's type and on the
connector's settings. Source: `UnchangedToastedPlaceholder` and the value converters of Debezium 3.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid

from sqlmesh_like.sql_text import spark_literal


def placeholder_texts(placeholder: str) -> tuple[str, ...]:
    """The texts that Spark reads for a value which is the placeholder.

    Of texts, bytes (base64 or hex), and lists of texts, of bytes, of integers (one for each byte, signed) and of UUIDs
    (the one made of the bytes), and of hstore (a map from the placeholder to itself).

    >>> placeholder_texts("é")[1:]
    ('w6k=', 'c3a9', '["é"]', '["w6k="]', '[-61,-87]', '["66ddcd97-cfde-3bb2-b6fb-8a999b4bc76f"]', '{"é":"é"}')
    """
    raw = placeholder.encode()
    coded = base64.b64encode(raw).decode()
    of_bytes = dict.fromkeys((coded, base64.urlsafe_b64encode(raw).decode(), raw.hex()))
    lists = ([placeholder], [coded], _signed_bytes(raw), [_uuid_of(raw)])
    return (placeholder, *of_bytes, *map(_compact, lists), _compact({placeholder: placeholder}))


def may_hold(text: str, placeholder: str) -> str:
    """Spark SQL: whether a message's text may hold a value that is the placeholder."""
    raw = placeholder.encode()
    spellings = {json.dumps(placeholder, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
    codings = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode(), raw.hex(), _uuid_of(raw)}
    integers = r"\[\s*" + r"\s*,\s*".join(map(str, _signed_bytes(raw))) + r"\s*\]"
    checks = [f"contains({text}, {spark_literal(mark)})" for mark in sorted(spellings | codings)]
    return " or ".join([*checks, f"{text} rlike {spark_literal(integers)}"])


def _signed_bytes(raw: bytes) -> list[int]:
    return [byte - 256 if byte > 127 else byte for byte in raw]


def _uuid_of(raw: bytes) -> str:
    """The UUID that Java's `nameUUIDFromBytes` gives."""
    digest = hashlib.md5(raw, usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest, version=3))


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
