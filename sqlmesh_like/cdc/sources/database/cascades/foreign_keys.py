"""Foreign keys by which MariaDB and MySQL change rows that their log does not name. Owns reading them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlalchemy as sa

_SILENT = ("CASCADE", "SET NULL", "SET DEFAULT")
_KEYS = (
    "select k.table_name, k.constraint_name, k.column_name, k.referenced_table_schema, k.referenced_table_name,"
    " k.referenced_column_name, r.delete_rule, r.update_rule, c.collation_name"
    " from information_schema.key_column_usage k join information_schema.referential_constraints r"
    " on r.constraint_schema = k.constraint_schema and r.constraint_name = k.constraint_name"
    " and r.table_name = k.table_name join information_schema.columns c"
    " on c.table_schema = k.table_schema and c.table_name = k.table_name and c.column_name = k.column_name"
    " where k.table_schema = :database and r.constraint_schema = :database and c.table_schema = :database"
    " and k.referenced_table_name is not null order by k.table_name, k.constraint_name, k.ordinal_position"
)


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key of the table `child`. `database`: the one of `parent`; `collations`: of the own columns' texts."""

    child: str
    name: str
    columns: tuple[str, ...]
    database: str
    parent: str
    referenced: tuple[str, ...]
    on_delete: str
    on_update: str
    collations: tuple[str | None, ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether it changes rows without a word in the log."""
        return self.on_delete in _SILENT or self.on_update in _SILENT

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    def __str__(self) -> str:
        """What it does, in words."""
        rules = (("ON DELETE", self.on_delete), ("ON UPDATE", self.on_update))
        what = ", ".join(f"{event} {rule}" for event, rule in rules if rule in _SILENT)
        return f"{self.name} of {self.child} ({what})"


def key_from(entry: dict[str, object]) -> ForeignKey:
    """A key that `to_json` has written."""
    return ForeignKey(**{name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()})  # type: ignore[arg-type]


def foreign_keys(db: sa.Connection, database: str) -> tuple[ForeignKey, ...]:
    """The keys of a database's tables that change rows by themselves, as MariaDB and MySQL have them."""
    import sqlalchemy as sa

    found: dict[tuple[str, str], ForeignKey] = {}
    for row in db.execute(sa.text(_KEYS), {"database": database}):
        child, name, column, schema, parent, referenced, on_delete, on_update, collation = (
            None if each is None else str(each) for each in row
        )
        assert child and name and column and schema and parent and referenced and on_delete and on_update
        known = found.get((child, name))
        if known is None:
            known = ForeignKey(child, name, (), schema, parent, (), on_delete.upper(), on_update.upper())
        found[child, name] = replace(
            known,
            columns=(*known.columns, column.lower()),
            referenced=(*known.referenced, referenced.lower()),
            collations=(*known.collations, collation),
        )
    return tuple(key for key in found.values() if key.is_silent)


def is_read(key: ForeignKey, database: str, tables: Collection[str]) -> bool:
    """Whether the changes of the key's parent are in the log that is read."""
    return key.database.lower() == database.lower() and key.parent.lower() in {name.lower() for name in tables}


def descendants(keys: Iterable[ForeignKey], tables: Collection[str]) -> frozenset[str]:
    """All tables whose rows change with rows of these tables, over any number of levels, in lower case.

    >>> keys = [ForeignKey(c, "k", ("p",), "d", p, ("id",), "CASCADE", "RESTRICT") for c, p in ("ba", "cb", "ed")]
    >>> sorted(descendants(keys, ["A"]))
    ['b', 'c']
    """
    every, found = list(keys), set[str]()
    waiting = [name.lower() for name in tables]
    while waiting:
        parent = waiting.pop()
        children = {key.child.lower() for key in every if key.parent.lower() == parent} - found
        found |= children
        waiting += children
    return frozenset(found)


def unread_parents(keys: Iterable[ForeignKey], database: str, tables: Collection[str]) -> tuple[ForeignKey, ...]:
    """The keys of these tables whose parents are not among them."""
    own = {name.lower() for name in tables}
    return tuple(key for key in keys if key.child.lower() in own and not is_read(key, database, tables))


def unread_parent_text(key: ForeignKey, database: str) -> str:
    """What an unread parent means."""
    parent = key.parent if key.database.lower() == database.lower() else f"{key.database}.{key.parent}"
    return (
        f"foreign key {key} changes rows with those of {parent}, which this source does not read: the log does not"
        f" name them, so {key.child} in the lake keeps them as they were"
    )


def unread_parent_remedy(key: ForeignKey, database: str) -> str:
    """What to do about it."""
    own = f"--resnapshot {key.child} reads all of its rows again, sml verify --repair those that differ"
    return f"declare {key.parent} too; {own}" if key.database.lower() == database.lower() else own
