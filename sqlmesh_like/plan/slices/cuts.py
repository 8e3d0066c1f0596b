"""Where slices begin: at the values of the first partition column that the inputs have.

Whatever these values are, slices that follow each other without a gap have all rows, each once: the values decide how
many slices there are and how large, never which rows the table has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

PERIODS = {"day": 10, "month": 7, "year": 4}
"""Periods, with the length of the text of one."""
PARTITION = "partition"
_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}.*)?", re.DOTALL)


def why_not_cut(type_: str, by: str) -> str | None:
    """Why a column of this type cannot be cut so; None if it can."""
    from sqlmesh_like.delta.slices.boundary import order_of

    try:
        order_of(type_, "2024-01-01" if type_ in ("date", "string") else "0")
    except ValueError as error:
        return str(error)
    if by in PERIODS and type_ not in ("date", "string"):
        return f"its type is {type_}, which has no {by}s; use 'partition', or --slices"
    return None


def first_values(type_: str, by: str, weights: Mapping[str, int]) -> tuple[str, ...]:
    """The first value of each slice but the first. `weights`: how many rows of the inputs have a value.

    >>> first_values("date", "month", {"2024-01-30": 1, "2024-02-02": 1, "2024-02-01": 1, "2024-04-09": 1})
    ('2024-02-01', '2024-04-01')
    >>> first_values("int", "2", {"9": 1, "10": 1, "11": 2}), first_values("int", "partition", {"9": 1, "10": 1})
    (('11',), ('10',))
    """
    from sqlmesh_like.delta.slices.boundary import order_of

    known = {value: weight for value, weight in weights.items() if _is_ordered(type_, value)}
    values = sorted(known, key=lambda value: order_of(type_, value))
    if by == PARTITION:
        return tuple(values[1:])
    if by in PERIODS:
        dated = [value for value in values if _DATE.fullmatch(value)]
        starts = dict.fromkeys(value[: PERIODS[by]] for value in dated)
        return tuple(_first_day(start) if type_ == "date" else start for start in list(starts)[1:])
    return tuple(_groups(values, known, int(by)))


def _groups(values: list[str], weights: Mapping[str, int], count: int) -> Iterable[str]:
    """The first value of each of so many groups but the first, of about equal weight."""
    total, before, begun = sum(weights.values()), 0, 1
    for value in values:
        if before and begun < count and before * count >= total * begun:
            yield value
            while begun < count and before * count >= total * begun:
                begun += 1
        before += weights[value]


def _is_ordered(type_: str, value: str) -> bool:
    from sqlmesh_like.delta.slices.boundary import order_of

    try:
        order_of(type_, value)
    except ValueError:
        return False
    return True


def _first_day(start: str) -> str:
    return start + "-01" * ((10 - len(start)) // 3)
