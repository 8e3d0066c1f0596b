"""What Spark did during a section of one thread's work. Owns reading Spark's status store, not how it is reported.

Jobs are identified by a tag, not by a job group: Hudi and Spark may set groups and descriptions within the section, and
models run in parallel. A tag is a local property of the thread, which Spark passes on to the threads that it starts for
broadcasts and query stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sqlmesh_like.run.ports import SparkWork

_LONGEST_WAIT = 1000
"""Milliseconds to wait until events of completed jobs are in the store; usually they already are."""
_numbers = count(1)


@contextmanager
def measure_work(session: SparkSession) -> Iterator[Callable[[], SparkWork | None]]:
    """Count the work that this thread starts within the context; the function returns it so far.

    It returns None where work cannot be assigned: without pinned threads, JVM threads do not match Python's.
    """
    context = session.sparkContext
    if not isinstance(context._gateway, ClientServer):
        yield lambda: None
        return
    tag = f"sml-{next(_numbers)}"
    context.addJobTag(tag)
    try:
        yield lambda: _work(context, tag)
    finally:
        context.removeJobTag(tag)


@dataclass(frozen=True)
class _Stage:
    """The bytes that a stage read from files and wrote for other stages."""

    read: int
    shuffled: int


def _work(context: SparkContext, tag: str) -> SparkWork | None:
    """The work under a tag, without skipped stages; None where the store no longer has all of it.

    The store keeps the last thousand jobs and stages (`spark.ui.retainedJobs`, `spark.ui.retainedStages`) and drops
    skipped stages first.
    """
    jvm: Any = context._jvm
    scala: Any = context._jsc.sc()
    stages: dict[int, _Stage] = {}
    try:
        scala.listenerBus().waitUntilEmpty(_LONGEST_WAIT)
        store = scala.statusStore()
        numbers = _numbers_in(jvm.java.util.Arrays.toString(scala.statusTracker().getJobIdsForTag(tag)))
        for job in [store.job(number) for number in numbers]:
            own = _stages_of(store, job)
            if own is None:
                return None
            stages |= own
    except Py4JJavaError:
        return None
    ran = stages.values()
    return SparkWork(len(numbers), len(stages), sum(stage.read for stage in ran), sum(stage.shuffled for stage in ran))


def _stages_of(store: Any, job: Any) -> dict[int, _Stage] | None:
    """The stages that ran for a job, by number; None where the store no longer has all of them.

    Jobs that run at the same time share stages, such as those that fill a cache. Where one begins after such a stage
    completed for another, Spark replaces the stage's entry by that of a skipped one. What executors did for it stays.
    """
    ran, others = dict[int, _Stage](), dict[int, int]()
    for number in _numbers_in(job.stageIds().mkString("[", ",", "]")):
        stage = _last_attempt(store, number)
        if stage is not None and stage.numCompleteTasks():
            ran[number] = _Stage(stage.inputBytes(), stage.shuffleWriteBytes())
        elif stage is not None:
            others[number] = stage.attemptId()
    lacking = job.numCompletedStages() + job.numFailedStages() - len(ran)
    if lacking <= 0:
        return ran
    replaced = {number: _sum_of_executors(store, number, attempt) for number, attempt in others.items()}
    recovered = {number: stage for number, stage in replaced.items() if stage is not None}
    return ran | recovered if len(recovered) == lacking else None


def _last_attempt(store: Any, number: int) -> Any:
    """The last attempt of a stage; None where the store has dropped it."""
    try:
        return store.lastStageAttempt(number)
    except Py4JJavaError:
        return None


def _sum_of_executors(store: Any, number: int, attempt: int) -> _Stage | None:
    """What executors did for an attempt of a stage; None where they did nothing."""
    summaries, read, shuffled, tasks = store.executorSummary(number, attempt).values().iterator(), 0, 0, 0
    while summaries.hasNext():
        summary = summaries.next()
        read, shuffled = read + summary.inputBytes(), shuffled + summary.shuffleWrite()
        tasks += summary.succeededTasks()
    return _Stage(read, shuffled) if tasks else None


def _numbers_in(text: str) -> list[int]:
    """Parse a list that was fetched as text: fetching each number would be a call to the JVM.

    >>> _numbers_in("[3, 1]"), _numbers_in("[]")
    ([3, 1], [])
    """
    return [int(part) for part in text.strip("[]").split(",") if part]
