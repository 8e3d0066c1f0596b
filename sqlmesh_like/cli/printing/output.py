"""Lines while running, in dbt's format. Owns layout, colours, and which event a line is in JSON logs."""

from __future__ import annotations

import datetime
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TextIO

import click

from sqlmesh_like import stop_signals
from sqlmesh_like.cli.printing.json_log import PLAIN_EVENT, json_line
from sqlmesh_like.cli.printing.writer import style_text
from sqlmesh_like.control_characters import escape_line, escape_lines

if TYPE_CHECKING:
    from sqlmesh_like.cli.printing.progress_bar import ProgressBar

DisplayStatus = Literal["success", "no-op", "error", "skipped", "pass", "fail", "warn"]
LogLevel = Literal["debug", "info", "warn", "error"]

_WIDTH = 80  # dbt's printer width
_COLOURS = {"success": "green", "pass": "green", "error": "red", "fail": "red", "skipped": "yellow", "warn": "yellow"}
_COUNTED: dict[str, tuple[DisplayStatus, ...]] = {
    "PASS": ("success", "pass"),
    "WARN": ("warn",),
    "ERROR": ("error", "fail"),
    "SKIP": ("skipped",),
    "NO-OP": ("no-op",),
}


def _utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@dataclass(frozen=True)
class LogStep:
    """One node of a run: its number, the number of all nodes, its kind and its name, e.g. `dws.user_agg`.

    `data`: further fields of its line in JSON; `result_event`: dbt's name of the event that ends it.
    """

    index: int
    total: int
    kind: str  # `sql incremental model`, `seed file`, `test`
    name: str
    data: Mapping[str, object] | None = None
    result_event: str = PLAIN_EVENT

    @property
    def words(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass
class Output:
    """Prints the progress of one call. Threads may use it: each line is a single write."""

    quiet: bool = False
    color: bool = False
    log_format: str = "text"
    stream: TextIO = field(default_factory=lambda: sys.stdout)
    now: Callable[[], datetime.datetime] = _utc_now
    has_bar: bool = False
    seconds: Callable[[], float] | None = None  # since the start of the call
    on_warning: Callable[[str], None] | None = None  # called with each warning, printed or not
    _bar: ProgressBar | None = None

    def line(self, text: str = "", level: LogLevel = "info") -> None:
        """Print a line with the time of day; with `--quiet` only errors."""
        if level == "warn" and self.on_warning is not None:
            self.on_warning(text)
        self._line(escape_lines(text), level)

    def _line(
        self,
        text: str,
        level: LogLevel = "info",
        event: str = PLAIN_EVENT,
        data: Mapping[str, object] | None = None,
    ) -> None:
        """Print a line whose text may have our escape sequences of colours."""
        if self.quiet and level != "error":
            return
        if self.log_format == "json":
            self._write(json_line(level, click.unstyle(text), event, data, self.now()))
        else:
            self._write(f"{self.now():%H:%M:%S}  {text}".rstrip())

    def start(self, step: LogStep) -> None:
        if self.has_bar and self._bar is None:
            from sqlmesh_like.cli.printing.progress_bar import ProgressBar  # not needed without a terminal

            self._bar = ProgressBar(self.stream, color=self.color)
        if self._bar is not None:
            self._bar.start_node(step.name, step.total)
        self._step(step, f"START {step.words}", "RUN", None)

    def success(self, step: LogStep, detail: str, seconds: float) -> None:
        """Report a table that was written; `detail`: the strategy and its rows, or what was done to it."""
        verb = {"seed": "loaded", "table": "maintained"}.get(step.kind.split()[0], "created")
        self._step(step, f"OK {verb} {step.words}", f"{detail} in {seconds:.2f}s", "success")

    def warning(self, step: LogStep, detail: str, seconds: float, message: str) -> None:
        """Report a table that was written with a warning: the `message`, which is printed at the end."""
        if self.on_warning is not None:
            self.on_warning(f"{step.name}: {message}")
        self._step(step, f"WARN {step.words}", f"WARN {detail} in {seconds:.2f}s", "warn", "warn")

    def no_op(self, step: LogStep, seconds: float) -> None:
        """Report a node for which nothing had changed."""
        self._step(step, f"NO-OP {step.words}", f"NO-OP in {seconds:.2f}s", None)

    def error(self, step: LogStep, seconds: float) -> None:
        verb = "loading" if step.kind.startswith("seed") else "creating"
        self._step(step, f"ERROR {verb} {step.words}", f"ERROR in {seconds:.2f}s", "error", "error")

    def skip(self, step: LogStep) -> None:
        self._step(step, f"SKIP {step.words}", "SKIP", "skipped")

    def test_result(
        self, step: LogStep, status: Literal["pass", "fail", "warn", "error"], failures: int, seconds: float
    ) -> None:
        """Report the end of a data test; `failures`: number of rows that its query returned."""
        word = status.upper()
        counted = f"{word} {failures}" if status in ("fail", "warn") else word
        level: LogLevel = "error" if status in ("fail", "error") else "warn" if status == "warn" else "info"
        self._step(step, f"{counted} {step.name}", f"{counted} in {seconds:.2f}s", status, level)

    def close(self) -> None:
        """Remove the bar, if there is one; lines may follow."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        self.has_bar = False

    def outcome(self, step: LogStep, words: str, outcome: DisplayStatus, seconds: float) -> None:
        """Report the outcome of a check or transfer, in words."""
        level: LogLevel = "error" if outcome in ("fail", "error") else "info"
        self._step(step, f"{words} {step.name}", f"{words} in {seconds:.2f}s", outcome, level)

    def end(self, statuses: Iterable[DisplayStatus], problems: Iterable[str] = ()) -> None:
        """Print the end block: the problems, then the count of each outcome."""
        self.close()
        outcomes = list(statuses)
        problems = list(problems)
        self.line()
        bad = any(status in ("error", "fail") for status in outcomes)
        words, colour = ("Completed with errors:", "red") if bad else ("Completed successfully", "green")
        if stop_signals.is_wished():
            words = "Stopped; `sml retry` goes on with what was skipped" if "skipped" in outcomes else "Stopped"
            colour = "yellow"
        self._line(self._color(words, colour), "error" if bad else "info")
        for problem in problems:
            self.line()
            for text in problem.splitlines():
                self.line(f"  {text}", "error")
        self.line()
        if self.seconds is not None:
            self.line(f"Finished in {self.seconds():.2f}s")
        stats = {word.lower().replace("-", ""): count for word, count in _counts(outcomes).items()}
        self._line(summary_line(outcomes), event="StatsLine", data={"stats": stats})

    def _step(
        self, step: LogStep, text: str, status: str, outcome: DisplayStatus | None, level: LogLevel = "info"
    ) -> None:
        if self._bar is not None and status != "RUN":
            self._bar.end_node(step.name, step.total)
        head = escape_line(f"{step.index} of {step.total} {text} ")
        # The time of day is part of the width, so that brackets are aligned as in dbt.
        dotted = head.ljust(_WIDTH - len("HH:MM:SS  "), ".")
        colour = _COLOURS.get(outcome) if outcome else None
        event = {"RUN": "LogStartLine", "SKIP": "SkippingDetails"}.get(status, step.result_event)
        self._line(f"{dotted} [{self._color(escape_line(status), colour)}]", level, event, step.data)

    def _color(self, text: str, colour: str | None) -> str:
        return style_text(text, colour) if self.color and colour else text

    def _write(self, text: str) -> None:
        if self._bar is not None:
            self._bar.write(text)
            return
        self.stream.write(text + "\n")
        self.stream.flush()


def summary_line(statuses: Iterable[DisplayStatus]) -> str:
    """Return the last line of a run.

    >>> summary_line(["success", "error", "skipped", "pass"])
    'Done. PASS=2 WARN=0 ERROR=1 SKIP=1 NO-OP=0 TOTAL=4'
    """
    return "Done. " + " ".join(f"{word}={count}" for word, count in _counts(statuses).items())


def _counts(statuses: Iterable[DisplayStatus]) -> dict[str, int]:
    counts = Counter(statuses)
    counted = {word: sum(counts[status] for status in group) for word, group in _COUNTED.items()}
    return {**counted, "TOTAL": counts.total()}


def size(count: int) -> str:
    """Return a number of bytes in a readable unit.

    >>> size(999), size(1_500), size(2_340_000_000)
    ('999 B', '1.5 kB', '2.3 GB')
    """
    amount, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
