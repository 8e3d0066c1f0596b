"""Foreign keys by which MariaDB and MySQL change rows that their log does not name. Owns reading them."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlalchemy as sa

_SILENT = ("CASCADE", "SET NULL", "SET DEFAULT")
_COLLATIONS = (
    "select table_name, column_name, collation_name from information_schema.columns"
    " where table_schema = :database and collation_name is not null"
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


def foreign_keys(db: sa.Connection, database: str, tables: Collection[str]) -> tuple[ForeignKey, ...]:
    """The keys of some of a database's tables that change rows by themselves, as MariaDB and MySQL have them.

    From what `SHOW CREATE TABLE` says: MariaDB hides `information_schema.referential_constraints` from a user who has
    no right but SELECT.
    """
    import sqlalchemy as sa

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sa.exc.SAWarning)  # of a type that it does not know
        described = sa.inspect(db).get_multi_foreign_keys(filter_names=sorted(tables)) if tables else {}
    keys = [
        ForeignKey(
            child,
            str(each["name"]),
            tuple(name.lower() for name in each["constrained_columns"]),
            each["referred_schema"] or database,
            each["referred_table"],
            tuple(name.lower() for name in each["referred_columns"]),
            str(each.get("options", {}).get("ondelete", "RESTRICT")).upper(),
            str(each.get("options", {}).get("onupdate", "RESTRICT")).upper(),
        )
        for (_, child), listed in described.items()
        for each in listed
    ]
    silent = [key for key in keys if key.is_silent]
    rows = db.execute(sa.text(_COLLATIONS), {"database": database}).all() if silent else ()
    known = {(str(table).lower(), str(column).lower()): str(collation) for table, column, collation in rows}
    return tuple(
        replace(key, collations=tuple(known.get((key.child.lower(), name)) for name in key.columns)) for key in silent
    )


def is_read(key: ForeignKey, database: str, tables: Collection[str]) -> bool:
    """Whether the changes of the key's parent are in the log that is read."""
    return key.database.lower() == database.lower() and key.parent.lower() in {name.lower() for name in tables}


def descendants(keys: Iterable[ForeignKey], tables: Collection[str]) -> frozenset[str]:
    """All tables whose rows change with rows of these tables, over any number of levels, in lower case.

    >>> keys = [ForeignKey(c, "k", ("p",), "d", p, ("id",), "CASCADE", "RESTRICT") for c, p in ("ba", "cb", "ed")]
    >>> sorted(descendants(keys, ["A"]))
    ['b', 'c']
    """
    every, result = list(keys), set[str]()
    waiting = [name.lower() for name in tables]
    while waiting:
        parent = waiting.pop()
        children = {key.child.lower() for key in every if key.parent.lower() == parent} - result
        result |= children
        waiting += children
    return frozenset(result)


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
