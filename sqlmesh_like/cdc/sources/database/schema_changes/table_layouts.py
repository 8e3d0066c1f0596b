"""PostgreSQL's tables as its catalog has them. Owns which of their changes are proven to keep all values in the log.

Its log has no statements. A row of `pg_attribute` is written anew by each statement about its column, and one of
`pg_class` names other files when the rows are: what neither says has not happened. `VACUUM FULL` and `TRUNCATE` change
only files. What the log has of a deleted row, or of a key that changes, is the replica identity; one that was there for
a while is known by what such a statement writes anew: the row of its table in `pg_class`, and that of its index in
`pg_index`, which else only the statement that made it has written.
https://www.postgresql.org/docs/current/catalog-pg-attribute.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlalchemy as sa

    from sqlmesh_like.cdc.sources.database.server import Table

# A value that old rows have by the catalog (`attmissingval`) is recorded by partitions, not by their table.
_LAYOUTS = """
select n.nspname || '.' || c.relname, c.oid::text, (
    select array_agg(f.relfilenode::text order by f.oid) from pg_class f
    where f.oid = c.oid or f.oid in (select relid from pg_partition_tree(c.oid))
), (
    select json_agg(json_build_object(
        'name', a.attname, 'number', a.attnum, 'written', a.xmin::text, 'type', a.atttypid::text,
        'modifier', a.atttypmod, 'default', pg_get_expr(d.adbin, d.adrelid), 'missing', a.attmissingval::text,
        'is_generated', a.attgenerated <> '',
        'is_filled', a.atthasmissing or exists (
            select from pg_partition_tree(c.oid) t join pg_attribute p on p.attrelid = t.relid
            where p.attname = a.attname and p.atthasmissing
        ),
        'labels', array(
            select e.oid || '=' || e.enumlabel from pg_enum e
            where e.enumtypid in (y.oid, y.typelem, y.typbasetype) order by e.oid
        )
    ) order by a.attnum)
    from pg_attribute a join pg_type y on y.oid = a.atttypid
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
), (
    select json_agg(json_build_object(
        'table', r.oid::text, 'written', r.xmin::text, 'is_full', r.relreplident = 'f',
        'key', (select k.oid::text from pg_constraint k where k.conrelid = r.oid and k.contype = 'p'),
        'indexes', array(
            select x.indexrelid || '=' || x.xmin from pg_index x
            where x.indrelid = r.oid and x.indisunique and x.indimmediate and x.indpred is null and not x.indisprimary
            and not exists (select from pg_attribute a where a.attrelid = x.indexrelid and a.xmin = x.xmin)
            order by x.indexrelid
        )
    ) order by r.oid)
    from pg_class r where r.oid = c.oid or r.oid in (select relid from pg_partition_tree(c.oid))
)
from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p')
and n.nspname || '.' || c.relname = any(:names)
"""
_TEXTS = frozenset({"25", "1043"})
"""`text` and `varchar`: the same bytes."""
_SIMPLE_TYPES = frozenset({"16", "20", "21", "23", "1700", *_TEXTS})
"""Types of which events state a default as it is: whole numbers, `boolean`, `numeric`, and texts."""
_SIMPLE_DEFAULT = re.compile(r"(true|false|-?\d+(?:\.\d+)?)|'([\w .:+-]+)'::(?:\w+|character varying)", re.ASCII)


@dataclass(frozen=True)
class LayoutColumn:
    """A column. `written`: the transaction of the last statement about it; `modifier`: a length or precision.

    `is_filled`: old rows have the value `missing` by the catalog; `labels`: those of an enumerated type, `id=label`.
    `is_generated`: PostgreSQL computes it, and it is not read.
    """

    name: str
    number: int
    written: str
    type: str
    modifier: int
    default: str | None
    missing: str | None
    is_filled: bool
    labels: tuple[str, ...]
    is_generated: bool = False


@dataclass(frozen=True)
class ReplicaIdentity:
    """What decides what the log has of a deleted row, of a table or partition. `written`: the transaction of the last
    statement about it; `key`: its constraint of a primary key, if any.

    `indexes`: those that could be the replica identity, and were written anew since they were made, each with the
    transaction.
    """

    table: str
    written: str
    is_full: bool
    key: str | None
    indexes: tuple[str, ...]


@dataclass(frozen=True)
class TableLayout:
    """The columns of a table at some moment, and the files that have its rows, of each partition.

    `former`: names of columns that it had before, which the lake may have with other values. `added`: names of columns
    that came since its rows were read as a whole. `identities`: the replica identities of the table and its partitions,
    empty where an earlier version has recorded none.
    """

    table: str
    files: tuple[str, ...]
    columns: tuple[LayoutColumn, ...]
    former: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    identities: tuple[ReplicaIdentity, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "former": sorted(self.former), "added": sorted(self.added)}

    def after(self, before: TableLayout) -> TableLayout:
        """This layout with what an earlier one knows of columns that were there."""
        names, former = {each.name for each in self.columns}, {each.name for each in before.columns}
        return replace(self, former=before.former | (former - names), added=(before.added | (names - former)) & names)


def layout_from(entry: Mapping[str, object]) -> TableLayout:
    """A layout that `to_json` has written."""
    known = json.loads(json.dumps(entry))
    columns = tuple(LayoutColumn(**{**each, "labels": tuple(each["labels"])}) for each in known["columns"])
    identities = tuple(
        ReplicaIdentity(**{**each, "indexes": tuple(each["indexes"])}) for each in known.get("identities", ())
    )
    former, added = frozenset(known["former"]), frozenset(known["added"])
    return TableLayout(known["table"], tuple(known["files"]), columns, former, added, identities)


def table_layouts(db: sa.Connection, tables: Iterable[Table]) -> dict[str, TableLayout]:
    """The layout of each of these tables now, by its name in lower case."""
    import sqlalchemy as sa

    rows = db.execute(sa.text(_LAYOUTS), {"names": sorted(map(str, tables))}).all()
    return {
        name.lower(): layout_from(
            {"table": table, "files": files, "columns": columns or [], "former": [], "added": [], "identities": of_rows}
        )
        for name, table, files, columns, of_rows in rows
    }


def why_values_changed(
    before: TableLayout, now: TableLayout, declared: frozenset[str] | None = None, *, needs_full: bool = False
) -> str | None:
    """Why old rows of a table may have other values than their events said; None where they have not.

    `declared`: columns that the lake has whatever events have; None: where it does not give rows the default that
    events state for a new column. `needs_full`: its key in the lake has columns that the log of a deleted row has by
    `REPLICA IDENTITY FULL` alone.
    """
    if before.table != now.table:
        return "it was dropped and created again"
    is_rewritten = not set(before.files) <= set(now.files)
    known = {column.name: column for column in before.columns}
    numbers = {column.number for column in before.columns}
    for column in now.columns:
        former = known.get(column.name)
        if column.is_generated:
            continue
        if former is not None and former.is_generated:
            return f"{column.name} is no longer generated"
        if former is None and column.number in numbers:
            return f"a column was renamed to {column.name}"
        if former is None or former.number != column.number:
            why = _why_added(before, column, declared, is_rewritten=is_rewritten)
        else:
            why = _why_changed(before, former, column, is_rewritten=is_rewritten)
        if why is not None:
            return why
    return _why_unknown(before, now, needs_full=needs_full)


def _why_unknown(before: TableLayout, now: TableLayout, *, needs_full: bool) -> str | None:
    """Why the log may lack keys of rows that were deleted, or left by an update of their key."""
    known = {each.table: each for each in before.identities}
    for own in now.identities:
        former = known.get(own.table)
        if former is None or (former.is_full and own.is_full and former.written == own.written):
            continue
        if former.key is not None and former.key != own.key:
            return "its primary key was replaced"
        if needs_full and former.written != own.written:
            return "its replica identity may have been another one than FULL"
        if former.written != own.written and not set(own.indexes) <= set(former.indexes):
            return "its replica identity was changed"
    return None


def _why_added(
    before: TableLayout, column: LayoutColumn, declared: frozenset[str] | None, *, is_rewritten: bool
) -> str | None:
    if is_rewritten:
        return f"{column.name} was added, and the rows were written anew"
    names = {*before.former, *(each.name for each in before.columns)}
    if column.name.lower() in {name.lower() for name in names}:
        return f"{column.name} was added, and there was a column of this name before"
    if not column.is_filled and column.default is None:
        return None
    is_left = declared is not None and column.name.lower() not in declared and _states_default(column)
    return None if is_left else f"{column.name} was added with a default"


def _why_changed(before: TableLayout, former: LayoutColumn, column: LayoutColumn, *, is_rewritten: bool) -> str | None:
    if not set(former.labels) <= set(column.labels):
        return f"the type of {column.name} has other labels"
    if former.default != column.default and column.name in before.added:
        return f"{column.name} was added, and has another default since"
    if former.written == column.written:
        return None
    if is_rewritten:
        return f"{column.name} was changed, and the rows were written anew"
    if former.type != column.type and not {former.type, column.type} <= _TEXTS:
        return f"{column.name} has another type"
    return None


def _states_default(column: LayoutColumn) -> bool:
    """Whether the default is a plain value, and the one that old rows have."""
    match = _SIMPLE_DEFAULT.fullmatch(column.default or "")
    if match is None or column.type not in _SIMPLE_TYPES or column.missing is None:
        return False
    value = {"true": "t", "false": "f"}.get(match[1], match[1]) or match[2]
    return column.missing in (f"{{{value}}}", f'{{"{value}"}}')
