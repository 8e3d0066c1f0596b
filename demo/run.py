"""The demo: a change in a shop's database reaches its DWS tables. Owns the story; every step is a `sml` command.

Run it in the project root (`make demo`). It ingests a first part of a Debezium event log, builds the models, ingests a
second part (users that change device model, a deleted order, a late order, a column that appears), runs again, and
compares every table with a full recompute.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sqlmesh_like.cli.app import main

ROOT = Path(__file__).resolve().parent.parent
LANDING = ROOT / "landing" / "shop"
TABLES = ("user_agg", "product_month", "buyers_month")


def tell(story: str) -> None:
    print(f"\n\033[1m{story}\033[0m" if sys.stdout.isatty() else f"\n== {story}", flush=True)


def sml(*words: str) -> None:
    """Run one command as a user would; the demo ends where one fails."""
    print(f"\n$ sml {' '.join(words)}", flush=True)
    code = main([*words, "--project-dir", str(ROOT)])
    if code:
        raise SystemExit(code)


def land(part: str) -> None:
    """Put the files of one part where the source looks for them, in order."""
    LANDING.mkdir(parents=True, exist_ok=True)
    for file in sorted((ROOT / "demo" / "events" / part).glob("*.jsonl")):
        shutil.copyfile(file, LANDING / f"{part}-{file.name}")


def show(*names: str) -> None:
    for name in names:
        sml("show", name)


def run() -> None:
    for folder in (ROOT / "warehouse", LANDING):
        shutil.rmtree(folder, ignore_errors=True)

    tell("1. The shop's database as it is: a snapshot and some changes, as Debezium events")
    land("part1")
    sml("ingest")
    tell("2. The models, built for the first time")
    sml("run")
    show("source:shop.user", *TABLES)

    tell("3. The database changes: users move to other devices, an order is deleted, one arrives late, `age` is added")
    land("part2")
    sml("ingest")
    tell("4. What a run would do now, and why")
    sml("explain")
    tell("5. The run: each table follows the change")
    sml("run")
    show("source:shop.user", *TABLES)

    tell("6. Is each table what its SELECT says? A full recompute compares")
    sml("verify")


if __name__ == "__main__":
    run()
