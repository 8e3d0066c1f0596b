"""The command line on YARN: in client mode, and as a package in cluster mode, where the driver is in a container."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqlmesh_like.spark.jvm.java import find_jdk
from tests.services.yarn import YarnCluster, yarn

pytestmark = [pytest.mark.release, pytest.mark.timeout(3600)]

REPOSITORY = Path(__file__).parents[3]
BY_BUYER = "select buyer, count(*) as n, sum(amount) as total from {{ ref('orders') }} group by buyer"
FIRST = "id,buyer,amount\n1,ann,5\n2,bob,7\n3,ann,2\n"
THEN = "id,buyer,amount\n1,ann,5\n3,bob,4\n4,eve,1\n"


@dataclass(frozen=True)
class Site:
    """A cluster and what calls need to reach it: Spark's commands and Java, no libraries."""

    cluster: YarnCluster

    def call(self, *words: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        jdk = str(find_jdk().home)
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": os.environ["HOME"],
            "HADOOP_CONF_DIR": str(self.cluster.conf),
            "JAVA_HOME": jdk,
            "SPARK_LOCAL_IP": "127.0.0.1",
            **variables,
        }
        return subprocess.run(
            list(map(str, words)), cwd=cwd, capture_output=True, text=True, timeout=900, env=environment
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with yarn(tmp_path_factory.mktemp("yarn")) as cluster:
        yield Site(cluster)


def project(root: Path, more: str) -> None:
    (root / "models").mkdir(parents=True)
    (root / "seeds").mkdir()
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n')
    spark = "{spark.sql.shuffle.partitions: 2, spark.executor.memory: 768m, spark.executor.instances: 1}"
    output = f"{{type: spark, warehouse: '{root.parent}/lake', schema: dws, master: yarn, spark: {spark}, {more}}}"
    (root / "profiles.yml").write_text(f"lake: {{target: prod, outputs: {{prod: {output}}}}}\n")
    (root / "models" / "by_buyer.sql").write_text(BY_BUYER)
    (root / "seeds" / "orders.csv").write_text(FIRST)


def test_models_are_built_followed_and_verified_on_yarn_in_client_mode(site: Site, tmp_path: Path) -> None:
    root = tmp_path / "shop"
    project(root, "delta_engine: spark")
    sml = (sys.executable, "-m", "sqlmesh_like")
    done = site.call(*sml, "build", cwd=root, PYTHONPATH=str(REPOSITORY))
    assert done.returncode == 0, done.stdout + done.stderr
    (root / "seeds" / "orders.csv").write_text(THEN)
    done = site.call(*sml, "build", cwd=root, PYTHONPATH=str(REPOSITORY))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "aggregate_merge" in done.stdout
    done = site.call(*sml, "verify", cwd=root, PYTHONPATH=str(REPOSITORY))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_package_runs_in_cluster_mode_without_the_project_and_its_libraries(site: Site, tmp_path: Path) -> None:
    root, package = tmp_path / "shop", tmp_path / "elsewhere" / "shop"
    project(root, "driver_max_bytes: 1")
    archive = package.with_suffix(".tar.gz")
    sml = (sys.executable, "-m", "sqlmesh_like")
    made = site.call(*sml, "package", "--output", archive, cwd=root, PYTHONPATH=str(REPOSITORY))
    assert made.returncode == 0, made.stdout + made.stderr
    package.mkdir()
    with tarfile.open(archive) as entries:
        entries.extractall(package, filter="data")
    root.rename(tmp_path / "gone")
    python = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}")
    java = " ".join(f"--conf spark.{name}.JAVA_HOME={find_jdk().home}" for name in ("yarn.appMasterEnv", "executorEnv"))

    def submit(*words: str) -> tuple[int, str]:
        done = site.call(
            package / "submit.sh", *words, cwd=tmp_path, SML_PYTHON=python,
            SML_SUBMIT_OPTIONS=f"{java} --driver-memory 1g",
        )  # fmt: skip
        return done.returncode, site.cluster.driver_output() + done.stderr[-3000:]

    code, output = submit("build")
    assert (code, "2 of 2 OK created sql incremental model dws.by_buyer" in output) == (0, True), output
    assert "Started Spark" in output
    code, output = submit("run")
    assert (code, "NO-OP" in output, "Started Spark" in output) == (0, True, False), output
    code, output = submit("verify")
    assert code == 0, output
    code, output = submit("run", "-s", "no_such_model")
    assert (code, "no_such_model" in output) == (1, True), output
