"""A bar below the lines of a run, for terminals only. Owns what it shows: completed nodes, time, running nodes."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Lock
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
from rich.text import Text

from sqlmesh_like.cli.printing.activity import current
from sqlmesh_like.cli.printing.writer import drawing_stream, plain
from sqlmesh_like.control_characters import escape_line

_MAX_NAMES = 3


class ProgressBar:
    """Stays below the lines that are printed through it. Thread-safe; `close` may be called more than once."""

    def __init__(self, stream: TextIO, *, color: bool) -> None:
        self._console = Console(
            file=drawing_stream(stream), no_color=not color, highlight=False, markup=False, soft_wrap=True
        )
        columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), _Activities())
        self._progress = Progress(*columns, console=self._console, transient=True)
        self._task = self._progress.add_task("", total=None)
        self._running: dict[str, None] = {}
        self._lock = Lock()
        self._terminal = ExitStack()  # keeps the spinner suspended until the bar is closed
        if (spinner := current()) is not None:
            self._terminal.enter_context(spinner.suspend())
        self._progress.start()

    def start_node(self, name: str, total: int) -> None:
        """Note the start of one of `total` nodes."""
        with self._lock:
            self._running[name] = None
            self._progress.update(self._task, total=total, description=self._words)

    def end_node(self, name: str, total: int) -> None:
        """Note the end of a node, also of one that was skipped."""
        with self._lock:
            self._running.pop(name, None)
            self._progress.update(self._task, total=total, advance=1, description=self._words)

    def write(self, text: str) -> None:
        """Print a line above the bar, with its colours."""
        self._console.print(Text.from_ansi(plain(text)))

    def close(self) -> None:
        self._progress.stop()
        self._terminal.close()

    @property
    def _words(self) -> str:
        names = list(self._running)
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        return escape_line(f"{', '.join(names[:_MAX_NAMES])}{more}")


class _Activities(ProgressColumn):
    """Shows the running nodes, and whether Spark is being started for them."""

    def render(self, task: Task) -> Text:
        spinner = current()
        phase = "" if spinner is None else spinner.phase_name
        return Text(f"{task.description} ({phase})" if phase.startswith("starting ") else task.description)
