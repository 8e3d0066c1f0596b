"""Types of ODS columns and how JSON values are converted to them. Owns encodings and widening; knows no CDC format.

A decoder is an expression of Spark SQL over the value's text. It gives NULL for what it cannot read, never a wrong
value: the caller reports every non-NULL text that became NULL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlmesh_like.cdc.formats import time_values
from sqlmesh_like.cdc.formats.base64_numbers import (
    decimal,
    decimal_text,
    own_scale_text,
    plain_number,
    unsigned_number_sql,
)
from sqlmesh_like.cdc.formats.encoding import DATES, MOMENTS, TIMES_OF_DAY, Encoding
from sqlmesh_like.errors import IngestError
from sqlmesh_like.sql_text import spark_identifier, spark_literal, spark_pattern

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_ALIASES = {"integer": "int", "long": "bigint", "smallint": "int", "tinyint": "int", "short": "int", "byte": "int"}
_ALIASES |= {
    "real": "float",
    "text": "string",
    "bool": "boolean",
    "timestamp_ltz": "timestamp",
    "decimal": "decimal(10,0)",
}
_PLAIN = {"int", "bigint", "float", "double", "string", "boolean", "binary", "date", "timestamp"}
MAX_PRECISION = 38


@dataclass(frozen=True)
class SourceField:
    """One column of an event: its name, the encoding of its values and the Spark type they get.

    `scale` is for BASE64_DECIMAL. `is_inferred`: the type was guessed from values, so a stored type may overrule it.
    `source`: its name in the events, where it differs. `is_unseen`: no event has a value that shows the column's type,
    so it means nothing. `default`: the value, spelt as in events, of rows from before the column was added. `unit`:
    what a number counts where the encoding is plain; None: not known, so that a number is neither a date nor a time.
    `is_nested`: whether values are JSON objects or lists; None where the events do not say. `unknown_type`: the
    semantic type that events state, if its encoding is not known. `labels`: of an enumeration or a set. `is_instant`:
    its values are moments and not local times, whatever they look like. `time_zone`: the zone of its local times; None:
    UTC. `is_key`: whether it is of the primary key. `stated_type`: the type that events state, where the table declares
    another one.
    """

    name: str
    type: str
    encoding: Encoding = Encoding.PLAIN
    scale: int = 0
    is_inferred: bool = False
    source: str | None = None
    is_unseen: bool = False
    default: str | None = None
    unit: Encoding | None = None
    is_nested: bool | None = None
    unknown_type: str | None = None
    labels: tuple[str, ...] = ()
    is_instant: bool = False
    time_zone: str | None = None
    is_key: bool = False
    stated_type: str | None = None

    @property
    def expected(self) -> str:
        """The type that values must fit, in words; where another one is declared, what helps."""
        if self.stated_type is None:
            return self.type
        return (
            f"{self.type}, as `columns:` declares; the source has {self.stated_type}: declare that, then "
            "`sml ingest --replay-dead-letters`"
        )

    @property
    def keeps_json(self) -> bool:
        """Whether values may have to be kept as they are written in JSON."""
        is_own = self.encoding in (Encoding.PLAIN, Encoding.BASE64_DECIMAL)
        return self.type == "string" and is_own and self.is_nested is not False

    @property
    def may_be_number(self) -> bool:
        """Whether a value may be a JSON number instead of encoded: Connect writes it with `decimal.format=NUMERIC`."""
        return self.encoding is Encoding.BASE64_DECIMAL

    @property
    def member(self) -> str:
        """The field's name in the events."""
        return self.source or self.name


def normal_type(declared: str) -> str | None:
    """Spark's short name of a declared type; None where an ODS column cannot have it.

    >>> normal_type("DECIMAL(10, 2)"), normal_type("integer"), normal_type("varchar(5)"), normal_type("map<int,int>")
    ('decimal(10,2)', 'int', 'string', None)
    """
    text = declared.strip().lower()
    if re.fullmatch(r"(?:var)?char\(\d+\)", text):
        return "string"
    text = re.sub(r"\s", "", text.replace("numeric", "decimal"))
    text = re.sub(r"^decimal\((\d+)\)$", r"decimal(\1,0)", text)
    text = _ALIASES.get(text, text)
    match = _DECIMAL.fullmatch(text)
    if match:
        return text if int(match[2]) <= int(match[1]) <= MAX_PRECISION else None
    return text if text in _PLAIN else None


