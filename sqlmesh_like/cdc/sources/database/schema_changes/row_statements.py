"""Statements that a binary log has instead of the rows that they changed. Owns which tables they may have changed.

A session may set `binlog_format` for itself, and one that was open when it was set for all keeps what it had. Debezium
leaves such a statement out and says so (`EventSpool.java` notes it down), if it is an INSERT, UPDATE or DELETE.
https://mariadb.com/kb/en/binary-log-formats/
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.sources.database.schema_changes.statement_tokens import NAME
from sqlmesh_like.cdc.sources.database.server import Table

if TYPE_CHECKING:
    import sqlalchemy as sa

CUT = "…"
"""Ends a statement of which the rest was not noted."""
_COMMENTS = r"(?:\s*/\*.*?\*/)*\s*"
_INSERTS = re.compile(
    rf"{_COMMENTS}(?:insert|replace)\s+(?:(?:low_priority|delayed|high_priority|ignore)\s+)*(?:into\s+)?"
    rf"(?:({NAME})\s*\.\s*)?({NAME})(?=[\s(])",
    re.I | re.S,
)
_CHANGES_ROWS = re.compile(rf"{_COMMENTS}(?:insert|replace|update|delete|load)\b", re.I | re.S)
_NAMES = re.compile(NAME)
_ACTING = """
select lower(event_object_table) from information_schema.triggers
union select lower(table_name) from information_schema.views
union select lower(routine_name) from information_schema.routines where routine_type = 'FUNCTION'
"""


@dataclass(frozen=True)
class Acting:
    """Names, in lower case, of tables with triggers, views and functions: what a statement about one changes beside it
    is not known. `database`: that of the source.
    """

    database: str
    names: frozenset[str] = frozenset()


def acting_names(db: sa.Connection, database: str) -> Acting:
    """What the user of a database sees of these. Without the right TRIGGER that is no trigger."""
    import sqlalchemy as sa

    return Acting(database, frozenset(str(name) for (name,) in db.execute(sa.text(_ACTING)).all()))


def changes_rows(statement: str) -> bool:
    """Whether a statement changes rows, and not a table.

    >>> changes_rows("/* app */ insert into t values (1)"), changes_rows("alter table t add n int")
    (True, False)
    """
    return _CHANGES_ROWS.match(statement) is not None


def changed_tables(statements: Iterable[str], tables: Collection[Table], acting: Acting) -> dict[str, str]:
    """The tables that these statements may have changed, each with one of them.

    That is the one into which rows are inserted, and each that an update or a delete names; all where a statement names
    what may act on others, or is not known whole.
    """
    changed: dict[str, str] = {}
    for statement in statements:
        words = {_bare(each) for each in _NAMES.findall(statement)}
        insert = _INSERTS.match(statement)
        is_cut = statement.endswith(CUT) and (insert is None or bool(acting.names))
        if is_cut or not acting.names.isdisjoint(words):
            changed.update(dict.fromkeys(map(str, tables), statement))
            continue
        named = words
        if insert is not None:
            qualifier, name = insert.groups()
            is_elsewhere = qualifier is not None and _bare(qualifier) != acting.database.lower()
            named = set() if is_elsewhere else {_bare(name)}
        changed.update({str(table): statement for table in tables if table.name.lower() in named})
    return changed


def _bare(name: str) -> str:
    """
    >>> _bare("`Order`")
    'order'
    """
    return name.strip('`"').lower()
