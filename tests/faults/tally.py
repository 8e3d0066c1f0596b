"""What kills did to a lake, counted. Owns what lost, doubled, stuck, silent and refused mean."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.faults.calls import finished, start
from tests.faults.shop import MODELS, PUBLISHED, REGION, Row, Rows, Shop
from tests.levels import IS_DEEP

SEED = int(os.environ.get("SML_SEED", "20240501"))
COUNTS = Path(__file__).parents[2] / "target" / "kills"
"""Where counts of `make test-deep` are written, a file for each tally; `docs/generate_faults.py` adds them up."""
Wrong = Literal["lost", "doubled", "stuck", "silent"]
WRONG: tuple[Wrong, ...] = ("lost", "doubled", "stuck", "silent")


@dataclass
class Tally:
    """Kills of `what`, counted by where they hit, and what went wrong, in words; nothing may.

    Lost, doubled: rows missing or too many after the next call has succeeded. Stuck: the next call did not succeed.
    Silent: rows, of a table or a destination, other than those of the commits it says it shows, right after the kill.
    Refused: the next call did nothing and said what to do first; that was done, and counts as the next call.
    """

    what: str
    kills: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    wrong: list[tuple[Wrong, int, str]] = field(default_factory=list)
    """What, after which kill, and where and how."""
    where: str = ""
    part: str = ""
    """Of several tallies of the same."""

    @property
    def total(self) -> int:
        return sum(self.kills.values())

    def __str__(self) -> str:
        counts = self.counts()
        return f"{self.what}: {self.total} kills: " + ", ".join(f"{name} {counts[name]}" for name in WRONG)

    def counts(self) -> dict[str, object]:
        """What the documentation shows of it. A kill counts once in a column, however many tables are wrong."""
        wrong = {name: len({kill for kind, kill, _ in self.wrong if kind == name}) for name in WRONG}
        failed = len({kill for _, kill, _ in self.wrong})
        recovered = self.total - self.refused - failed
        return {"what": self.what, "kills": self.kills, "recovered": recovered, "refused": self.refused, **wrong}

    def killed(self, where: str) -> None:
        """Count a kill; what is found from now on is after it."""
        self.save()
        self.kills[where] += 1
        self.where = where

    def save(self) -> None:
        """Write the counts so far; `make test-deep` does, right or wrong."""
        if IS_DEEP and self.total:
            COUNTS.mkdir(parents=True, exist_ok=True)
            name = "-".join([self.what.replace(" ", "_"), *filter(None, [self.part]), str(SEED)])
            (COUNTS / f"{name}.json").write_text(json.dumps(self.counts(), indent=1))

    def add(self, kind: Wrong, text: str) -> None:
        self.wrong.append((kind, self.total, f"{kind} after {self.where}: {text}"))

    def look_after_kill(self, shop: Shop) -> None:
        """What readers see: each table and each destination as one of its commits says."""
        for model in MODELS:
            if differing := _differing(shop.stored(model), shop.recorded(model)):
                self.add("silent", f"{model} {differing}")
        for place in PUBLISHED:
            frontier, rows = shop.published(place)
            if differing := _differing(rows, shop.recorded(REGION, frontier) if frontier else []):
                self.add("silent", f"{place} {differing}")

    def look_after_call(self, shop: Shop, code: int | None, output: str) -> None:
        """What there is after the next call: everything, once."""
        if code != 0:
            self.add("stuck", f"exit code {code}: {output[-1500:]}")
            return
        for model in MODELS:
            self.compare(shop.stored(model), shop.expected(model), model)
            if pending := shop.timeline(model).pending:
                self.add("stuck", f"{model} has {pending} in flight")
        for place in PUBLISHED:
            self.compare(shop.published(place)[1], shop.expected(REGION), place)

    def compare(self, stored: Rows, expected: Rows, name: str) -> None:
        if lost := _minus(expected, stored):
            self.add("lost", f"{name} lacks {lost}")
        if more := _minus(stored, expected):
            self.add("doubled", f"{name} has {more} too many")


@contextmanager
def tallied(what: str, part: str = "") -> Iterator[Tally]:
    """A tally, at whose end nothing may be wrong."""
    tally = Tally(what, part=part)
    try:
        yield tally
    finally:
        print(tally, dict(tally.kills))
        tally.save()
    assert not tally.wrong, "\n".join(text for _, _, text in tally.wrong)


def assert_next_run_is_right(shop: Shop, where: str) -> None:
    """After `where`, `sml run` succeeds and leaves everything, once."""
    tally = Tally("run", where=where)
    tally.look_after_call(shop, *finished(start(shop.root, "run")))
    assert not tally.wrong, tally.wrong


def _minus(these: Rows, those: Rows) -> list[Row]:
    return sorted((Counter(these) - Counter(those)).elements())


def _differing(stored: Rows, expected: Rows) -> str:
    lost, more = _minus(expected, stored), _minus(stored, expected)
    return f"lacks {lost}, has {more}" if lost or more else ""
