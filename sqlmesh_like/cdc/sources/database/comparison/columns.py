"""Which columns of a table are compared, and under which names each side has them. Owns what is said of the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlmesh_like.cdc.sources.database.comparison.dialects import CanonicalColumn
from sqlmesh_like.cdc.sources.database.comparison.value_kinds import Kind, has_kind, kind_of
from sqlmesh_like.errors import UsageError
from sqlmesh_like.names import Schema, storable_name
from sqlmesh_like.project.nodes import DatabaseKind, SourceTable


@dataclass(frozen=True)
class UncomparedColumn:
    """A column that is not compared, and why.

    `by_nature`: it never can be, whatever is in the lake: its type has no text that both sides give alike, or the
    database has no such column.
    """

    name: str
    reason: str
    by_nature: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"


@dataclass(frozen=True)
class ComparedColumns:
    """Columns by both sides, in the same order; `key`: the indexes of the primary key's, in its order."""

    database: tuple[CanonicalColumn, ...]
    lake: tuple[CanonicalColumn, ...]
    key: tuple[int, ...]
    uncompared: tuple[UncomparedColumn, ...]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(column.kind for column in self.lake)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.lake)


def compared_columns(
    server: DatabaseKind,
    table: SourceTable,
    declared: Sequence[tuple[str, str]],
    stored: Schema,
    generated: Collection[str] = (),
) -> ComparedColumns:
    """Pair the columns that the database declares (name, type) with those of the lake; `generated` ones are not read.

    Raises UsageError where the table has no primary key, or one that cannot be compared.
    """
    assert table.ingest is not None
    if not table.ingest.primary_key:
        raise UsageError(
            f"{table.table} has no primary key: its rows cannot be told apart",
            location=table.declared_at,
            hint="name columns that identify a row (primary_key: […]),"
            f" or leave it out: --exclude source:{table.source_name}.{table.name}",
        )
    in_lake = {column.name.lower(): column for column in stored}
    pairs, uncompared = [], []
    for name, kind in declared:
        own = in_lake.pop(storable_name(name).lower(), None) or in_lake.pop(
            storable_name(name, ascii_only=True).lower(), None
        )
        if name in generated:
            uncompared.append(UncomparedColumn(name, "generated: its values are not in the log", by_nature=True))
            continue
        if own is None:
            uncompared.append(UncomparedColumn(name, "not in the lake"))
            continue
        common = kind_of(server, kind, own.type or "")
        if common is None:
            reason = f"{kind} there, {own.type} in the lake: no text that both have"
            uncompared.append(UncomparedColumn(name, reason, by_nature=not has_kind(server, kind)))
            continue
        pairs.append(
            (
                CanonicalColumn(name, common, own.type or "", kind.lower(), _zone(table, own.name, kind.lower())),
                CanonicalColumn(own.name, common, own.type or ""),
            )
        )
    derived = _added_by_ingestion(table)
    uncompared += [
        UncomparedColumn(column.name, "not in the database", by_nature=True)
        for name, column in in_lake.items()
        if name not in derived
    ]
    key = _key_of(table, [own.name.lower() for _, own in pairs], {each.name.lower(): each for each in uncompared})
    return ComparedColumns(tuple(there for there, _ in pairs), tuple(here for _, here in pairs), key, tuple(uncompared))


def _zone(table: SourceTable, name: str, declared: str) -> str | None:
    """The zone of a column's local times; None: it has none, or they are in UTC."""
    assert table.ingest is not None
    if not declared.startswith("datetime") and "without time zone" not in declared:
        return None
    own = {each.lower(): zone for each, zone in table.time_zones.items()}.get(name.lower(), table.ingest.time_zone)
    return None if own == "UTC" else own


def _key_of(table: SourceTable, names: Sequence[str], uncompared: Mapping[str, UncomparedColumn]) -> tuple[int, ...]:
    assert table.ingest is not None
    for name in table.ingest.primary_key:
        if name == table.ingest.origin or name.lower() in names:
            continue
        why = uncompared.get(name.lower())
        raise UsageError(
            f"the key column {name} of {table.table} cannot be compared: {why.reason if why else 'it is nowhere'}",
            location=table.declared_at,
            hint=f"leave the table out: --exclude source:{table.source_name}.{table.name}",
        )
    return tuple(names.index(name.lower()) for name in table.ingest.primary_key if name.lower() in names)


def _added_by_ingestion(table: SourceTable) -> Collection[str]:
    """The columns that the ingestion itself adds."""
    assert table.ingest is not None
    partition = table.ingest.partition_by.field if table.ingest.partition_by else None
    return {name.lower() for name in (partition, table.ingest.origin) if name}
