"""The next schema of an ODS table. Owns the effect of new and changed columns by `on_schema_change`; no engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from sqlmesh_like.cdc.formats.encoding import DATES, MOMENTS, TIMES_OF_DAY, Encoding, encoding_of
from sqlmesh_like.cdc.formats.row_images import EventShape
from sqlmesh_like.cdc.formats.source_types import SourceField, decimal_parts, normal_type, widen
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.errors import IngestError
from sqlmesh_like.names import Column, Schema, is_hidden, storable_name
from sqlmesh_like.project.nodes import IngestTable, SourceTable

Policy = Literal["evolve", "lenient", "ignore", "fail"]

_COUNTED = {"date": (*DATES, *MOMENTS), "timestamp": MOMENTS, "string": TIMES_OF_DAY}
"""What events may count in a column, by its type."""
_NO_SPELLINGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class EvolvedSchema:
    """A table's next layout, shapes whose fields have the types of its columns, and what changed.

    `renamed`: for new columns that take the values of stored rows from another one, that column. `spellings`: how
    events spell columns that have another case in the table.
    """

    layout: OdsLayout
    shapes: tuple[EventShape, ...]
    changes: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)


def evolve_schema(
    table: SourceTable,
    ingest: IngestTable,
    stored: Schema,
    shapes: Sequence[EventShape],
    policy: Policy = "evolve",
    spelt: Mapping[str, str] = _NO_SPELLINGS,
) -> EvolvedSchema:
    """The table's schema after a batch. `stored`: its current columns with hidden ones; empty before the first commit.

    `evolve` adds and widens columns, and raises IngestError where a column cannot change so; `lenient` writes such
    values to a new column `name__type`; `ignore` keeps the columns as they are; `fail` raises IngestError at any
    change of an existing table. `spelt`: how events have spelt columns until now, where they differ from the table.
    """
    columns = _Columns(table, ingest, stored, policy if stored or policy == "lenient" else "evolve")
    fields = [
        (number, columns.declared(field))
        for number, shape in enumerate(shapes)
        for field in _named_safely(table, shape, renamed_columns(shape.fields, table.renamed))
    ]
    # Stated types decide before inferred ones.
    order = sorted(range(len(fields)), key=lambda index: (fields[index][1].is_inferred, fields[index][1].is_unseen))
    taken = {index: columns.take(fields[index][1]) for index in order}
    kept: dict[int, list[SourceField]] = {number: [] for number in range(len(shapes))}
    for index, (number, _) in enumerate(fields):
        if (field := taken[index]) is not None:
            kept[number].append(field)
    columns.take_declared()
    layout = OdsLayout(table, ingest, columns.in_order(kept[number] for number in kept))
    _check_order(layout, stored)
    _check_texts(layout, columns.before)
    retyped = (replace(shape, fields=columns.retyped(kept[number])) for number, shape in enumerate(shapes))
    names = columns.renamed()
    spellings = columns.spellings(field.name for number in kept for field in kept[number])
    changes = columns.changes(
        names, {name: spelling for name, spelling in spellings.items() if spelt.get(name) != spelling}
    )
    return EvolvedSchema(layout, tuple(retyped), changes, names, {**spelt, **spellings})


def renamed_columns(fields: Sequence[SourceField], names: Mapping[str, str]) -> list[SourceField]:
    """Fields under the present names of their columns; not where an event has a field of the new name already.

    >>> [field.name for field in renamed_columns([SourceField("mail",
    ... "string"), SourceField("id", "int")], {"email": "mail"})]
    ['email', 'id']
    """
    present = {field.name.lower() for field in fields}
    now = {before.lower(): name for name, before in names.items() if name.lower() not in present}
    return [
        replace(field, name=now[field.name.lower()], source=field.member) if field.name.lower() in now else field
        for field in fields
    ]


class _Columns:
    """The columns of a table while the fields of a batch are added one by one."""

    def __init__(self, table: SourceTable, ingest: IngestTable, stored: Schema, policy: Policy) -> None:
        self.table, self.policy = table, policy
        self.partition = ingest.partition_by.field.lower() if ingest.partition_by else None
        self.origin = ingest.origin.lower() if ingest.origin else None
        shown = (column for column in stored if not is_hidden(column.name) and column.name.lower() != self.partition)
        self.before: Mapping[str, str] = {column.name: column.type or "string" for column in shown}
        self.types = dict(self.before)
        if ingest.origin:
            self.types.setdefault(ingest.origin, "string")
        self.names = {name.lower(): name for name in self.types}
        self.units = {name.lower(): unit for name, unit in table.units.items()}
        self.unit = ingest.unit
        self.time_zones = {name.lower(): zone for name, zone in table.time_zones.items()}
        self.time_zone = ingest.time_zone
        self.key = {name.lower() for name in ingest.primary_key}
        self.stated = {column.name.lower(): normal_type(column.type) for column in table.columns if column.type}

    def declared(self, field: SourceField) -> SourceField:
        kind = self.stated.get(field.name.lower())
        if kind is None:
            return field
        stated = None if field.is_inferred or field.is_unseen or field.type in (kind, "string") else field.type
        return replace(field, type=kind, is_inferred=False, stated_type=stated)

    def take(self, field: SourceField) -> SourceField | None:
        """Add or widen the column of a field. Returns the field as it enters the table; None where it is ignored."""
        self._check_name(field.name)
        known = self.names.get(field.name.lower())
        if known is None:
            return self._add(field)
        if field.is_unseen:
            return field
        if known in self.before and (self.policy == "ignore" or (self.policy == "fail" and field.is_inferred)):
            # An inferred type is not a change: a value that does not fit makes its event malformed.
            return field
        try:
            widened = widen(known, self.types[known], field)
        except IngestError:
            if self.policy != "lenient":
                raise
            return self.take(replace(field, name=f"{known}__{_suffix(field.type)}", source=field.member, default=None))
        if self.policy == "fail" and widened != self.types[known]:
            raise self._schema_change_error(f"column {known!r} would change from {self.types[known]} to {widened}")
        self.types[known] = widened
        return field

    def _add(self, field: SourceField) -> SourceField | None:
        if follows := self._follows(field.name):
            self.names[field.name.lower()] = field.name
            # The new column must hold the values that stored rows have in the old one.
            self.types[field.name] = widen(field.name, self.before[follows], field)
            return field
        if self.policy == "ignore":
            return None
        if self.policy == "fail":
            raise self._schema_change_error(f"column {field.name!r} is new")
        self.names[field.name.lower()] = field.name
        self.types[field.name] = field.type
        return field

    def take_declared(self) -> None:
        """Add the declared columns that no event has yet."""
        for name in (column.name for column in self.table.columns):
            kind = self.stated.get(name.lower())
            if kind and name.lower() not in {*self.names, self.partition}:
                follows = self._follows(name)
                self.types[name] = widen(name, self.before[follows], SourceField(name, kind)) if follows else kind

    def in_order(self, shapes: Iterable[Sequence[SourceField]]) -> Schema:
        """The table's columns in their order, then new ones in the order of the events."""
        arrived = (self.names[field.name.lower()] for fields in shapes for field in fields)
        return tuple(Column(name, self.types[name]) for name in dict.fromkeys((*self.before, *arrived, *self.types)))

    def retyped(self, fields: Sequence[SourceField]) -> tuple[SourceField, ...]:
        types = (self.types[self.names[field.name.lower()]] for field in fields)
        return tuple(
            replace(
                field,
                type=kind,
                unit=self._unit(field, kind),
                time_zone=self._time_zone(field, kind),
                is_key=field.name.lower() in self.key,
            )
            for field, kind in zip(fields, types, strict=True)
        )

    def _unit(self, field: SourceField, kind: str) -> Encoding | None:
        """What a number in a value of the field counts, where its encoding does not say it."""
        unit = self.units.get(field.name.lower()) or (self.unit if kind == "timestamp" else None)
        if unit is not None:
            return encoding_of(unit, kind)
        return field.unit if field.unit in _COUNTED.get(kind, ()) else None

    def _time_zone(self, field: SourceField, kind: str) -> str | None:
        """The zone of the field's local times; None: UTC, or it has none."""
        if kind != "timestamp":
            return None
        return self.time_zones.get(field.name.lower()) or (None if field.is_instant else self.time_zone)

    def renamed(self) -> Mapping[str, str]:
        """The stored column that each new column with a declared `renamed_from` replaces."""
        new = (name for name in self.types if name not in self.before)
        return {name: follows for name in new if (follows := self._follows(name))}

    def _follows(self, name: str) -> str | None:
        renamed = {storable_name(new): storable_name(old).lower() for new, old in self.table.renamed.items()}
        return next((column for column in self.before if column.lower() == renamed.get(name)), None)

    def spellings(self, arrived: Iterable[str]) -> Mapping[str, str]:
        """The events' spelling of columns that have another case in the table, by the table's name."""
        return {known: name for name in arrived if (known := self.names[name.lower()]) in self.before and known != name}

    def changes(self, renamed: Mapping[str, str], spelt: Mapping[str, str]) -> tuple[str, ...]:
        """The changes of an existing table in words: `+ name type`, `name old → new` and the like."""
        if not self.before:
            return ()
        added = [
            f"{renamed[name]} is {name} {kind} now" if name in renamed else f"+ {name} {kind}"
            for name, kind in self.types.items()
            if name not in self.before
        ]
        added += [f"{name} is spelt {spelling} in events: the table keeps {name}" for name, spelling in spelt.items()]
        wider = [f"{name} {old} → {self.types[name]}" for name, old in self.before.items() if self.types[name] != old]
        return (*added, *wider)

    def _schema_change_error(self, what: str) -> IngestError:
        return IngestError(
            f"{what} in {self.table.table}, and on_schema_change is fail",
            location=self.table.declared_at,
            hint="set on_schema_change: evolve (or lenient, ignore), and run again: the events are still there",
        )

    def _check_name(self, name: str) -> None:
        if is_hidden(name):
            raise IngestError(
                f"column {name!r} of {self.table.table} cannot be a column of a Hudi table",
                hint="rename it at the source",
            )
        if name.lower() in (self.partition, self.origin):
            what = "as:" if name.lower() == self.partition else "origin:"
            raise IngestError(
                f"{self.table.table} has a column {name!r} already",
                location=self.table.declared_at,
                hint=f"choose another `{what}`",
            )


