"""A day of a lake that nobody here has: tables, graph, batches and runs are drawn, and charged with measured prices."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from bench.scale.prices import Price, Prices

_MB_A_TB = 1_000_000.0
_SIMULATED_RUNS = 6


def _option(default: float, help_: str) -> Any:
    return field(default=default, metadata={"help": help_})


@dataclass(frozen=True)
class Shape:
    """What is assumed of a lake. Models read one to three of the tables before them."""

    tables: int = _option(10_000, "sources and models")
    terabytes: float = _option(100.0, "of all tables")
    sources: float = _option(0.3, "share of the tables that are ingested")
    layers: int = _option(6, "of models above a source, at most")
    skew: float = _option(0.9, "the table of rank r has a share of 1/r^skew of the bytes (Zipf's law)")
    file_mb: float = _option(120.0, "size of a file")
    changed_files: float = _option(0.0005, "share of a changed table's files that a commit rewrites, one at least")
    active: float = _option(0.2, "probability that a source has a batch in a run; the largest tables always have")
    affected: float = _option(0.7, "probability that a model whose input changed has something to write")
    runs: int = _option(96, "a day")
    calls: int = _option(1, "into how many a run is split, each with a driver and a part of the models")


@dataclass(frozen=True)
class Site:
    """Where it would run. Dollars are list prices, which change."""

    cores: int = _option(8, "of a driver, and its threads")
    milliseconds: float = _option(30.0, "of a request")
    parallel: int = _option(64, "requests under way at once while a run is planned")
    driver_mb: float = _option(
        2_000.0, "that a driver rewrites for a model (`driver_max_bytes`); executors do the rest"
    )
    memory_mb: float = _option(64_000.0, "of a driver")
    dollars_million_reads: float = _option(0.4, "GET and HEAD")
    dollars_million_writes: float = _option(5.0, "PUT, POST and LIST")
    dollars_tb_month: float = _option(23.0, "of storage")
    dollars_core_hour: float = _option(0.05, "of drivers and executors")


@dataclass(frozen=True)
class Table:
    """`megabytes` of data in `files`; `inputs`: positions of the tables that it reads, none for a source."""

    megabytes: float
    files: int
    inputs: tuple[int, ...] = ()


@dataclass
class Run:
    """One run: `price` of all its calls, `seconds` from start to end of the longest call, `memory` of the largest call
    in MB, `commits` of models, and the models that are left to executors because their bytes exceed the driver's."""

    price: Price = field(default_factory=Price)
    seconds: float = 0.0
    memory: float = 0.0
    commits: int = 0
    on_executors: int = 0
    executor_mb: float = 0.0


@dataclass(frozen=True)
class Day:
    """The mean run of a day and what a day costs. `largest_files`: of the largest table; `metadata_mb`: of its first
    commit, which planning reads; `parse`: reading the project anew after an edit."""

    shape: Shape
    run: Run
    idle: Run
    parse: Price
    largest_files: int
    metadata_mb: float
    dollars: dict[str, float]
    limits: tuple[str, ...]

    @property
    def commits_a_second(self) -> float:
        return self.run.commits * self.shape.runs / 86_400


def simulate(shape: Shape, site: Site, prices: Prices, seed: int = 1) -> Day:
    """Draw a lake and some of its runs; the same seed gives the same day."""
    chance = Random(seed)
    tables = draw(shape, chance)
    runs = [_run(tables, shape, site, prices, _changed(tables, shape, chance)) for _ in range(_SIMULATED_RUNS)]
    run = _mean(runs)
    idle = _run(tables, shape, site, prices, frozenset())
    largest = max(table.files for table in tables)
    metadata = largest * prices.commit_bytes / 1e6
    models = sum(bool(table.inputs) for table in tables)
    dollars = {
        "requests": shape.runs * _request_dollars(run.price, site),
        "drivers": shape.runs * run.price.core_seconds / 3600 * site.dollars_core_hour,
        "executors": shape.runs * run.executor_mb * prices.rewrite / 3600 * site.dollars_core_hour,
        "storage": shape.terabytes * site.dollars_tb_month / 30,
    }
    parse = prices.parse.at(models / shape.calls)
    return Day(shape, run, idle, parse, largest, metadata, dollars, tuple(_limits(shape, site, run, parse)))


