"""Spelling of types and of numbers as text. Owns Spark's short form of a type, and the types of literals."""

from __future__ import annotations

import re

_ALIASES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "dec": "decimal(10,0)",
            "decimal": "decimal(10,0)", "numeric": "decimal(10,0)", "real": "float", "text": "string",
            "timestamp_ltz": "timestamp", "timestamptz": "timestamp", "timestampntz": "timestamp_ntz"}  # fmt: skip
_ATOMIC = re.compile(
    r"tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|boolean|binary|date|timestamp|timestamp_ntz"
    r"|void|interval( (year|month|day|hour|minute|second)( to (month|hour|minute|second))?)?"
)


_SMALL = re.compile(r"(?:^|(?<=[:<,]))(?:tinyint|smallint)(?=$|[>,])")


def stored_type(type_: str | None) -> str | None:
    """A type as a table stores it: Avro has no small integers.

    >>> stored_type("smallint"), stored_type("bigint"), stored_type("struct<a:tinyint,b:array<smallint>>")
    ('int', 'bigint', 'struct<a:int,b:array<int>>')
    """
    return type_ and _SMALL.sub("int", type_)


def is_stored(type_: str | None) -> bool:
    """Whether a type is known and that of the table's column; a stored small integer is wider and wraps elsewhere."""
    return type_ is not None and stored_type(type_) == type_


def normalize(text: str) -> str:
    """A type in Spark's short spelling.

    >>> normalize("DECIMAL(10, 2)"), normalize("Integer"), normalize("varchar(155)"), normalize("INTERVAL  DAY")
    ('decimal(10,2)', 'int', 'string', 'interval day')
    """
    text = text.strip().lower()
    if text.startswith("interval"):
        return " ".join(text.split())
    text = re.sub(r"\s+", "", text)
    if text.startswith(("varchar", "char(")):
        return "string"
    if match := re.fullmatch(r"(?:decimal|numeric|dec)\((\d+)(?:,(\d+))?\)", text):
        return f"decimal({match[1]},{match[2] or 0})"
    return _ALIASES.get(text, text)


def is_atomic(type_: str) -> bool:
    """Whether this is one of Spark's types without parts, in its short spelling.

    >>> is_atomic("int"), is_atomic("array<int>"), is_atomic("variant")
    (True, False, False)
    """
    return _ATOMIC.fullmatch(type_) is not None


def is_known(type_: str) -> bool:
    """Whether this is a type of Spark's, with parts or without; a user's own type is not.

    >>> is_known("array<int>"), is_known("variant")
    (True, False)
    """
    return is_atomic(type_) or type_.startswith(("array<", "map<", "struct<"))


def number_type(text: str, *, is_negative: bool = False) -> str | None:
    """Type of a number as Spark's parser reads it; a sign before it is part of the literal.

    >>> number_type("1"), number_type("2147483648"), number_type("2147483648", is_negative=True), number_type("1.50")
    ('int', 'bigint', 'int', 'decimal(3,2)')
    >>> number_type("9223372036854775808"), number_type("1e3")
    ('decimal(19,0)', 'double')
    """
    if text.isdigit():
        size = int(text) - is_negative
        if size < 2**63:
            return "int" if size < 2**31 else "bigint"
        return f"decimal({len(str(int(text)))},0)" if len(str(int(text))) <= 38 else None
    if re.fullmatch(r"(\d+\.?\d*|\.\d+)[eE][+-]?\d+", text):
        return "double"
    whole, dot, fraction = text.partition(".")
    if dot and (whole + fraction).isdigit():
        digits = max(len(whole.lstrip("0")) + len(fraction), 1)
        return f"decimal({max(digits, len(fraction))},{len(fraction)})" if digits <= 38 else None
    return None