def decimal_parts(spark_type: str) -> tuple[int, int] | None:
    """(precision, scale) of a decimal type, None for others."""
    match = _DECIMAL.fullmatch(spark_type)
    return (int(match[1]), int(match[2])) if match else None


def file_fields(schema_text: str, operation: str) -> tuple[SourceField, ...]:
    """The columns of a file of rows as `columnar.stated` writes them, without the one that has the operation.

    >>> [field.type for field in file_fields('[["Op", "string"], ["id", "int"]]', "Op")]
    ['int']
    """
    return tuple(SourceField(name, kind) for name, kind in json.loads(schema_text) if name != operation)


def widen(column: str, stored: str, field: SourceField) -> str:
    """The type of a column for both its stored and its arriving values; never narrower than the stored one.

    Hudi 1.2.0 widens int → bigint → string, int and bigint → double, decimals and float → double in place; it cannot
    turn integers into decimals, so those become strings, which keep every digit. Raises IngestError where no type
    holds both.

    >>> widen("a", "int", SourceField("a", "bigint")), widen("a", "bigint", SourceField("a", "int"))
    ('bigint', 'bigint')
    >>> widen("a", "decimal(10,2)", SourceField("a", "decimal(9,4)")), widen("a", "bigint",
    ... SourceField("a", "decimal(9,4)"))
    ('decimal(12,4)', 'string')
    """
    arriving = field.type
    both = {stored, arriving}
    if len(both) == 1 or stored == "string" or (field.is_inferred and stored not in _INTEGERS):
        # An inferred type never changes the stored one, except integers, which cannot hold other JSON values.
        return stored
    if both <= _NUMBERS:
        return "bigint" if both == _INTEGERS else "double"
    if decimal_parts(stored):
        return _widen_decimal(column, stored, arriving)
    if stored in _INTEGERS and (decimal_parts(arriving) or arriving == "string" or field.is_inferred):
        return "string"
    if stored in {"float", "double"} and (decimal_parts(arriving) or arriving == "string"):
        return stored if decimal_parts(arriving) else "string"
    if arriving == "string":
        return stored
    raise _type_change_error(column, stored, arriving)


_INTEGERS = {"int", "bigint"}
_NUMBERS = {"int", "bigint", "float", "double"}


def _widen_decimal(column: str, stored: str, arriving: str) -> str:
    """Hudi turns values that a decimal column cannot hold into NULL, so only a wider decimal may replace its type."""
    old, new = decimal_parts(stored), decimal_parts(arriving)
    if old and new:
        scale = max(old[1], new[1])
        precision = max(old[0] - old[1], new[0] - new[1]) + scale
        if precision <= MAX_PRECISION:
            return f"decimal({precision},{scale})"
    elif arriving in _NUMBERS | {"string"}:
        return stored
    raise _type_change_error(column, stored, arriving)


def _type_change_error(column: str, stored: str, arriving: str) -> IngestError:
    return IngestError(
        f"column {column!r} changed from {stored} to {arriving}, which its table cannot take in place",
        hint=f"declare it under `columns:` as {stored}, or rebuild the table",
    )


quoted_name = spark_identifier
"""A column's name in Spark SQL."""
sql_literal = spark_literal
"""Any text as a literal of Spark SQL."""


def exact_type(field: SourceField) -> str | None:
    """The type with which a decimal that is a number in JSON is read without loss; None for fields whose text is exact.

    Spark converts a JSON number to text through a double, so a decimal must be read as a decimal. The scale is as large
    as the integer digits allow, so that surplus digits are noticed, not rounded away.

    >>> exact_type(SourceField("price", "decimal(10,2)")), exact_type(SourceField("id", "int"))
    ('decimal(38,30)', None)
    """
    if field.may_be_number:
        return _with_all_digits(field.type)
    if decimal_parts(field.type) is None or field.encoding is not Encoding.PLAIN:
        return None
    return _with_all_digits(field.type)


