"""The command line on a standalone cluster: driver and executors are processes of their own on one file system."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sqlmesh_like.spark.jvm.jars import ensure_jars
from tests.services.cluster import WORKERS, cluster

pytestmark = pytest.mark.release

REPOSITORY = Path(__file__).parents[3]
MODELS = {
    "paid": "select id, buyer, amount * 2 as twice from {{ ref('orders') }} where amount > 1",
    "by_city": "select p.city, count(*) as n, sum(o.amount) as total from {{ ref('orders') }} o"
    " join {{ ref('people') }} p on o.buyer = p.id group by p.city",
    "buyers": "select day, count(distinct buyer) as buyers from {{ ref('orders') }} group by day",
    "best": "select id, day, amount from {{ ref('orders') }}"
    " qualify row_number() over (partition by day order by amount desc, id) <= 2",
}
FIRST = [(number, number % 7, number % 50, f"2024-01-{1 + number % 28:02}") for number in range(300)]
THEN = [row for row in FIRST if row[0] % 40] + [(1000, 3, 900, "2024-01-05")]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the cluster's logs and of what its workers write."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def master(work: Path) -> Iterator[str]:
    with cluster(work) as address:
        yield address


def project(root: Path, master: str, more: str = "delta_engine: spark") -> None:
    """A project with a target on a cluster, where executors compute changes unless `more` says otherwise."""
    (root / "models").mkdir(parents=True)
    (root / "seeds").mkdir()
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n')
    settings = "{spark.sql.shuffle.partitions: 2, spark.executor.memory: 768m}"
    output = f"{{type: spark, warehouse: warehouse, schema: dws, master: '{master}', spark: {settings}, {more}}}"
    (root / "profiles.yml").write_text(f"lake: {{target: cluster, outputs: {{cluster: {output}}}}}\n")
    people = "".join(f"{number},c{number % 3}\n" for number in range(7))
    (root / "seeds" / "people.csv").write_text(f"id,city\n{people}")
    for name, sql in MODELS.items():
        (root / "models" / f"{name}.sql").write_text(f"{{{{ config(refresh='incremental') }}}} {sql}")


def write_orders(root: Path, rows: list[tuple[int, int, int, str]]) -> None:
    lines = "".join(f"{','.join(map(str, row))}\n" for row in rows)
    (root / "seeds" / "orders.csv").write_text(f"id,buyer,amount,day\n{lines}")


def sml(root: Path, *arguments: str, start: Sequence[str] = (sys.executable, "-m", "sqlmesh_like")) -> dict[str, str]:
    """The strategy of each model of a call that must end well. `start`: what comes before its arguments."""
    words = [*start, *arguments]
    search = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # `spark-submit` asks the `python3` that it finds
    environment = {**os.environ, "PATH": search, "PYTHONPATH": str(REPOSITORY), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=900, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((root / "target" / "run_results.json").read_text())["results"]
    return {row["unique_id"].split(".")[-1]: row["adapter_response"].get("strategy", row["status"]) for row in results}


@pytest.mark.timeout(3600)
def test_models_are_built_followed_and_verified_by_the_executors_of_a_cluster(
    master: str, work: Path, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    project(root, master)
    write_orders(root, FIRST)
    sml(root, "build")
    write_orders(root, THEN)
    strategies = sml(root, "build")
    assert {name: strategies[name] for name in MODELS} == {
        "paid": "row_based", "by_city": "aggregate_merge", "buyers": "group_recompute", "best": "group_recompute",
    }  # fmt: skip
    sml(root, "verify")
    had_executors = {path.parent.name for path in work.glob("worker_*/app-*")}
    assert len(had_executors) == WORKERS


def applications(work: Path) -> set[str]:
    """The applications that the cluster's workers have run."""
    return {path.name for path in work.glob("worker_*/app-*")}


def built_by_executors(root: Path, work: Path) -> set[str]:
    """Build the project's tables in one application, as if they were large; returns all applications so far."""
    write_orders(root, FIRST)
    before, profiles = applications(work), root / "profiles.yml"
    settings = profiles.read_text()
    profiles.write_text(re.sub(r'(driver_max_bytes"?: )\d+', r"\g<1>1", settings))
    sml(root, "build")
    profiles.write_text(settings)
    built = applications(work)
    assert len(built - before) == 1
    return built


