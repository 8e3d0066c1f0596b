"""MySQL's column types as Canal spells them, e.g. `int(10) unsigned`. Owns which Spark type each becomes."""

from __future__ import annotations

import re

from sqlmesh_like.cdc.formats.source_types import MAX_PRECISION, Encoding, SourceField

_TYPE = re.compile(r"(?P<name>[a-z]+)\s*(?:\((?P<size>[^)]*)\))?(?P<rest>.*)", re.DOTALL)
_PLAIN = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "year", "bool", "boolean"), "int"),
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "float": "float",
    "double": "double",
    "real": "double",
    "date": "date",
    "datetime": "timestamp",
    "timestamp": "timestamp",
}
_BINARY = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}


def mysql_field(name: str, declared: str) -> SourceField:
    """The column of this MySQL type; a type without a Spark one of its own stays text, which loses nothing.

    >>> mysql_field("a", "int(10) unsigned").type, mysql_field("a", "bit(1)").type, mysql_field("a", "json").type
    ('bigint', 'bigint', 'string')
    """
    match = _TYPE.match(declared.strip().lower())
    if match is None:
        return SourceField(name, "string")
    kind, size, is_unsigned = match["name"], match["size"] or "", "unsigned" in match["rest"]
    if kind in ("decimal", "numeric", "dec", "fixed"):
        return SourceField(name, _decimal(size))
    if kind in _BINARY:
        return SourceField(name, "binary", Encoding.LATIN1)
    if (kind == "bigint" and is_unsigned) or (kind == "bit" and size == "64"):
        return SourceField(name, "decimal(20,0)")
    if (kind in ("int", "integer") and is_unsigned) or kind == "bit":
        return SourceField(name, "bigint")
    return SourceField(name, _PLAIN.get(kind, "string"))


def _decimal(size: str) -> str:
    parts = [int(part) for part in size.split(",") if part.strip().isdigit()] or [10]
    precision, scale = parts[0], parts[1] if len(parts) > 1 else 0
    return f"decimal({precision},{scale})" if precision <= MAX_PRECISION else "string"
