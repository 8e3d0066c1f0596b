"""Literals with a type that Spark refuses: `date '2024-13-01'`, `interval '1 fortnight'`, `128Y`. Owns finding them.

The parser makes casts of them, which may be NULL where a literal is an error. What is not sure to be refused is left to
Spark. Those with the day on which Spark reads them (`date 'today'`, `timestamp '10:15'`) are refused, too: tables would
keep yesterday's. Source: `AstBuilder`, `SparkDateTimeUtils` and `IntervalUtils` of Spark 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

import sqlglot
from sqlglot import Token, TokenType

from sqlmesh_like.analyze.refusals.literal_ranges import bad_number, bad_range
from sqlmesh_like.dialects import SPARK

_MOMENTS = {
    "DATE": "a date",
    "TIMESTAMP": "a timestamp",
    "TIMESTAMP_NTZ": "a timestamp",
    "TIMESTAMP_LTZ": "a timestamp",
}
_MONTHS = frozenset({"YEAR", "YEARS", "MONTH", "MONTHS"})
_SECONDS = frozenset(
    f"{unit}{end}"
    for unit in ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
    for end in ("", "S")
)
_UNITS = _MONTHS | _SECONDS
_BY_UNIT = frozenset({"DATEADD", "DATE_ADD", "TIMESTAMPADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF"})
_OF_UNIT = 3
"""Arguments of such a function if the first is a unit; `date_add` of a text and a number is another one."""
_NUMBER = r"(\d+(\.\d*)?|\.\d+)"
_WHOLE_INTERVAL = re.compile(
    rf"\s*(interval\s+)?([+-]?\s*{_NUMBER}\s+({'|'.join(sorted(_UNITS, reverse=True))})\s*)+", re.IGNORECASE
)
_AMOUNT = re.compile(rf"\s*[+-]?\s*{_NUMBER}\s*")
_DATE = re.compile(r"[+-]?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIME = re.compile(
    r"([+-]?\d{4,6}(-\d{1,2}(-\d{1,2})?)?)?[ T]?(\d{0,2}(:\d{0,2}(:\d{0,2}(\.\d*)?)?)?(\s*[A-Za-z+-].*)?)?"
)
_SPECIAL = {
    "EPOCH": "", "NOW": "{}", "TODAY": "{}", "TOMORROW": "date_add({}, 1)", "YESTERDAY": "date_sub({}, 1)",
}  # fmt: skip
"""Words for a moment, and what to write for those that depend on the clock; `{}` is the date or time of the run."""
_MAY_BE_BAD = re.compile(
    r"\b(date|timestamp\w*|interval)\s*['\"(+-]|\binterval\b|_?(add|diff)\s*\(\s*['\"]|\d([yslfde]|bd)\b|\de[+-]?\d",
    re.IGNORECASE,
)
Bad = tuple[int, str]
"""0-based offset and what is wrong."""


def first_bad_literal(sql: str) -> Bad | None:
    """The first literal that Spark is sure to refuse.

    >>> first_bad_literal("select date '2024-02-30'"), first_bad_literal("select date '2024-2-3', 127Y")
    ((7, "'2024-02-30' is not a date"), None)
    >>> first_bad_literal("select interval '1 month 2 days'")
    (7, "an interval has months or smaller units, not both: '1 month 2 days'")
    """
    tokens = sqlglot.tokenize(sql, dialect=SPARK) if _MAY_BE_BAD.search(sql) else []
    for at, token in enumerate(tokens):
        if _text(tokens, at - 1) == ".":
            continue
        word = token.text.upper()
        bad = None
        if word in _MOMENTS and _is_literal(tokens, at + 1):
            bad = _bad_moment(word, tokens[at + 1].text)
        elif word == "INTERVAL":
            bad = _bad_interval(tokens, at)
        elif word in _BY_UNIT and _counts_by_text(tokens, at):
            bad = f"{tokens[at + 2].text!r} is a text: the unit of {word} is written without quotes"
        elif token.token_type == TokenType.NUMBER:
            bad = bad_number(sql, token)
        if bad is not None:
            return token.start, bad
    return None


def _text(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text.upper() if 0 <= at < len(tokens) else ""


def _is_string(tokens: Sequence[Token], at: int) -> bool:
    return 0 <= at < len(tokens) and tokens[at].token_type == TokenType.STRING


def _is_literal(tokens: Sequence[Token], at: int) -> bool:
    """Whether a text stands alone: several of them are one text."""
    return _is_string(tokens, at) and not _is_string(tokens, at + 1) and "\\" not in tokens[at].text


def _bad_moment(word: str, text: str) -> str | None:
    given = text.strip()
    special = re.split("[^A-Za-z]", given)[0].upper()
    if (instead := _SPECIAL.get(special)) is not None:
        clock = "current_timestamp" if special == "NOW" and word != "DATE" else "current_date"
        return f"{text!r} depends on the clock: write {instead.format(clock)}" if instead else None
    if word == "DATE":
        is_one = _is_day(_DATE.fullmatch(given))
    elif re.fullmatch(r"T?\d{1,2}:.*", given):
        return f"{text!r} has no date, and Spark takes the current one: write a date before it"
    else:
        day = _DATE.fullmatch(re.split("[ T]", given)[0])
        is_one = _TIME.fullmatch(given) is not None and _is_day(day)
    return None if is_one else f"{text!r} is not {_MOMENTS[word]}"


def _is_day(match: re.Match[str] | None) -> bool:
    if match is None:
        return False
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        date(year % 400 + 2000, month, day)  # the calendar repeats itself every 400 years
    except ValueError:
        return False
    return True


def _bad_interval(tokens: Sequence[Token], at: int) -> str | None:
    if _is_literal(tokens, at + 1) and _text(tokens, at + 2) not in _UNITS:
        return _bad_whole(tokens[at + 1].text)
    if _text(tokens, at + 1) == "(" and _unit_after_bracket(tokens, at + 1):
        return "the number of an interval is written without brackets"
    if _is_number(tokens, at + 1) and tokens[at + 2 : at + 3] and _is_odd_unit(tokens[at + 2]):
        return f"{tokens[at + 2].text!r} is not a unit of an interval"
    seen: set[bool] = set()
    place, ranges = at + 1, 0
    while True:
        place += _text(tokens, place) in ("-", "+")
        amount, unit = place, _text(tokens, place + 1)
        if unit not in _UNITS or not (_is_string(tokens, amount) or _is_number(tokens, amount)):
            break
        place += 2
        if _text(tokens, place) == "TO" and _text(tokens, place + 1) in _UNITS:
            bounds = unit.removesuffix("S"), _text(tokens, place + 1).removesuffix("S")
            if _is_number(tokens, amount):
                return f"an interval from {bounds[0].lower()} to {bounds[1].lower()} is a text: '{tokens[amount].text}'"
            is_negative = _text(tokens, amount - 1) == "-"
            if _is_literal(tokens, amount) and (bad := bad_range(tokens[amount].text, bounds, is_negative=is_negative)):
                return bad
            place, ranges = place + 2, ranges + 1
        elif _is_literal(tokens, amount) and not _AMOUNT.fullmatch(tokens[amount].text):
            return f"{tokens[amount].text!r} is not a number of {unit.lower()}"
        seen.add(unit in _MONTHS)
    if ranges and place - at > _ONE_RANGE:
        return "an interval from one unit to another stands alone"
    return "an interval has months or smaller units, not both" if len(seen) > 1 else None


def _is_odd_unit(token: Token) -> bool:
    word = token.text.upper()
    return word.startswith("NANOSECOND") or (token.token_type == TokenType.VAR and word not in _UNITS)


def _unit_after_bracket(tokens: Sequence[Token], opening: int) -> bool:
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at].token_type == TokenType.L_PAREN) - (tokens[at].token_type == TokenType.R_PAREN)
        if depth == 0:
            return _text(tokens, at + 1) in _UNITS
    return False


_ONE_RANGE = 6
"""Tokens of an interval from unit to unit, with its word and a sign."""


def _is_number(tokens: Sequence[Token], at: int) -> bool:
    return 0 <= at < len(tokens) and tokens[at].token_type == TokenType.NUMBER


def _bad_whole(text: str) -> str | None:
    if not text.isascii() or not _WHOLE_INTERVAL.fullmatch(text):
        return f"{text!r} is not an interval"
    kinds = {word.upper() in _MONTHS for word in re.findall("[A-Za-z]+", text) if word.upper() != "INTERVAL"}
    return f"an interval has months or smaller units, not both: {text!r}" if len(kinds) > 1 else None


def _counts_by_text(tokens: Sequence[Token], at: int) -> bool:
    """Whether a function of three arguments has a text as its first."""
    if _text(tokens, at + 1) != "(" or not _is_string(tokens, at + 2) or _text(tokens, at + 3) != ",":
        return False
    depth, count = 0, 1
    for token in tokens[at + 1 :]:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0:
            break
        count += depth == 1 and token.token_type == TokenType.COMMA
    return count == _OF_UNIT