def _with_all_digits(number_type: str) -> str:
    """The decimal type with the integer digits of a type of exact numbers, and as many others as possible."""
    precision, scale = decimal_parts(number_type) or (_INTEGER_DIGITS, 0)
    return f"decimal({MAX_PRECISION},{MAX_PRECISION - (precision - scale)})"


_INTEGER_DIGITS = 19  # of a bigint
_NOT_LATIN1 = spark_pattern(r"[^\x00-\xff]")


def decoder(field: SourceField, text: str, exact: str) -> str:
    """Spark SQL of a field's value, NULL where it cannot be read. `text`, `exact`: it as string, as `exact_type`.

    >>> decoder(SourceField("id", "int"), "t.id", "x.id")
    'try_cast(t.id as int)'
    >>> decoder(SourceField("id", "bigint", Encoding.BASE64), "t.id", "x.id")
    'cast(null as bigint)'
    >>> [decoder(SourceField("p", "decimal(10,2)"), text, "x.p")[:20] for text in ("t.p", "x.p")]
    ['if(not contains(t.p,', 'if(x.p = try_cast(x.']
    """
    value = _decoder(field, text, exact)
    is_local = None if field.time_zone is None else _is_local(field, text)
    if field.time_zone is None or is_local is None:
        return value
    return f"if({is_local}, {time_values.local(value, field.time_zone, is_key=field.is_key)}, {value})"


def _decoder(field: SourceField, text: str, exact: str) -> str:
    if field.encoding in COUNTS and field.type in _INTEGERS:
        return f"try_cast({text} as {field.type})"
    match field.encoding:
        case Encoding.PLAIN if field.unit is not None and field.type in _TIMES:
            counted = _decoder(replace(field, encoding=field.unit), text, exact)
            return f"if({is_count(text)}, {counted}, {_plain(field.type, text, exact)})"
        case Encoding.PLAIN:
            return _plain(field.type, text, exact)
        case Encoding.BASE64:
            return _cast(f"try_to_binary({text}, 'BASE64')", "binary", field.type)
        case Encoding.LATIN1:
            # Spark encodes what ISO-8859-1 lacks as a question mark.
            return _cast(f"if({text} rlike {_NOT_LATIN1}, null, encode({text}, 'ISO-8859-1'))", "binary", field.type)
        case Encoding.BASE64_DECIMAL:
            if field.type == "string":
                return decimal_text(text, field.scale)
            if field.scale < 0:
                return _cast(decimal_text(text, field.scale), "number", field.type)
            return _cast(decimal(text, field.scale), f"decimal(38,{field.scale})", field.type)
        case Encoding.OWN_SCALE:
            return _cast(own_scale_text(text), "number", field.type)
        case Encoding.BITS:
            return _cast(unsigned_number_sql(text), "decimal(20,0)", field.type)
        case Encoding.LABEL_NUMBER | Encoding.LABEL_BITS:
            return _cast(_label_sql(field, text), "string", field.type)
        case _:
            return _cast(*time_values.decode_time(field.encoding, text), field.type)


def _is_local(field: SourceField, text: str) -> str | None:
    """Spark SQL: whether a value of a timestamp column is a local time; None: no value is."""
    encoding = field.unit if field.encoding is Encoding.PLAIN and field.unit in MOMENTS else field.encoding
    if encoding is Encoding.PLAIN:
        return time_values.is_local_text(text)
    if encoding is Encoding.TIMESTAMP_PARTS:
        return f"get_json_object({text}, '$.offsetSeconds') is null"
    if encoding in MOMENTS and field.encoding is Encoding.PLAIN:
        return f"({is_count(text)} or {time_values.is_local_text(text)})"
    return "true" if encoding in MOMENTS or encoding is Encoding.ISO_TIMESTAMP else None


