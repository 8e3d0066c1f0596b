"""Types of a database's columns as types of ODS columns. Owns those that are certain; events state all of them.

Source: the data type mappings of Debezium's connectors, with the settings of `connector_settings`.
"""

from __future__ import annotations

import re

from sqlmesh_like.cdc.formats.source_types import MAX_PRECISION

_TYPES = {
    "int": ("tinyint", "smallint", "mediumint", "integer", "int", "year"),
    "bigint": ("bigint", "integer unsigned", "int unsigned"),
    "decimal(20,0)": ("bigint unsigned",),
    "float": ("real", "float"),
    "double": ("double", "double precision"),
    "boolean": ("boolean", "bool"),
    "date": ("date",),
    "timestamp": ("datetime", "timestamp"),
    "binary": ("bytea", "blob", "tinyblob", "mediumblob", "longblob", "binary", "varbinary"),
    "string": (
        *("varchar", "char", "text", "tinytext", "mediumtext", "longtext", "enum", "set", "json", "jsonb", "uuid"),
        *("time", "inet", "cidr", "macaddr", "citext", "xml"),
    ),
}
_BY_NAME = {name: spark_type for spark_type, names in _TYPES.items() for name in names}
_TYPE = re.compile(
    r"(\w+(?: precision)?)(?:\(([^)]*)\))?(?:\s+(unsigned))?"
    r"(?: with(?:out)? time zone| zerofill| (?:character set|collate) .*)?"
)


def spark_type(database_type: str) -> str | None:
    """The type that events of such a column have; None where that is left to the events.

    >>> [spark_type(each) for each in ("DECIMAL(10, 2)", "DECIMAL(65, 30)", "INTEGER(10) UNSIGNED", "VARCHAR(20)")]
    ['decimal(10,2)', 'string', 'bigint', 'string']
    >>> [spark_type(each) for each in ("FLOAT", "FLOAT(7, 2)", "BIT(1)", "BIT(9)", "LONGTEXT CHARACTER SET latin1")]
    ['float', None, 'boolean', None, 'string']
    """
    match = _TYPE.fullmatch(database_type.strip().lower())
    if match is None:
        return None
    name, arguments, sign = match.groups()
    if name in ("decimal", "numeric"):
        digits = re.fullmatch(r"(\d+),\s*(\d+)", arguments or "")
        fits = digits is not None and int(digits[1]) <= MAX_PRECISION
        if digits is None:
            return None
        return f"decimal({digits[1]},{digits[2]})" if fits else "string"
    if name == "bit":
        return "boolean" if arguments == "1" else None
    if name == "float" and arguments is not None:  # a double, from a precision on that servers state differently
        return None
    return _BY_NAME.get(f"{name} {sign}" if sign else name, _BY_NAME.get(name))
