"""A shop: changes of its database reach DWD and DWS tables, one change after another. Every step is an `sml` command.

Run it in the project root (`make demo-shop`). The rows and the first changes are those of the document that this lake
is modelled on; then follow cases that it leaves out: deleted, late and moved orders, a new price, a malformed event.
"""

from __future__ import annotations

from pathlib import Path

from demo.shop.log import land
from demo.story import Story

ROOT = Path(__file__).resolve().parents[2]
REVENUE = ("revenue_by_user", "revenue_by_product", "revenue_by_month")


def first_rows(story: Story) -> None:
    lines = land(ROOT, "1-snapshot", "2-new-orders")
    story.step(
        "1. Events go in",
        f"A shop's database as Debezium events, all tables in one log: {lines} lines are moved into landing/shop/.",
    )
    story.sml("ingest")
    story.show("source:shop.user")
    story.step("2. Models are built", "SELECTs in models/, each one Hudi table. There is nothing yet, so all is built.")
    story.sml("seed")
    story.sml("run")
    story.show("user_agg", "dwd_order_detail", *REVENUE)


def documented_changes(story: Story) -> None:
    """Show the documented changes: a column and a user, another name, one more user; each changes the device counts."""
    for heading, message, name in (
        ("3. A column appears", "`alter table user add column age int`, and a user who has one.", "3-age"),
        ("4. A user has another name", "An update: it must not count twice.", "4-renamed"),
        ("5. One more user", "With the device of the last one.", "5-another"),
    ):
        land(ROOT, name)
        story.step(heading, message)
        story.sml("ingest")
        story.sml("run", "-s", "+user_agg")
        story.show("user_agg")
    story.show("source:shop.user")


def more_changes(story: Story) -> None:
    lines = land(ROOT, "6-users", "7-orders")
    story.step(
        "6. The database changes on",
        "Two users take other devices, a price rises; one order is deleted, one moves to another month, one arrives",
        f"late with old times; one line is broken. {lines} lines.",
    )
    story.sml("ingest")
    story.show("source:shop.dead_letters")
    story.step(
        "7. What would a run do, and why?", "The plan, read from the SQL and the tables' commits; it starts no JVM."
    )
    story.sml("explain")
    story.step("8. The tables follow", "Each line ends with the strategy, the rows it touched and the time.")
    story.sml("run")
    story.show("user_agg", *REVENUE, "buyers_month", "product_rank")
    story.sml("history", "user_agg")


def proof(story: Story) -> None:
    story.step(
        "9. Is each table what its SELECT says?", "Data tests, then a full recompute of every table to compare with."
    )
    story.sml("test")
    story.sml("verify")
    story.step("10. Run again", "Nothing has changed since: no Spark, no commit.")
    story.sml("run")


def run() -> None:
    story = Story(ROOT, made=("warehouse", "landing/shop"))
    first_rows(story)
    documented_changes(story)
    more_changes(story)
    proof(story)
    story.sml("report")
    story.end("Every table equals its SELECT. The lake is in warehouse/; go on with: .venv/bin/sml show user_agg")


if __name__ == "__main__":
    run()
