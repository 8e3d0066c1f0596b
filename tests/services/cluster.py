"""A standalone cluster of Spark on this machine: a master and two workers, each a JVM of its own, from pyspark's jars.

`python -m tests.services.cluster COMMAND…` runs a command while the cluster is up; `SML_TEST_MASTER` in its environment
is the master's address, which the tests' own session takes:

    python -m tests.services.cluster python -m pytest tests/spark/sql/test_strategies.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from sqlmesh_like.spark.jvm.java import find_jdk
from tests.services.process import free_port, running

WORKERS = 2
MASTER_VARIABLE = "SML_TEST_MASTER"
_HOST = "127.0.0.1"


@contextmanager
def cluster(folder: Path, *, memory: str = "1g") -> Iterator[str]:
    """Address of a master with two workers of one core and this memory each; `folder` gets logs and work files."""
    port = free_port()
    address = f"spark://{_HOST}:{port}"
    with ExitStack() as stack:
        master = ["org.apache.spark.deploy.master.Master", "--host", _HOST, "--port", str(port), "--webui-port", "0"]
        stack.enter_context(_daemon(master, folder / "master.log", "I have been elected leader"))
        for number in range(WORKERS):
            work = folder / f"worker_{number}"
            options = [
                "--host",
                _HOST,
                "--webui-port",
                "0",
                "--cores",
                "1",
                "--memory",
                memory,
                "--work-dir",
                str(work),
            ]
            worker = ["org.apache.spark.deploy.worker.Worker", *options, address]
            stack.enter_context(_daemon(worker, folder / f"worker_{number}.log", "Successfully registered with master"))
        yield address


def _daemon(words: list[str], log: Path, sign: str) -> AbstractContextManager[None]:
    """A JVM of Spark that is up once it has logged `sign`."""
    import pyspark  # the name of the variable is needed without a JVM, too

    home = Path(pyspark.__file__).parent
    environment = {"JAVA_HOME": find_jdk().home, "SPARK_HOME": home, "SPARK_LOCAL_IP": _HOST}
    given = [f"{name}={value}" for name, value in environment.items()]
    command = ["env", *given, str(home / "bin" / "spark-class"), *words]
    return running(command, log, lambda: sign in log.read_text(encoding="utf-8", errors="replace"))


def main() -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, cluster(Path(folder)) as address:
        return subprocess.run(sys.argv[1:], env={**os.environ, MASTER_VARIABLE: address}).returncode


if __name__ == "__main__":
    sys.exit(main())
