"""The needs of a run beyond Python packages: packages of the project, jars, Java's class archive. Owns their order.

`packages` and `spark.jvm` fetch them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load_target_of
from sqlmesh_like.app.reporter import Reporter
from sqlmesh_like.app.setup.packages import FetchedPackage, fetch_packages
from sqlmesh_like.errors import MachineError, ProjectError, UsageError
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.reading.values import parse_vars
from sqlmesh_like.project.settings import find_project
from sqlmesh_like.spark.jvm.cds_archive import archive_options, can_archive, make_archive
from sqlmesh_like.spark.jvm.jars import Jar, ensure_jars, jar_parts, locked_jars
from sqlmesh_like.spark.jvm.java import find_jdk


def project_packages(call: Invocation, reporter: Reporter) -> tuple[FetchedPackage, ...]:
    """Fetch the packages of packages.yml; returns none outside of a project, where jars alone may be fetched.

    Raises ProjectError at the entry that cannot be fetched.
    """
    try:
        root = find_project((call.project_dir or Path.cwd()).resolve())
    except ProjectError:
        return ()
    reporter.phase("fetching packages")
    return fetch_packages(root, parse_vars(call.vars))


def target_of(call: Invocation) -> Target | None:
    """Return the target of the call; None outside of a project, or where it names none and the profile has none."""
    try:
        return load_target_of(call)
    except UsageError:
        if call.target is not None:
            raise
        return None


def spark_jars(reporter: Reporter, target: Target | None, *, kafka: bool) -> tuple[tuple[Jar, Path], ...]:
    """Fetch the pinned jars that the target's sessions need, with `kafka` also those that read Kafka.

    Raises MachineError where a download fails.
    """
    parts = jar_parts(target, with_kafka=kafka) if target else ("kafka",) if kafka else ()
    jars = locked_jars(*parts)
    with reporter.downloading() as progress:
        return tuple(zip(jars, ensure_jars(jars, progress=progress), strict=True))


def prepare_archive(jars: tuple[Path, ...], reporter: Reporter, on_message: Callable[[str], None]) -> None:
    """Create Java's class archive of a session's jars if there is none. Raises MachineError where there is no JDK.

    Other failures are only reported: sessions work without it, but start slower.
    """
    jdk = find_jdk()
    jars = jars[: len(locked_jars())]
    if not can_archive(jdk) or archive_options(jdk, jars):
        return
    reporter.phase("preparing Java's class archive")
    on_message("preparing Java's class archive, once: about 40 seconds; sessions then start in half the time")
    try:
        make_archive(jdk, jars)
    except (MachineError, OSError) as error:
        on_message(f"warning: {error}")
