"""What is compared of a value: its kind. Owns which column of a database and which of the lake share one.

A pair of types that is not here is not compared: its texts are not known to be the same for the same value.
"""

from __future__ import annotations

import datetime
import re
import struct
from collections.abc import Mapping
from enum import Enum

from sqlmesh_like.cdc.formats.source_types import MAX_PRECISION, decimal_parts
from sqlmesh_like.project.nodes import DatabaseKind


class Kind(Enum):
    """The canonical text of a value; dialects have the SQL of it."""

    WHOLE = "a number without fraction, in decimal digits"
    DECIMAL = "a number with the digits of the lake's type"
    DIGITS = "a number without zeros at the end of its fraction, text in the lake"
    FLOAT = "the 64 bits of the number, in hexadecimal"
    TEXT = "the text"
    DATE = "YYYY-MM-DD"
    MOMENT = "microseconds since 1970 in UTC"
    CLOCK = "[-]HH:MM:SS[.f…] without zeros at its end, text in the lake"
    BYTES = "the bytes, in hexadecimal"

    @property
    def is_ordered(self) -> bool:
        """Whether both sides order such values alike: texts have collations."""
        return self in (Kind.WHOLE, Kind.DECIMAL, Kind.DATE, Kind.MOMENT)


_WHOLE = ("tinyint", "smallint", "int", "bigint", "boolean")
_DECLARED = re.compile(
    r"([a-z][a-z0-9_ ]*?)(?:\((.*)\))?(?: unsigned)?(?: zerofill)?( with(?:out)? time zone)?", re.DOTALL
)


def kind_of(server: DatabaseKind, declared: str, lake: str) -> Kind | None:
    """The kind of a database's column of the type `declared` that is of the type `lake` in the lake; None: there is
    none.

    >>> kind_of("mysql", "bigint(20) unsigned", "decimal(20,0)").name, kind_of("mysql", "json", "string")
    ('WHOLE', None)
    >>> kind_of("postgresql", "timestamp(3) with time zone", "timestamp").name
    'MOMENT'
    """
    match, kind = _DECLARED.fullmatch(declared.strip().lower()), _declared_kind(server, declared)
    if match is None or kind is None:
        return None
    if kind is Kind.DECIMAL:
        # The kind of an exact number: without a number of digits, or with too many, it is text in the lake.
        digits = re.fullmatch(r"(\d+)(?:,\s*(\d+))?", match[2] or "")
        if digits is None or int(digits[1]) > MAX_PRECISION:
            return Kind.DIGITS if lake == "string" else None
        precision, scale, wide = int(digits[1]), int(digits[2] or 0), decimal_parts(lake)
        fits = wide is not None and wide[1] >= scale and wide[0] - wide[1] >= precision - scale
        return Kind.DECIMAL if fits else None
    return kind if lake in _lake_types(kind, match[1]) or (kind is Kind.WHOLE and decimal_parts(lake)) else None


def has_kind(server: DatabaseKind, declared: str) -> bool:
    """Whether columns of a database's type are compared with those of some type of the lake.

    >>> has_kind("mysql", "int(11)"), has_kind("mysql", "json")
    (True, False)
    """
    return _declared_kind(server, declared) is not None


def _declared_kind(server: DatabaseKind, declared: str) -> Kind | None:
    match = _DECLARED.fullmatch(declared.strip().lower())
    return None if match is None else _KINDS[server].get(f"{match[1]}{match[3] or ''}")


def _lake_types(kind: Kind, declared: str) -> tuple[str, ...]:
    match kind:
        case Kind.WHOLE:
            return _WHOLE
        case Kind.FLOAT:
            return ("float",) if declared in ("float", "real") else ("double",)
        case Kind.TEXT | Kind.CLOCK:
            return ("string",)
    return {Kind.DATE: ("date",), Kind.MOMENT: ("timestamp",)}.get(kind, ("binary",))


_KINDS: Mapping[DatabaseKind, Mapping[str, Kind]] = {
    "mysql": {
        # A JSON column of MySQL is text with other spaces in the log than in the table; MariaDB's is longtext.
        **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"), Kind.WHOLE),
        **dict.fromkeys(("float", "double"), Kind.FLOAT),
        **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), Kind.TEXT),
        **dict.fromkeys(("enum", "set", "uuid"), Kind.TEXT),
        **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), Kind.BYTES),
        "decimal": Kind.DECIMAL, "date": Kind.DATE, "datetime": Kind.MOMENT, "timestamp": Kind.MOMENT,
        "time": Kind.CLOCK,
    },
    "postgresql": {
        **dict.fromkeys(("smallint", "integer", "bigint", "boolean"), Kind.WHOLE),
        **dict.fromkeys(("real", "double precision"), Kind.FLOAT),
        **dict.fromkeys(("text", "character varying", "character", "uuid", "json", "jsonb", "enum"), Kind.TEXT),
        **dict.fromkeys(("timestamp with time zone", "timestamp without time zone"), Kind.MOMENT),
        "numeric": Kind.DECIMAL, "date": Kind.DATE, "time without time zone": Kind.CLOCK, "bytea": Kind.BYTES,
    },
}  # fmt: skip
"""The kinds of a server's types, by their names without arguments, sign and `zerofill`."""


def display_text(kind: Kind, text: str | None) -> str:
    """A canonical text as people write the value.

    >>> display_text(Kind.MOMENT, "1704067200000001"), display_text(Kind.FLOAT, "8000000000000000")
    ('2024-01-01 00:00:00.000001', '-0.0')
    """
    if text is None:
        return "NULL"
    match kind:
        case Kind.TEXT | Kind.CLOCK | Kind.DIGITS:
            return repr(text)
        case Kind.FLOAT:
            return repr(struct.unpack(">d", bytes.fromhex(text))[0])
        case Kind.MOMENT:
            return moment_text(text)
        case Kind.BYTES:
            return f"x'{text}'"
    return text


def moment_text(micros: str) -> str:
    """A moment as SQL writes it; what no calendar has stays as it is.

    >>> moment_text("-1"), moment_text("infinity")
    ('1969-12-31 23:59:59.999999', 'infinity')
    """
    try:
        return str(datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(micros)))
    except (ValueError, OverflowError):
        return micros
