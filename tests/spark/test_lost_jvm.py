"""Spark's JVM is killed or runs out of memory in the middle of a run: a word, and the next run is right."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.spark.jvm.spark_errors import failing, without_lost_jvm
from tests.faults.calls import LIMIT, jvm_of, refused, start, wait_until_stopped
from tests.faults.shop import Shop
from tests.faults.tally import Tally, assert_next_run_is_right

HUGE = "select id, length(repeat(region, 1000000000)) as n from {{ ref('customers') }}\n"
"""Each row needs as much memory as the JVM has."""


def _shop(root: Path) -> Shop:
    shop, dice = Shop.made(root), random.Random(3)
    shop.change(dice)
    shop.change(dice)
    return shop


@pytest.mark.timeout(1800)
@pytest.mark.checklist(39)
@pytest.mark.fault("Spark's JVM is killed", ends="recovers")
def test_a_run_whose_jvm_is_killed_says_so_and_the_next_is_right(tmp_path: Path) -> None:
    shop = _shop(tmp_path)
    profile = (tmp_path / "profiles.yml").read_text()
    (tmp_path / "profiles.yml").write_text(profile.replace("schema: dws", "schema: dws\n      delta_engine: spark"))
    call = start(tmp_path, "run", "--full-refresh", fault="spark.write.begin:2:stop")
    wait_until_stopped(call)
    os.kill(jvm_of(call.pid), signal.SIGKILL)
    os.kill(call.pid, signal.SIGCONT)
    output = refused(call, within=LIMIT)
    assert "models/daily.sql: dws.daily: Spark's JVM was killed by SIGKILL" in output, output
    assert "Done. PASS=1" in output, output
    (tmp_path / "profiles.yml").write_text(profile)
    tally = Tally("run", where="JVM killed")
    tally.look_after_kill(shop)
    assert not tally.wrong, tally.wrong
    assert_next_run_is_right(shop, "JVM killed")


@pytest.mark.release
@pytest.mark.timeout(1800)
@pytest.mark.fault("a task of Spark needs more memory than there is", ends="refuses")
def test_a_run_whose_jvm_has_too_little_memory_says_so_and_the_next_is_right(tmp_path: Path) -> None:
    shop = _shop(tmp_path)
    profile = (tmp_path / "profiles.yml").read_text()
    little = profile.replace("spark: {", 'spark: {spark.driver.memory: "512m", ')
    (tmp_path / "profiles.yml").write_text(little)
    (tmp_path / "models" / "huge.sql").write_text(HUGE)
    output = refused(start(tmp_path, "run"), within=LIMIT)
    assert "dws.huge" in output and "memory" in output and "spark.driver.memory" in output, output
    tally = Tally("run", where="out of memory")
    tally.look_after_kill(shop)
    assert not tally.wrong, tally.wrong
    assert Timeline(str(tmp_path / "warehouse" / "dws" / "huge")).frontier is None
    (tmp_path / "models" / "huge.sql").unlink()
    (tmp_path / "profiles.yml").write_text(profile)
    assert_next_run_is_right(shop, "out of memory")


@pytest.mark.parametrize(
    ("command", "said"), [("kill -9 $$", "was killed by SIGKILL"), ("exit 52", "ran out of memory")]
)
def test_errors_after_the_end_of_the_jvm_say_how_it_ended(
    command: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=subprocess.Popen(["sh", "-c", command])))
    for error in (ConnectionRefusedError(111, "Connection refused"), Py4JError("An error occurred"), EOFError()):
        with pytest.raises(NodeError, match=f"dws.region: Spark's JVM {said}"), failing("dws.region"):
            raise error
        with without_lost_jvm():
            raise error


def test_errors_while_the_jvm_runs_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
        with pytest.raises(Py4JError), failing("dws.region"):
            raise Py4JError("An error occurred")
        process.kill()
