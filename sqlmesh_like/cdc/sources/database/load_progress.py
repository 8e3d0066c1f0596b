"""How far the first read of a database's tables is. Owns when that is said, and how.

The lines go to the logger `sqlmesh_like.cdc.progress`, at level INFO; the command line prints them.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

LOGGER = "sqlmesh_like.cdc.progress"
_log = logging.getLogger(LOGGER)
_FIRST_SECONDS = 10.0
_LONGEST_PAUSE = 60.0


@dataclass
class LoadProgress:
    """The rows that were read of `name`. `before`: by earlier calls; `total`: as the database estimates it."""

    name: str
    total: int | None = None
    before: int = 0
    _began: float = field(default_factory=time.monotonic)
    _next: float = _FIRST_SECONDS

    def note(self, *counts: int) -> None:
        """So many rows in all have been read by this call. Says so, less often the longer it takes."""
        rows, seconds = sum(counts), time.monotonic() - self._began
        if rows and seconds >= self._next:
            _log.info("%s", progress_text(self.name, self.before + rows, rows / seconds, self.total))
            self._next = seconds + min(seconds, _LONGEST_PAUSE)


def progress_text(name: str, rows: int, rate: float, total: int | None) -> str:
    """The line of a read that goes on. `rate`: rows a second.

    >>> progress_text("orders", 12_000_000, 40_000, 50_000_000)
    'orders: 12,000,000 of about 50,000,000 rows read, 40,000 a second, about 16 minutes left'
    >>> progress_text("orders", 450_000, 40_000, 400_000)
    'orders: 450,000 rows read, 40,000 a second'
    """
    if total is None or total <= rows:
        return f"{name}: {rows:,} rows read, {rate:,.0f} a second"
    left = _duration((total - rows) / rate)
    return f"{name}: {rows:,} of about {total:,} rows read, {rate:,.0f} a second, about {left} left"


def _duration(seconds: float) -> str:
    """
    >>> [_duration(seconds) for seconds in (1, 100, 5400, 90_000)]
    ['1 second', '100 seconds', '90 minutes', '25 hours']
    """
    number, unit = max(round(seconds), 1), "second"
    for size, longer in ((60, "minute"), (3600, "hour")):
        if seconds >= 2 * size:
            number, unit = round(seconds / size), longer
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
