"""What the log of MariaDB or MySQL says of rows that came or went by a statement. Owns reading the engine's record.

A table that takes the name of another one has rows of its own, whose inserts may have been those of a table that is not
read; rows of a partition go with it. No event says so. Statements of the first snapshot are not the log's.
https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-schema-history-topic
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlmesh_like.cdc.sources.database.spool import Spool

_NAME = r"(?:`(?:[^`]|``)+`|\w+)"
_REPLACED = re.compile(rf"\s*create\s+or\s+replace\s+table\s+(?:{_NAME}\s*\.\s*)?({_NAME})", re.I)
_OF_PARTITIONS = re.compile(r"\b(?:drop|truncate|exchange|discard|import)\s+(?:partition|tablespace)\b", re.I)
_EXCHANGED = re.compile(rf"\bwith\s+table\s+(?:{_NAME}\s*\.\s*)?({_NAME})", re.I)
_RENAMED = re.compile(r"\brename\s+(?!column\b|index\b|key\b)", re.I)


@dataclass(frozen=True)
class MadeTables:
    """Tables that have other rows than their events say, and where in the log the newest statement is.

    Names are in lower case. `anew`: they were made anew. `emptied`: rows came or went with a partition. `replaced`:
    those of `CREATE OR REPLACE TABLE`, which the engine does not follow: it reads their changes with the columns that
    the former table had.
    """

    anew: dict[str, str]
    emptied: dict[str, str]
    replaced: frozenset[str]


def made_tables(spool: Spool, database: str) -> MadeTables:
    """The tables of a database with such statements since the snapshot with which the spool began."""
    anew, emptied, replaced, gone = dict[str, str](), dict[str, str](), set[str](), set[str]()
    for place, statement, changes in _statements(spool, database):
        if match := _REPLACED.match(statement):
            replaced.add(_unquoted(match[1]))
        if re.match(r"\s*drop\s+(database|schema)\b", statement, re.I):
            gone.add("")
        for kind, name, former in changes:
            is_renamed = former is not None or (kind == "ALTER" and _RENAMED.search(statement) is not None)
            if kind == "DROP":
                gone.add(name)
            elif is_renamed or (kind == "CREATE" and not gone.isdisjoint((name, ""))):
                anew[name] = place
            elif kind == "ALTER" and _OF_PARTITIONS.search(statement):
                other = _EXCHANGED.search(statement)
                emptied |= dict.fromkeys([name, _unquoted(other[1])] if other else [name], place)
            if former is not None:
                gone.add(former)
    return MadeTables(anew, emptied, frozenset(replaced))


def _statements(spool: Spool, database: str) -> Iterator[tuple[str, str, list[tuple[str, str, str | None]]]]:
    """Place, text and changed tables (kind, name, former name) of each statement."""
    file = spool.folder / "schema_history"
    if not file.exists():
        return
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if '"snapshot"' in line or '"ddl"' not in line or not line.endswith("\n"):
                continue
            said = json.loads(line)
            if said.get("databaseName") not in ("", None, database):
                continue
            position = said.get("position") or {}
            changes = [
                (str(each.get("type")), _name(each.get("id")) or "", _name(each.get("previousId")))
                for each in said.get("tableChanges") or ()
            ]
            yield f"{position.get('file')}:{position.get('pos')}", str(said.get("ddl")), changes


def _unquoted(name: str) -> str:
    return name.strip("`").replace("``", "`").lower()


def _name(identifier: object) -> str | None:
    """The lower-case name of a table.

    >>> _name('"store"."Item"'), _name(None)
    ('item', None)
    """
    return str(identifier).removesuffix('"').rpartition('"."')[2].lower() if identifier else None
