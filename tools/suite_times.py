"""What the suite's time went into: the stages of `.ci/run` and `make test`, and the slowest tests of them all.

`python -m tools.suite_times` prints what `target/suite` has: `stages`, a line of seconds and name each, and a file of
`pytest --times` for each stage that has tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from heapq import nlargest
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "target" / "suite"
SHOWN = 20


def lines(folder: Path) -> Iterator[str]:
    """The table of stages, then the slowest tests; times are in seconds."""
    stages = [line.split(maxsplit=1) for line in _text(folder / "stages").splitlines()]
    yield "\nstages"
    yield from (f"{int(seconds):6d} s  {name}" for seconds, name in stages)
    yield f"{sum(int(seconds) for seconds, _ in stages):6d} s  in all"
    tests = {
        name: took for path in sorted(folder.glob("*.json")) for name, took in json.loads(path.read_text()).items()
    }
    slowest = nlargest(SHOWN, tests.items(), key=lambda test: test[1])
    yield f"\nthe slowest of {len(tests)} tests, fixtures included: {sum(took for _, took in slowest):.0f} s"
    yield from (f"{took:8.1f} s  {name}" for name, took in slowest)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    print("\n".join(lines(FOLDER)))
