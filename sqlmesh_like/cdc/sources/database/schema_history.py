"""What the log of MariaDB or MySQL says of rows that came or went by a statement. Owns reading the engine's record.

A table that takes the name of another one has rows of its own, whose inserts may have been those of a table that is not
read; rows of a partition go with it; a column gets another type. No event says so. Statements of the first snapshot are
not the log's.
https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-schema-history-topic
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sqlmesh_like.cdc.sources.database.schema_changes.alter_statements import (
    TableColumns,
    changing_clause,
    has_lost_clause,
)
from sqlmesh_like.cdc.sources.database.schema_changes.column_definitions import ColumnDefinition, definitions
from sqlmesh_like.cdc.sources.database.spool import Spool

_NAME = r"(?:`(?:[^`]|``)+`|\w+)"
_REPLACED = re.compile(rf"\s*create\s+or\s+replace\s+table\s+(?:{_NAME}\s*\.\s*)?({_NAME})", re.I)
_ALTERED_WITHIN_COMMENT = re.compile(
    r"\s*/\*M?!\d*\s*alter\s+(?:(?:online|offline|ignore)\s+)*table\s+(?:if\s+exists\s+)?"
    rf"(?:{_NAME}\s*\.\s*)?({_NAME})(?!\s+(?:enable|disable)\s+keys\b)",
    re.I,
)
_OF_PARTITIONS = re.compile(r"\b(?:drop|truncate|exchange|discard|import)\s+(?:partition|tablespace)\b", re.I)
_EXCHANGED = re.compile(rf"\bwith\s+table\s+(?:{_NAME}\s*\.\s*)?({_NAME})", re.I)
_RENAMED = re.compile(r"\brename\s+(?!column\b|index\b|key\b)", re.I)


@dataclass(frozen=True)
class MadeTables:
    """Tables that have other rows than their events say, and where in the log the newest statement is.

    Names are in lower case. `anew`: they were made anew. `emptied`: rows came or went with a partition. `rewritten`:
    values may have changed, by which clause is in `clauses`. `replaced`: those of statements that the engine does not
    follow (`CREATE OR REPLACE TABLE`, `ALTER TABLE … /*! … */`): it reads their changes with the columns that they had.
    """

    anew: dict[str, str] = field(default_factory=dict)
    emptied: dict[str, str] = field(default_factory=dict)
    rewritten: dict[str, str] = field(default_factory=dict)
    clauses: dict[str, str] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _TableChange:
    """What a statement does to one table. `kind`: CREATE, ALTER or DROP; `former`: its name before."""

    kind: str
    name: str
    former: str | None
    columns: Mapping[str, ColumnDefinition]


@dataclass(frozen=True)
class _Statement:
    """A statement of the record. `place`: where in the log it is; None: it is one of the first snapshot.

    `end`: the size of the record up to here, in bytes.
    """

    place: str | None
    text: str
    changes: tuple[_TableChange, ...]
    end: int


def made_tables(
    spool: Spool,
    database: str,
    with_defaults: Mapping[str, frozenset[str]] = MappingProxyType({}),
    size: int | None = None,
) -> MadeTables:
    """The tables of a database with such statements since the snapshot with which the spool began.

    `size`: so much of the record is looked at; `replaced` is of all of it.

    `with_defaults`: tables of which the lake gives rows the default that events state for a new column, by name in
    lower case, with the columns that it has already.
    """
    made, gone, columns = MadeTables(), set[str](), dict[str, TableColumns]()
    for statement in _statements(spool, database):
        if statement.place is not None:
            made.replaced.update(_not_followed(statement))
        if size is not None and statement.end > size:
            continue
        if statement.place is not None:
            _note_rows(made, gone, statement.place, statement)
        for change in statement.changes:
            known = columns.setdefault(change.name, TableColumns())
            if statement.place is not None and change.kind == "ALTER" and made.anew.get(change.name) != statement.place:
                clause = changing_clause(statement.text, known, change.columns, with_defaults.get(change.name))
                if clause is not None:
                    made.rewritten[change.name], made.clauses[change.name] = statement.place, clause
            known.become(change.columns)
    return made


def _not_followed(statement: _Statement) -> Iterator[str]:
    """The tables whose columns a statement changes without the engine's knowing."""
    for pattern in (_REPLACED, _ALTERED_WITHIN_COMMENT):
        if match := pattern.match(statement.text):
            yield _bare_name(match[1])
    for change in statement.changes:
        if change.kind == "ALTER" and has_lost_clause(statement.text):
            yield change.name


def _note_rows(made: MadeTables, gone: set[str], place: str, statement: _Statement) -> None:
    """Note tables that a statement makes anew or takes rows from. `gone`: those of which the name is free."""
    text = statement.text
    if re.match(r"\s*drop\s+(database|schema)\b", text, re.I):
        gone.add("")
    for change in statement.changes:
        name, former = change.name, change.former
        is_renamed = former is not None or (change.kind == "ALTER" and _RENAMED.search(text) is not None)
        if change.kind == "DROP":
            gone.add(name)
        elif is_renamed or (change.kind == "CREATE" and not gone.isdisjoint((name, ""))):
            made.anew[name] = place
        elif change.kind == "ALTER" and _OF_PARTITIONS.search(text):
            other = _EXCHANGED.search(text)
            made.emptied.update(dict.fromkeys([name, _bare_name(other[1])] if other else [name], place))
        if former is not None:
            gone.add(former)


def _statements(spool: Spool, database: str) -> Iterator[_Statement]:
    file = spool.folder / "schema_history"
    if not file.exists():
        return
    end = 0
    with file.open("rb") as lines:
        for line in lines:
            end += len(line)
            if b'"ddl"' not in line or not line.endswith(b"\n"):
                continue
            said = json.loads(line)
            if said.get("databaseName") not in ("", None, database):
                continue
            position = said.get("position") or {}
            place = None if "snapshot" in position else f"{position.get('file')}:{position.get('pos')}"
            changes = tuple(map(_table_change, said.get("tableChanges") or ()))
            yield _Statement(place, str(said.get("ddl")), changes, end)


def _table_change(change: dict[str, Any]) -> _TableChange:
    columns = (change.get("table") or {}).get("columns") or ()
    name, former = _name(change.get("id")) or "", _name(change.get("previousId"))
    return _TableChange(str(change.get("type")), name, former, definitions(columns))


def _bare_name(name: str) -> str:
    return name.strip("`").replace("``", "`").lower()


def _name(identifier: object) -> str | None:
    """The lower-case name of a table.

    >>> _name('"store"."Item"'), _name(None)
    ('item', None)
    """
    return str(identifier).removesuffix('"').rpartition('"."')[2].lower() if identifier else None
