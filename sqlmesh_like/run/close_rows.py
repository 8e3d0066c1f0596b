"""Rows that differ between a table and its recompute. Owns when two rows with floating-point numbers count as equal.

All values are compared exactly, by the engine, except computed doubles and floats, whose last digits may depend on the
order of addition: they are compared at a relative tolerance of 1e-9, or the one that their model declares if it is
larger, between rows whose other columns are equal. Where more than 20,000 rows differ, the engine has to match them;
those that it leaves are compared exactly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

from sqlmesh_like.run.ports import Row, RowDifference

RELATIVE_TOLERANCE = 1e-9
MATCHED_AT_MOST = 20_000
"""Rows that are matched in this process."""

RowsOf = Callable[[int, int | None], list[Row]]
"""Rows that only one side has, as often as it has more of them, and at most so many: -1 the table, +1 the recompute."""


def relative_tolerance(declared: float | None) -> float:
    """That of a model's computed doubles and floats."""
    return max(RELATIVE_TOLERANCE, declared or 0.0)


def close_difference(
    total: int, rows_of: RowsOf, floats: Sequence[str], limit: int, tolerance: float = RELATIVE_TOLERANCE
) -> RowDifference:
    """The difference of two sides, of which `total` rows are not exactly equal to a row of the other one.

    `floats`: the columns that are compared at the relative tolerance.
    """
    if not total:
        return RowDifference(0, ())
    if floats and total <= MATCHED_AT_MOST:
        left, right = _unmatched_rows(rows_of(-1, None), rows_of(1, None), floats, tolerance)
        rows = [(-1, row) for row in left] + [(1, row) for row in right]
        return RowDifference(len(rows), tuple(rows[:limit]))
    rows = [(sign, row) for sign in (-1, 1) for row in rows_of(sign, limit)]
    return RowDifference(total, tuple(rows[:limit]))


def _unmatched_rows(
    left: Sequence[Row], right: Sequence[Row], floats: Sequence[str], tolerance: float
) -> tuple[list[Row], list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in right:
        groups[_exact_part(row, floats)].append(row)
    alone: list[Row] = []
    for row in left:
        candidates = groups[_exact_part(row, floats)]
        pairs = ((other, [(row[name], other[name]) for name in floats]) for other in candidates)
        match = next((other for other, values in pairs if all(_close(*both, tolerance) for both in values)), None)
        if match is None:
            alone.append(row)
        else:
            candidates.remove(match)
    return alone, [row for rows in groups.values() for row in rows]


def _exact_part(row: Row, floats: Sequence[str]) -> str:
    return repr([(name, value) for name, value in row.items() if name not in floats])


def _close(one: object, other: object, tolerance: float) -> bool:
    if not isinstance(one, float) or not isinstance(other, float):
        return one is other
    return math.isclose(one, other, rel_tol=tolerance) or (math.isnan(one) and math.isnan(other))
