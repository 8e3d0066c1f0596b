"""The checks of words and folders that `make lint` adds."""

from __future__ import annotations

import ast

from tools.check_words import mutable_globals, names_in, phrases_in, retired_words

TABLE = '## Retired words\n\n| retired | use |\n|---|---|\n| `aim`, "is no" | target |\n'


def test_a_name_is_found_where_it_is_defined_and_not_where_it_is_used() -> None:
    tree = ast.parse("def aim(dear: int) -> int:\n    kept = dear\n    return kept\n")
    assert list(names_in(tree)) == [("aim", 1), ("dear", 1), ("kept", 2)]


def test_names_of_modules_are_a_table_of_their_own() -> None:
    retired = retired_words(
        TABLE + "\n## Retired names of modules\n\n| retired | use |\n|---|---|\n| `duck` | simulator |\n"
    )
    assert (retired.names, retired.modules) == ({"aim"}, {"duck"})


def test_a_phrase_is_found_as_whole_words_and_not_after_there() -> None:
    retired = retired_words(TABLE)
    assert retired.names == {"aim"}
    assert phrases_in("the text is no date", retired) == ["is no"]
    assert phrases_in("there is no table, and this is nothing", retired) == []


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
