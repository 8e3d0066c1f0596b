"""The result of command-line flags: the project that they select, and the printer that they configure."""

from __future__ import annotations

import datetime
import gc
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TextIO

from sqlmesh_like.app.loading import loaded
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.project_cache import without_collector
from sqlmesh_like.app.reporter import Level, OnProgress
from sqlmesh_like.cli.options import Flags
from sqlmesh_like.cli.printing.activity import current, show_phase
from sqlmesh_like.cli.printing.output import Output
from sqlmesh_like.limits.child import limit_memory


@dataclass(frozen=True)
class TerminalReporter:
    """Prints on standard error, so that a command's standard output can be piped."""

    flags: Flags

    def notify(self, text: str, level: Level = "info") -> None:
        make_output(self.flags, sys.stderr).line(text, level)

    def phase(self, name: str) -> None:
        show_phase(name)

    def downloading(self) -> AbstractContextManager[OnProgress]:
        from sqlmesh_like.cli.printing.download_progress import show_progress  # few calls fetch anything

        return show_progress()


class _ShownWarnings(logging.Handler):
    """Shows what any part of the program warns of, as every other line: without a handler it came without a time."""

    def __init__(self, reporter: TerminalReporter) -> None:
        super().__init__(logging.WARNING)
        self._reporter = reporter

    def emit(self, record: logging.LogRecord) -> None:
        self._reporter.notify(record.getMessage(), "warn")


def open_project(flags: Flags, *, now: datetime.datetime | None = None, broken: bool = False) -> Loaded:
    """Read and render the project, as `loaded.load` does. `now` is the clock of templates."""
    reporter = TerminalReporter(flags)
    logging.getLogger("sqlmesh_like").handlers = [_ShownWarnings(reporter)]
    with freeze_objects():
        project = loaded.load(flags, now=now, reporter=reporter, broken=broken)
    if project.target.type == "duckdb":
        limit_memory()
    show_phase("working")
    return project


@contextmanager
def freeze_objects() -> Iterator[None]:
    """Exclude objects that are created within the context from garbage collection, to the end of the process.

    After Spark has been used they are excluded only within the context: frozen objects are never collected, and would
    keep Java objects alive. So once DuckDB is imported: at its end the process would print its objects as leaks.
    """
    with without_collector():
        try:
            yield
        finally:
            if sys.modules.keys().isdisjoint({"py4j", "duckdb"}):
                gc.freeze()


def make_output(flags: Flags, stream: TextIO | None = None, *, bar: bool = False) -> Output:
    """Return the printer that these flags configure, by default on standard output.

    Colours, and the `bar` if the command wants one, are for terminals only.
    """
    chosen = stream or sys.stdout
    is_terminal = chosen.isatty() and "NO_COLOR" not in os.environ
    has_bar = bar and chosen.isatty() and os.environ.get("TERM") != "dumb" and flags.log_format == "text"
    color = is_terminal and not flags.no_color
    call = current()
    seconds = None if call is None else call.closing_seconds
    return Output(
        flags.quiet, color, flags.log_format, chosen, has_bar=has_bar and not flags.quiet, seconds=seconds,
        on_warning=None if call is None else call.warnings.append,
    )  # fmt: skip
