"""Spellings that Spark reads as one thing, told by the tokens alone. Owns which these are.

`tests/spark/sql/test_written_texts.py` asks Spark whether each pair has one analyzed plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlglot import Token, TokenType


class _Word(NamedTuple):
    """A token that means something. `kind`: text, number, name (which may be quoted), or nothing."""

    kind: str
    text: str


_SILENT = frozenset({"as", "inner", "outer", "asc"})
"""Words that Spark lets out or in with the same meaning."""
_SAME = {
    "!=": "<>", "==": "=", "any": "bool_or", "array_agg": "collect_list", "date_diff": "datediff", "dec": "decimal",
    "every": "bool_and", "integer": "int", "long": "bigint", "minus": "except", "numeric": "decimal", "real": "float",
    "some": "bool_or", "substr": "substring",
}  # fmt: skip
"""Two spellings of one thing."""
_SUFFIXES = {"l": "bigint", "d": "double", "s": "smallint", "y": "tinyint", "f": "float"}
"""The types of numbers as `1L`, which are tokenized as `1::L`."""
_CASTS = frozenset({
    "bigint", "boolean", "date", "double", "float", "int", "smallint", "string", "timestamp", "tinyint"
})  # fmt: skip
"""Types that are functions, too."""
_CLOCKS = frozenset({"current_date", "current_timestamp"})
"""What is written with and without parentheses."""
_TODAY = ["cast", "(", "current_date", "date", ")"]
"""As sqlglot writes CURRENT_DATE within SEQUENCE."""
_LITERALS = {
    "date": (re.compile(r"\d{4}-\d\d-\d\d"), "%Y-%m-%d"),
    "timestamp": (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "%Y-%m-%d %H:%M:%S"),
}
"""Types whose literals are those casts of texts that succeed."""
_DEFAULTS = frozenset({
    ("union", "distinct"), ("except", "distinct"), ("intersect", "distinct"), ("select", "all")
})  # fmt: skip
"""Words that mean nothing after the one before them."""
_CHOICES = frozenset({"any_value", "first", "first_value", "last", "last_value"})
"""Functions whose second argument says whether NULLs are ignored."""
_OPEN, _CLOSE, _CAST, _POINT = _Word("", "("), _Word("", ")"), _Word("", "cast"), _Word("", ".")
_COMMA, _TRUE = _Word("", ","), _Word("", "true")


def one_spelling(tokens: Sequence[Token]) -> list[str]:
    """The tokens of a query in one spelling, texts in quotes; comments, hints and the last semicolon are left out.

    >>> from sqlmesh_like.dialects import SPARK
    >>> def said(sql): return " ".join(one_spelling(SPARK.tokenize(sql)))
    >>> said("SELECT int(x.b), date '2024-01-31' d")
    "select cast ( x . b int ) , cast ( '2024-01-31' date ) d"
    >>> said("interval 3 month"), said("1L + current_date()")
    ("interval '3' month", 'cast ( 1 bigint ) + current_date')
    >>> said("struct(o.a, 1, c as d)") == said("named_struct('a', o.a, 'col2', 1, 'd', c)")
    True
    >>> said("x between .05 and 0.07")
    'x between 0.05 and 0.07'
    >>> said("last(a, true) over (order by b rows 2 preceding)")
    'last ( a ) ignore nulls over ( order by b rows between 2 preceding and current row )'
    >>> said("percentile_cont(0.5) within group (order by a)"), said("from (values (1)) as v(a)")
    ('percentile ( a , 0.5 )', 'from values ( 1 ) v ( a )')
    """
    words = [*_meaning(tokens)]
    for rewritten in (
        _with_leading_zeros,
        _with_known_literals,
        _with_casts_of_numbers,
        _with_casts_of_calls,
        _without_defaults,
        _with_named_fields,
        _with_whole_frames,
        _with_ignored_nulls,
        _with_percentiles,
        _without_brackets_of_values,
    ):
        words = [*rewritten(words)]
    return [f"'{word.text}'" if word.kind == "text" else word.text for word in words]


def _meaning(tokens: Sequence[Token]) -> Iterator[_Word]:
    for token in tokens:
        text = token.text.lower()
        if token.token_type == TokenType.STRING:
            yield _Word("text", token.text)
        elif token.token_type == TokenType.NUMBER:
            yield _Word("number", text)
        elif token.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
            yield _Word("name", _SAME.get(text, text))
        elif token.token_type not in (TokenType.SEMICOLON, TokenType.HINT) and text not in _SILENT:
            yield _Word("", _SAME.get(text, text))


def _with_leading_zeros(words: Sequence[_Word]) -> Iterator[_Word]:
    """`.5`, whose tokens are `.` and `5`, as `0.5`. After a name or a bracket the point is that of a field."""
    at = 0
    while at < len(words):
        before, word, rest = words[at - 1] if at else None, words[at], words[at + 1 : at + 2]
        is_field = before is not None and (before.kind != "" or before.text in (")", "]"))
        if word == _POINT and rest and rest[0].kind == "number" and not is_field:
            yield _Word("number", f"0.{rest[0].text}")
            at += 2
        else:
            yield word
            at += 1


def _with_known_literals(words: Sequence[_Word]) -> Iterator[_Word]:
    """Literals of types as casts of texts, units of intervals after texts, clocks without parentheses."""
    at = 0
    while at < len(words):
        word, rest = words[at], words[at + 1 : at + 3]
        following = rest[0] if rest else None
        if following and following.kind == "text" and _is_literal_of(word, following.text):
            yield from (_CAST, _OPEN, following, _Word("", word.text), _CLOSE)
            at += 2
        elif [one.text for one in words[at : at + 5]] == _TODAY:
            yield words[at + 2]
            at += 5
        elif word.text == "interval" and following and following.kind == "number":
            yield from (word, _Word("text", following.text))
            at += 2
        else:
            yield word
            at += 3 if word.text in _CLOCKS and tuple(rest) == (_OPEN, _CLOSE) else 1


def _is_literal_of(word: _Word, text: str) -> bool:
    if word.kind or word.text not in _LITERALS:
        return False
    pattern, form = _LITERALS[word.text]
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return pattern.fullmatch(text) is not None


def _with_casts_of_numbers(words: Sequence[_Word]) -> Iterator[_Word]:
    """`1L`, whose tokens are `1::L`, as `cast(1 as bigint)`. Spark 3.5 knows no other `::`."""
    at = 0
    while at < len(words):
        word, rest = words[at], words[at + 1 : at + 3]
        type_ = _SUFFIXES.get(rest[1].text) if word.kind == "number" and len(rest) == 2 else None
        if type_ is not None and rest[0].text == "::":
            yield from (_CAST, _OPEN, word, _Word("", type_), _CLOSE)
            at += 3
        else:
            yield word
            at += 1


def _with_casts_of_calls(words: Sequence[_Word]) -> Iterator[_Word]:
    """`int(a)` as `cast(a as int)`."""
    types: list[_Word | None] = []  # of the calls that are open
    called: _Word | None = None
    for at, word in enumerate(words):
        is_qualified = at > 0 and words[at - 1].text == "."
        is_call = word.kind != "text" and word.text in _CASTS and words[at + 1 : at + 2] == [_OPEN]
        if is_call and not is_qualified:
            called = _Word("", word.text)
            yield _CAST
            continue
        if word == _OPEN:
            types.append(called)
            called = None
        elif word == _CLOSE and types and (type_ := types.pop()) is not None:
            yield type_
        yield word


def _without_defaults(words: Sequence[_Word]) -> Iterator[_Word]:
    """Orders without the place of NULLs that they have anyway, set operations without DISTINCT, SELECT without ALL."""
    at = 0
    while at < len(words):
        word = words[at]
        before, after = words[at - 1].text if at else "", words[at + 1].text if at + 1 < len(words) else ""
        if word.text == "nulls" and after == ("last" if before == "desc" else "first"):
            at += 2
        elif (before, word.text) in _DEFAULTS:
            at += 1
        elif [one.text for one in words[at : at + 4]] == ["is", "not", "distinct", "from"]:
            yield _Word("", "<=>")
            at += 4
        else:
            yield word
            at += 1


def _with_named_fields(words: Sequence[_Word]) -> Iterator[_Word]:
    """`struct(a)`, `struct(1)` and `named_struct('a', a)` with their names as aliases: `struct(a as a)`.

    Of other fields without an alias Spark alone tells the name.
    """
    at = 0
    while at < len(words):
        kind = words[at].text if words[at].kind != "text" and not (at and words[at - 1] == _POINT) else ""
        arguments = _arguments(words[at + 1 :]) if kind in ("struct", "named_struct") else []
        named = [[*_with_named_fields(each)] for each in arguments]
        fields = (
            _fields_of_pairs(named) if kind == "named_struct" else [_field(n, each) for n, each in enumerate(named)]
        )
        if not arguments or not fields:
            yield words[at]
            at += 1
            continue
        yield from (_Word("", "struct"), _OPEN)
        for number, field in enumerate(fields):
            yield from ([_COMMA] * bool(number) + field)
        yield _CLOSE
        at += _end_of_call(words[at + 1 :]) + 1


def _end_of_call(words: Sequence[_Word]) -> int:
    """How many words a call's bracket and its arguments are; 0 where there is none."""
    arguments = _arguments(words)
    return sum(len(each) + 1 for each in arguments) + 1 if arguments else 0


