"""A chain of shops: files of AWS DMS become a table, whose sums follow inserts, an update and a delete.

Run it with `make demo-retail`. The rows are those of the blog post that this lake is modelled on.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from demo.retail.dms import LOADED, documented, write
from demo.story import Story

ROOT = Path(__file__).resolve().parent
TABLES = ("sales_by_state", "sales_by_city", "sales_total")


def run() -> None:
    story = Story(ROOT)
    file = write(ROOT, documented("full"), LOADED)
    story.step("1. The full load", f"14 sales in {file.relative_to(ROOT)}, which has no column `Op`.")
    story.sml("ingest")
    story.sml("run")
    story.show(*TABLES)
    file = write(ROOT, documented("changes"), LOADED + timedelta(hours=1))
    story.step(
        "2. The changes",
        f"{file.name} inserts sale 15, moves sale 12 to Springfield and deletes sale 2, which was New York's smallest.",
    )
    story.sml("ingest")
    story.sml("explain")
    story.sml("run")
    story.show(*TABLES)
    story.step("3. Everything once more", "All files are read from the beginning: no row is doubled, none comes back.")
    story.sml("ingest", "--from", "earliest")
    story.sml("run")
    story.sml("verify")
    story.sml("report")
    story.end("Every table equals its SELECT. The lake is in demo/retail/warehouse/.")


if __name__ == "__main__":
    run()
