"""Types of a database's columns as types of ODS columns. Owns those that are certain; events state all of them.

Source: the data type mappings of Debezium's connectors, with the settings of `connector_settings`.
"""

from __future__ import annotations

import re

from sqlmesh_like.cdc.formats.source_types import MAX_PRECISION

_TYPES = {
    "int": ("tinyint", "smallint", "mediumint", "integer", "int"),
    "bigint": ("bigint", "integer unsigned", "int unsigned"),
    "decimal(20,0)": ("bigint unsigned",),
    "double": ("double", "double precision"),
    "boolean": ("boolean", "bool"),
    "date": ("date",),
    "timestamp": ("datetime", "timestamp"),
    "binary": ("bytea", "blob", "tinyblob", "mediumblob", "longblob", "binary", "varbinary"),
    "string": ("varchar", "char", "text", "tinytext", "mediumtext", "longtext", "enum", "json", "jsonb", "uuid"),
}
_BY_NAME = {name: spark_type for spark_type, names in _TYPES.items() for name in names}
_TYPE = re.compile(
    r"(\w+(?: precision)?)(?:\(([^)]*)\))?(?:\s+(unsigned))?(?: with(?:out)? time zone| zerofill| collate .*)?"
)


def spark_type(database_type: str) -> str | None:
    """The type that events of such a column have; None where that is left to the events.

    >>> spark_type("DECIMAL(10, 2)"), spark_type("INTEGER(10) UNSIGNED"), spark_type("VARCHAR(20)"), spark_type("BIT")
    ('decimal(10,2)', 'bigint', 'string', None)
    """
    match = _TYPE.fullmatch(database_type.strip().lower())
    if match is None:
        return None
    name, arguments, sign = match.groups()
    if name in ("decimal", "numeric"):
        digits = re.fullmatch(r"(\d+),\s*(\d+)", arguments or "")
        fits = digits is not None and int(digits[1]) <= MAX_PRECISION
        return f"decimal({digits[1]},{digits[2]})" if digits is not None and fits else None
    return _BY_NAME.get(f"{name} {sign}" if sign else name, _BY_NAME.get(name))
