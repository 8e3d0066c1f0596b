"""What Spark did for a section of work, where jobs that run at the same time share stages: no figure is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from sqlmesh_like.run.ports import SparkWork
from sqlmesh_like.spark.jvm.job_metrics import measure_work

_PATIENCE_SECONDS = 600


def wait_until(is_so: Callable[[], bool]) -> None:
    limit = time.monotonic() + _PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(0.02)


def holding(folder: Path) -> Callable[[Iterable[object]], Iterator[object]]:
    """A step of a job that goes on once there is a file `go`; `reached` appears before."""

    def hold(rows: Iterable[object]) -> Iterator[object]:  # runs in a Python worker, which cannot import the tests
        import time

        first = next(iterator := iter(rows))
        (folder / "reached").touch()
        while not (folder / "go").exists():
            time.sleep(0.02)
        yield from (first, *iterator)

    return hold


def test_a_stage_that_another_section_uses_again_is_told_by_the_section_that_ran_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false", "each query would have stages of its own"
    kept = spark.range(10_000).repartition(1).persist()
    results: list[SparkWork | None] = []

    def fill() -> None:
        with measure_work(spark) as work:
            assert kept.rdd.mapPartitions(holding(tmp_path)).count() == 10_000
            results.append(work())

    filling = InheritableThread(target=fill)
    try:
        filling.start()
        wait_until((tmp_path / "reached").exists)
        with measure_work(spark) as work:
            kept.write.format("noop").mode("overwrite").save()
            other = work()
    finally:
        (tmp_path / "go").touch()
        filling.join()
        kept.unpersist()
    assert other is not None and (other.jobs, other.stages, other.bytes_shuffled) == (1, 1, 0)
    (own,) = results
    assert own is not None and (own.jobs, own.stages) == (1, 2) and own.bytes_shuffled > 0


def test_a_stage_that_two_jobs_of_a_section_wait_for_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    context = spark.sparkContext
    numbers = context.parallelize(range(10), 1).mapPartitions(holding(tmp_path)).map(lambda number: (number, 1))
    shared = numbers.reduceByKey(lambda one, other: one + other, 1)
    with measure_work(spark) as work:
        jobs = [InheritableThread(target=shared.count) for _ in range(2)]
        try:
            for job in jobs:
                job.start()
            wait_until(lambda: len(context.statusTracker().getActiveJobsIds()) == 2)
        finally:
            (tmp_path / "go").touch()
            for job in jobs:
                job.join()
        result = work()
    assert result is not None and (result.jobs, result.stages) == (2, 3) and result.bytes_shuffled > 0
