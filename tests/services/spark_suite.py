"""Spark's own suite of SQL queries, read from the archive of its tests as published. Nothing of it is stored here.

Format: `sql-tests/results/**/*.sql.out`, statements in their order with the schema of what they return.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

from tests.services.process import pinned

_FOLDER = "sql-tests/results/"
_STATEMENT = re.compile(r"-- !query\n(.*?)\n-- !query schema\n(.*?)\n-- !query output\n([^\n]*)", re.DOTALL)
_REFUSAL = re.compile(r"org\.apache\.spark\.sql\.(catalyst\.)?([\w.]*(Analysis|Parse)Exception)")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_QUERIES = ("select", "with", "values", "from", "table")
_SETTINGS = ("create", "insert", "set", "use", "drop", "cache", "alter")
_LEFT_OUT = ("udf/", "udaf", "udtf")
"""Functions that only the JVM of Spark's tests has."""


@dataclass(frozen=True)
class Statement:
    """`is_query`: it returned rows, else it prepares those that follow. `is_answered`: Spark did not fail.

    `is_refused`: Spark's parser or analysis refused it, before any row was read.
    """

    sql: str
    is_query: bool
    is_answered: bool
    is_refused: bool


def suite_jar() -> str:
    """The archive in the user's cache. Raises MachineError where it cannot be fetched."""
    (jar,) = pinned("spark_suite")
    return str(jar)


def suite_files() -> Iterator[tuple[str, list[Statement]]]:
    """Files of the suite that run with the settings of this project's sessions, each with its statements."""
    with zipfile.ZipFile(suite_jar()) as archive:
        for name in sorted(archive.namelist()):
            file = name.removeprefix(_FOLDER)
            if name.startswith(_FOLDER) and name.endswith(".sql.out") and not file.startswith((*_LEFT_OUT, "ansi/")):
                yield file, list(_statements(archive.read(name).decode()))


def _statements(text: str) -> Iterator[Statement]:
    for sql, schema, output in _STATEMENT.findall(text):
        words = _COMMENT.sub(" ", sql).replace("(", " ").split(maxsplit=1)
        first = words[0].lower() if words else ""
        if first in (*_QUERIES, *_SETTINGS):
            is_answered = schema != "struct<>"
            is_refused = not is_answered and _REFUSAL.match(output) is not None
            yield Statement(sql.strip().rstrip(";"), first in _QUERIES, is_answered, is_refused)
