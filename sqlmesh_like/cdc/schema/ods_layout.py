"""How one ODS table is laid out: columns, key, order, partition.

Knows no engine; `schema_evolution` says how columns change.

The hidden columns: `_sml_order_<i>` (the declared order, NULL smallest) and `_sml_position` (position in the log), by
which Hudi decides between two versions of a row.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from sqlmesh_like.cdc.formats.source_types import decimal_parts, normal_type, quoted_name, sql_literal
from sqlmesh_like.cdc.schema.limits import shortened_sql
from sqlmesh_like.errors import IngestError, ProjectError, nearest
from sqlmesh_like.names import KEY, Column, Schema
from sqlmesh_like.project.nodes import IngestTable, SourceTable

POSITION = "_sml_position"
LINE_DIGITS = 12
"""Digits of the line number with which a position in a log of files ends."""
SOFT_DELETED = "_sml_deleted"
NULL_PARTITION = "__null__"
"""Partition of rows whose partition column is NULL."""

HASHED_KEYS, TEXT_KEYS = 2, 3
"""Spellings of record keys: a hash of the primary key's JSON (tables of earlier versions), or the key's own text."""
KEY_ESCAPES = {"%": "%25", "|": "%7C", ":": "%3A", ",": "%2C"}
"""Hudi 1.2.0 splits keys at `:` and `,` for its bucket index, and loops forever on some texts that contain both."""
_BETWEEN = ", '|', "
_NULL_PART, EMPTY_PART = "%0", "%1"
"""The NULL part of a key, and the empty one, for Hudi refuses an empty key; no escaped text looks like these."""
HAS_NO_SIGNS = {"int", "bigint", "date", "boolean", "binary"}
"""Types whose texts contain nothing to escape."""

_PARTITION_FORMAT = re.compile(r"[yMdHms_.-]+")
_SHORT_FORMAT = 32
"""Length of a format whose texts are never too long for the name of a folder."""
_MOMENTS = ("date", "timestamp")
_SMALLEST = "cast('-9223372036854775808' as bigint)"
_ORDER_AS_NUMBER = {
    "int": "cast({0} as bigint)",
    "bigint": "{0}",
    "boolean": "cast({0} as bigint)",
    "date": "cast(unix_date({0}) as bigint)",
    "timestamp": "unix_micros({0})",
}


@dataclass(frozen=True)
class OdsLayout:
    """An ODS table as the next commit writes it. `columns`: the source's, without partition and hidden columns.

    `ascii_names`: some may be named by the rule of earlier versions (`storable_name`).
    """

    table: SourceTable
    ingest: IngestTable
    columns: Schema
    key_spelling: int = TEXT_KEYS
    ascii_names: bool = False

    @property
    def partition_field(self) -> str | None:
        return self.ingest.partition_by.field if self.ingest.partition_by else None

    @property
    def order_columns(self) -> tuple[str, ...]:
        """Hidden columns that decide between two versions of a row; empty without `order_by`: the last commit wins."""
        if not self.ingest.order_by:
            return ()
        return (*(f"_sml_order_{index}" for index in range(len(self.ingest.order_by))), POSITION)

    @property
    def rank_columns(self) -> tuple[str, ...]:
        """Hidden columns that order the versions of a key in a batch, with and without `order_by`."""
        return self.order_columns or (POSITION,)

    @property
    def stored_columns(self) -> Schema:
        """All columns of the table in their order, hidden ones included, but for the mark of deleted rows."""
        orders = zip(self.order_columns, self.order_types() if self.order_columns else (), strict=False)
        partition = (Column(self.partition_field, "string"),) if self.partition_field else ()
        soft = (Column(SOFT_DELETED, "boolean"),) if self.ingest.deletes == "soft" else ()
        hidden = (*(Column(name, kind) for name, kind in orders), Column(POSITION, "string"), *soft)
        return (Column(KEY, "string"), *self.columns, *partition, *hidden)

    def column(self, name: str, what: str) -> Column:
        """The column with this name, case ignored. Raises IngestError with a hint at the nearest name."""
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        raise IngestError(
            f"{what} column {name!r} of {self.table.table} is in no event",
            location=self.table.declared_at,
            hint=nearest(name, [column.name for column in self.columns]),
        )

    @property
    def has_key(self) -> bool:
        """Whether a primary key is declared and the layout has all its columns."""
        known = {column.name.lower() for column in self.columns}
        return bool(self.ingest.primary_key) and all(name.lower() in known for name in self.ingest.primary_key)

    @property
    def beside_key(self) -> Schema:
        """The columns whose values only a logged row has: neither of the primary key nor made of the log."""
        told = {name.lower() for name in (*self.ingest.primary_key, self.ingest.origin or "")}
        return tuple(column for column in self.columns if column.name.lower() not in told)

    def stored_row(self, stored: Collection[str]) -> str:
        """Spark SQL of a stored row as a struct of this layout's columns. `stored`: the table's current columns."""
        has = {name.lower() for name in stored}
        values = (
            f"cast({quoted_name(c.name) if c.name.lower() in has else 'null'} as {c.type}) as {quoted_name(c.name)}"
            for c in self.columns
        )
        return f"struct({', '.join(values)})"

    def key(self, row: str) -> str:
        """Spark SQL of the primary key of a row as one text; without one, the row's position in the log."""
        if not self.ingest.primary_key:
            return "position"
        types = {column.name.lower(): column.type or "string" for column in self.columns}
        parts = [(name, types.get(name.lower(), "string")) for name in self.ingest.primary_key]
        if self.key_spelling == HASHED_KEYS:
            values = (f"{sql_literal(name)}, {_key_text(f'{row}.{quoted_name(name)}', kind)}" for name, kind in parts)
            return f"to_json(named_struct({', '.join(values)}))"
        texts = [_key_part(f"{row}.{quoted_name(name)}", kind) for name, kind in parts]
        return texts[0] if len(texts) == 1 else f"concat({_BETWEEN.join(texts)})"

    def record_key(self, row: str) -> str:
        """Spark SQL of a row's record key in Hudi: two rows share it only if their primary keys are equal.

        It contains only characters that Hudi takes literally.
        """
        is_text = self.key_spelling == TEXT_KEYS and self.ingest.primary_key
        return self.key(row) if is_text else f"sha2({self.key(row)}, 256)"

    def missing_key(self, row: str) -> str:
        """Spark SQL: why the row has no usable key, or NULL."""
        if not self.ingest.primary_key:
            return "cast(null as string)"
        checks = [f"when {self._no_key(row, name)} then {sql_literal(f'primary key {name} is missing or NULL')}"
                  for name in self.ingest.primary_key]  # fmt: skip
        return f"case {' '.join(checks)} end"

    def _no_key(self, row: str, name: str) -> str:
        known = [column for column in self.columns if column.name.lower() == name.lower()]
        if not known:
            return "true"
        return f"{row}.{quoted_name(name)} is null"

    def partition(self, row: str) -> str:
        """Spark SQL of a row's path-safe partition value; NULL only where a value to format is not a date or time."""
        by = self.ingest.partition_by
        if by is None:
            return "''"
        column = self.column(by.column, "partition")
        value = f"{row}.{quoted_name(column.name)}"
        text = f"cast({value} as string)"
        if by.format is not None:
            text = f"date_format({self._moment(column, value)}, '{by.format}')"
            if len(by.format) <= _SHORT_FORMAT:
                # Letters, digits and signs of the format, which paths accept; years after 9999 begin with a plus.
                return f"case when {value} is null then '{NULL_PARTITION}' else translate({text}, '+', '_') end"
        safe = f"regexp_replace({text}, '[^A-Za-z0-9_.-]', '_')"
        name = shortened_sql(safe, text)
        return f"case when {value} is null then '{NULL_PARTITION}' when {safe} = '' then '__empty__' else {name} end"

    @property
    def may_lack_partition(self) -> bool:
        """Whether `partition` may be NULL: a text need not hold a moment that the format can be applied to."""
        by = self.ingest.partition_by
        if by is None or by.format is None:
            return False
        return self.column(by.column, "partition").type not in _MOMENTS

    def _moment(self, column: Column, value: str) -> str:
        if column.type in _MOMENTS:
            return value
        if column.type == "string":
            return f"if({value} rlike '^[0-9][0-9][0-9][0-9]-[0-9]+-[0-9]', try_cast({value} as timestamp), null)"
        raise IngestError(
            f"partition column {column.name!r} of {self.table.table} is {column.type}, not a moment",
            location=self.table.declared_at,
            hint="declare its type under `columns:` (timestamp or date), or leave out `format`",
        )

    def orders(self, row: str) -> tuple[str, ...]:
        """Spark SQL of a row's `order_by` values, each a bigint or string in which NULL is smallest."""
        return tuple(self._order(self.column(name, "order_by"), row) for name in self.ingest.order_by)

    def _order(self, column: Column, row: str) -> str:
        value = f"{row}.{quoted_name(column.name)}"
        if column.type == "string":
            return f"coalesce({value}, '')"
        if column.type in _ORDER_AS_NUMBER:
            return f"coalesce({_ORDER_AS_NUMBER[column.type].format(value)}, {_SMALLEST})"
        raise IngestError(
            f"order_by column {column.name!r} of {self.table.table} is {column.type}",
            location=self.table.declared_at,
            hint="order by whole numbers, dates, timestamps or texts",
        )

    def order_types(self) -> tuple[str, ...]:
        """Types of the hidden order columns, except the position."""
        types = (self.column(name, "order_by").type for name in self.ingest.order_by)
        return tuple("string" if kind == "string" else "bigint" for kind in types)

    def is_key_only(self, row: str) -> str:
        """Spark SQL: whether a before image has only the key (the source does not log full rows)."""
        others = [f"{row}.{quoted_name(column.name)}" for column in self.beside_key]
        return f"coalesce({', '.join(f'cast({other} as string)' for other in others)}) is null" if others else "false"


