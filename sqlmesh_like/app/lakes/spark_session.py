"""Spark for an operation: one shared with earlier calls, or its own. Owns starting it for a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.project.nodes import Source
from sqlmesh_like.project.paths import output_path

if TYPE_CHECKING:
    from sqlmesh_like.spark.jvm.session import Session


def start_spark(loaded: Loaded, *, with_kafka: bool = False, is_short: bool = False) -> Session:
    """Start Spark for the target and report downloads. Raises MachineError and ProjectError.

    `is_short`: little will be computed (`start_session`).
    """
    # Imported here: an invalid call, and a command that needs no Spark, must not wait for it.
    from sqlmesh_like.spark.jvm.session import start_session

    log_file = output_path(loaded.target_folder, "logs/spark.log")
    began = perf_counter()
    loaded.reporter.phase("starting Spark")
    with loaded.reporter.downloading() as progress:
        session = start_session(
            loaded.target, log_file=log_file, progress=progress, with_kafka=with_kafka, is_short=is_short
        )
    loaded.reporter.notify(f"Started Spark in {perf_counter() - began:.1f}s")
    loaded.reporter.phase("running on Spark")
    return session


@contextmanager
def session_for(
    loaded: Loaded, sources: Sequence[Source], *, is_short: bool = False
) -> Iterator[Callable[[], Session]]:
    """Yield what gives a Spark session with the jars that these sources need, and starts one if it has to.

    Only a session of this call is stopped. `is_short`: little will be computed, so that a session of this call starts
    for that.
    """
    with_kafka = any(source.ingest and source.ingest.kafka is not None for source in sources)
    shared = loaded.spark
    if shared is not None:
        yield lambda: shared.session(partial(start_spark, loaded), with_kafka=with_kafka)
        return
    started: list[Session] = []

    def session() -> Session:
        if not started:
            started.append(start_spark(loaded, with_kafka=with_kafka, is_short=is_short))
        return started[0]

    try:
        yield session
    except Exception:
        if not started:
            raise
        from sqlmesh_like.spark.jvm.spark_errors import reporting_lost_jvm

        with reporting_lost_jvm(", ".join(source.name for source in sources)):
            raise
    finally:
        if started:
            from sqlmesh_like.spark.jvm.session import stop_session

            stop_session(started[0])
