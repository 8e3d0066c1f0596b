"""What kills did to a lake, counted. Owns what lost, doubled, stuck and silent mean."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.faults.shop import MODELS, PUBLISHED, REGION, Row, Rows, Shop


@dataclass
class Tally:
    """Counts of kills by where they hit, and what went wrong, in words; nothing may.

    Lost, doubled: rows missing or too many after the next call has succeeded. Stuck: the next call did not succeed.
    Silent: rows, of a table or a destination, other than those of the commits it says it shows, right after the kill.
    """

    kills: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.kills.values())

    @property
    def wrong(self) -> list[str]:
        return [*self.lost, *self.doubled, *self.stuck, *self.silent]

    def __str__(self) -> str:
        counts = f"lost {len(self.lost)}, doubled {len(self.doubled)}, stuck {len(self.stuck)}"
        return f"{self.total} kills: {counts}, silent {len(self.silent)}"

    def look_after_kill(self, shop: Shop, where: str) -> None:
        """What readers see: each table and each destination as one of its commits says."""
        for model in MODELS:
            if differing := _differing(shop.stored(model), shop.recorded(model)):
                self.silent.append(f"{where}: {model} {differing}")
        for place in PUBLISHED:
            frontier, rows = shop.published(place)
            if differing := _differing(rows, shop.recorded(REGION, frontier) if frontier else []):
                self.silent.append(f"{where}: {place} {differing}")

    def look_after_call(self, shop: Shop, where: str, code: int | None, output: str) -> None:
        """What there is after the next call: everything, once."""
        if code != 0:
            self.stuck.append(f"{where}: exit code {code}: {output[-1500:]}")
            return
        for model in MODELS:
            self._compare(shop.stored(model), shop.expected(model), f"{where}: {model}")
            if pending := shop.timeline(model).pending:
                self.stuck.append(f"{where}: {model} has {pending} in flight")
        for place in PUBLISHED:
            self._compare(shop.published(place)[1], shop.expected(REGION), f"{where}: {place}")

    def _compare(self, stored: Rows, expected: Rows, where: str) -> None:
        lost, more = _minus(expected, stored), _minus(stored, expected)
        if lost:
            self.lost.append(f"{where} lacks {lost}")
        if more:
            self.doubled.append(f"{where} has {more} too many")


def _minus(these: Rows, those: Rows) -> list[Row]:
    return sorted((Counter(these) - Counter(those)).elements())


def _differing(stored: Rows, expected: Rows) -> str:
    lost, more = _minus(expected, stored), _minus(stored, expected)
    return f"lacks {lost}, has {more}" if lost or more else ""
