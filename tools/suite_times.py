"""What the suite's time went into: the stages of `.ci/run` and `make test`, and the slowest tests of them all.

`python -m tools.suite_times` prints what `target/suite` has of the last runs: the seconds of each stage (`NAME.stage`),
and a file of `pytest --times` for each stage that has tests.
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
    files = sorted(folder.glob("*.stage"), key=lambda path: path.stat().st_mtime_ns)
    stages = {path.stem: int(path.read_text(encoding="utf-8")) for path in files}
    yield "\nstages"
    yield from (f"{seconds:6d} s  {name}" for name, seconds in stages.items())
    yield f"{sum(stages.values()):6d} s  in all"
    tests = {
        name: took for path in sorted(folder.glob("*.json")) for name, took in json.loads(path.read_text()).items()
    }
    slowest = nlargest(SHOWN, tests.items(), key=lambda test: test[1])
    yield f"\nthe slowest of {len(tests)} tests, fixtures included: {sum(took for _, took in slowest):.0f} s"
    yield from (f"{took:8.1f} s  {name}" for name, took in slowest)


if __name__ == "__main__":
    print("\n".join(lines(FOLDER)))
