"""The process dies: a run killed at any moment leaves the old table or the new one, and the next run is right."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from sqlmesh_like.hudi import timeline
from tests.levels import parametrize
from tests.spark.lake import ORDERS, Lake, Table

D = Decimal
REPOSITORY = Path(__file__).parents[3]

CHILD = """
import os, signal, sys
from pathlib import Path
from sqlmesh_like.spark.tables import hudi_table as tables
from sqlmesh_like.spark.jvm.session import start_session
from tests.spark.lake import Lake

root, moment = Path(sys.argv[1]), sys.argv[2]

def session():
    from sqlmesh_like.project.nodes import Target
    settings = {"spark.sql.shuffle.partitions": "2"}
    target = Target("test", "test", "spark", warehouse=str(root / "warehouse"), master="local[2]", spark=settings)
    return start_session(target, "child", log_file=root / "child.log", is_short=True)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def local(*parts):
    # What this process writes without Spark.
    from sqlmesh_like.hudi.writer import upsert as writer
    from sqlmesh_like.hudi.writer.open_commit import OpenCommit
    owner = OpenCommit if parts[0] in vars(OpenCommit) else writer
    real = getattr(owner, parts[0])
    def dying(*arguments, **named):
        if parts[1] == "after":
            real(*arguments, **named)
        die()
    setattr(owner, parts[0], dying)

is_local = "," in moment  # then Spark is not even started
spark = None if is_local else session()
if is_local:
    local(*moment.split(","))
elif moment == "after the commit":
    real = tables.write
    def write(*arguments):
        real(*arguments)
        die()
    tables.write = write
else:
    # A task of the write itself kills the process: its files are begun, its commit never is.
    from pyspark.sql import functions as F
    parent = os.getpid()
    real = tables.write
    def write(frame, *rest):
        @F.udf("boolean")
        def last_words(_):
            os.kill(parent, signal.SIGKILL)
            return False
        poisoned = frame.withColumn("_hoodie_is_deleted", last_words(frame["_sml_key"]))
        real(poisoned, *rest)
    tables.write = write
