"""Expected rows compared with actual rows, as multisets. Owns pairing them and how a difference is shown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

DiffRow = tuple[object, ...]
_SIGNIFICANT = 9
"""Doubles are compared to this many digits: the last ones depend on the order of addition."""
_SHOWN = 20


@dataclass(frozen=True)
class RowDiff:
    """How rows differ: `changed` pairs an expected row with the most similar unexpected one."""

    columns: tuple[str, ...]
    changed: tuple[tuple[DiffRow, DiffRow], ...]
    missing: tuple[DiffRow, ...]
    surplus: tuple[DiffRow, ...]
    equal: int

    @property
    def total(self) -> int:
        return len(self.changed) + len(self.missing) + len(self.surplus)

    def text(self, flat: Callable[[object], str] = str) -> str:
        """A text table: `~` a row that differs (`expected → actual`), `-` expected but missing, `+` not expected."""
        lines = [self._summary(), *_table(self._display_lines(flat))]
        hidden = self.total - _SHOWN
        return "\n".join([*lines, f"… and {hidden} more"] if hidden > 0 else lines)

    def _summary(self) -> str:
        counts = (
            (len(self.changed), "differ (expected → actual)"),
            (len(self.missing), "missing"),
            (len(self.surplus), "not expected"),
            (self.equal, "as expected"),
        )
        return "rows: " + ", ".join(f"{count} {word}" for count, word in counts if count)

    def _display_lines(self, flat: Callable[[object], str]) -> list[list[str]]:
        def cell(value: object) -> str:
            return "NULL" if value is None else flat(value).replace("\n", "\\n")

        lines = [
            ["~", *(cell(a) if _same(e, a) else f"{cell(e)} → {cell(a)}" for e, a in zip(*pair, strict=True))]
            for pair in self.changed
        ]
        lines += [["-", *map(cell, row)] for row in self.missing]
        lines += [["+", *map(cell, row)] for row in self.surplus]
        return [["", *self.columns], *lines[:_SHOWN]]


def compare(columns: Sequence[str], expected: Iterable[DiffRow], actual: Iterable[DiffRow]) -> RowDiff | None:
    """The difference of two multisets of rows; None if they are equal."""
    wanted, remaining = list(expected), list(actual)
    unmatched_expected, unmatched_actual = _unmatched_rows(wanted, remaining), _unmatched_rows(remaining, wanted)
    if not unmatched_expected and not unmatched_actual:
        return None
    equal = len(wanted) - len(unmatched_expected)
    changed: list[tuple[DiffRow, DiffRow]] = []
    missing: list[DiffRow] = []
    for row in unmatched_expected:
        nearest = max(unmatched_actual, key=lambda other: _alike(row, other), default=None)
        if nearest is None or not _alike(row, nearest):
            missing.append(row)
        else:
            unmatched_actual.remove(nearest)
            changed.append((row, nearest))
    return RowDiff(tuple(columns), tuple(changed), tuple(missing), tuple(unmatched_actual), equal)


def _unmatched_rows(rows: Iterable[DiffRow], others: Iterable[DiffRow]) -> list[DiffRow]:
    left = Counter(map(_comparable, others))
    unmatched = []
    for row in rows:
        known = _comparable(row)
        if left[known] > 0:
            left[known] -= 1
        else:
            unmatched.append(row)
    return unmatched


def _alike(row: DiffRow, other: DiffRow) -> int:
    return sum(_same(one, two) for one, two in zip(row, other, strict=True))


def _same(one: object, two: object) -> bool:
    return _comparable(one) == _comparable(two)


def _comparable(value: object) -> object:
    """A hashable form of a value, equal for values that count as the same."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else float(f"{value:.{_SIGNIFICANT}g}")
        case list() | tuple():
            return tuple(map(_comparable, value))
        case dict():
            return tuple(sorted((str(key), _comparable(item)) for key, item in value.items()))
        case bytearray():
            return bytes(value)
    return value


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "-+-".join("-" * width for width in widths), *lines[1:]]
