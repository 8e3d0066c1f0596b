"""The Spark settings of a target, as plain text. Owns defaults and the merge; does not import Spark.

The user's `spark:` map overrides all but the fixed settings (`project.reading.session_settings`).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.plan.router import runs_here
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.reading.session_settings import (
    EXTENSIONS,
    FIXED,
    HUDI_EXTENSION,
    LOCALE_HINT,
    LOCALE_OPTIONS,
    changed_setting,
    foreign_locale,
    value_settings,
)
from sqlmesh_like.secrets import SECRET_NAME, is_secret_setting
from sqlmesh_like.spark.jvm.java import Jdk

_DEFAULTS: Mapping[str, str] = {
    # Workers in Python show a `timestamp` to functions of a model in the time zone of their machine.
    "spark.executorEnv.TZ": "UTC",
    # Redacts secrets in settings, environments and source options in the event log and the UI.
    "spark.redaction.regex": SECRET_NAME,
    "spark.sql.redaction.options.regex": f"{SECRET_NAME}|url",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark describes each query for the UI even if that is off: a thirtieth of the time of a small run.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "4",
    "spark.driver.memory": "2g",
    # For the few partitions of a run, listing them in Spark jobs takes longer than in the driver.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # Cached rows are read once or twice: compressing them takes longer than everything else done with them.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # Java never compiles larger methods, so it would interpret the code for rows of a wide table.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Each table has some ten generated classes: with the default of 100, many tables would recompile in every batch.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Spark remembers the files of each frame that was read from paths, up to 250 MB, and finds none of them again.
    "spark.sql.hive.filesourcePartitionFileCacheSize": "8388608",
}
_JAVA_OPTIONS = ("Tier4InvocationThreshold=15000", "Tier4MinInvocationThreshold=3000", "Tier4CompileThreshold=40000")
"""Three times Java's defaults: planning calls thousands of methods some thousand times per session, and optimizing all
of them took a quarter of the work of a batch of many tables. Loops are still compiled as early as by default."""
_SHORT_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_OF_LOG = ("log4j2.configurationFile", "sml.log.file")
"""Java reads these when it starts: a path that has a secret's text by chance cannot be given to it later."""
_OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_OPTIONS = "spark.driver.extraJavaOptions"
_EXECUTOR_OPTIONS = "spark.executor.extraJavaOptions"
JARS = "spark.jars"
_JOINED = {EXTENSIONS: ",", JARS: ",", _OPTIONS: " ", _EXECUTOR_OPTIONS: " "}
AVRO_LIMITS = tuple(
    f"-Dorg.apache.avro.limits.{name}.maxLength={limit}"
    for name, limit in (("string", 64 * 1024**2), ("bytes", 64 * 1024**2), ("collectionItems", 4 * 1024**2))
)
"""Java options: lengths that Avro believes. Five bytes of a message may state one for which no memory is enough."""


@dataclass(frozen=True)
class Machine:
    """The machine's part of the settings: JDK, paths of jars, file of the JVM's log, further Java options.

    `executor_options`: Java options of executors, which run elsewhere. Without JDK and log: a machine not known yet.
    """

    jdk: Jdk | None
    jars: Sequence[Path]
    log_file: Path | None
    java_options: Sequence[str] = ()
    executor_options: Sequence[str] = ()


def local_cores(master: str) -> int:
    """Cores that a local master uses.

    >>> local_cores("local"), local_cores("local[3]"), local_cores("local[2,1]"), local_cores("local-cluster[2,3,1024]")
    (1, 3, 2, 6)
    """
    if cluster := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*]", master):
        return int(cluster[1]) * int(cluster[2])
    threads = re.fullmatch(r"local\[\s*(\d+|\*)\s*(?:,.*)?]", master)
    if not threads:
        return 1
    return int(threads[1]) if threads[1] != "*" else os.cpu_count() or 1


def spark_settings(target: Target, machine: Machine) -> dict[str, str]:
    """All settings of a session for a target, by name. Raises ProjectError where the target changes a fixed one."""
    fixed = {**FIXED, "spark.master": target.master}
    if name := changed_setting(target.spark, fixed):
        raise _is_fixed(target, name, fixed[name])
    if found := foreign_locale(target.spark):
        where = f"profile {target.profile!r}, target {target.name!r}, {found[0]}"
        raise ProjectError(f"{where}: {found[1]}: Java's locale is fixed to en-US", hint=LOCALE_HINT)
    settings = {**_DEFAULTS, **_of_target(target), **target.spark, **fixed}
    # Hadoop uses these settings without Spark's prefix.
    named = [
        name.removeprefix("spark.hadoop.") for name, value in target.spark.items() if is_secret_setting(name, value)
    ]
    settings["spark.redaction.regex"] = "|".join([settings["spark.redaction.regex"], *map(re.escape, named)])
    for name, ours in {EXTENSIONS: HUDI_EXTENSION, **_of_machine(machine)}.items():
        theirs = target.spark.get(name)
        settings[name] = _JOINED[name].join([ours, theirs]) if theirs and theirs != ours else ours
    return settings


