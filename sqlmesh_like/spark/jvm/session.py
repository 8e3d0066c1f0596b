"""The one Spark session of a process. Owns starting it on this machine's JDK and jars; `spark_settings` says how."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
from py4j.clientserver import ClientServer
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from sqlmesh_like import stop_signals
from sqlmesh_like.errors import MachineError
from sqlmesh_like.invocation_id import PROCESS_VARIABLE, process_mark
from sqlmesh_like.plan.router import runs_here
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.reading.hudi_options import options_of_defaults, reserved_option
from sqlmesh_like.secrets import spellings
from sqlmesh_like.spark.jvm.cds_archive import archive_options
from sqlmesh_like.spark.jvm.jars import Progress, cache_dir, ensure_jars, jar_parts, locked_jars
from sqlmesh_like.spark.jvm.java import Jdk, find_jdk
from sqlmesh_like.spark.jvm.spark_errors import first_line, without_lost_jvm
from sqlmesh_like.spark.jvm.spark_settings import (
    AVRO_LIMITS,
    Machine,
    clear_own_settings,
    short_session_options,
    spark_settings,
    split_secrets,
)

_log = logging.getLogger("sqlmesh_like.spark")
_Settings = dict[str, bool | float | int | str | None]
_USUAL_COLLECTION = (700, 10, 10)
"""Python's own thresholds."""

_UNREGISTERED = "spark-application-"
"""How Spark itself names an application to which a standalone master has given no id."""
_STOPPED = ("stopped SparkContext", "SparkContext._taskScheduler()")
"""What the same looks like where Spark has stopped the context before it was given, or while it was made."""
_SET_IT_HERE = "it has no effect; set it under `spark:` of the target, where plans and DuckDB know of it"
_NO_MASTER = "the master has registered no application within a minute"
_REPEATED = ("Exception while sending command.", "There was an exception while executing the Python Proxy")
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
    is_short: bool = False,
) -> SparkSession:
    """Start Spark for this target, fetching the pinned jars where they are not cached yet.

    `with_kafka` adds the jars that read Kafka. `is_short`: the session ends before optimized Java code would pay off.
    `log_file` receives the JVM's log (default: in the user's cache); none of it reaches the terminal. Raises
    MachineError (no JDK, no jars, the JVM does not start) and ProjectError (the target changes a fixed setting).
    """
    log_file = (log_file or cache_dir() / "logs" / "spark.log").absolute()
    jdk, jars = find_jdk(), ensure_jars(progress=progress)
    # The archive has the jars that every session has; Java accepts it as long as these come first.
    options = archive_options(jdk, jars) if use_archive else ()
    if parts := jar_parts(target, with_kafka=with_kafka):
        jars = ensure_jars(locked_jars(*parts), progress)
    if with_kafka:
        options = (*options, *AVRO_LIMITS)
    short = short_session_options(target) if is_short else ()
    machine = Machine(jdk, jars, log_file, (*options, *short), AVRO_LIMITS if with_kafka else ())
    wanted = spark_settings(target, machine)
    _prepare_environment(target, jdk)
    is_standalone = target.master.startswith("spark://")
    try:
        settings = _launch(wanted)
        with stop_signals.keep_deferring():
            session = SparkSession.builder.appName(app_name).config(map=settings).getOrCreate()
    except (PySparkRuntimeError, Py4JJavaError) as error:
        reason = first_line(error)
        is_stopped = is_standalone and any(sign in reason for sign in _STOPPED)
        raise _no_spark(target, jdk, log_file, _NO_MASTER if is_stopped else reason) from error
    # Spark gives a context whose master took no application; a thread of Spark stops it, if it has not yet.
    if is_standalone and session.sparkContext.applicationId.startswith(_UNREGISTERED):
        stop_session(session)
        raise _no_spark(target, jdk, log_file, _NO_MASTER)
    for name in (None, "py4j.clientserver"):
        logging.getLogger(name).addFilter(_is_not_repeated)
    if found := reserved_option(_hudi_defaults()):
        _log.warning("warning: Hudi's own configuration sets %s, which loses rows: %s", found.name, found.hint)
    _send_prints_to(session, log_file)
    _remember_classes(session)
    # Java objects live until their Python counterparts are freed, so cycles are collected as often as usual again.
    gc.set_threshold(*_USUAL_COLLECTION)
    return session


