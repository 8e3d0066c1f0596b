"""A table on its way out of the lake, made by hand: exports as the engine gives them, and what must stand there after.

Shared by the tests of every destination. Owns no assertion but those of `publish_rounds` and `publish_killed`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlalchemy import event

from sqlmesh_like.publish.database import DatabaseStore
from sqlmesh_like.publish.store import DELETED_COLUMN, KEY_COLUMN, Published, Store, published_columns
from sqlmesh_like.run.ports import Export

COLUMNS = pa.schema(
    [
        *(("id", pa.int32()), ("name", pa.string()), ("total", pa.decimal128(20, 4)), ("share", pa.float64())),
        *(("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("paid", pa.bool_()), ("n", pa.int64())),
        *(("raw", pa.binary()), ("tags", pa.list_(pa.string()))),
    ]
)
Row = tuple[object, ...]


def row(number: int, name: str | None = "x") -> Row:
    """A row with something in every column that some database does not take as it is."""
    at = datetime(2024, 2, 29, 23, 59, 59, 123456 + number, tzinfo=UTC)
    total = Decimal(f"{10**15 + number}.0625")
    return (
        number,
        name,
        total,
        number / 7,
        date(1, 1, 1),
        at,
        number % 2 == 0,
        2**62 + number,
        b"\x00\xff",
        ["a", "ü"],
    )


NULLS: Row = (None,) * len(COLUMNS)


@dataclass
class Table:
    """The model's table as it is and as it was at each of its commits, by row key."""

    schema: Any = COLUMNS
    rows: dict[str, Row] = field(default_factory=dict)
    commits: list[Mapping[str, Row]] = field(default_factory=list)
    uri: str = "/lake/dws/t"

    def commit(self, changed: Mapping[str, Row | None]) -> None:
        """The next commit: rows that are new or other ones, None for those that went."""
        for key, value in changed.items():
            if value is None:
                del self.rows[key]
            else:
                self.rows[key] = value
        self.commits.append(dict(self.rows))

    @property
    def shown(self) -> Published:
        return Published("model.shop.t", self.uri, str(len(self.commits)), published_columns(self.schema))

    def whole(self) -> Export:
        return self._export(True, [(key, value, False) for key, value in self.rows.items()])

    def since(self, commit: int) -> Export:
        """The change between a commit (counted from 1) and now."""
        before = self.commits[commit - 1]
        new = [(key, value, False) for key, value in self.rows.items() if before.get(key) != value]
        return self._export(False, [*new, *((k, v, True) for k, v in before.items() if k not in self.rows)])

    def _export(self, whole: bool, rows: Sequence[tuple[str, Row, bool]]) -> Export:
        schema = self.schema.append(pa.field(KEY_COLUMN, pa.string())).append(pa.field(DELETED_COLUMN, pa.bool_()))
        lists = [(*value, hashlib.sha256(key.encode()).hexdigest()[:32], gone) for key, value, gone in rows]

        def batches() -> Iterator[Any]:
            for start in range(0, len(lists), 2):  # several of them
                part = [dict(zip(schema.names, each, strict=True)) for each in lists[start : start + 2]]
                yield pa.RecordBatch.from_pylist(part, schema=schema)

        return Export(whole, schema, batches)


@dataclass(frozen=True)
class Place:
    """A destination under test: how it is opened, and its rows as its own reader sees them, without the key."""

    open: Callable[[], Store]
    rows: Callable[[], list[Row]]
    spell: Callable[[Row], Row] = lambda row: row

    def expect(self, table: Table) -> None:
        """What stands there is the model's table, row by row."""
        rows, wanted = sorted(self.rows(), key=repr), sorted(map(self.spell, table.rows.values()), key=repr)
        assert rows == wanted


def send(store: Store, table: Table) -> None:
    """Publish as `LakePublisher` decides it: the change where the last one is known, else everything."""
    old = store.read_published("t")
    if old is not None and old.frontier == table.shown.frontier and old.uri == table.uri:
        return
    follows = old is not None and old.frontier and old.uri == table.uri and old.columns == table.shown.columns
    export = table.since(int(old.frontier)) if old and old.frontier and follows else table.whole()
    store.write("t", export, old, table.shown)


def rounds() -> Iterator[Callable[[Table], None]]:
    """What happens to a table, one commit after the other, rows that look alike and columns that change included."""
    wider = COLUMNS.append(pa.field("extra", pa.string()))
    other = pa.schema([("id", pa.string()), ("name", pa.string()), ("more", pa.int32())])

    def widen(table: Table) -> None:
        table.schema = wider
        table.rows = {key: (*value, "new") for key, value in table.rows.items()}
        table.commit({"g": (*row(8), None)})

    def change(table: Table) -> None:
        table.schema = other
        table.rows = {}
        table.commit({key: (key, "é😀", 1) for key in "abc"})

    yield lambda table: table.commit({"a": row(1), "a2": row(1), "b": row(2), "c": row(3, None), "e": NULLS})
    yield lambda table: table.commit(
        {"a": None, "b": row(2, 'it\'s; -- "other" %s :x'), "d": row(4, "A"), "f": row(4, "a ")}
    )
    yield lambda table: table.commit({})
    yield lambda table: table.commit({"a2": None, "a": row(1), "f": None})
    yield widen
    yield lambda table: table.commit({"b": None, "h": (*row(9), "x" * 70_000)})
    yield change
    yield lambda table: table.commit({"a": None, "b": ("b", "changed", None)})
    yield lambda table: table.commit(dict.fromkeys("bc"))


class Killed(BaseException):
    """A process that is no more: nobody handles it."""


def publish_killed(place: Place, step: int = 1) -> int:
    """Publish each round, killed before each `step`-th statement in turn before; how often it died.

    A dead publication leaves the old rows or the new ones, and the next one makes it right. For databases.
    """
    died = 0

    def kill_all(table: Table) -> None:
        nonlocal died
        old = sorted(place.rows(), key=repr) if len(table.commits) > 1 else None
        new = sorted(map(place.spell, table.rows.values()), key=repr)
        for number in range(1 + len(table.commits) % step, 200, step):
            store = place.open()
            assert isinstance(store, DatabaseStore)
            event.listen(store._engine, "before_cursor_execute", _killer(number))
            try:
                send(store, table)
            except Killed:
                died += 1
            else:
                break
            if old is not None:
                assert sorted(place.rows(), key=repr) in (old, new), number

    publish_rounds(place, kill_all)
    return died


def _killer(number: int) -> Callable[..., None]:
    count = 0

    def kill(*_: object) -> None:
        nonlocal count
        count += 1
        if count == number:
            raise Killed

    return kill


def publish_rounds(place: Place, at_each: Callable[[Table], None] | None = None) -> None:
    """The place shows the table after each round; `at_each` is called before the round is published."""
    table = Table()
    for happen in rounds():
        happen(table)
        if at_each is not None:
            at_each(table)
        store = place.open()
        send(store, table)
        store.close()
        place.expect(table)
        assert store.read_published("t") == table.shown
