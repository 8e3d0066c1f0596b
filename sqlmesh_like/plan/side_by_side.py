"""Questions about many tables, asked side by side. Owns for how many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_AT_ONCE = 64
"""Most of the time of a request to a store is waiting: 200 tables are asked about in four rounds."""
One = TypeVar("One")
Answer = TypeVar("Answer")


def side_by_side(ask: Callable[[One], Answer], each: Sequence[One]) -> list[Answer]:
    """The answers in the order of what is asked about. The first error in that order is raised."""
    if len(each) < 2:
        return [ask(one) for one in each]
    with ThreadPoolExecutor(min(_AT_ONCE, len(each))) as pool:
        return list(pool.map(ask, each))
