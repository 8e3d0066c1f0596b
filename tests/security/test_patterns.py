"""Patterns that strangers write, and names that strangers send: no pair of them takes longer than its length."""

from __future__ import annotations

import pytest

from sqlmesh_like.project.reading.patterns import PatternError, compile_pattern, matches_whole

SLOW = (
    r"user_(\d+_?)*", r"(a+)+b", r"(a|a)*b", r"(.*)*x", r"([a-z]+)*\d", r"(a|aa)+$",
    r"(x+x+)+y", r"^(([a-z])+.)+[A-Z]([a-z])+$",
)  # fmt: skip
"""Patterns for which Python's engine needs a time that doubles with each character."""


@pytest.mark.parametrize("pattern", SLOW)
def test_no_name_takes_long(pattern: str) -> None:
    """Python's engine would not end: the limit of time of the whole suite is the assertion."""
    for name in ("a" * 5_000, "user_" + "1" * 5_000 + "x", "x" * 5_000, "aa." * 2_000):
        matches_whole(pattern, name)


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        (r"user_\d+", "user_12", True), (r"user_\d+", "user_12_old", False), ("a|b", "b", True), ("a|b", "ab", False),
        ("orders", "orders", True), ("orders", "Orders", False), ("(?i)orders", "ORDERS", True), ("", "", True),
        (r"shop\..*", "shop.user", True), ("größe_[0-9]", "größe_1", True),
        (".", "\ud800", True), ("[^a]+", "b\n", True),
        (r"(?P<n>x)\b", "x", True), ("a{2,3}", "aaa", True), (r"\w+", "a-b", False),
    ],
)  # fmt: skip
def test_names_match_as_before(pattern: str, name: str, is_match: bool) -> None:
    compile_pattern(pattern)
    assert matches_whole(pattern, name) is is_match


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("a(?=b)", "a lookahead"), ("a(?!b)", "a negative lookahead"), ("(?<=a)b", "a lookbehind"),
        ("(?<!a)b", "a negative lookbehind"), (r"(a)\1", "a backreference"), ("(?P<n>a)(?P=n)", "a backreference"),
        ("(?>a)", "an atomic group"), ("a++", "a possessive quantifier"), ("(", "missing"), ("[b-a]", "range"),
        ("(a{1000}){1000}", "repetition|too large"), ("*", "repetition"), ("\ud800(", "missing"),
    ],
)  # fmt: skip
def test_syntax_that_it_lacks_is_refused_by_name(pattern: str, what: str) -> None:
    with pytest.raises(PatternError, match=what):
        compile_pattern(pattern)
