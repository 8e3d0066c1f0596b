"""Record keys → buckets, as Hudi's bucket index assigns them. Owns the hash, which must equal Java's.

Source: Hudi's RFC-29, "Hash Index"; `List.hashCode` and `String.hashCode` of the Java platform's documentation.
"""

from __future__ import annotations

from collections.abc import Iterable

_INT = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF


def buckets_of(keys: Iterable[str], buckets: int) -> list[int]:
    """The bucket of each record key. Keys must not contain `:`, at which Hudi would split them.

    >>> buckets_of(["1", "customer-01", "ü"], 4)
    [0, 3, 3]
    """
    return [bucket_of(key, buckets) for key in keys] if buckets > 1 else [0 for _ in keys]


def bucket_of(key: str, buckets: int) -> int:
    """The bucket of one record key: the hash of a list of one text."""
    result = 0
    if key.isascii():
        for unit in key.encode():
            result = (31 * result + unit) & _INT
    else:
        text = key.encode("utf-16-le", "surrogatepass")
        for low, high in zip(text[::2], text[1::2], strict=True):
            result = (31 * result + (high << 8 | low)) & _INT
    return (31 + result & _POSITIVE) % buckets
