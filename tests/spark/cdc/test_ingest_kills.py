"""The ingesting process is killed anywhere: nothing lost or doubled, no table ahead of what it records.

`make test` kills it at random moments, `make test-deep` at each named step too.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.fault_points import FAULT_VARIABLE, INGEST_POINTS
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from tests.faults.calls import LIMIT, files_below, wait_for_files, wait_for_group
from tests.faults.tally import SEED, Tally, tallied
from tests.levels import IS_DEEP, count
from tests.spark.ingest_lake import Lake, event, table

REPOSITORY = Path(__file__).parents[3]
KILLS = count(1, 5, 30)
STEPS = [step for step in INGEST_POINTS if step not in ("ingest.truncates", "ingest.floors")] if IS_DEEP else []
"""Without those of a truncated table."""
PENDING = 4
"""Batches that each process has before it: more than it takes in until it is killed, however late that is."""
FILES_OF_A_BATCH = 70
"""About how many files a batch makes: a moment is when so many more are there, which no slow machine moves."""
TABLES = (table("a", order_by=("m",)), table("b"))

CHILD = """
import sys
from pathlib import Path
from sqlmesh_like.spark.jvm.session import start_session
from sqlmesh_like.project.nodes import Target
from tests.spark.cdc.test_ingest_kills import lake_in

root = Path(sys.argv[1])
settings = {"spark.sql.shuffle.partitions": "1", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
target = Target("test", "test", "spark", warehouse=str(root / "warehouse"), master="local[2]", spark=settings)
lake_in(start_session(target, "child", log_file=root / "child.log"), root, "spark").run()
"""

Rows = dict[int, int]


def lake_in(spark: SparkSession, root: Path, delta_engine: Literal["auto", "spark"] = "auto") -> Lake:
    """Spark is killed; what it leaves is ended without it in the suite, and by it in a release."""
    return Lake(spark, root, TABLES, {"max_files_per_batch": 1}, delta_engine=delta_engine)


def land(lake: Lake, states: list[dict[str, Rows]], dice: random.Random) -> None:
    """Land the events of one more batch, and add what each table must hold after it to `states`."""
    rows = {name: dict(states[-1][name]) if states else {} for name in ("a", "b")}
    lines = [line for name in rows for line in _events(name, rows[name], len(states), dice)]
    lake.land(*lines, "{no event")
    states.append(rows)


def batches_taken(lake: Lake) -> int:
    """How many batches a table has taken in: of the two that a kill left apart, the one that is further."""
    return max(0 if (number := recorded_file(Timeline(lake.uri(name)))) is None else number + 1 for name in ("a", "b"))


def _events(name: str, rows: Rows, batch: int, dice: random.Random) -> list[str]:
    lines = []
    for number in range(6):
        m, key = 10 * batch + number, dice.randrange(8)
        before = {"id": key, "m": rows[key]} if key in rows else None
        if before is not None and dice.random() < 0.4:
            lines.append(event("d", None, before, table=name))
            del rows[key]
        else:
            lines.append(event("u" if before else "c", {"id": key, "m": m}, before, table=name))
            rows[key] = m
    return lines


def killed_at(root: Path, step: str) -> None:
    """Ingest in another process, which dies at a named step."""
    child = _ingest(root, {FAULT_VARIABLE: step})
    assert child.wait(timeout=LIMIT) == -signal.SIGKILL, (root / "child.err").read_text()[-2000:]
    wait_for_group(child.pid)


def killed_after(root: Path, files: int, *, whole: bool) -> None:
    """Ingest in another process, and kill it (the `whole` group, or Python alone) after so many new files."""
    before = files_below(root / "warehouse")
    child = _ingest(root, {})
    wait_for_files(root / "warehouse", before, files, lambda: child.poll() is not None)
    (os.killpg if whole else os.kill)(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL, (root / "child.err").read_text()[-2000:]
    wait_for_group(child.pid)


def _ingest(root: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with (root / "child.err").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, str(root)],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
            cwd=REPOSITORY,
            stdout=errors,
            stderr=errors,
            start_new_session=True,
        )


def look(tally: Tally, lake: Lake, states: list[dict[str, Rows]]) -> None:
    """Each table holds exactly what the events leave up to the file that its newest commit records.

    A batch may hold two files: Spark, killed after it listed a batch's files and before it planned the batch, takes
    the next batch's files along.
    """
    for name in ("a", "b"):
        timeline = Timeline(lake.uri(name))
        number = recorded_file(timeline)
        expected = {} if number is None else states[number][name]
        tally.compare(rows_of(timeline), sorted(expected.items()), name)


def recorded_file(timeline: Timeline) -> int | None:
    """Number of the last file that a table's newest commit records; none before its first commit."""
    recorded = timeline.extra("sml.ingest") if timeline.frontier else None
    return None if recorded is None else int(Path(json.loads(recorded)["offsets"]["last"]).stem)


def rows_of(timeline: Timeline) -> list[tuple[Any, ...]]:
    if timeline.frontier is None:
        return []
    stored = read_table_rows(table_state(timeline), -1)
    assert stored is not None
    return sorted(stored.rows)  # type: ignore[type-var]


@pytest.mark.checklist(6, 15, 36, 39, 56)
@pytest.mark.timeout(200 * (KILLS + len(STEPS)))
def test_killed_at_any_moment_every_event_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(SEED)
    lake = lake_in(spark, tmp_path)
    states: list[dict[str, Rows]] = []
    with tallied("ingestion") as tally:
        for kill, step in enumerate([*STEPS, *[None] * KILLS]):
            while len(states) < batches_taken(lake) + PENDING:
                land(lake, states, dice)
            if step:
                killed_at(tmp_path, f"{step}:{dice.randint(1, 2)}")
            else:
                killed_after(tmp_path, dice.randint(1, FILES_OF_A_BATCH), whole=kill % 2 == 0)
            tally.killed(step or "at random")
            look(tally, lake, states)
        report = lake.run()
        assert not report.failed, report
        look(tally, lake, states)
    assert {name: dict(rows_of(Timeline(lake.uri(name)))) for name in ("a", "b")} == states[-1]
    assert [text for _, _, _, text in lake.dead_letters()] == ["{no event"] * len(states)
    assert lake.run().tables == ()
