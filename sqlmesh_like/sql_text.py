"""How values and names are written in SQL. Owns quoting for the whole code: a value from outside is never pasted."""

from __future__ import annotations

import re

_ESCAPED = str.maketrans({"\\": "\\\\", "'": "\\'"})
_REPLACED = re.compile(r"\$(?=\{)|\{(?=\w+\})")


def spark_literal(text: str) -> str:
    r"""A text literal of Spark SQL.

    It holds neither `${…}`, for which Spark can put a variable, nor a placeholder `{…}` of `frame_query`.

    >>> print(spark_literal("it's ${env:HOME} {x}"))
    'it\'s \u0024{env:HOME} \u007bx}'
    """
    quoted = text.translate(_ESCAPED)
    return "'" + _REPLACED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", quoted) + "'"


def hive_literal(text: str) -> str:
    r"""A text literal of Hive and Athena, which know no escapes of braces and put nothing in their place.

    >>> print(hive_literal("it's ${x}"))
    'it\'s ${x}'
    """
    return f"'{text.translate(_ESCAPED)}'"


def spark_identifier(name: str) -> str:
    """A name in Spark SQL.

    >>> spark_identifier("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def standard_literal(text: str) -> str:
    """A text literal of standard SQL, as DuckDB reads it.

    >>> standard_literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def standard_identifier(name: str) -> str:
    """A name of standard SQL, as DuckDB reads it.

    >>> standard_identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
