"""When a table and its recompute count as equal: doubles at a tolerance, between rows that are equal otherwise."""

from __future__ import annotations

from math import inf, nan

import pytest

from sqlmesh_like.run import close_rows
from sqlmesh_like.run.close_rows import close_difference, relative_tolerance
from sqlmesh_like.run.ports import Row

NEAR = 0.1 + 0.2
LEFT: list[Row] = [{"id": 1, "f": 0.3}, {"id": 2, "f": nan}, {"id": 3, "f": None}, {"id": 4, "f": 1.0}]
ASKED: list[tuple[int, int | None]] = []


def difference(
    left: list[Row], right: list[Row], limit: int = 9, floats: tuple[str, ...] = ("f",)
) -> tuple[int, list[tuple[int, object]]]:
    ASKED.clear()

    def rows_of(sign: int, most: int | None) -> list[Row]:
        ASKED.append((sign, most))
        return (left if sign < 0 else right)[:most]

    result = close_difference(len(left) + len(right), rows_of, floats, limit)
    return result.total, [(sign, row["id"]) for sign, row in result.rows]


def test_rows_whose_doubles_are_close_are_the_same_row() -> None:
    assert difference(LEFT, [{"id": 2, "f": nan}, {"id": 1, "f": NEAR}, {"id": 3, "f": None}, {"id": 4, "f": 1}]) == (
        2,
        [(-1, 4), (1, 4)],
    )
    assert ASKED == [(-1, None), (1, None)]
    assert difference([], []) == (0, [])


@pytest.mark.parametrize(("one", "other"), [(1.0, 1.0 + 1e-6), (inf, -inf), (None, nan), (0.0, 1e-300), (1.0, None)])
def test_what_is_not_close_is_a_difference(one: float | None, other: float | None) -> None:
    assert difference([{"id": 1, "f": one}], [{"id": 1, "f": other}]) == (2, [(-1, 1), (1, 1)])


def test_a_declared_tolerance_is_a_larger_one() -> None:
    assert [relative_tolerance(declared) for declared in (None, 1e-12, 1e-6)] == [1e-9, 1e-9, 1e-6]
    rows = {-1: [{"f": 1.0}], 1: [{"f": 1.0 + 1e-7}]}
    found = [close_difference(2, lambda sign, _: list(rows[sign]), ("f",), 9, each).total for each in (1e-9, 1e-6)]
    assert found == [2, 0]


def test_each_row_is_matched_once() -> None:
    copies: list[Row] = [{"id": 1, "f": 0.3}] * 3
    assert difference(copies, [{"id": 1, "f": NEAR}] * 2) == (1, [(-1, 1)])
    assert difference(copies, [{"id": 2, "f": 0.3}], limit=2) == (4, [(-1, 1), (-1, 1)])


def test_without_doubles_or_with_too_many_rows_only_as_many_are_asked_for_as_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right: list[Row] = [{"id": 5, "f": 0.3}]
    assert difference(LEFT, right, limit=1, floats=()) == (5, [(-1, 1)])
    assert ASKED == [(-1, 1), (1, 1)]
    monkeypatch.setattr(close_rows, "MATCHED_AT_MOST", 3)
    assert difference(LEFT, right, limit=2) == (5, [(-1, 1), (-1, 2)])
    assert ASKED == [(-1, 2), (1, 2)]
