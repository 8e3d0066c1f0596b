"""The checks of layout that `make lint` adds."""

from __future__ import annotations

import ast

from tools.check_layout import mutable_globals


def test_state_of_a_module_is_what_is_changed_after_its_import() -> None:
    text = """
WORDS = {"a": 1}
KNOWN: dict[str, int] = {}
SEEN = []
COUNT = 0

def learn(word):
    global COUNT
    KNOWN[word] = WORDS[word]
    SEEN.append(word)
    own = []
    own.append(word)
    del KNOWN[word]
"""
    assert list(mutable_globals(ast.parse(text))) == [("COUNT", 8), ("KNOWN", 9), ("SEEN", 10), ("KNOWN", 13)]
