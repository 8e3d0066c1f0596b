"""How values and names are written in SQL. Owns quoting for all modules: no value from outside is inserted unquoted."""

from __future__ import annotations

import re

_ESCAPED = str.maketrans({"\\": "\\\\", "'": "\\'"})
_REPLACED = re.compile(r"\$(?=\{)|\{(?=\w+\})")


def spark_literal(text: str) -> str:
    r"""Return a text literal of Spark SQL.

    It contains neither `${…}`, where Spark could substitute a variable, nor a placeholder `{…}` of `frame_query`.

    >>> print(spark_literal("it's ${env:HOME} {x}"))
    'it\'s \u0024{env:HOME} \u007bx}'
    """
    quoted = text.translate(_ESCAPED)
    return "'" + _REPLACED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", quoted) + "'"


def spark_pattern(pattern: str) -> str:
    r"""Return a text literal of Spark SQL that holds a regular expression of Java, or one that means the same.

    It is a raw one where that is possible: Spark reads a literal in as many passes as it has escapes, which takes a
    good part of a second where these are thousands.

    >>> print(spark_pattern(r"'\s*+"), spark_pattern(r"\d{4}"))
    r'\x27\s*+' '\\d\u007b4}'
    """
    if _REPLACED.search(pattern) or "\\'" in pattern:
        return spark_literal(pattern)
    return "r'" + pattern.replace("'", r"\x27") + "'"


def hive_literal(text: str) -> str:
    r"""Return a text literal of Hive and Athena, which neither have escapes for braces nor substitute variables.

    >>> print(hive_literal("it's ${x}"))
    'it\'s ${x}'
    """
    return f"'{text.translate(_ESCAPED)}'"


def spark_identifier(name: str) -> str:
    """Return a quoted name in Spark SQL.

    >>> spark_identifier("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def standard_literal(text: str) -> str:
    """Return a text literal in standard SQL, as DuckDB reads it.

    >>> standard_literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def standard_identifier(name: str) -> str:
    """Return a quoted name in standard SQL, as DuckDB reads it.

    >>> standard_identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
