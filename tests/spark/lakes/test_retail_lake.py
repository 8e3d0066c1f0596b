"""The retail lake: files of DMS, and the sums that its documents' rows lead to, exactly, after each step."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import redirect_stdout
from datetime import timedelta
from decimal import Decimal as D
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demo.retail.dms import FOLDER, LOADED, Chain, documented, write
from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.timeline import Timeline
from tests.levels import IS_DEEP
from tests.spark.demo_lake import DemoLake

ROUNDS, TIMES = (10, 1000) if IS_DEEP else (2, 20)


@pytest.fixture
def retail(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoLake:
    return DemoLake.of("retail", spark, tmp_path, monkeypatch)


IL = ("IL", 10, 122, D("1382.50"), D("106.25"), D("196.25"))
CA = ("CA", 2, 21, D("322.50"), D("136.25"), D("186.25"))
NY = ("NY", 2, 17, D("282.50"), D("116.25"), D("166.25"))
CITIES = [
    ("CHICAGO", "IL", 9, 115, D("1256.25")),
    ("NEW YORK", "NY", 2, 17, D("282.50")),
    ("SAN FRANCISCO", "CA", 2, 21, D("322.50")),
    ("SPRINGFIELD", "IL", 1, 7, D("126.25")),
]
DATES = [
    ("2019-03-10", 1, D("186.25")),
    ("2019-03-11", 2, D("322.50")),
    ("2019-03-13", 1, D("196.25")),
    ("2019-03-14", 2, D("272.50")),
    ("2019-03-15", 2, D("242.50")),
    ("2019-03-16", 3, D("368.75")),
    ("2019-03-17", 2, D("242.50")),
    ("2019-03-18", 1, D("156.25")),
]


def dates(lake: DemoLake) -> list[tuple[object, ...]]:
    return [(row[0], row[1], row[3]) for row in lake.rows("sales_by_date")]


@pytest.mark.checklist(9, 10, 24, 32, 33, 34, 36, 37, 40, 48, 49, 51, 55, 62, 67)
def test_the_documents_sums_after_the_full_load_and_after_the_changes(retail: DemoLake) -> None:
    full = write(retail.root, documented("full"), LOADED)
    retail.sml("ingest")
    retail.sml("run")
    assert retail.rows("sales_total") == [(14, 160, D("1987.50"))]
    assert retail.rows("sales_by_state") == [CA, IL, NY]
    assert [row[:5] for row in retail.rows("sales_by_city")] == CITIES
    assert dates(retail) == DATES
    first, loaded = retail.frontier("sales_by_state"), retail.frontier("retail_transactions", "ods")
    stored = retail.rows("retail_transactions", "ods")
    assert stored[0][1] == "2019-03-17", "the day is kept as text"

    changes = write(retail.root, documented("changes"), LOADED + timedelta(hours=1))
    # A full load that is moved gets the time of its move: what DMS wrote before that is older than what was read.
    os.utime(changes, (full.stat().st_mtime - 1000,) * 2)
    measured = retail.root / "retail.prom"
    retail.sml("ingest", "--metrics-file", str(measured))
    counted = [line for line in measured.read_text().splitlines() if "_events_total{" in line]
    assert len(counted) == 1 and counted[0].endswith(" 3"), "an insert, an update and a delete"
    done = [(row["inserts"], row["updates"], row["deletes"]) for row in retail.history("retail_transactions")]
    assert done == [(14, 0, 0), (1, 1, 1)], "a full load and an increment"
    retail.sml("run")
    after(retail)
    assert retail.strategy("sales_by_state") == "aggregate_merge"

    with redirect_stdout(StringIO()) as printed:
        retail.sml("ddl", "sales_by_state", "--dialect", "athena")
    assert "`_hoodie_file_name` string,\n" in printed.getvalue() and "`largest` decimal(12,2)" in printed.getvalue()
    past = retail.json("show", "sales_by_state", "--as-of", first)
    assert {row["store_state"]: row["smallest"] for row in past}["NY"] == "116.25", "as it was before the changes"
    as_loaded = retail.json("show", "source:retail.retail_transactions", "--as-of", loaded)
    assert sorted(int(str(row["tran_id"])) for row in as_loaded) == list(range(1, 15))
    moved = retail.json("changes", "retail_transactions", "--since", loaded)
    assert {(row["_change"], row["tran_id"], row["store_city"]) for row in moved} == {
        ("insert", 15, "CHICAGO"), ("delete", 2, "NEW YORK"),
        ("update_before", 12, "CHICAGO"), ("update_after", 12, "SPRINGFIELD"),
    }  # fmt: skip
    assert not retail.json("changes", "retail_transactions", "--since", loaded, "--until", loaded)

    # Everything once more, the full load being the newest file now; and four changes of one sale in any order.
    os.utime(full, (changes.stat().st_mtime + 100,) * 2)
    of_one = [("U", 2), ("D", 4), ("I", 1), ("U", 3)]
    moments = [(op, LOADED.replace(tzinfo=None) + timedelta(hours=2, seconds=second)) for op, second in of_one]
    sale = {**documented("changes")[0], "tran_id": 99}
    write(
        *(retail.root, [{**sale, "Op": op, "dms_received_ts": moment} for op, moment in moments]),
        LOADED + timedelta(hours=2),
    )
    retail.sml("ingest", "--from", "earliest")
    retail.sml("run")
    after(retail)
    commits = retail.commits("retail_transactions", "ods")
    retail.sml("ingest")
    assert retail.commits("retail_transactions", "ods") == commits, "from the beginning was for that run alone"
    retail.sml("verify")


def after(lake: DemoLake) -> None:
    """New York's smallest sale is gone, sale 12 is Springfield's, sale 15 is new."""
    assert lake.rows("sales_total") == [(14, 171, D("1997.50"))]
    assert lake.rows("sales_by_state") == [
        CA, ("IL", 11, 139, D("1508.75"), D("106.25"), D("196.25")), ("NY", 1, 11, D("166.25"), *[D("166.25")] * 2),
    ]  # fmt: skip
    assert [row[:5] for row in lake.rows("sales_by_city")] == [
        ("CHICAGO", "IL", 9, 116, D("1266.25")), ("NEW YORK", "NY", 1, 11, D("166.25")), CITIES[2],
        ("SPRINGFIELD", "IL", 2, 23, D("242.50")),
    ]  # fmt: skip
    assert dates(lake) == [*DATES[:5], ("2019-03-16", 3, D("378.75")), *DATES[6:]]


@pytest.mark.checklist(14, 38)
def test_a_continuous_run_takes_in_the_files_that_appear_until_it_is_told_to_stop(retail: DemoLake) -> None:
    seen: list[int] = []

    def wait_for(commits: int) -> None:
        limit = time.monotonic() + 600
        while (number := retail.commits("retail_transactions", "ods")) < commits and time.monotonic() < limit:
            time.sleep(0.2)
        seen.append(number)

    def outside() -> None:
        try:
            wait_for(1)
            write(retail.root, documented("changes"), LOADED + timedelta(hours=1))
            wait_for(2)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    write(retail.root, documented("full"), LOADED)
    watcher = threading.Thread(target=outside)
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # the run may have ended by itself when the signal comes
    try:
        watcher.start()
        code = main(["ingest", "--continuous", "--trigger", "1 second", "--project-dir", str(retail.root)])
        watcher.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (code, seen) == (143, [1, 2])
    numbers = {row[0] for row in retail.rows("retail_transactions", "ods")}
    assert numbers == {*range(1, 16)} - {2}


@pytest.mark.release
@pytest.mark.checklist(30, 45)
@pytest.mark.timeout(3600)
def test_a_large_chain_is_followed_round_by_round(retail: DemoLake) -> None:
    """With tables that are merged on read: one is compacted by command, one by its own writes."""
    chain = Chain(seed=1)
    sources = retail.root / "models" / "ods" / "sources.yml"
    sources.write_text(sources.read_text().replace("primary_key:", "table_type: mor\n          primary_key:"))
    write(retail.root, chain.load(14 * TIMES), LOADED)
    options = "{'hoodie.compact.inline': 'true', 'hoodie.compact.inline.max.delta.commits': '1'}"
    total = retail.root / "models" / "dws" / "sales_total.sql"
    total.write_text(f"{{{{ config(table_type='mor', hudi={options}) }}}}\n{total.read_text()}")
    for number in range(ROUNDS):
        received = LOADED + timedelta(hours=number + 1)
        write(retail.root, chain.change(3 * TIMES), received)
        retail.sml("ingest")
        retail.sml("run")
        totals = [(len(chain.sales), sum(int(str(sale["quantity"])) for sale in chain.sales.values()))]
        assert [row[:2] for row in retail.rows("sales_total")] == totals
        if number == 1:
            retail.sml("maintain", "-s", "source:retail")
            compacted = Timeline(retail.uri("retail_transactions", "ods")).compactions
            assert len(compacted) == 1
            retail.sml("run")
            assert retail.commits("sales_total") == 2, "a compaction is no change"
    assert Timeline(retail.uri("sales_total")).compactions
    assert len(list((retail.root / FOLDER).glob("*.parquet"))) == ROUNDS + 1
    retail.sml("verify")