def number_decoder(field: SourceField, written: str, exact: str) -> str:
    """Spark SQL of a value that is a JSON number where an encoded decimal is expected. `written`: it as it is written.

    >>> number_decoder(SourceField("n", "bigint", Encoding.BASE64_DECIMAL), "w.n", "x.n")
    'if(x.n = try_cast(x.n as bigint), try_cast(x.n as bigint), null)'
    """
    if field.type == "string":
        return plain_number(written)
    return _cast(exact, _with_all_digits(field.type), field.type)


def is_number(text: str) -> str:
    """Spark SQL: whether a text looks like a JSON number; NULL for NULL."""
    return f"{text} rlike '^-?[0-9]+(?:[.][0-9]+)?(?:[eE][+-]?[0-9]+)?$'"


def _label_sql(field: SourceField, text: str) -> str:
    """Spark SQL of a label from its number, or of a set's labels as MySQL shows them."""
    labels = f"cast(array({', '.join(map(sql_literal, field.labels))}) as array<string>)"
    number = f"try_cast({text} as bigint)"
    if field.encoding is Encoding.LABEL_NUMBER:
        return f"if({number} = 0, '', get({labels}, cast({number} as int) - 1))"
    chosen = f"filter({labels}, (label, place) -> shiftright({number}, place) % 2 = 1)"
    return f"if({number} between 0 and {2 ** min(len(field.labels), 63) - 1}, array_join({chosen}, ','), null)"


def is_count(text: str) -> str:
    """Spark SQL: whether a text is a whole number."""
    return f"{text} rlike '^-?[0-9]+$'"


_TIMES = {"date", "timestamp", "string"}
"""Types of columns that hold dates, moments and times of day."""
COUNTS: Mapping[Encoding, str] = {
    encoding: "int" if encoding is Encoding.DAYS else "bigint" for encoding in (*DATES, *MOMENTS, *TIMES_OF_DAY)
}
"""Encodings that count in integers, with their type: a column declared as an integer gets the number itself."""
_ALSO = {
    "binary": {"string"},
    "string": set(),
    "date": {"string", "timestamp"},
    "timestamp": {"string", "date"},
    "time": {"string"},
    "number": _NUMBERS | {"string", "boolean", "decimal"},
}
"""The other types that a value may be declared as. Of the rest, Spark refuses some when it plans (binary as bigint) and
misreads others (a number as seconds since 1970)."""


def _cast(expression: str, kind: str, to_type: str) -> str:
    """Cast an expression. `kind`: its type, or `number` or `time` for texts of these. NULL where no cast is allowed."""
    if kind == to_type:
        return expression
    of = "number" if decimal_parts(kind) else kind
    if ("decimal" if decimal_parts(to_type) else to_type) not in _ALSO[of]:
        return f"cast(null as {to_type})"
    if (kind, to_type) == ("timestamp", "date"):
        return time_values.whole_day(expression)
    value = f"try_cast({expression} as {to_type})"
    if of != "number" or not (decimal_parts(to_type) or to_type in _INTEGERS):
        return value
    # A cast would round surplus digits away.
    exact = f"try_cast({expression} as {_with_all_digits(to_type)})" if kind == "number" else expression
    return f"if({exact} = {value}, {value}, null)"


def _plain(spark_type: str, text: str, exact: str) -> str:
    if decimal_parts(spark_type):
        is_exact = f"{exact} = try_cast({exact} as {spark_type})"
        # Spark's JSON takes a comma in a text for one between thousands: the `1,5` of some countries would be 15. Where
        # there is no text any more, `typed_parse.unsure` has looked for commas.
        is_sure = is_exact if text == exact else f"not contains({text}, ',') and {is_exact}"
        return f"if({is_sure}, try_cast({exact} as {spark_type}), null)"
    match spark_type:
        case "string":
            return text
        case "binary":
            return f"try_to_binary({text}, 'BASE64')"
        case "date":
            return time_values.date(text)
        case "timestamp":
            return time_values.timestamp(text)
        case _:
            return f"try_cast({text} as {spark_type})"
