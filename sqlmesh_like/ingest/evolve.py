"""The next schema of an ODS table. Owns what a new or changed column does by `on_schema_change`; no engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlmesh_like.errors import IngestError
from sqlmesh_like.ingest.images import Shape
from sqlmesh_like.ingest.layout import Layout
from sqlmesh_like.ingest.types import Field, normal_type, widen
from sqlmesh_like.names import Column, Schema, is_hidden
from sqlmesh_like.project.spec import IngestTable, SourceTable

Policy = Literal["evolve", "lenient", "ignore", "fail"]

_NOT_AVRO = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True)
class Settled:
    """A table's next layout, the shapes whose fields have the types of their columns, and what changed."""

    layout: Layout
    shapes: tuple[Shape, ...]
    changes: tuple[str, ...] = ()


def settle(
    table: SourceTable, ingest: IngestTable, stored: Schema, shapes: Sequence[Shape], policy: Policy = "evolve"
) -> Settled:
    """The table after this batch. `stored` are its columns as it is (hidden ones too; empty before its first commit).

    `evolve` adds and widens columns, and raises IngestError where one cannot change so; `lenient` takes such
    values into a new column `name__type`; `ignore` keeps the columns as they are; `fail` raises IngestError at any
    change.
    """
    columns = _Columns(table, ingest, stored, policy if stored else "evolve")
    fields = [
        (number, columns.declared(field))
        for number, shape in enumerate(shapes)
        for field in _named_safely(table, shape.fields)
    ]
    # What was stated decides before what was only guessed.
    order = sorted(range(len(fields)), key=lambda index: fields[index][1].is_inferred)
    taken = {index: columns.take(fields[index][1]) for index in order}
    kept: dict[int, list[Field]] = {number: [] for number in range(len(shapes))}
    for index, (number, _) in enumerate(fields):
        if (field := taken[index]) is not None:
            kept[number].append(field)
    columns.take_declared()
    layout = Layout(table, ingest, columns.in_order(kept[number] for number in kept))
    _check_order(layout, stored)
    retyped = (replace(shape, fields=columns.retyped(kept[number])) for number, shape in enumerate(shapes))
    return Settled(layout, tuple(retyped), columns.changes())


class _Columns:
    """The columns of a table while the fields of a batch are taken in one by one."""

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
        self.stated = {column.name.lower(): normal_type(column.type) for column in table.columns if column.type}

    def declared(self, field: Field) -> Field:
        kind = self.stated.get(field.name.lower())
        return replace(field, type=kind, is_inferred=False) if kind else field

    def take(self, field: Field) -> Field | None:
        """The field as it enters the table; None where it does not."""
        self._check_name(field.name)
        known = self.names.get(field.name.lower())
        if known is None:
            return self._add(field)
        if self.policy == "ignore" and known in self.before:
            return field
        try:
            widened = widen(known, self.types[known], field)
        except IngestError:
            if self.policy != "lenient":
                raise
            return self.take(replace(field, name=f"{known}__{_suffix(field.type)}", source=field.member, default=None))
        if self.policy == "fail" and widened != self.types[known]:
            raise self._refused(f"column {known!r} would change from {self.types[known]} to {widened}")
        self.types[known] = widened
        return field

    def _add(self, field: Field) -> Field | None:
        if self.policy == "ignore":
            return None
        if self.policy == "fail":
            raise self._refused(f"column {field.name!r} is new")
        self.names[field.name.lower()] = field.name
        self.types[field.name] = field.type
        return field

    def take_declared(self) -> None:
        """Declared columns that no event has yet."""
        for column in self.table.columns:
            kind = self.stated.get(column.name.lower())
            if kind and column.name.lower() not in {*self.names, self.partition}:
                self.types[column.name] = kind

    def in_order(self, shapes: Iterable[Sequence[Field]]) -> Schema:
        """Columns as the table has them, then new ones as the events do."""
        arrived = (self.names[field.name.lower()] for fields in shapes for field in fields)
        return tuple(Column(name, self.types[name]) for name in dict.fromkeys((*self.before, *arrived, *self.types)))

    def retyped(self, fields: Sequence[Field]) -> tuple[Field, ...]:
        return tuple(replace(field, type=self.types[self.names[field.name.lower()]]) for field in fields)

    def changes(self) -> tuple[str, ...]:
        """What this batch changes of a table that was there: `+ name type` and `name old → new`."""
        if not self.before:
            return ()
        added = [f"+ {name} {kind}" for name, kind in self.types.items() if name not in self.before]
        wider = [f"{name} {old} → {self.types[name]}" for name, old in self.before.items() if self.types[name] != old]
        return (*added, *wider)

    def _refused(self, what: str) -> IngestError:
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


def safe_name(name: str) -> str:
    """The name of a column in a Hudi table, whose names are Avro's: letters, digits and `_`, no digit first.

    >>> safe_name("a-b"), safe_name("1x"), safe_name("total")
    ('a_b', '_1x', 'total')
    """
    safe = _NOT_AVRO.sub("_", name)
    return f"_{safe}" if safe[:1].isdigit() or not safe else safe


def _named_safely(table: SourceTable, fields: Sequence[Field]) -> list[Field]:
    found: dict[str, Field] = {}
    for field in fields:
        name = safe_name(field.name)
        other = found.setdefault(name, field)
        if other is not field and (name != other.name or name != field.name):
            raise IngestError(
                f"columns {other.name!r} and {field.name!r} of {table.table} would both be {name!r}",
                hint="rename one of them at the source",
            )
    return [replace(field, name=safe_name(field.name), source=field.member) for field in fields]


def _suffix(spark_type: str) -> str:
    """
    >>> _suffix("decimal(10,2)")
    'decimal_10_2'
    """
    return re.sub(r"\W+", "_", spark_type).strip("_")


def _check_order(layout: Layout, stored: Schema) -> None:
    """A stored order that changes its type would compare texts with numbers."""
    before = {column.name: column.type for column in stored}
    for name, kind in zip(layout.order_columns, layout.order_types() if layout.columns else (), strict=False):
        if before.get(name, kind) != kind:
            raise IngestError(
                f"an order_by column of {layout.table.table} changed from {before[name]} to {kind}",
                location=layout.table.declared_at,
                hint="declare its type under `columns:`, or rebuild the table",
            )
