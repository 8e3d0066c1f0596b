"""The demo: a change in a shop's database reaches its DWS tables. Owns the story; every step is a `sml` command.

Run it in the project root (`make demo`). It ingests a first part of a Debezium event log, builds the models, ingests a
second part (users that change device model, a deleted order, a late order, a column that appears, a broken line), runs
again, and compares every table with a full recompute.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from demo.story import Story

ROOT = Path(__file__).resolve().parent.parent
LANDING = ROOT / "landing" / "shop"
TABLES = ("user_agg", "product_month", "buyers_month")


def land(part: str) -> str:
    """Put the files of one part where the source looks for them, in order; how much that is."""
    LANDING.mkdir(parents=True, exist_ok=True)
    files = sorted((ROOT / "demo" / "events" / part).glob("*.jsonl"))
    for file in files:
        shutil.copyfile(file, LANDING / f"{part}-{file.name}")
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    return f"{lines} lines in {len(files)} files are moved into {LANDING.relative_to(ROOT)}/."


def first_part(story: Story) -> None:
    story.tell("1. Events go in", "A shop's database as Debezium events: a snapshot and two new orders.", land("part1"))
    story.sml("ingest")
    story.show("source:shop.user")
    story.tell(
        "2. Models are built", "Six SELECTs in models/, each one Hudi table. There is nothing yet, so all is built."
    )
    story.sml("seed")
    story.sml("run")
    story.show(*TABLES)


def second_part(story: Story) -> None:
    story.tell(
        "3. The database changes",
        "Two users move to other devices and two sign up, `age` appears; one order is deleted, one moves to another",
        "month, one arrives late with old times; one line is broken. " + land("part2"),
    )
    story.sml("ingest")
    story.show("source:shop.user", "source:shop.dead_letters")
    story.tell(
        "4. What would a run do, and why?", "The plan, read from the SQL and the tables' commits; it starts no JVM."
    )
    story.sml("explain")
    story.tell("5. The tables follow", "Each line ends with the strategy, the rows it touched and the time.")
    story.sml("run")
    story.show(*TABLES)
    story.sml("history", "user_agg")


def proof(story: Story) -> None:
    story.tell(
        "6. Is each table what its SELECT says?", "Data tests, then a full recompute of every table to compare with."
    )
    story.sml("test")
    story.sml("verify")
    story.tell("7. Run again", "Nothing has changed since: no Spark, no commit.")
    story.sml("run")


def run() -> None:
    story = Story(ROOT, made=("warehouse", "landing/shop"))
    first_part(story)
    second_part(story)
    proof(story)
    story.end("Every table equals its SELECT. The lake is in warehouse/; go on with: .venv/bin/sml show user_agg")


if __name__ == "__main__":
    run()
