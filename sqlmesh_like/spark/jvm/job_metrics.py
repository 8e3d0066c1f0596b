"""What Spark did during a section of one thread's work. Owns reading Spark's status store, not how it is reported.

Jobs are identified by a tag, not by a job group: Hudi and Spark may set groups and descriptions within the section, and
models run in parallel. A tag is a local property of the thread, which Spark passes on to the threads that it starts for
broadcasts and query stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
def measured(session: SparkSession) -> Iterator[Callable[[], SparkWork | None]]:
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


def _work(context: SparkContext, tag: str) -> SparkWork | None:
    """The work under a tag, without skipped stages; None where the store no longer has all of it.

    The store keeps the last thousand jobs and stages (`spark.ui.retainedJobs`, `spark.ui.retainedStages`) and drops
    skipped stages first.
    """
    jvm: Any = context._jvm
    scala: Any = context._jsc.sc()
    try:
        scala.listenerBus().waitUntilEmpty(_LONGEST_WAIT)
        store = scala.statusStore()
        numbers = _numbers_in(jvm.java.util.Arrays.toString(scala.statusTracker().getJobIdsForTag(tag)))
        jobs = [store.job(number) for number in numbers]
        stage_ids = {number for job in jobs for number in _numbers_in(job.stageIds().mkString("[", ",", "]"))}
        awaited = sum(job.numCompletedStages() + job.numFailedStages() for job in jobs)
    except Py4JJavaError:
        return None
    stages = (_stage(store, number) for number in sorted(stage_ids))
    ran = [stage for stage in stages if stage is not None and stage.numCompleteTasks()]
    if len(ran) < awaited:
        return None
    read, shuffled = sum(stage.inputBytes() for stage in ran), sum(stage.shuffleWriteBytes() for stage in ran)
    return SparkWork(len(jobs), len(ran), read, shuffled)


def _stage(store: Any, number: int) -> Any:
    """The last attempt of a stage; None where the store has dropped it."""
    try:
        return store.lastStageAttempt(number)
    except Py4JJavaError:
        return None


def _numbers_in(text: str) -> list[int]:
    """Parse a list that was fetched as text: fetching each number would be a call to the JVM.

    >>> _numbers_in("[3, 1]"), _numbers_in("[]")
    ([3, 1], [])
    """
    return [int(part) for part in text.strip("[]").split(",") if part]
