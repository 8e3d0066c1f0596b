"""Statements that a binary log has instead of the rows that they changed, or by which it takes rows back.

Owns which tables they may have changed; `EventSpool.java` notes them down, each with the database that it was meant
for, because Debezium leaves them out. A session may set `binlog_format` for itself, and one that was open when it was
set for all keeps what it had. Of a transaction that is rolled back the log has the rows if it used a temporary table or
one without transactions, and of one that is prepared (`XA PREPARE`) before it is known whether it will be.
https://mariadb.com/kb/en/binary-log-formats/
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.sources.database.schema_changes.statement_tokens import NAME
from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.cdc.sources.database.spool import RowStatement

if TYPE_CHECKING:
    import sqlalchemy as sa

CUT = "…"
"""Ends a statement of which the rest was not noted."""
_INSERTS = re.compile(
    r"(?:\s|/\*.*?\*/)*(?:insert|replace)\s+(?:(?:low_priority|delayed|high_priority|ignore)\s+)*(?:into\s+)?"
    rf"(?:({NAME})\s*\.\s*)?({NAME})(?=[\s(])",
    re.I | re.S,
)
_OF_ROWS = ("ROLLBACK `", "XA ROLLBACK `", "XA COMMIT `")
"""How statements begin with which the tables of their rows were noted."""
_NAMES = re.compile(NAME)
_ACTING = """
select lower(event_object_table) from information_schema.triggers
union select lower(table_name) from information_schema.views
union select lower(routine_name) from information_schema.routines
"""


@dataclass(frozen=True)
class Acting:
    """Names, in lower case, of tables with triggers, views and routines: what a statement about one changes beside it
    is not known. `database`: that of the source.
    """

    database: str
    names: frozenset[str] = frozenset()


def acting_names(db: sa.Connection, database: str) -> Acting:
    """What the user of a database sees of these. Without the right TRIGGER that is no trigger."""
    import sqlalchemy as sa

    return Acting(database, frozenset(str(name) for (name,) in db.execute(sa.text(_ACTING)).all()))


def changed_tables(statements: Iterable[RowStatement], tables: Collection[Table], acting: Acting) -> dict[str, str]:
    """The tables that these statements may have changed, each with one of them.

    That is the one into which rows are inserted, and each that another statement names; all where a statement names
    what may act on others, or is not known whole.
    """
    changed: dict[str, str] = {}
    for statement in statements:
        named = _changed_names(statement, acting)
        names = (str(table) for table in tables if named is None or table.name.lower() in named)
        changed.update(dict.fromkeys(names, statement.text))
    return changed


def _changed_names(statement: RowStatement, acting: Acting) -> set[str] | None:
    """Names, in lower case, of which some are of tables that a statement changes; None where they may not be all."""
    text, own = statement.text, acting.database.lower()
    words, is_own = {_bare(each) for each in _NAMES.findall(text)}, statement.database.lower() == own
    if text.startswith(_OF_ROWS):
        return words if is_own else set()
    insert = _INSERTS.match(text)
    if not acting.names.isdisjoint(words) or (text.endswith(CUT) and (insert is None or acting.names)):
        return None
    if insert is not None:
        qualifier, name = insert.groups()
        return {_bare(name)} if (is_own if qualifier is None else _bare(qualifier) == own) else set()
    return words if is_own or own in words else set()


def _bare(name: str) -> str:
    """
    >>> _bare("`Order`")
    'order'
    """
    return name.strip('`"').lower()
