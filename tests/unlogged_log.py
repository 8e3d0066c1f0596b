"""A source table of few keys that rows come to and leave again, and its log in formats that leave values out.

Every row is known by `who`, every change by `v`, and both are always logged; `text` says whose it is and changes now
and then. So a row of a lake is right only if the source had exactly this row at some time, and which values an event
leaves out decides nothing about it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PLACEHOLDER = "__debezium_unavailable_value"
KEYS = 4

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """A change of the source. `old` and `new`: its rows; neither: a truncate. `unlogged`: the log lacks `text`.

    `before`: what the log has of the old row: all of it, its key, or nothing.
    """

    old: Row | None
    new: Row | None
    unlogged: bool = False
    before: str = "all"

    @property
    def is_move(self) -> bool:
        return self.old is not None and self.new is not None and self.old["id"] != self.new["id"]

    @property
    def is_unknown(self) -> bool:
        """Whether the log has no way to tell the text of the row that comes to a key."""
        return self.unlogged and (self.old is None or self.is_move)

    @property
    def keys(self) -> set[int]:
        return {row["id"] for row in (self.old, self.new) if row is not None}


@dataclass
class SourceTable:
    """`history`: every row that the table has ever had, with the number of the change that made it."""

    dice: random.Random
    rows: dict[int, Row] = field(default_factory=dict)
    history: set[tuple[int, int, int, str]] = field(default_factory=set)
    changes: int = 0
    born: int = 0

    def next(self) -> list[Change]:
        """A change; some sources log that of a key as a delete and an insert."""
        self.changes += 1
        free = [key for key in range(KEYS) if key not in self.rows]
        kinds = ["insert"] * bool(free) + ["update", "update", "move", "move", "delete"] * bool(self.rows)
        kind = self.dice.choice(kinds) if self.dice.random() > 0.03 else "truncate"
        if kind == "truncate":
            self.rows.clear()
            return [Change(None, None)]
        if kind == "insert":
            self.born += 1
            return [Change(None, self._put({"id": self.dice.choice(free), "who": self.born}, new_text=True))]
        old = self.dice.choice(list(self.rows.values()))
        if kind == "delete" or (kind == "move" and not free):
            del self.rows[old["id"]]
            return [Change(old, None)]
        new_text = self.dice.random() < 0.4
        before = self.dice.choice(("all", "key"))
        if kind == "update":
            return [Change(old, self._put(old, new_text=new_text), not new_text, self.dice.choice((before, "none")))]
        del self.rows[old["id"]]
        new = self._put({**old, "id": self.dice.choice(free)}, new_text=new_text)
        if self.dice.random() < 0.3:
            return [Change(old, None), Change(None, new, not new_text)]
        return [Change(old, new, not new_text and self.dice.random() < 0.6, before)]

    def _put(self, row: Row, *, new_text: bool) -> Row:
        text = f"of {row['who']} since {self.changes}" if new_text else row["text"]
        new = {"id": row["id"], "who": row["who"], "v": self.changes, "text": text}
        self.rows[new["id"]] = new
        self.history.add(as_tuple(new))
        return new


def as_tuple(row: Row) -> tuple[int, int, int, str]:
    return int(row["id"]), int(row["who"]), int(row["v"]), row["text"]


def _new(change: Change, *, marked: bool) -> dict[str, Any] | None:
    if change.new is None or not change.unlogged:
        return None if change.new is None else dict(change.new)
    kept = {name: value for name, value in change.new.items() if name != "text"}
    return {**kept, "text": PLACEHOLDER} if marked else kept


def _old(change: Change) -> dict[str, Any] | None:
    if change.old is None or change.before == "none":
        return None
    return dict(change.old) if change.before == "all" else {"id": change.old["id"]}


def _op(change: Change, ops: Sequence[str]) -> str:
    """The name of what the change does, of those of insert, update, delete and truncate."""
    if change.new is None:
        return ops[3] if change.old is None else ops[2]
    return ops[0] if change.old is None else ops[1]


def _debezium(change: Change) -> object:
    body = {"op": _op(change, "cudt"), "before": _old(change), "after": _new(change, marked=True)}
    return {**body, "source": {"db": "db", "table": "t"}, "ts_ms": 1}


def _flat(change: Change) -> object:
    row = _new(change, marked=True) or _old(change) or {}
    return {**row, "__op": _op(change, "cudt"), "__table": "t", "__db": "db"}


def _flat_without_op(change: Change) -> object:
    row = _new(change, marked=True) or _old(change) or {}
    return {**row, "__deleted": str(change.new is None).lower(), "__table": "t", "__db": "db"}


def _partial(change: Change) -> object:
    body = {"op": _op(change, "cudt"), "before": _old(change), "after": _new(change, marked=change.old is None)}
    return {**body, "source": {"db": "db", "table": "t"}, "ts_ms": 1}


def _ogg(change: Change) -> object:
    return {
        "table": "db.t",
        "op_type": _op(change, "IUDT"),
        "before": _old(change),
        "after": _new(change, marked=False),
    }


def _dms(change: Change) -> object:
    operation = _op(change, ("insert", "update", "delete", "truncate-table"))
    metadata = {"operation": operation, "record-type": "data", "schema-name": "db", "table-name": "t"}
    row = _new(change, marked=False) if change.new is not None else _old(change)
    return {"data": row, "before-image": _old(change), "metadata": metadata}


def _overlay(change: Change) -> dict[str, Any]:
    """What a change replaces, of the columns that are logged."""
    new, old = _new(change, marked=False) or {}, _old(change) or {}
    return {name: old[name] for name in new if name in old and old[name] != new[name]}


def _maxwell(change: Change) -> object:
    kind = _op(change, ("insert", "update", "delete", "table-drop"))
    row = _new(change, marked=False) if change.new is not None else _old(change)
    return {"type": kind, "database": "db", "table": "t", "data": row, "old": _overlay(change)}


def _canal(change: Change) -> object:
    kind = _op(change, ("INSERT", "UPDATE", "DELETE", "TRUNCATE"))
    row = _new(change, marked=False) if change.new is not None else _old(change)
    types = {"id": "int", "who": "int", "v": "int", "text": "text"}
    texts = {name: str(value) for name, value in (row or {}).items()}
    old = {name: str(value) for name, value in _overlay(change).items()}
    rows = {"data": None} if row is None else {"data": [texts], "old": [old], "mysqlType": types}
    return {"type": kind, "isDdl": change.keys == set(), "database": "db", "table": "t", **rows}


@dataclass(frozen=True)
class Format:
    """How a format writes a change. `moves`: it has updates of keys; `truncates`, `inserts`: it says so.

    `updates`: what the table declares. Formats that mark values leave them out of inserts too.
    """

    name: str
    event: Callable[[Change], object]
    updates: str = "full"
    moves: bool = True
    truncates: bool = True
    marks: bool = True
    inserts: bool = True


FORMATS: Mapping[str, Format] = {
    "debezium": Format("debezium", _debezium),
    "debezium, partial": Format("debezium", _partial, "partial"),
    "flink_cdc": Format("flink_cdc", _debezium),
    "debezium_flat": Format("debezium_flat", _flat, moves=False, truncates=False),
    "debezium_flat without op": Format("debezium_flat", _flat_without_op, moves=False, truncates=False, inserts=False),
    "ogg": Format("ogg", _ogg, "partial", marks=False),
    "dms": Format("dms", _dms, "partial", marks=False),
    "maxwell": Format("maxwell", _maxwell, "partial", truncates=False, marks=False),
    "canal": Format("canal", _canal, "partial", marks=False),
}


def changes_for(form: Format, source: SourceTable, count: int) -> list[Change]:
    """So many changes of the source, as a log of this format can have them."""
    made: list[Change] = []
    while len(made) < count:
        before = dict(source.rows)
        for change in source.next():
            if not change.keys and not form.truncates:
                made += [Change(row, None) for row in before.values()]
            elif change.is_move and not form.moves:
                made += [Change(change.old, None), Change(None, change.new, change.unlogged)]
            else:
                made.append(change)
    return [each if form.marks or each.old is not None else Change(None, each.new, before=each.before) for each in made]
