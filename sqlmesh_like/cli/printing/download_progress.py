"""The display of a download: a bar on a terminal, one line per file elsewhere. `spark.jvm.jars` downloads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from sqlmesh_like.cli.printing.activity import current
from sqlmesh_like.cli.printing.writer import drawing_stream
from sqlmesh_like.spark.jvm.jars import Progress as OnProgress


@contextmanager
def show_progress() -> Iterator[OnProgress]:
    """Yield a callback for `ensure_jars` that shows progress on standard error."""
    console, spinner = Console(file=drawing_stream(sys.stderr)), current()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with (
        spinner.suspend() if spinner is not None and console.is_terminal else nullcontext(),
        Progress(*columns, console=console, disable=not console.is_terminal) as bars,
    ):
        tasks: dict[str, TaskID] = {}

        def advance(file_name: str, arrived: int, total: int) -> None:
            if file_name not in tasks:
                tasks[file_name] = bars.add_task(f"fetching {file_name}", total=total)
                if not console.is_terminal:
                    console.print(f"fetching {file_name} ({total / 1e6:.0f} MB)", highlight=False)
            bars.update(tasks[file_name], completed=arrived)

        yield advance