@pytest.mark.timeout(3600)
def test_a_small_change_of_what_executors_built_starts_no_application(master: str, work: Path, tmp_path: Path) -> None:
    root = tmp_path / "shop"
    project(root, master, "driver_max_bytes: 100000000")
    built = built_by_executors(root, work)
    write_orders(root, THEN)
    strategies = sml(root, "build")
    assert {name: strategies[name] for name in MODELS} == {
        "paid": "row_based", "by_city": "aggregate_merge", "buyers": "group_recompute", "best": "group_recompute",
    }  # fmt: skip
    assert applications(work) == built
    sml(root, "verify")
    verified = applications(work)
    assert len(verified - built) == 1, "whole tables are compared by executors"
    sml(root, "run", "--full-refresh", "--select", "by_city", "buyers", "paid")
    assert applications(work) == verified, "small tables are built on the driver"
    sml(root, "verify")


def next_run(root: Path) -> dict[str, Any]:
    """What `explain` says of the next run of `buyers`."""
    words = [sys.executable, "-m", "sqlmesh_like", "explain", "buyers", "--output", "json"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=300, check=True)
    model: dict[str, Any] = json.loads(done.stdout)["models"][0]
    return model


@pytest.mark.timeout(3600)
def test_a_recompute_on_the_driver_is_preferred_to_jobs_whose_price_is_then_measured(
    master: str, work: Path, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    project(root, master, "driver_max_bytes: 100000000")
    sql, file, profiles = MODELS["buyers"], root / "models" / "buyers.sql", root / "profiles.yml"
    for name in MODELS:
        (root / "models" / f"{name}.sql").unlink()
    file.write_text(sql)
    write_orders(root, FIRST)
    sml(root, "build")
    before = applications(work)
    write_orders(root, THEN)
    sml(root, "seed")
    whole = next_run(root)["estimate"]["strategies"]["recompute_merge"]
    bound = (
        whole["read_bytes"] + whole["rewritten_bytes"]
    )  # the inputs and the table are within it, a change beside them not
    profiles.write_text(profiles.read_text().replace("driver_max_bytes: 100000000", f"driver_max_bytes: {bound}"))
    planned = next_run(root)
    ways = planned["estimate"]["strategies"]
    assert (planned["next_run"], [reason["rule"] for reason in planned["next_run_reasons"]]) == (
        "recompute_merge", ["CST003"],
    )  # fmt: skip
    assert ways["recompute_merge"]["jobs"] == 0 < ways["group_recompute"]["jobs"]
    assert ways["group_recompute"]["scans"] == "spark"
    unmeasured = ways["group_recompute"]["job_seconds"]
    assert sml(root, "run")["buyers"] == "recompute_merge"
    assert applications(work) == before, "the driver recomputes the table"
    sml(root, "verify")
    file.write_text(f"{{{{ config(refresh='incremental') }}}} {sql}")
    write_orders(root, FIRST)
    sml(root, "seed")
    assert sml(root, "run")["buyers"] == "group_recompute"
    assert adapter_response(root)["spark_jobs"] > 0
    write_orders(root, THEN)
    sml(root, "seed")
    assert next_run(root)["estimate"]["strategies"]["group_recompute"]["job_seconds"] not in (0, unmeasured)
    sml(root, "verify")


def adapter_response(root: Path) -> dict[str, Any]:
    """What the last run says of `buyers`."""
    results = json.loads((root / "target" / "run_results.json").read_text())["results"]
    response: dict[str, Any] = next(row for row in results if row["unique_id"].endswith(".buyers"))["adapter_response"]
    return response


@pytest.mark.timeout(3600)
def test_a_script_is_submitted_to_a_cluster(master: str, tmp_path: Path) -> None:
    root = tmp_path / "shop"
    project(root, master)
    write_orders(root, FIRST)
    script = root / "run_sml.py"
    script.write_text("import sys\nfrom sqlmesh_like.cli.submitted import main\nsys.exit(main())\n")
    submit = str(Path(sys.executable).with_name("spark-submit"))
    options = ["--master", master, "--jars", ",".join(map(str, ensure_jars())), "--driver-memory", "1g"]
    sml(root, "build", start=(submit, *options, str(script)))
    write_orders(root, THEN)
    assert sml(root, "build", start=(submit, *options, str(script)))["by_city"] == "aggregate_merge"
    sml(root, "verify", start=(submit, *options, str(script)))
