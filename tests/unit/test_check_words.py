"""The checks of words and folders that `make lint` adds."""

from __future__ import annotations

import ast

from tools.check_words import names_in, phrases_in, retired_words

TABLE = '## Retired words\n\n| retired | use |\n|---|---|\n| `aim`, "is no" | target |\n'


def test_a_name_is_found_where_it_is_defined_and_not_where_it_is_used() -> None:
    tree = ast.parse("def aim(dear: int) -> int:\n    kept = dear\n    return kept\n")
    assert list(names_in(tree)) == [("aim", 1), ("dear", 1), ("kept", 2)]


def test_a_phrase_is_found_as_whole_words_and_not_after_there() -> None:
    retired = retired_words(TABLE)
    assert retired.names == {"aim"}
    assert phrases_in("the text is no date", retired) == ["is no"]
    assert phrases_in("there is no table, and this is nothing", retired) == []
