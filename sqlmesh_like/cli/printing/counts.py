"""Numbers of nodes in words."""

from __future__ import annotations

from collections.abc import Mapping


def counted_nodes(types: Mapping[str, int]) -> list[str]:
    """Return the number of nodes of each type in words, sorted by type.

    >>> counted_nodes({"model": 1, "saved_query": 2, "unit_test": 3, "analysis": 2})
    ['2 analyses', '1 model', '2 saved queries', '3 unit tests']
    """
    return [f"{number} {_word(kind, number)}" for kind, number in sorted(types.items())]


def _word(kind: str, number: int) -> str:
    word = kind.replace("_", " ")
    if number == 1:
        return word
    irregular = {"analysis": "analyses", "saved query": "saved queries"}
    return irregular.get(word, f"{word}s")
