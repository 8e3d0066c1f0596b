"""Results of suites: pairs of times, and their ratio with its spread. Owns the JSON of a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from bench.dms import Change


class Unavailable(Exception):
    """The machine lacks something that a suite, or a part of one, needs; the message says what."""


@dataclass(frozen=True)
class Options:
    """The options of all suites.

    `scale` is TPC-H's scale factor; the other suites use 10,000,000 orders times it. `memory` is that of Spark's
    driver. `folder` is an empty folder for the files of one suite. `changes` are those of TPC-H; none: the default
    ones.
    """

    folder: Path
    scale: float = 0.1
    repeat: int = 3
    memory: str = "4g"
    changes: tuple[Change, ...] = ()

    @property
    def orders(self) -> int:
        """
        >>> Options(Path("x"), scale=0.1).orders
        1000000
        """
        return max(1000, round(10_000_000 * self.scale))

    @property
    def is_quick(self) -> bool:
        """Whether this is only a smoke test, with fewer changes, models and tables."""
        return self.scale < 0.1


WHOLE = "whole run"
"""Name of the figure of a whole call, including the start of the process and models without changes. It is excluded
from means."""


@dataclass(frozen=True)
class Figure:
    """How many times as fast `sml` is as what it is compared with: `other` over `ours`, both in seconds.

    The two have one value for each repetition, in which they were measured one after the other. `facts` describe the
    work (strategy, rows, bytes …) of the last repetition.
    """

    group: str
    name: str
    other: tuple[float, ...]
    ours: tuple[float, ...]
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def ratios(self) -> tuple[float, ...]:
        """
        >>> Figure("g", "n", (2.0, 3.0), (1.0, 6.0)).ratios
        (2.0, 0.5)
        """
        return tuple(other / ours for other, ours in zip(self.other, self.ours, strict=True))

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the largest ratio of all repetitions."""
        return min(self.ratios), max(self.ratios)


@dataclass(frozen=True)
class SuiteResult:
    """The result of a suite. `skipped`: what was left out, and why."""

    suite: str
    title: str
    ratio_of: str
    figures: tuple[Figure, ...]
    facts: Mapping[str, object] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()


@dataclass
class Timings:
    """Collects pairs of times, one repetition after the other."""

    _samples: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    _facts: dict[tuple[str, str], Mapping[str, object]] = field(default_factory=dict)

    def add(self, group: str, name: str, *, other: float, ours: float, **facts: object) -> None:
        self._samples.setdefault((group, name), []).append((other, ours))
        self._facts[group, name] = facts

    def figures(self) -> tuple[Figure, ...]:
        return tuple(
            Figure(
                group,
                name,
                tuple(other for other, _ in pairs),
                tuple(ours for _, ours in pairs),
                self._facts[group, name],
            )
            for (group, name), pairs in self._samples.items()
        )


def geometric_mean(ratios: Iterable[float]) -> float:
    """
    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    logs = [log(ratio) for ratio in ratios]
    return exp(sum(logs) / len(logs))


def means_of(figures: Sequence[Figure]) -> list[float]:
    """Return the geometric mean over figures in each repetition, the smallest first.

    There are as many means as the figure with the fewest repetitions has.

    >>> means_of([Figure("g", "a", (1.0, 2.0), (1.0, 1.0)), Figure("g", "b", (4.0, 8.0), (1.0, 1.0))])
    [2.0, 4.0]
    """
    return sorted(geometric_mean(ratios) for ratios in zip(*(figure.ratios for figure in figures), strict=False))


def to_json(result: SuiteResult, run: Mapping[str, object]) -> dict[str, Any]:
    """Return a result as JSON with the description of the run: machine, versions, size."""
    return {
        "suite": result.suite,
        "title": result.title,
        "ratio_of": result.ratio_of,
        "run": dict(run),
        "facts": dict(result.facts),
        "skipped": list(result.skipped),
        "figures": [
            {
                "group": figure.group,
                "name": figure.name,
                "ratio": figure.ratio,
                "ratios": list(figure.ratios),
                "seconds_other": list(figure.other),
                "seconds_ours": list(figure.ours),
                "facts": dict(figure.facts),
            }
            for figure in result.figures
        ],
    }


def from_json(data: Mapping[str, Any]) -> SuiteResult:
    """Return the result that `to_json` wrote."""
    figures: Sequence[Mapping[str, Any]] = data["figures"]
    return SuiteResult(
        data["suite"],
        data["title"],
        data["ratio_of"],
        tuple(
            Figure(f["group"], f["name"], tuple(f["seconds_other"]), tuple(f["seconds_ours"]), f["facts"])
            for f in figures
        ),
        data["facts"],
        tuple(data["skipped"]),
    )
