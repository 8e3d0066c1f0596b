"""The order in which Spark writes offsets as JSON. Owns only that order.

Spark writes a `scala.collection.mutable.HashMap` (of Scala 2.12), and compares offsets as texts: of other order, they
would look new, and it would record a batch without events. Source: `HashTable` of Scala 2.12, `JsonUtils` of Spark 3.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key", str, int)
_ALL = 0xFFFFFFFF
_MULTIPLIER = 0x9E3775CD


def offsets_by_topic(offsets: Mapping[tuple[str, int], int]) -> dict[str, dict[str, int]]:
    """Offsets by topic and partition, in Spark's order.

    >>> offsets_by_topic({("two.db.a", 0): 3, ("two.db.b", 0): 0, ("two.db.a", 1): 4, ("two.db.c", 0): 9})
    {'two.db.a': {'1': 4, '0': 3}, 'two.db.c': {'0': 9}, 'two.db.b': {'0': 0}}
    """
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(offsets):
        by_topic.setdefault(topic, []).append(partition)
    return {
        topic: {str(partition): offsets[topic, partition] for partition in _in_order(by_topic[topic])}
        for topic in _in_order(by_topic)
    }


def _in_order(keys: Iterable[Key]) -> list[Key]:
    """Keys that were put into a map in this order, as the map gives them."""
    buckets: list[list[Key]] = [[] for _ in range(16)]
    for count, key in enumerate(keys, 1):
        buckets[_bucket(key, len(buckets))].insert(0, key)
        if count > len(buckets) * 3 // 4:
            larger: list[list[Key]] = [[] for _ in range(2 * len(buckets))]
            for each in (each for bucket in reversed(buckets) for each in bucket):
                larger[_bucket(each, len(larger))].insert(0, each)
            buckets = larger
    return [key for bucket in reversed(buckets) for key in bucket]


def _bucket(key: str | int, size: int) -> int:
    code = key if isinstance(key, int) else 0
    for sign in key.encode("ascii") if isinstance(key, str) else ():
        code = (31 * code + sign) & _ALL
    mixed = int.from_bytes((code * _MULTIPLIER & _ALL).to_bytes(4, "little"), "big") * _MULTIPLIER & _ALL
    turned = (mixed >> 4 | mixed << 28) & _ALL  # by the bits of the first size, also of a map that has grown
    return turned >> (32 - size.bit_length() + 1) & (size - 1)