Lake(spark, root, start=session, fresh=False).run()
"""


@pytest.fixture
def orders(lake: Lake) -> Table:
    lake.model("agg", "select city, sum(amount) as total, count(*) as n from @orders group by city")
    table = lake.source("orders", ORDERS, partition="ym")
    table.upsert((1, 1, D("5.00"), "x", "m1"), (2, 2, D("6.00"), "y", "m2"))
    return table


def run_and_die(lake: Lake, moment: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", CHILD, str(lake.root), moment]
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=900)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]


MOMENTS = ("open_commit,after", "mark,after", "add_partition,after", "merge_file,before", "complete,before",
    "complete,after")  # fmt: skip
"""Of a commit without Spark, which `tests/faults/test_kills.py` kills at each of its steps."""


@pytest.mark.release
@pytest.mark.parametrize("moment", [*MOMENTS, "merge_file,after"])
@pytest.mark.fault("a run is killed in a commit", ends="recovers")
def test_killed_in_a_commit_without_spark_the_next_run_is_right(moment: str, lake: Lake, orders: Table) -> None:
    lake.run_well()
    orders.upsert((1, 1, D("7.00"), "x", "m1"), (3, 3, D("1.00"), "x", "m1"))
    run_and_die(lake, moment)
    is_done = moment == "complete,after"
    assert bool(lake.timeline("agg").pending) != is_done
    after = [("x", D("8.00"), 2), ("y", D("6.00"), 1)]
    assert lake.rows("agg") == (after if is_done else [("x", D("5.00"), 1), ("y", D("6.00"), 1)])
    if moment == "merge_file,after":
        lake.use_engine("spark")  # Hudi's writer removes what was left, too
    assert lake.run_well() == {"agg": "no_op" if is_done else "aggregate_merge"}
    assert not lake.timeline("agg").pending and lake.rows("agg") == after
    assert len(lake.timeline("agg").data_files) == 2, "nothing is left of the commit that was cut off"
    lake.assert_maintained()


@pytest.mark.release
@pytest.mark.fault("a run is killed in a commit", ends="recovers")
def test_killed_right_after_the_commit_nothing_is_applied_twice(lake: Lake, orders: Table) -> None:
    lake.use_engine("spark")
    lake.run_well()
    orders.upsert((1, 1, D("7.00"), "x", "m1"), (3, 3, D("1.00"), "x", "m1"))
    run_and_die(lake, "after the commit")
    assert lake.rows("agg") == [("x", D("8.00"), 2), ("y", D("6.00"), 1)]
    assert lake.run_well() == {"agg": "no_op"}
    orders.upsert((4, 4, D("1.00"), "y", "m1"))
    assert lake.run_well() == {"agg": "aggregate_merge"}
    lake.assert_maintained()
    assert lake.rows("agg") == [("x", D("8.00"), 2), ("y", D("7.00"), 2)]


@pytest.mark.release
@pytest.mark.checklist(39)
@pytest.mark.fault("a run is killed in a commit", ends="recovers")
def test_killed_in_the_middle_of_a_write_the_next_run_does_it_again(lake: Lake, orders: Table) -> None:
    lake.use_engine("spark")
    lake.run_well()
    orders.upsert((1, 1, D("7.00"), "x", "m1"), (3, 3, D("1.00"), "x", "m1"))
    run_and_die(lake, "in the middle")
    assert lake.timeline("agg").pending, "an inflight commit was left behind"
    assert lake.rows("agg") == [("x", D("5.00"), 1), ("y", D("6.00"), 1)]
    assert lake.run_well() == {"agg": "aggregate_merge"}
    assert not lake.timeline("agg").pending
    lake.assert_maintained()
    assert lake.rows("agg") == [("x", D("8.00"), 2), ("y", D("6.00"), 1)]


@pytest.mark.release
@pytest.mark.fault("a run is killed in a commit", ends="recovers")
def test_killed_in_the_middle_of_the_first_build_the_next_run_builds(lake: Lake, orders: Table) -> None:
    lake.use_engine("spark")
    run_and_die(lake, "in the middle")
    assert lake.run_well() == {"agg": "full_refresh"}
    lake.assert_maintained()
    assert lake.rows("agg") == [("x", D("5.00"), 1), ("y", D("6.00"), 1)]


HALF_MADE = {
    "no properties": None,
    "empty": "",
    "cut short": "#Properties saved\nhoodie.table.type=COPY_ON_WRITE\nhood",
}


@parametrize(
    "properties",
    suite=[pytest.param(HALF_MADE["cut short"], id="cut short")],
    release=[pytest.param(HALF_MADE[name], id=name) for name in ("no properties", "empty")],
)
@pytest.mark.fault("a table was only half created", ends="recovers")
def test_a_table_that_was_half_made_is_made_again(
    properties: str | None, lake: Lake, orders: Table, caplog: pytest.LogCaptureFixture
) -> None:
    root = Path(lake.uri("agg"))
    (root / ".hoodie" / "timeline").mkdir(parents=True)
    if properties is not None:
        (root / ".hoodie" / "hoodie.properties").write_text(properties)
    (root / "0000-aa_0-15-189_20200101000000000.parquet").touch()
    assert lake.run_well() == {"agg": "full_refresh"}
    assert f"{root} was never finished" in caplog.text
    lake.assert_maintained()
    orders.upsert((4, 4, D("1.00"), "y", "m1"))
    assert lake.run_well() == {"agg": "aggregate_merge"}
    assert lake.rows("agg") == [("x", D("5.00"), 1), ("y", D("7.00"), 2)]


@pytest.mark.fault("a commit of a model is truncated or overwritten", ends="refuses")
def test_a_table_whose_newest_commit_is_broken_is_built_again_when_that_is_asked_for(lake: Lake, orders: Table) -> None:
    lake.model("top", "select city, total from {{ ref('agg') }} where total > 5")
    lake.model("other", "select id, amount from @orders")
    lake.run_well()
    newest = max(Path(lake.uri("agg"), ".hoodie/timeline").glob("*commit"))
    newest.write_bytes(newest.read_bytes()[:100])
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    timeline._table_commits.cache_clear()  # as in the next process
    orders.upsert((3, 3, D("9.00"), "x", "m1"))
    results = lake.run()
    assert {name: result.status for name, result in results.items()} == {
        "agg": "error", "top": "skipped", "other": "success",
    }  # fmt: skip
    assert newest.name in results["agg"].message and "not commit metadata" in results["agg"].message
    assert "sml run --full-refresh --select agg" in results["agg"].message
    rebuilt = lake.run("agg", full_refresh=True)
    assert rebuilt["agg"].strategy == "full_refresh" and rebuilt["agg"].status == "success"
    assert lake.run_well() == {"agg": "no_op", "top": "recompute_merge", "other": "no_op"}
    assert "HIS003" in lake.rules("top")
    lake.assert_maintained()
    assert lake.rows("agg") == [("x", D("14.00"), 2), ("y", D("6.00"), 1)]


@pytest.mark.fault("a model's table loses data files, then its timeline", ends="recovers")
def test_a_table_that_lost_a_data_file_or_its_timeline_never_shows_fewer_rows_or_more(
    lake: Lake, orders: Table
) -> None:
    lake.model("rows", "select id, amount from @orders")
    lake.run_well()
    orders.upsert((3, 3, D("9.00"), "x", "m1"))
    lake.run_well()
    for name in ("agg", "rows"):
        max(Path(lake.uri(name)).glob("*.parquet"), key=lambda path: path.name.split("_")[-1]).unlink()
    orders.upsert((4, 4, D("1.00"), "y", "m1"))
    # An upsert would merge with the file before the one that is gone.
    assert lake.run_well() == {"agg": "full_refresh", "rows": "full_refresh"}
    assert "HIS006" in lake.rules("agg") & lake.rules("rows")
    lake.assert_maintained()

    for path in Path(lake.uri("rows"), ".hoodie", "timeline").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    timeline._table_commits.cache_clear()
    failed = lake.run("rows")["rows"]
    assert failed.status == "error" and "and no commit" in failed.message
    assert "sml run --full-refresh --select rows" in failed.message
    assert lake.run("rows", full_refresh=True)["rows"].status == "success"
    assert len(lake.rows("rows")) == 4  # those of the files without a commit do not count again


@pytest.mark.release
@pytest.mark.fault("an input is restored to a savepoint", ends="recovers")
def test_an_input_that_went_back_to_a_savepoint_is_read_from_there(lake: Lake, orders: Table) -> None:
    lake.model("big", "select id, amount from @orders where amount > 5")
    lake.run_well("agg")
    saved = orders.timeline.completed[-1].requested
    lake.spark.sql(f"call create_savepoint(path => '{orders.uri}', commit_time => '{saved}')").collect()
    orders.upsert((3, 3, D("9.00"), "x", "m1"))
    lake.run_well("big")
    lake.spark.sql(f"call rollback_to_savepoint(path => '{orders.uri}', instant_time => '{saved}')").collect()
    assert "restore" in {instant.action for instant in orders.timeline.completed}
    # What was read before the savepoint is as it was; what read the commit that was undone is compared with all of it.
    assert lake.run_well() == {"agg": "no_op", "big": "recompute_merge"}
    lake.assert_maintained()
    assert lake.rows("big") == [(2, D("6.00"))]
    orders.upsert((1, 5, D("8.00"), "x", "m1"))
    assert lake.run_well() == {"agg": "aggregate_merge", "big": "row_based"}
    lake.assert_maintained()