def _key_part(value: str, kind: str) -> str:
    """Spark SQL of one value's part of a text key, in which `|` occurs only between parts.

    >>> _key_part("row.id", "bigint")
    "coalesce(cast(row.id as string), '%0')"
    """
    text = _key_text(value, kind)
    if kind not in HAS_NO_SIGNS and not decimal_parts(kind):
        for sign, escaped in KEY_ESCAPES.items():
            text = f"replace({text}, '{sign}', '{escaped}')"
    if kind in ("string", "binary"):
        text = f"if({text} = '', '{EMPTY_PART}', {text})"
    return f"coalesce({text}, '{_NULL_PART}')"


def _key_text(value: str, kind: str) -> str:
    """Spark SQL of a value's text in a key, which must not change when the column widens: rows would be duplicated.

    >>> _key_text("row.id", "bigint"), _key_text("row.n", "decimal(9,2)")
    ('cast(row.id as string)', "trim(trailing '.' from trim(trailing '0' from cast(row.n as string)))")
    """
    if kind == "binary":
        return f"base64({value})"
    text = f"cast({value} as string)"
    parts = decimal_parts(kind)
    return f"trim(trailing '.' from trim(trailing '0' from {text}))" if parts and parts[1] else text


def check_declaration(table: SourceTable) -> None:
    """Check what can be checked of a declaration before any event is read. Raises ProjectError."""
    ingest = table.ingest
    if ingest is None:
        return
    for column in table.columns:
        if column.type is not None and normal_type(column.type) is None:
            raise ProjectError(
                f"column {column.name!r} of {table.name!r} has the unknown type {column.type!r}",
                location=table.declared_at,
                hint=nearest(column.type, ["int", "bigint", "double", "string", "boolean", "date", "timestamp"])
                or "e.g. int, bigint, double, decimal(10,2), string, boolean, binary, date, timestamp",
            )
    by = ingest.partition_by
    if by is None:
        return
    if by.format is not None and not _PARTITION_FORMAT.fullmatch(by.format):
        hint = "use y, M, d, H, m, s with _ - or . between, e.g. yyyyMM"
        raise ProjectError(
            f"partition format {by.format!r} is not safe in a path", location=table.declared_at, hint=hint
        )
    if by.field.lower() == by.column.lower():
        hint = f"name the partition column, e.g. as: {by.column}_day; the source's own column stays as data"
        raise ProjectError(
            f"partition column of {table.name!r} needs its own name", location=table.declared_at, hint=hint
        )
