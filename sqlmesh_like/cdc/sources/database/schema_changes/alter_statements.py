"""Statements `ALTER TABLE` of MariaDB and MySQL. Owns which of their clauses are proven to keep all stored values.

No event names the rows that such a statement changes. A clause that is not known here, or a statement that is not
understood, is taken for one that changes some: the table is read again.
https://mariadb.com/kb/en/alter-table/, https://dev.mysql.com/doc/refman/8.4/en/alter-table.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlmesh_like.cdc.sources.database.schema_changes.column_definitions import ColumnDefinition, keeps_values
from sqlmesh_like.cdc.sources.database.schema_changes.column_texts import column_text, states_default
from sqlmesh_like.cdc.sources.database.schema_changes.statement_tokens import (
    NAME,
    VALUE,
    Token,
    clause_text,
    split_by_commas,
    tokens,
)

_ALTER = re.compile(
    rf"ALTER (?:ONLINE |OFFLINE )?TABLE (?:IF EXISTS )?{NAME}(?: \. {NAME})?(?: WAIT \d+| NOWAIT)?(?: (?=\S)|$)", re.I
)
_NOT_OF_ROWS = re.compile(r"\s*(?:rename\s+table\b|create\s+(?:\w+\s+)*?index\b|drop\s+index\b)", re.I)
_PARTITIONS = re.compile(
    r"(?:ADD|DROP|TRUNCATE|REORGANIZE|COALESCE|ANALYZE|CHECK|OPTIMIZE|REBUILD|EXCHANGE|DISCARD|IMPORT) PARTITION\b"
    r"|PARTITION BY\b|REMOVE PARTITIONING\b|(?:DISCARD|IMPORT) TABLESPACE\b",
    re.I,
)
"""What follows belongs to the clause; `schema_history` says whether rows go."""
_OPTION = (
    r"(?:(?:AUTO_INCREMENT|AVG_ROW_LENGTH|CHECKSUM|COMMENT|COMPRESSION|DELAY_KEY_WRITE|ENCRYPTED|ENCRYPTION"
    r"|ENCRYPTION_KEY_ID|KEY_BLOCK_SIZE|MAX_ROWS|MIN_ROWS|PACK_KEYS|PAGE_COMPRESSED|PAGE_COMPRESSION_LEVEL|ROW_FORMAT"
    r"|STATS_AUTO_RECALC|STATS_PERSISTENT|STATS_SAMPLE_PAGES|ALGORITHM|LOCK|(?:DEFAULT )?CHARACTER SET"
    rf"|(?:DEFAULT )?CHARSET|(?:DEFAULT )?COLLATE) (?:= )?{VALUE}|ENGINE (?:= )?InnoDB)"
)
_HARMLESS = re.compile(
    r"ADD (?:INDEX|KEY|UNIQUE|FULLTEXT|SPATIAL|FOREIGN KEY|CHECK)\b.*"
    rf"|ADD CONSTRAINT (?!PRIMARY\b)(?:{NAME} )?(?:UNIQUE|FOREIGN KEY|CHECK)\b.*"
    rf"|DROP (?:INDEX|KEY|CONSTRAINT|CHECK|FOREIGN KEY) (?:IF EXISTS )?{NAME}|DROP PRIMARY KEY"
    rf"|DROP (?:COLUMN )?(?:IF EXISTS )?(?!PARTITION\b){NAME}(?: RESTRICT| CASCADE)?"
    rf"|RENAME (?:INDEX|KEY) {NAME} TO {NAME}"
    rf"|RENAME (?:TO |AS |= )?{NAME}(?: \. {NAME})?"  # `schema_history` has it read again
    rf"|ALTER INDEX {NAME} .*|ALTER (?:CHECK|CONSTRAINT) {NAME} (?:NOT )?ENFORCED"
    rf"|(?:ENABLE|DISABLE) KEYS|FORCE|ORDER BY {NAME}(?: ASC| DESC)?|{_OPTION}(?: {_OPTION})*",
    re.I,
)
_PRIMARY_KEY = re.compile(rf"ADD (?:CONSTRAINT (?:{NAME} )?)?PRIMARY KEY(?: USING \w+)? \((?P<columns>[^()]*)\)", re.I)
_DEFAULT = re.compile(rf"ALTER (?:COLUMN )?(?:IF EXISTS )?(?P<name>{NAME}) (?:SET DEFAULT .*|DROP DEFAULT)", re.I)
_ADD = re.compile(r"ADD (?:COLUMN )?(?:IF NOT EXISTS )?", re.I)
_MODIFY = re.compile(
    rf"(?:MODIFY (?:COLUMN )?(?:IF EXISTS )?|CHANGE (?:COLUMN )?(?:IF EXISTS )?(?P<old>{NAME}) )", re.I
)


@dataclass
class TableColumns:
    """What is known of a table's columns, statement by statement; names are in lower case.

    `current`: those it has; `former`: names of those it has ever had, which the lake may have with other values;
    `added`: the defaults of those that came since. The first event that has such a column states a default, which the
    lake gives to all rows: another one by then would not be theirs.
    """

    current: Mapping[str, ColumnDefinition] = field(default_factory=dict)
    former: set[str] = field(default_factory=set)
    added: dict[str, str | None] = field(default_factory=dict)

    def become(self, columns: Mapping[str, ColumnDefinition]) -> None:
        """Take the columns that a statement has left."""
        self.current = columns
        self.former |= columns.keys()


def changing_clause(
    statement: str,
    columns: TableColumns,
    after: Mapping[str, ColumnDefinition],
    declared: frozenset[str] | None = None,
) -> str | None:
    """The first clause of a statement that may change stored values; None where none does.

    `after`: the columns that it leaves. `declared`: columns that the lake has whatever events have; None: where it does
    not give rows the default that events state for a new column.
    """
    if _NOT_OF_ROWS.match(statement):
        return None
    known = tokens(statement)
    clauses = [] if known is None else [clause_text(each) for each in split_by_commas(known)]
    head = _ALTER.match(clauses[0]) if clauses else None
    if known is None or head is None:
        return " ".join(statement.split())
    clauses[0] = clauses[0][head.end() :]
    groups = split_by_commas(known)
    for clause, own in zip(clauses, groups, strict=True):
        if _PARTITIONS.match(clause):
            return None
        if clause and not _is_harmless(clause, own, columns, after, declared):
            return clause
    return None


def has_lost_clause(statement: str) -> bool:
    """Whether a clause of a recorded ALTER TABLE is missing: one within `/*! … */`, which servers execute.

    Debezium neither follows nor records it.

    >>> has_lost_clause("alter table item "), has_lost_clause("alter table item , add n int"), has_lost_clause(
    ... "alter table item force")
    (True, True, False)
    """
    known = tokens(statement)
    clauses = [] if known is None else [clause_text(each) for each in split_by_commas(known)]
    head = _ALTER.match(clauses[0]) if clauses else None
    return head is not None and not all((clauses[0][head.end() :], *clauses[1:]))


def _is_harmless(
    clause: str,
    own: Sequence[Token],
    columns: TableColumns,
    after: Mapping[str, ColumnDefinition],
    declared: frozenset[str] | None,
) -> bool:
    if _HARMLESS.fullmatch(clause):
        return True
    if match := _PRIMARY_KEY.fullmatch(clause):
        names = [name.split()[0] for name in match["columns"].split(",") if name.strip()]
        known = [columns.current.get(_bare_name(name)) for name in names]
        return all(each is not None and not each.is_optional for each in known)
    if match := _DEFAULT.fullmatch(clause):
        return _bare_name(match["name"]) not in columns.added
    if match := _MODIFY.match(clause):
        return _is_modified(clause[match.end() :], match["old"], columns, after)
    if match := _ADD.match(clause):
        rest = clause[match.end() :]
        texts = (
            [clause_text(each) for each in split_by_commas(own[-1])]
            if isinstance(own[-1], list) and rest.startswith("(")
            else [rest]
        )
        return all(_is_added(text, columns, declared) for text in texts)
    return False


def _is_modified(text: str, old: str | None, columns: TableColumns, after: Mapping[str, ColumnDefinition]) -> bool:
    column = column_text(text)
    if column is None or column.is_timestamp:
        return False
    name = column.name.lower()
    if (old is not None and _bare_name(old) != name) or columns.added.get(
        name, column.plain_default
    ) != column.plain_default:
        return False
    if name in columns.added and column.has_clock:
        return False
    before, now = columns.current.get(name), after.get(name)
    return before is not None and now is not None and before.name == now.name and keeps_values(before, now)


def _is_added(text: str, columns: TableColumns, declared: frozenset[str] | None) -> bool:
    column = column_text(text)
    if column is None or column.has_clock or column.is_numbered or column.name.lower() in columns.former:
        return False
    name, default = column.name.lower(), column.plain_default
    columns.added[name] = default
    if default is None:
        # Of old a TIMESTAMP is NOT NULL and has the time of the statement, unless it says NULL.
        return not column.is_required and (not column.is_timestamp or column.is_nullable)
    return declared is not None and name not in declared and states_default(column)


def _bare_name(name: str) -> str:
    return name.strip('`"').lower()
