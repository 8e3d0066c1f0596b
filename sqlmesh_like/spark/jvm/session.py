"""The one Spark session of a process. Owns starting it on this machine's JDK and jars; `spark_settings` says how."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from sqlmesh_like.errors import MachineError
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.secrets import spellings
from sqlmesh_like.spark.jvm.cds_archive import archive_options
from sqlmesh_like.spark.jvm.jars import Progress, cache_dir, ensure_jars, locked_jars
from sqlmesh_like.spark.jvm.java import Jdk, find_jdk
from sqlmesh_like.spark.jvm.spark_settings import Machine, is_local, spark_settings, split_secrets

_Settings = dict[str, bool | float | int | str | None]
_USUAL_COLLECTION = (700, 10, 10)
"""Python's own thresholds."""

Session = SparkSession
"""For annotations where pyspark itself must not be imported."""


def start_session(
    target: Target,
    app_name: str = "sml",
    *,
    log_file: Path | None = None,
    progress: Progress | None = None,
    use_archive: bool = True,
    with_kafka: bool = False,
) -> SparkSession:
    """Start Spark for this target, fetching the pinned jars where they are not cached yet.

    `with_kafka` adds the jars that read Kafka. `log_file` receives what the JVM logs (default: in the user's cache);
    nothing of it reaches the terminal. Raises MachineError (no JDK, no jars, the JVM does not start) and ProjectError
    (the target changes a fixed setting).
    """
    log_file = (log_file or cache_dir() / "logs" / "spark.log").absolute()
    jdk, jars = find_jdk(), ensure_jars(progress=progress)
    # The archive is of what every session has: Java takes it as long as these come first.
    options = archive_options(jdk, jars) if use_archive else ()
    if with_kafka:
        jars = ensure_jars(locked_jars("kafka"), progress)
    machine = Machine(jdk, jars, log_file, options)
    wanted = spark_settings(target, machine)
    _prepare_environment(target, jdk)
    try:
        settings = _launch(wanted)
        session = SparkSession.builder.appName(app_name).config(map=settings).getOrCreate()
    except PySparkRuntimeError as error:
        hint = f"see {log_file}; check `spark:` of the target, and its memory"
        raise MachineError(f"Spark does not start on {jdk.home}: {error}", hint=hint) from error
    _send_prints_to(session, log_file)
    _remember_classes(session)
    # Java keeps what Python's objects stand for until these are freed: cycles are looked for as often as usual again.
    gc.set_threshold(*_USUAL_COLLECTION)
    return session


def _launch(settings: Mapping[str, str]) -> _Settings:
    """Start the JVM with the settings that a list of processes may show; the secret ones are told it by its gateway.

    pyspark writes each setting into the arguments of the JVM, which all users of a machine can read. The settings as
    Spark is to be started with them.
    """
    public, secret, properties = split_secrets(settings)
    conf = SparkConf(loadDefaults=False, _jvm=None)
    for name, value in public.items():
        conf.set(name, value)
    SparkContext._ensure_initialized(conf=conf)
    system = SparkContext._jvm.java.lang.System  # type: ignore[union-attr]
    for name, value in properties.items():
        system.setProperty(name, value)
    _scrub_log()
    return {**public, **secret}


def _scrub_log() -> None:
    """The log's layout takes secrets out of what Java says: see `log4j2.properties`. Their signs are spelt as numbers,
    for each may mean something in a pattern."""
    if forms := spellings():
        spelt = "|".join("".join(f"\\u{ord(sign):04x}" for sign in _utf16(form)) for form in forms)
        jvm: Any = SparkContext._jvm
        jvm.java.lang.System.setProperty("sml.secrets", spelt)
        jvm.org.apache.logging.log4j.core.LoggerContext.getContext(False).reconfigure()


def _utf16(text: str) -> str:
    """Java's characters of a text."""
    data = text.encode("utf-16-be", errors="surrogatepass")
    return "".join(chr(int.from_bytes(data[at : at + 2], "big")) for at in range(0, len(data), 2))


def _prepare_environment(target: Target, jdk: Jdk) -> None:
    """pyspark reads these from the environment before it starts the JVM; there is no setting for them."""
    os.environ["JAVA_HOME"] = str(jdk.home)
    if is_local(target.master):
        # Another Spark on the machine would be started in place of the pinned one.
        os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        # Spark would look for a `python3` on the path: none is there, or one of another version.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Without it Spark asks the resolver for the host's name and warns when that is a loopback address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _send_prints_to(session: SparkSession, log_file: Path) -> None:
    """Hudi's object-size library prints warnings past the logger; they belong in the log like everything else."""
    java = session.sparkContext._jvm.java  # type: ignore[union-attr]
    stream = java.io.PrintStream(java.io.FileOutputStream(str(log_file), True), True)
    java.lang.System.setOut(stream)
    java.lang.System.setErr(stream)


def _remember_classes(session: SparkSession) -> None:
    """Resolve once what pyspark looks up for each column it makes. Py4J asks the JVM what a name is whenever it is
    used, and the JVM then looks for it below ten packages in every jar: a twentieth of the time of a small run."""
    jvm = session.sparkContext._jvm
    for name in ("functions", "PythonUtils", "SparkSession", "SparkSession$"):
        setattr(jvm, name, getattr(jvm, name))
