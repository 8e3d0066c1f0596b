"""A property developer: one wide log becomes dimensions and a fact, and answers questions that move with the clock.

Run it with `make demo-estate`. The log is written by hand: the document that the lake is modelled on shows no rows.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from demo.estate.log import EVENTS, documented, write
from demo.story import Story

ROOT = Path(__file__).resolve().parent
RULE = ROOT / "seeds" / "commission_rule.csv"
DAYS = ("2024-05-02T12:00:00Z", "2024-05-03T12:00:00Z")
TABLES = ("events_by_hour", "deals_today", "contracts_by_agent", "hard_units", "agent_success", "demanding_customers")


def run() -> None:
    story = Story(ROOT)
    file = write(ROOT, documented("part1"), "part1")
    story.step(
        "1. The log until 2 May, noon", f"Nine records in {file.relative_to(ROOT)}; the clock is fixed for all to see."
    )
    story.sml("ingest")
    story.sml("build", "--now", DAYS[0])
    story.show(*TABLES)
    write(ROOT, documented("part2"), "part2")
    story.step(
        "2. A day later",
        "A contract of yesterday is corrected, an agent has another name, a deal is made; and what is older than a day",
        "or a year leaves its table without any record that says so.",
    )
    story.sml("ingest")
    story.sml("run", "--now", DAYS[1])
    story.show(*TABLES)
    _with_another_rule(story)
    story.sml("verify")
    story.sml("report")
    story.end("Every table equals its SELECT. The lake is in demo/estate/warehouse/.")


def _with_another_rule(story: Story) -> None:
    story.step(
        "3. Another rule", "Commission is due in three parts from now on: the seed changes, all history follows."
    )
    story.show("commissions")
    old = RULE.read_bytes()
    try:
        shutil.copyfile(EVENTS / "new_rule.csv", RULE)
        story.sml("seed")
        story.sml("run", "--now", DAYS[1])
    finally:
        RULE.write_bytes(old)
    story.show("commissions")


if __name__ == "__main__":
    run()
