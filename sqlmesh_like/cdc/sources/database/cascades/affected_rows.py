"""Which rows foreign keys may have changed, through all levels. Owns the rules; where rows are looked for is not here.

A row is found by what was known of it before a key changed it for the first time. Which of several keys changed it, and
what it has now, does not matter: all of it is read again, so too many rows do no harm. That is why every value counts
as deleted and changed alike, and a row that some key could have deleted passes that on to the rows that refer to it.
What cannot be told from known values (a key changed them, and further keys followed) is a whole table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlmesh_like.cdc.sources.database.cascades.firing import Fired, RawValues
from sqlmesh_like.cdc.sources.database.cascades.foreign_keys import ForeignKey
from sqlmesh_like.cdc.sources.database.cascades.row_images import NotByKeyError, RowImage, Texts
from sqlmesh_like.cdc.sources.database.comparison.side import Key
from sqlmesh_like.errors import SmlError

MOST_KEYS = 10_000
"""Rows of a table that are read again by key."""


class KnownRows(Protocol):
    """The rows of one table, as `RowImages` has them."""

    @property
    def key_names(self) -> tuple[str, ...]: ...
    def texts_of(self, key: ForeignKey, values: RawValues) -> Texts | None: ...
    def having(self, key: ForeignKey, wanted: Collection[Texts]) -> Iterable[RowImage]: ...


@dataclass
class AffectedRows:
    """The keys of rows that may have changed, by table in lower case; `whole`: tables of which any may, and why."""

    keys: dict[str, set[Key]] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)


@dataclass
class _Pending:
    """Values of a key that are still to be followed."""

    values: set[Texts] = field(default_factory=set)
    has_updates: bool = False


def affected_rows(
    fired: Mapping[ForeignKey, Fired], keys: Sequence[ForeignKey], tables: Mapping[str, KnownRows | str]
) -> AffectedRows:
    """Follow the keys that have acted. `tables`: by name in lower case, or why their rows are not known by key.

    Tables that are not there are not in the lake. Raises SmlError only where the machine fails.
    """
    walk = _Walk(keys, tables)
    for key, what in fired.items():
        walk.begin(key, what)
    walk.run()
    return walk.affected


@dataclass
class _Walk:
    every: Sequence[ForeignKey]
    tables: Mapping[str, KnownRows | str]
    affected: AffectedRows = field(default_factory=AffectedRows)
    pending: dict[ForeignKey, _Pending] = field(default_factory=dict)
    done: dict[ForeignKey, set[Texts]] = field(default_factory=dict)
    seen: set[tuple[str, RowImage]] = field(default_factory=set)

    def begin(self, key: ForeignKey, fired: Fired) -> None:
        """Note what events say."""
        rows = self._rows_by_key(key.child)
        if rows is None:
            return
        try:
            texts = {rows.texts_of(key, values) for values in fired.values}
        except NotByKeyError as reason:
            self._read_whole(key.child, str(reason))
            return
        own = self.pending.setdefault(key, _Pending())
        own.values |= {each for each in texts if each is not None}
        own.has_updates = own.has_updates or fired.has_updates

    def run(self) -> None:
        """Follow all keys until no further row is found."""
        while self.pending:
            key, what = self.pending.popitem()
            rows = self._rows_by_key(key.child)
            if rows is None:
                continue
            try:
                self._follow(key, what, rows)
            except (NotByKeyError, SmlError) as reason:
                self._read_whole(key.child, str(reason))

    def _rows_by_key(self, table: str) -> KnownRows | None:
        """The rows of a table that is not read as a whole anyway."""
        rows = self.tables.get(table.lower())
        if isinstance(rows, str):
            self._read_whole(table, rows)
            return None
        return None if table.lower() in self.affected.whole else rows

    def _follow(self, key: ForeignKey, what: _Pending, rows: KnownRows) -> None:
        child, done = key.child.lower(), self.done.setdefault(key, set())
        values = what.values - done
        done |= values
        images = {image for image in rows.having(key, values) if (child, image) not in self.seen} if values else set()
        self.seen |= {(child, image) for image in images}
        own = self.affected.keys.setdefault(child, set())
        own |= {image.key for image in images}
        if None in {text for image in images for text in image.key}:
            raise NotByKeyError("a row has no primary key")
        if len(own) > MOST_KEYS:
            raise NotByKeyError(f"more than {MOST_KEYS} of its rows may have changed")
        if images or (what.has_updates and not what.values):
            self._check_key(key, what, rows)
            self._pass_on(key, what, images, rows)

    def _incoming(self, key: ForeignKey) -> list[ForeignKey]:
        """All keys of the table that has this one."""
        return [each for each in self.every if each.child.lower() == key.child.lower()]

    def _unknown(self, key: ForeignKey, what: _Pending) -> set[str]:
        """The columns of which rows may have values that are not known."""
        by_updates = (each for each in self._incoming(key) if what.has_updates and each.on_update == "CASCADE")
        return {name for each in by_updates for name in each.columns}

    def _check_key(self, key: ForeignKey, what: _Pending, rows: KnownRows) -> None:
        """A primary key that a foreign key has changed is not known."""
        changed = self._unknown(key, what)
        if any(rule.startswith("SET") for rule in (key.on_delete, key.on_update)):
            changed |= set(key.columns)
        if not changed.isdisjoint(rows.key_names):
            raise NotByKeyError(f"foreign key {key} changes its primary key")

    def _pass_on(self, key: ForeignKey, what: _Pending, images: Collection[RowImage], rows: KnownRows) -> None:
        """Rows that may have gone, or changed, are parents of others."""
        incoming, unknown = self._incoming(key), self._unknown(key, what)
        may_vanish = any(each.on_delete == "CASCADE" for each in incoming)
        changed = {name for each in incoming for name in each.columns}
        is_ahead = any(image.is_ahead for image in images)
        for further in self.every:
            if further.parent.lower() != key.child.lower() or not (may_vanish or changed & set(further.referenced)):
                continue
            if unknown & set(further.referenced) or (is_ahead and not set(further.referenced) <= set(rows.key_names)):
                self._read_whole(further.child, f"foreign key {further} follows what {key} has changed")
                continue
            own = self.pending.setdefault(further, _Pending())
            texts = {image.texts(further.referenced) for image in images}
            own.values |= {each for each in texts if each is not None}

    def _read_whole(self, table: str, reason: str) -> None:
        """Read a table as a whole: which of its rows change is not known, and so which rows refer to them."""
        waiting = [(table.lower(), reason)]
        while waiting:
            name, why = waiting.pop()
            if name in self.affected.whole or name not in self.tables:
                continue
            self.affected.whole[name] = why
            self.affected.keys.pop(name, None)
            waiting += [
                (each.child.lower(), f"its rows follow those of {name}, which is read as a whole")
                for each in self.every
                if each.parent.lower() == name
            ]
