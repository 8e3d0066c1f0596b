"""Random tables and batches of changes to them: few keys, few values, NULL among them.

Names are chosen to collide: with aliases that the compiler generates, with each other in another case, with keywords.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.properties.case import Batch, Row

NAMES = ("a", "x", "r", "n", "g", "f", "b", "groups", "old", "changed", "d", "o", "this", "e", "k", "select", "Ü 1")
VALUES: dict[str, Sequence[object]] = {
    "int": (None, -1, 0, 1, 2),
    "decimal(10,2)": (None, Decimal("0.00"), Decimal("-1.00"), Decimal("1.00"), Decimal("0.01"), Decimal("2.50")),
    "string": (None, "", "x", "X", "a,b", "N"),
    "date": (None, date(2024, 1, 1), date(2024, 2, 29), date(2023, 12, 31)),
    "boolean": (None, True, False),
    "double": (None, 0.0, -0.0, float("nan"), 1.5),
    "timestamp": (None, datetime(2024, 1, 1), datetime(2024, 1, 1, 12, 30), datetime(2023, 12, 31, 23, 59)),
}
_OTHER_TYPES = ("date", "decimal(10,2)", "boolean", "string", "double", "timestamp")
KEYS = ("1", "2", "3", "4", "5", "N", "")
_KINDS = ("put", "put", "change", "change", "delete", "rekey", "rewrite", "back", "late")

Columns = Sequence[tuple[str, str]]


def names(count: int) -> SearchStrategy[list[str]]:
    """Different names, also where case is ignored."""
    return st.lists(st.sampled_from(NAMES), min_size=count, max_size=count, unique=True)


@st.composite
def tables(draw: DrawFn) -> Columns:
    """Two integers, a text, and up to two columns of other types."""
    more = draw(st.lists(st.sampled_from(_OTHER_TYPES), max_size=2))
    types = ["int", "int", "string", *more]
    return tuple(zip(draw(names(len(types))), types, strict=True))


@st.composite
def batches(draw: DrawFn, schemas: dict[str, Columns]) -> list[Batch]:
    """A start and 3 to 6 batches; each changes every table now and then, so several change at once."""
    drawn = {table: _rows(columns) for table, columns in schemas.items()}
    start: dict[str, dict[str, Row]] = {
        table: draw(st.dictionaries(st.sampled_from(KEYS), rows, min_size=3, max_size=6))
        for table, rows in drawn.items()
    }
    path: list[Batch] = [start]
    states = [start]
    for _ in range(draw(st.sampled_from([3, 3, 3, 4, 4, 5, 6]))):
        batch = {table: draw(_batch([state[table] for state in states], rows)) for table, rows in drawn.items()}
        path.append(batch)
        states.append({table: _applied(states[-1][table], batch[table]) for table in drawn})
    return path


def _rows(columns: Columns) -> SearchStrategy[Row]:
    return st.tuples(*[st.sampled_from(VALUES[type_]) for _, type_ in columns])


def _applied(rows: dict[str, Row], batch: dict[str, Row | None]) -> dict[str, Row]:
    return {key: row for key, row in {**rows, **batch}.items() if row is not None}


@st.composite
def _batch(draw: DrawFn, states: Sequence[dict[str, Row]], rows: SearchStrategy[Row]) -> dict[str, Row | None]:
    """Writes by row key: new rows, changed ones, deletes, rows under another key, rows as they were once or are."""
    batch: dict[str, Row | None] = {}
    for kind in draw(st.lists(st.sampled_from(_KINDS), min_size=1, max_size=4)):
        now = _applied(states[-1], batch)
        key = draw(st.sampled_from(sorted(now) or KEYS)) if kind not in ("put", "back") else draw(st.sampled_from(KEYS))
        row = now.get(key)
        if kind == "put":
            batch[key] = draw(rows)
        elif kind in ("back", "late"):
            past: list[Row | None] = [state[key] for state in states if key in state]
            batch[key] = draw(st.sampled_from(past or [None]))
        elif row is not None:
            batch |= _changed(draw, kind, key, row, rows)
    return batch


def _changed(draw: DrawFn, kind: str, key: str, row: Row, rows: SearchStrategy[Row]) -> dict[str, Row | None]:
    if kind == "delete":
        return {key: None}
    if kind == "rekey":
        return {key: None, draw(st.sampled_from(KEYS)): row}
    if kind == "change":
        position = draw(st.integers(0, len(row) - 1))
        return {key: (*row[:position], draw(rows)[position], *row[position + 1 :])}
    return {key: row}
