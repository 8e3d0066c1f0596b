"""The demo: a change in a shop's database reaches its DWS tables. Owns the story; every step is a `sml` command.

Run it in the project root (`make demo`). It ingests a first part of a Debezium event log, builds the models, ingests a
second part (users that change device model, a deleted order, a late order, a column that appears, a broken line), runs
again, and compares every table with a full recompute.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from time import perf_counter

from sqlmesh_like.cli.app import main

ROOT = Path(__file__).resolve().parent.parent
LANDING = ROOT / "landing" / "shop"
TABLES = ("user_agg", "product_month", "buyers_month")


def tell(heading: str, *story: str) -> None:
    """The heading of a step and what to look at in it."""
    rule = "─" * len(heading)
    shown = f"\033[1m{heading}\033[0m" if sys.stdout.isatty() else heading
    print("", shown, rule, *story, sep="\n", flush=True)


def sml(*words: str) -> None:
    """Run one command as a user would; the demo ends where one fails."""
    print(f"\n$ sml {' '.join(words)}", flush=True)
    code = main([*words, "--project-dir", str(ROOT)])
    if code:
        raise SystemExit(code)


def land(part: str) -> str:
    """Put the files of one part where the source looks for them, in order; how much that is."""
    LANDING.mkdir(parents=True, exist_ok=True)
    files = sorted((ROOT / "demo" / "events" / part).glob("*.jsonl"))
    for file in files:
        shutil.copyfile(file, LANDING / f"{part}-{file.name}")
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    return f"{lines} lines in {len(files)} files are moved into {LANDING.relative_to(ROOT)}/."


def show(*names: str) -> None:
    for name in names:
        sml("show", name)


def first_part() -> None:
    tell("1. Events go in", "A shop's database as Debezium events: a snapshot and two new orders.", land("part1"))
    sml("ingest")
    show("source:shop.user")
    tell("2. Models are built", "Six SELECTs in models/, each one Hudi table. There is nothing yet, so all is built.")
    sml("seed")
    sml("run")
    show(*TABLES)


def second_part() -> None:
    tell(
        "3. The database changes",
        "Two users move to other devices and two sign up, `age` appears; one order is deleted, one moves to another",
        "month, one arrives late with old times; one line is broken. " + land("part2"),
    )
    sml("ingest")
    show("source:shop.user", "source:shop.dead_letters")
    tell("4. What would a run do, and why?", "The plan, read from the SQL and the tables' commits; it starts no JVM.")
    sml("explain")
    tell("5. The tables follow", "Each line ends with the strategy, the rows it touched and the time.")
    sml("run")
    show(*TABLES)
    sml("history", "user_agg")


def proof() -> None:
    tell("6. Is each table what its SELECT says?", "Data tests, then a full recompute of every table to compare with.")
    sml("test")
    sml("verify")
    tell("7. Run again", "Nothing has changed since: no Spark, no commit.")
    sml("run")


def run() -> None:
    started = perf_counter()
    for folder in (ROOT / "warehouse", LANDING):
        shutil.rmtree(folder, ignore_errors=True)
    first_part()
    second_part()
    proof()
    tell(
        f"Done in {perf_counter() - started:.0f} seconds",
        "Every table equals its SELECT. The lake is in warehouse/; go on with: .venv/bin/sml show user_agg",
    )


if __name__ == "__main__":
    run()
