"""The regular expressions that find JSON values as they are written, in Python's engine: no JVM.

Spark runs them in Java's engine, which knows `\\G` besides: where the last match ended.
"""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlmesh_like.cdc.formats.json_text import ELEMENT, MAX_JSON_DEPTH, MEMBER, may_be_rewritten, member_text

BLANKS = st.sampled_from(["", "", " ", "\t", "\n  "])
STRINGS = st.text(st.sampled_from("aü\"\\{}[],:' 1.\n漢")).flatmap(
    lambda text: st.sampled_from([json.dumps(text), json.dumps(text, ensure_ascii=False)])
)
SCALARS = st.sampled_from(["1", "-0", "0.10", "12345678901234567.89", "98765432109876543210", "1E-7", "true", "null"])


def _list(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(BLANKS, st.lists(items, max_size=3), BLANKS).map(
        lambda parts: f"[{parts[0]}{f' ,{parts[0]}'.join(parts[1])}{parts[2]}]"
    )


def _object(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(BLANKS, st.lists(st.tuples(STRINGS, items), max_size=3)).map(
        lambda parts: "{" + ",".join(f"{parts[0]}{name}{parts[0]}:{value}" for name, value in parts[1]) + parts[0] + "}"
    )


VALUES = st.recursive(STRINGS | SCALARS, lambda items: _list(items) | _object(items), max_leaves=8)


def all_matches(pattern: str, text: str) -> list[tuple[str, ...]]:
    """What `regexp_extract_all` finds, by group."""
    each, end, groups = re.compile(pattern.removeprefix(r"\G")), 0, []
    while match := each.match(text, end):
        groups.append(match.groups())
        end = match.end()
    return groups


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(st.tuples(STRINGS, VALUES), max_size=4), BLANKS)
def test_each_member_of_an_object_is_found_as_it_is_written(members: list[tuple[str, str]], blank: str) -> None:
    text = (
        blank + "{" + f"{blank},{blank}".join(f"{name}{blank}:{blank}{value}" for name, value in members) + blank + "}"
    )
    json.loads(text, strict=False)
    assert all_matches(MEMBER, text) == members
    assert all_matches(ELEMENT, f"[{blank}{f'{blank},'.join(value for _, value in members)}]") == [
        (value,) for _, value in members
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"before": null, "after": {"a": 0.10}, "op": "u"}', '{"a": 0.10}'),
        ('{"x": {"after": 1}, "\\u0061fter" : [1.0 ] }', "[1.0 ]"),
        ('{"x": "\\"after\\": 1", "after": "}"}', '"}"'),
        ('{"after": 1, "after": 2.50}', "2.50"),
        ("{'after': {'a': 'it\\'s'}}", "{'a': 'it\\'s'}"),
        ('{"before": {"after": 1}}', ""),
    ],
)
def test_a_member_is_found_by_its_name_at_its_own_level(text: str, value: str) -> None:
    pattern = re.search(r"regexp_extract\(line, r'(.*)', 1\)", member_text("line", "after"), re.DOTALL)
    assert pattern is not None
    match = re.match(pattern[1], text)
    assert match is not None and (match[1] or "") == value


def test_the_deepest_message_that_is_read_is_taken_apart() -> None:
    deep = "[" * MAX_JSON_DEPTH + "1.0" + "]" * MAX_JSON_DEPTH
    assert all_matches(MEMBER, f'{{"a": {deep}}}') == [('"a"', deep)]


@pytest.mark.parametrize(
    ("text", "message", "is_suspect"),
    [
        *((text, "", True) for text in ("1.2345678901234568E16", "0.1", "1.0E-7", '{"a":1}', "[]", '"Infinity"')),
        *((text, "", False) for text in ("12", "98765432109876543210", "true", "text", "", "2024-01-02 03:04:05.6")),
        ("0", '{"after": {"a": -0}}', True),
        ("0", '{"after": {"a": 0, "b": "2024-01-01", "c": -0.5}}', False),
        ("1", '{"after": {"a": -0}}', False),
    ],
)
def test_only_a_text_that_spark_may_have_rewritten_is_looked_up(text: str, message: str, *, is_suspect: bool) -> None:
    sql = may_be_rewritten("t")
    value, line = re.findall(r" rlike r'(.*?)'(?: or |\))", sql)
    (rewritten_zero,) = re.findall(r" or t = '(.*?)' and value rlike ", sql)
    assert bool(re.search(value, text) or (text == rewritten_zero and re.search(line, message))) is is_suspect