def _named_safely(table: SourceTable, shape: EventShape, fields: Sequence[SourceField]) -> list[SourceField]:
    entries: dict[str, SourceField] = {}
    for each in fields:
        name = shape.column_of(each.name)
        other = entries.setdefault(name, each)
        if other is not each and (name != other.name or name != each.name):
            raise IngestError(
                f"columns {other.name!r} and {each.name!r} of {table.table} would both be {name!r}",
                hint="rename one of them at the source",
            )
    return [replace(each, name=shape.column_of(each.name), source=each.member) for each in fields]


def _suffix(spark_type: str) -> str:
    """
    >>> _suffix("decimal(10,2)")
    'decimal_10_2'
    """
    return re.sub(r"\W+", "_", spark_type).strip("_")


def _check_texts(layout: OdsLayout, before: Mapping[str, str]) -> None:
    """Refuse new types of keys and partitions that would spell old values differently: rows would be duplicated."""
    ingest = layout.ingest
    keys = {name.lower(): "primary key" for name in ingest.primary_key}
    by = ingest.partition_by
    named = {**keys, by.column.lower(): "partition"} if by else keys
    for column in layout.columns:
        old, what = before.get(column.name), named.get(column.name.lower())
        if what is None or old in (None, column.type) or {old, column.type} <= _SAME_TEXTS:
            continue
        if what == "partition" or not _are_keys_alike(str(old), str(column.type)):
            raise IngestError(
                f"{what} column {column.name!r} of {layout.table.table} changed from {old} to {column.type}",
                location=layout.table.declared_at,
                hint=f"declare it under `columns:` as {old}, or rebuild the table",
            )


_SAME_TEXTS = {"int", "bigint", "string"}
_PLAIN_SCALE = 6
"""Digits after the point up to which Java spells every decimal without an exponent."""


def _are_keys_alike(old: str, new: str) -> bool:
    """Whether keys of both types are decimals with the same texts: Java spells 0 as `0E-10` at a scale of ten.

    >>> _are_keys_alike("decimal(9,2)", "decimal(12,4)"), _are_keys_alike("decimal(20,10)", "decimal(22,12)")
    (True, False)
    """
    before, now = decimal_parts(old), decimal_parts(new)
    if before is None or now is None:
        return False
    return before[1] == now[1] or max(before[1], now[1]) <= _PLAIN_SCALE


def _check_order(layout: OdsLayout, stored: Schema) -> None:
    """Refuse a new type of a stored order: texts would be compared with numbers."""
    before = {column.name: column.type for column in stored}
    for name, kind in zip(layout.order_columns, layout.order_types() if layout.columns else (), strict=False):
        if before.get(name, kind) != kind:
            raise IngestError(
                f"an order_by column of {layout.table.table} changed from {before[name]} to {kind}",
                location=layout.table.declared_at,
                hint="declare its type under `columns:`, or rebuild the table",
            )