def _arguments(words: Sequence[_Word]) -> list[list[_Word]]:
    """The arguments of a call whose bracket opens the words; none where there is no such bracket, or no end."""
    depth, arguments = 0, list[list[_Word]]([[]])
    for word in words:
        depth += (word.text in ("(", "[")) - (word.text in (")", "]")) if word.kind != "text" else 0
        if not depth:
            return arguments if word == _CLOSE and arguments != [[]] else []
        if depth == 1 and word == _COMMA:
            arguments.append([])
        elif word != _OPEN or depth > 1:
            arguments[-1].append(word)
    return []


def _field(number: int, words: list[_Word]) -> list[_Word]:
    """A field of STRUCT, with the name that Spark gives a column, a literal and a struct."""
    is_literal = len(words) == 1 and words[0].kind in ("text", "number")
    if is_literal or (words[:1] == [_Word("", "struct")] and _end_of_call(words[1:]) == len(words) - 1):
        return [*words, _Word("name", f"col{number + 1}")]
    is_column = [word.kind == "name" or word == _POINT for word in words] in ([True], [True] * 3)
    return [*words, words[-1]] if is_column and words[-1].kind == "name" else words


def _fields_of_pairs(arguments: list[list[_Word]]) -> list[list[_Word]]:
    """Those of NAMED_STRUCT; none where a name is computed."""
    names, values = arguments[::2], arguments[1::2]
    are_written = all(len(name) == 1 and name[0].kind == "text" and name[0].text.isidentifier() for name in names)
    if len(names) != len(values) or not are_written:
        return []
    return [[*value, _Word("name", name[0].text.lower())] for name, value in zip(names, values, strict=True)]