def _hudi_defaults() -> dict[str, str]:
    """The options of `hudi-defaults.conf`, where Hudi's writer looks for it on this machine."""
    folder = os.environ.get("HUDI_CONF_DIR", "/etc/hudi/conf").removeprefix("file:")
    try:
        return options_of_defaults(Path(folder, "hudi-defaults.conf").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _no_spark(target: Target, jdk: Jdk, log_file: Path, reason: str) -> MachineError:
    hint = f"see {log_file}; check `spark:` of the target, and its memory"
    if not runs_here(target.master):
        hint = f"check `master:` and `spark:` of the target, and that the cluster is up; see {log_file}"
    return MachineError(f"Spark does not start on {target.master}, JDK {jdk.home}: {reason}", hint=hint)


def stop_session(session: SparkSession) -> None:
    """Stop Spark. Where its JVM has died, nothing is left to stop, and the next session gets another one."""
    with without_lost_jvm():
        session.stop()
        return
    SparkSession._instantiatedSession = None
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None


def close_idle_callbacks(session: SparkSession) -> None:
    """Close the connections through which Java's threads have called Python, unless a call is under way.

    py4j opens one for each thread, with a thread and a socket here, and keeps it after Java's thread has ended, such as
    that of a streaming query. A thread that calls again opens another one. Without pinned threads they share a pool.
    """
    gateway = session.sparkContext._gateway
    if isinstance(gateway, ClientServer):
        gateway.java_gateway_server.getCallbackClient().periodicCleanup()


def _launch(settings: Mapping[str, str]) -> _Settings:
    """Start the JVM with the public settings; secret ones are passed through its gateway. Returns settings for Spark.

    pyspark writes each setting into the arguments of the JVM, which all users of a machine can read.
    """
    public, secret, properties = split_secrets(settings)
    conf = SparkConf(loadDefaults=False, _jvm=None)
    for name, value in public.items():
        conf.set(name, value)
    SparkContext._ensure_initialized(conf=conf)
    java: Any = SparkContext._jvm.java  # type: ignore[union-attr]
    for name, value in properties.items():
        java.lang.System.setProperty(name, value)
    for name in clear_own_settings(java.lang.System, settings):
        _log.warning("warning: Spark's own configuration sets %s, which may change values: %s", name, _SET_IT_HERE)
    # Variables such as _JAVA_OPTIONS come after the JVM's arguments, and would win over LOCALE_OPTIONS.
    java.util.Locale.setDefault(java.util.Locale.US)
    _scrub_log()
    return {**public, **secret}


def _scrub_log() -> None:
    """Give the log's layout (`log4j2.properties`) the secrets to remove from messages.

    Their characters are written as numbers, because any may have a meaning in a pattern.
    """
    if forms := spellings():
        spelt = "|".join("".join(f"\\u{ord(sign):04x}" for sign in _utf16(form)) for form in forms)
        jvm: Any = SparkContext._jvm
        jvm.java.lang.System.setProperty("sml.secrets", spelt)
        jvm.org.apache.logging.log4j.core.LoggerContext.getContext(False).reconfigure()


def _utf16(text: str) -> str:
    """The UTF-16 units of a text, each as a character."""
    data = text.encode("utf-16-be", errors="surrogatepass")
    return "".join(chr(int.from_bytes(data[at : at + 2], "big")) for at in range(0, len(data), 2))


def _prepare_environment(target: Target, jdk: Jdk) -> None:
    """Set what pyspark and the JVM have from the environment; there are no settings for these."""
    os.environ["JAVA_HOME"] = str(jdk.home)
    os.environ[PROCESS_VARIABLE] = process_mark()
    if runs_here(target.master):
        # Otherwise another Spark on the machine could be started instead of the pinned one.
        os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        # Spark would use `python3` on the path, which may be missing or of another version.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Otherwise Spark resolves the host's name and warns when that is a loopback address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _is_not_repeated(record: logging.LogRecord) -> bool:
    """False for what Py4J logs, with a traceback, when the JVM dies or a batch fails: it raises an error as well."""
    return not str(record.msg).startswith(_REPEATED)


def _send_prints_to(session: SparkSession, log_file: Path) -> None:
    """Send the JVM's standard streams to the log: Hudi's object-size library bypasses the logger for warnings."""
    log_file.parent.mkdir(parents=True, exist_ok=True)  # a JVM of `spark-submit` has a logger of its own
    java = session.sparkContext._jvm.java  # type: ignore[union-attr]
    stream = java.io.PrintStream(java.io.FileOutputStream(str(log_file), True), True)
    java.lang.System.setOut(stream)
    java.lang.System.setErr(stream)


def _remember_classes(session: SparkSession) -> None:
    """Resolve once the names that pyspark looks up for each column that it creates.

    Py4J resolves a name in the JVM at every use, and the JVM then searches ten packages in every jar: a twentieth of
    the time of a small run.
    """
    jvm = session.sparkContext._jvm
    for name in ("functions", "PythonUtils", "SparkSession", "SparkSession$"):
        setattr(jvm, name, getattr(jvm, name))
