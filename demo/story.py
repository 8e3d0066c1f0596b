"""The output of a demo: headings, and `sml` commands as a user would type them. Owns no lake."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from sqlmesh_like.cli.app import main


@dataclass
class Story:
    """The story of the project in a folder; folders in `made`, which an earlier run has left, are removed first."""

    root: Path
    made: Sequence[str] = ("warehouse", "landing", "target")

    def __post_init__(self) -> None:
        self.started = perf_counter()
        for name in self.made:
            shutil.rmtree(self.root / name, ignore_errors=True)

    def step(self, heading: str, *lines: str) -> None:
        """Print the heading of a step and what to notice in it."""
        rule = "─" * len(heading)
        shown = f"\033[1m{heading}\033[0m" if sys.stdout.isatty() else heading
        print("", shown, rule, *lines, sep="\n", flush=True)

    def sml(self, *words: str) -> None:
        """Run one command; the demo ends if it fails."""
        print(f"\n$ sml {' '.join(words)}", flush=True)
        code = main([*words, "--project-dir", str(self.root)])
        if code:
            raise SystemExit(code)

    def show(self, *names: str) -> None:
        for name in names:
            self.sml("show", name)

    def end(self, *lines: str) -> None:
        self.step(f"Done in {perf_counter() - self.started:.0f} seconds", *lines)
