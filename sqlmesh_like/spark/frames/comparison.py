"""Comparing a table with its recompute. Owns when two rows count as equal.

All values are compared exactly, except doubles and floats, whose last digits may depend on the order of addition: they
are compared at a relative tolerance of 1e-9, between rows whose other columns are equal. Where more than 20,000 rows
differ, these are compared exactly, too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.run.ports import Row, RowDifference

RELATIVE_TOLERANCE = 1e-9
_MATCHED_AT_MOST = 20_000
_COPIES = "_sml_copies"


def difference(stored: DataFrame, expected: DataFrame, limit: int) -> RowDifference:
    """Rows of either side without an equal row on the other (multisets). If all are equal, each side is read once."""
    alike = expected.select(*[F.col(f"`{field.name}`").cast(field.dataType) for field in stored.schema.fields])
    signed = stored.withColumn(_COPIES, F.lit(1)).unionByName(alike.withColumn(_COPIES, F.lit(-1)))
    unequal = signed.groupBy(*[f"`{name}`" for name in stored.columns]).agg(F.sum(_COPIES).alias(_COPIES))
    unequal = unequal.where(f"{_COPIES} <> 0")
    total = unequal.agg(F.sum(F.abs(_COPIES))).collect()[0][0] or 0
    if not total:
        return RowDifference(0, ())
    surplus, missing = (_copied(unequal, sign) for sign in (1, -1))
    floats = [name for name, type_ in stored.dtypes if type_ in ("double", "float")]
    if floats and total <= _MATCHED_AT_MOST:
        left, right = _unmatched(_rows(surplus), _rows(missing), floats)
        rows = [(-1, row) for row in left] + [(1, row) for row in right]
        return RowDifference(len(rows), tuple(rows[:limit]))
    rows = [(-1, row) for row in _rows(surplus.limit(limit))] + [(1, row) for row in _rows(missing.limit(limit))]
    return RowDifference(total, tuple(rows[:limit]))


def _copied(unequal: DataFrame, sign: int) -> DataFrame:
    """Rows of which one side has more copies, each repeated by the difference. `sign`: 1 stored, -1 expected."""
    times = F.explode(F.sequence(F.lit(1), F.col(_COPIES) * sign))
    more = unequal.where(F.col(_COPIES) * sign > 0)
    return more.withColumn(_COPIES, times).drop(_COPIES)


def _rows(frame: DataFrame) -> list[Row]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def _unmatched(left: Sequence[Row], right: Sequence[Row], floats: Sequence[str]) -> tuple[list[Row], list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in right:
        groups[_exact_part(row, floats)].append(row)
    alone: list[Row] = []
    for row in left:
        candidates = groups[_exact_part(row, floats)]
        match = next((other for other in candidates if all(_close(row[name], other[name]) for name in floats)), None)
        if match is None:
            alone.append(row)
        else:
            candidates.remove(match)
    return alone, [row for rows in groups.values() for row in rows]


def _exact_part(row: Row, floats: Sequence[str]) -> str:
    return repr([(name, value) for name, value in row.items() if name not in floats])


def _close(one: object, other: object) -> bool:
    if not isinstance(one, float) or not isinstance(other, float):
        return one is other
    return math.isclose(one, other, rel_tol=RELATIVE_TOLERANCE) or (math.isnan(one) and math.isnan(other))