def _with_whole_frames(words: Sequence[_Word]) -> Iterator[_Word]:
    """Frames that say only where they start, with their end: the current row."""
    rest = iter(range(len(words)))
    for at in rest:
        yield words[at]
        size = _size_of_start(words[at + 1 :]) if words[at].text in ("rows", "range") and not words[at].kind else 0
        if size:
            yield from (_Word("", "between"), *words[at + 1 : at + 1 + size])
            yield from (_Word("", "and"), _Word("name", "current"), _Word("name", "row"))
            for _ in range(size):
                next(rest)


def _size_of_start(words: Sequence[_Word]) -> int:
    """How many words the start of a frame has: a number or an interval before the current row, or all rows before."""
    texts = [word.text for word in words[:4]]
    if texts[1:2] == ["preceding"] and (words[0].kind == "number" or texts[0] == "unbounded"):
        return 2
    return 4 if texts[:1] == ["interval"] and words[1].kind == "text" and texts[3:] == ["preceding"] else 0


def _with_ignored_nulls(words: Sequence[_Word]) -> Iterator[_Word]:
    """`last(a, true)` as `last(a) ignore nulls`."""
    made: list[_Word] = []
    calls: list[bool] = []  # of the brackets that are open, whether they are those of such a function
    for at, word in enumerate(words):
        if word == _OPEN:
            calls.append(at > 0 and words[at - 1].kind != "text" and words[at - 1].text in _CHOICES)
        if word == _CLOSE and calls and calls.pop() and made[-2:] == [_COMMA, _TRUE]:
            made[-2:] = [word, _Word("name", "ignore"), _Word("name", "nulls")]
        else:
            made.append(word)
    return iter(made)


def _with_percentiles(words: Sequence[_Word]) -> Iterator[_Word]:
    """`percentile_cont(q) within group (order by a)` as `percentile(a, q)`."""
    rest = iter(range(len(words)))
    for at in rest:
        word = words[at]
        share = _arguments(words[at + 1 :]) if word == _Word("name", "percentile_cont") else []
        size = _end_of_call(words[at + 1 :]) if len(share) == 1 else 0
        after = words[at + 1 + size :]
        order = _arguments(after[2:]) if size and [one.text for one in after[:2]] == ["within", "group"] else []
        if len(order) != 1 or order[0][:1] != [_Word("", "order by")] or order[0][-1].text in ("desc", "first", "last"):
            yield word
            continue
        yield from (_Word("name", "percentile"), _OPEN, *order[0][1:], _COMMA, *share[0], _CLOSE)
        for _ in range(size + 2 + _end_of_call(after[2:])):
            next(rest)


def _without_brackets_of_values(words: Sequence[_Word]) -> Iterator[_Word]:
    """`from (values …) as v` as `from values … as v`."""
    closing = set[int]()
    for at, word in enumerate(words):
        is_first = word == _OPEN and at > 0 and words[at - 1].text in ("from", "join", ",") and not words[at - 1].kind
        size = _end_of_call(words[at:]) if is_first and words[at + 1 : at + 2] == [_Word("", "values")] else 0
        if size and words[at + size : at + size + 1] and words[at + size].kind == "name":
            closing.add(at + size - 1)
        elif at not in closing:
            yield word