def submitted_settings(target: Target, *, with_kafka: bool) -> dict[str, str]:
    """Settings that a JVM of `spark-submit` starts with: those of a session, without secrets, master and jars.

    Raises ProjectError where the target changes a fixed one.
    """
    avro = AVRO_LIMITS if with_kafka else ()
    settings, _, _ = split_secrets(spark_settings(target, Machine(None, (), None, avro, avro)))
    return {name: value for name, value in settings.items() if name not in ("spark.master", JARS)}


def short_session_options(target: Target) -> Sequence[str]:
    """Java options of a session that computes little: code is compiled once, and garbage collected by one thread.

    Empty where the user gives options too: Java does not start with those of two collectors.
    """
    given = (target.spark.get(_OPTIONS), *map(os.environ.get, _OPTION_VARIABLES))
    return () if any(given) else _SHORT_OPTIONS


def clear_own_settings(system: Any, settings: Mapping[str, str]) -> Sequence[str]:
    """Remove from the JVM (`system`: its `java.lang.System`) what may change values and is not in `settings`.

    Its properties are those of `spark-defaults.conf`, which a context reads when it is made; calls that need no Spark
    know nothing of them. Returns the names.
    """
    names = [str(name) for name in system.getProperties().stringPropertyNames()]
    found = value_settings({name: str(system.getProperty(name)) for name in names if name.startswith("spark.sql.")})
    removed = sorted(found.keys() - settings.keys())
    for name in removed:
        system.clearProperty(name)
    return removed


def split_secrets(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Split settings into public ones, secret ones and secret Java properties: process lists show arguments.

    >>> split_secrets({"a": "b", "x.password": "word", "spark.driver.extraJavaOptions": "-Xss8m -Dx.password=word"})
    ({'a': 'b', 'spark.driver.extraJavaOptions': '-Xss8m'}, {'x.password': 'word'}, {'x.password': 'word'})
    """
    public, properties = dict(settings), {}
    if _OPTIONS in public:
        kept = []
        for option in shlex.split(public[_OPTIONS]):
            name, _, value = option.removeprefix("-D").partition("=")
            if option.startswith("-D") and name not in _OF_LOG and is_secret_setting(name, value):
                properties[name] = value
            else:
                kept.append(option)
        if properties:
            public[_OPTIONS] = shlex.join(kept)
    secret = {name: value for name, value in public.items() if is_secret_setting(name, value) and not _is_ours(name)}
    return {name: value for name, value in public.items() if name not in secret}, secret, properties


def _is_ours(name: str) -> bool:
    """Settings that stay public: redaction, which must be known before Spark starts, and those that pyspark reads."""
    return "redaction" in name or name in (_OPTIONS, "spark.master", JARS, "spark.driver.memory")


def _is_fixed(target: Target, name: str, value: str) -> ProjectError:
    instead = "set `master:` instead" if name == "spark.master" else "remove it from `spark:` in profiles.yml"
    return ProjectError(
        f"profile {target.profile!r}, target {target.name!r}: Spark setting {name!r} is fixed to {value!r}",
        hint=instead,
    )


def _of_target(target: Target) -> dict[str, str]:
    settings = {"spark.sql.warehouse.dir": target.warehouse} if target.warehouse else {}
    if target.warehouse.startswith(("s3a://", "s3n://")):
        settings |= target.store.for_spark
    if runs_here(target.master):
        settings["spark.sql.shuffle.partitions"] = str(2 * local_cores(target.master))
        # Nothing is nearer than here. A task that waits for the host of an HDFS block waits for good: a local scheduler
        # looks at it again only when another task ends.
        settings["spark.locality.wait"] = "0s"
        settings["spark.pyspark.python"] = sys.executable
        # Python's workers start in the project's folder: no module there may stand in the place of an installed one.
        settings["spark.executorEnv.PYTHONSAFEPATH"] = "1"
    return settings


def _of_machine(machine: Machine) -> dict[str, str]:
    log_config = resources.files("sqlmesh_like.spark.jvm").joinpath("log4j2.properties")
    options = {
        **(dict(zip(_OF_LOG, (str(log_config), str(machine.log_file)), strict=True)) if machine.log_file else {}),
        # Hudi's size estimator otherwise starts helper processes that try to attach to this JVM, in vain.
        "jol.skipHotspotSAAttach": "true",
        "jol.skipDynamicAttach": "true",
    }
    if machine.jdk and machine.jdk.trust_store:
        options["javax.net.ssl.trustStore"] = str(machine.jdk.trust_store)
    java_options = [*(f"-D{key}={value}" for key, value in options.items()), *LOCALE_OPTIONS]
    java_options += [*(f"-XX:{option}" for option in _JAVA_OPTIONS), *machine.java_options]
    return {
        JARS: ",".join(str(jar) for jar in machine.jars),
        _OPTIONS: " ".join(map(shlex.quote, java_options)),
        _EXECUTOR_OPTIONS: " ".join((*LOCALE_OPTIONS, *machine.executor_options)),
    }
