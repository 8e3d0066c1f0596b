"""The SQL of the moment of a local time, where the database has no zones, or reads repeated hours in another way.

As the ingestion does (`formats.time_values.local`): of an hour that the clock repeats it is the first one, a time that
the clock skips is as much later as it skips. That is what Python reads with `fold=0`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

_FIRST, _CYCLE, _LAST = datetime(1, 1, 1), datetime(2100, 1, 1), datetime(2500, 1, 1)
"""From `_CYCLE` on, the calendar and what zones do repeat every 400 years."""
_SAMPLED_FROM = datetime(1840, 1, 1)
"""No zone has a change before."""
_EPOCH, _SECOND = datetime(1970, 1, 1), timedelta(seconds=1)
Change = tuple[int, int]
"""The local time from which an offset holds, and that offset: seconds, the first since 1970."""


def moment_of_local(micros: str, zone: str, division: str) -> str:
    """SQL of the microseconds since 1970 in UTC; `micros`: that of the local time as if it were in UTC.

    `division`: the engine's operator of whole numbers.
    """
    all_changes = changes(zone)
    if len(all_changes) == 1:
        return f"({micros} - ({_micros(all_changes[0][1])}))"
    last, period = _micros(_seconds(_LAST)), _micros(_seconds(_LAST) - _seconds(_CYCLE))
    near = f"({micros} - ({_offset(micros, all_changes)}))"
    repeated = f"({micros} - {period} * (1 + (({micros} - {last}) {division} {period})))"
    first = max(0, bisect_left(all_changes, (_seconds(_CYCLE), -(10**6))) - 1)
    far = f"({micros} - ({_offset(repeated, all_changes[first:])}))"
    return f"(case when {micros} < {last} then {near} else {far} end)"


def local_of_moment(micros: str, zone: str) -> str | None:
    """The local time of a moment as SQL writes it; None for what no calendar has.

    >>> local_of_moment("1711846799000001", "Europe/Berlin"), local_of_moment("infinity", "Europe/Berlin")
    ('2024-03-31 01:59:59.000001', None)
    """
    try:
        moment = _EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=int(micros))
        return str(moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0))
    except (ValueError, OverflowError):
        return None


@cache
def changes(zone: str) -> Sequence[Change]:
    """The offsets of a zone in the order of local times, until they repeat."""
    info = ZoneInfo(zone)

    def offset(local: datetime) -> int:
        known = info.utcoffset(local)
        return 0 if known is None else int(known.total_seconds())

    result = [(_seconds(_FIRST), offset(_SAMPLED_FROM))]
    before, step = _SAMPLED_FROM, timedelta(days=1)
    while before < _LAST:
        after = before + step
        if offset(after) != result[-1][1]:
            low, high = before, after
            while high - low > _SECOND:
                middle = low + (high - low) // 2 // _SECOND * _SECOND
                low, high = (middle, high) if offset(middle) == result[-1][1] else (low, middle)
            result.append((_seconds(high), offset(high)))
            after = high
        before = after
    return tuple(result)


def _offset(micros: str, all_changes: Sequence[Change]) -> str:
    """SQL of the offset that holds at a local time, by halving."""
    if len(all_changes) == 1:
        return str(_micros(all_changes[0][1]))
    half = len(all_changes) // 2
    left, right = _offset(micros, all_changes[:half]), _offset(micros, all_changes[half:])
    return f"case when {micros} < {_micros(all_changes[half][0])} then {left} else {right} end"


def _seconds(local: datetime) -> int:
    return (local - _EPOCH) // _SECOND


def _micros(seconds: int) -> int:
    return seconds * 10**6