def draw(shape: Shape, chance: Random) -> list[Table]:
    """The tables, each after those that it reads."""
    weights = [1 / rank**shape.skew for rank in range(1, shape.tables + 1)]
    unit = shape.terabytes * _MB_A_TB / sum(weights)
    sizes = [weight * unit for weight in weights]
    chance.shuffle(sizes)
    sources = max(1, round(shape.tables * shape.sources))
    tables, layers = list[Table](), list[int]()
    for number, megabytes in enumerate(sizes):
        inputs: set[int] = set()
        while number >= sources and len(inputs) < min(number, chance.choice((1, 1, 2, 3))):
            above = chance.randrange(number)
            if layers[above] < shape.layers:
                inputs.add(above)
        layers.append(1 + max((layers[each] for each in inputs), default=0))
        tables.append(Table(megabytes, max(1, round(megabytes / shape.file_mb)), tuple(sorted(inputs))))
    return tables


def _changed(tables: Sequence[Table], shape: Shape, chance: Random) -> frozenset[int]:
    """Which tables get a commit in a run: sources with a batch, and models with something to write."""
    large = sorted(tables, key=lambda table: table.files)[-max(1, len(tables) // 100)].files
    changed: set[int] = set()
    for number, table in enumerate(tables):
        if table.inputs:
            if changed.intersection(table.inputs) and chance.random() < shape.affected:
                changed.add(number)
        elif table.files >= large or chance.random() < shape.active:
            changed.add(number)
    return frozenset(changed)


def _run(tables: Sequence[Table], shape: Shape, site: Site, prices: Prices, changed: frozenset[int]) -> Run:
    """Models are split among the calls in their order; a call's models wait for the others' only within it."""
    run = Run()
    models = [number for number, table in enumerate(tables) if table.inputs]
    size = -(-len(models) // shape.calls)
    for part in (models[start : start + size] for start in range(0, len(models), size)):
        planning = prices.no_op.at(len(part))
        moved = [number for number in part if number in changed]
        price = planning + (prices.change.at(len(moved)) if moved else Price())
        jobs: dict[int, float] = {}
        memory = 0.0
        for number in moved:
            work, mb = _work(tables, number, shape, prices)
            memory = max(memory, work.megabytes)
            if mb > site.driver_mb:
                run.on_executors += 1
                run.executor_mb += mb
            else:
                price += Price(work.core_seconds)
            requests = prices.change.each.requests * site.milliseconds / 1000
            own = prices.change.each.core_seconds + (0 if mb > site.driver_mb else work.core_seconds)
            jobs[number] = own + requests / 4  # of a commit's requests about four wait for one another at once
        seconds = planning.core_seconds + planning.requests * site.milliseconds / 1000 / site.parallel
        seconds += _makespan(tables, jobs, site.cores)
        run.price += price
        run.seconds = max(run.seconds, seconds)
        # Models that run side by side hold their rows at once, the others' are gone by then.
        beside = min(site.cores, len(moved)) * prices.change.each.megabytes
        run.memory = max(run.memory, planning.megabytes + prices.change.fixed.megabytes * bool(moved) + beside + memory)
        run.commits += len(moved)
    return run


def _work(tables: Sequence[Table], number: int, shape: Shape, prices: Prices) -> tuple[Price, float]:
    """What the files of a changed model and of its inputs add, and the megabytes of files that its commit rewrites."""
    table = tables[number]
    touched = max(1, round(table.files * shape.changed_files))
    mb = min(table.megabytes, touched * shape.file_mb)
    looked_at = table.files + sum(tables[each].files for each in table.inputs)
    files = prices.files.each * looked_at
    return Price(files.core_seconds + mb * prices.rewrite, files.megabytes), mb


def _makespan(tables: Sequence[Table], jobs: dict[int, float], threads: int) -> float:
    """Seconds until all jobs are done by so many threads, each after its inputs, in their order."""
    unmet = {number: sum(each in jobs for each in tables[number].inputs) for number in jobs}
    readers: dict[int, list[int]] = {}
    for number in jobs:
        for each in tables[number].inputs:
            readers.setdefault(each, []).append(number)
    ready = [number for number, count in unmet.items() if not count]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < threads:
            number = heapq.heappop(ready)
            heapq.heappush(running, (now + jobs[number], number))
        now, ended = heapq.heappop(running)
        for reader in readers.get(ended, ()):
            unmet[reader] -= 1
            if not unmet[reader]:
                heapq.heappush(ready, reader)
    return now


def _mean(runs: Sequence[Run]) -> Run:
    share = 1 / len(runs)
    return Run(
        sum((run.price for run in runs), Price()) * share,
        sum(run.seconds for run in runs) * share,
        max(run.memory for run in runs),
        round(sum(run.commits for run in runs) * share),
        round(sum(run.on_executors for run in runs) * share),
        sum(run.executor_mb for run in runs) * share,
    )


def _request_dollars(price: Price, site: Site) -> float:
    return (price.reads * site.dollars_million_reads + price.writes * site.dollars_million_writes) / 1e6


def _limits(shape: Shape, site: Site, run: Run, parse: Price) -> Iterator[str]:
    """What does not hold any more, in words."""
    interval = 86_400 / shape.runs
    if run.seconds > interval:
        yield f"a run takes {run.seconds / interval:.1f} times the {interval / 60:.0f} minutes between two"
    if run.memory > site.memory_mb:
        yield f"a run needs {run.memory / 1000:.0f} GB of memory"
    if parse.megabytes > site.memory_mb:
        yield f"reading the project needs {parse.megabytes / 1000:.0f} GB of memory"


def table_of(days: Iterable[Day]) -> Iterator[str]:
    """Lines of Markdown: a column for each day."""
    days = list(days)
    yield "| |" + " |" * len(days)
    yield "|---|" + "---:|" * len(days)
    for name, cell in _ROWS.items():
        yield f"| {name} | {' | '.join(map(cell, days))} |"
    for name in days[0].dollars:
        yield f"| dollars a day: {name} | {' | '.join(f'{day.dollars[name]:,.2f}' for day in days)} |"
    yield f"| what does not fit | {' | '.join('; '.join(day.limits) or '–' for day in days)} |"


def _pair(one: float, other: float) -> str:
    return f"{one:,.0f}; {other:,.0f}"


_ROWS: Mapping[str, Callable[[Day], str]] = {
    "tables; TB": lambda day: f"{day.shape.tables:,}; {day.shape.terabytes:g}",
    "runs a day; calls a run": lambda day: f"{day.shape.runs}; {day.shape.calls}",
    "reading the project after an edit: core seconds; MB": lambda day: _pair(
        day.parse.core_seconds, day.parse.megabytes
    ),
    "run without changes: requests; seconds": lambda day: _pair(day.idle.price.requests, day.idle.seconds),
    "models with a commit in a run; commits a second": lambda day: f"{day.run.commits:,}; {day.commits_a_second:.2g}",
    "run: requests; seconds": lambda day: _pair(day.run.price.requests, day.run.seconds),
    "memory of a driver, MB": lambda day: f"{day.run.memory:,.0f}",
    "models for executors; GB that they rewrite": lambda day: (
        f"{day.run.on_executors:,}; {day.run.executor_mb / 1000:,.0f}"
    ),
    "files of the largest table; MB of metadata in its first commit": lambda day: _pair(
        day.largest_files, day.metadata_mb
    ),
}
"""What a day's column has, by the name of its row."""
