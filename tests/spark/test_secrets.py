"""Secrets of a Spark session: none on the list of processes, in Spark's event log, or in the JVM's log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLANTED = {
    "fs.s3a.access.key": "planted-s3-access",
    "fs.s3a.secret.key": "planted-s3-secret}{$",
    "spark.ssl.keyPassword": "planted key 'password'",
    "shop.url": "jdbc:mysql://me:planted-in-url@db/shop",
    "shop.option": "planted-environment",
}
_PROGRAM = """
import json, os, sys
from pathlib import Path
from sqlmesh_like import secrets
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.spark.jvm.session import start_session

folder, settings = Path(sys.argv[1]), json.loads(sys.stdin.read())
secrets.learn_environment()
secrets.learn_settings(settings)
target = Target("t", "t", "spark", warehouse=str(folder / "w"), master="local[1]", spark=settings)
session = start_session(target, log_file=folder / "spark.log")
arguments = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
jvm = session.sparkContext._jvm
jvm.org.apache.logging.log4j.LogManager.getLogger("test").warn("begin " + " ".join(settings.values()) + " end")
session.sql("select 1").collect()
known = {name: session.conf.get(name) for name in settings if name.startswith("spark.hadoop.")}
known |= {name: session.sparkContext.getConf().get(name) for name in settings if name.startswith("spark.ssl")}
known["java"] = jvm.java.lang.System.getProperty("keystore.password")
session.stop()
(folder / "arguments").write_bytes(b"".join(arguments))
(folder / "known").write_text(json.dumps(known))
"""


@pytest.mark.release
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="this system shows processes otherwise")
def test_no_secret_of_a_target_is_on_the_list_of_processes_or_in_a_log(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    settings = {
        **{name if name.startswith("spark.") else f"spark.hadoop.{name}": value for name, value in PLANTED.items()},
        "spark.driver.extraJavaOptions": "-Xss4m -Dkeystore.password=planted-java",
        "spark.driver.memory": "1g",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
    }
    subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)], input=json.dumps(settings), text=True, check=True, timeout=900,
        env={**os.environ, "DBT_ENV_SECRET_OPTION": "planted-environment"},
    )  # fmt: skip
    known = json.loads((tmp_path / "known").read_text())
    assert known.pop("java") == "planted-java"
    assert known == {name: settings[name] for name in known} and len(known) == 5, "Spark got all of them"
    assert (
        b"SparkSubmit" in (tmp_path / "arguments").read_bytes() and b"-Xss4m" in (tmp_path / "arguments").read_bytes()
    )
    assert "begin" in (tmp_path / "spark.log").read_text() and any((tmp_path / "events").iterdir())
    for path in (tmp_path / "arguments", tmp_path / "spark.log", *(tmp_path / "events").iterdir()):
        assert b"planted" not in path.read_bytes(), path.name
