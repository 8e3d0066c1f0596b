"""A lake on a real S3 server, by Spark and by this process: its runs, two of them at once, one that is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlmesh_like.hudi.stores.store_client import client_of, use_store
from sqlmesh_like.project.reading.store_settings import StoreSettings
from tests.services.s3 import S3Server, need_server, s3_server

pytestmark = pytest.mark.release
SECONDS = 900


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    need_server()
    with s3_server(tmp_path_factory.mktemp("s3")) as started:
        started.make_bucket("lake")
        use_store("s3a://lake", StoreSettings(started.endpoint, access_key=started.access_key,
                                              secret_key=started.secret_key))  # fmt: skip
        yield started


@pytest.fixture(scope="module")
def shop(server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shop")
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n')
    output = {
        "type": "spark", "master": "local[2]", "schema": "dws", "warehouse": "s3a://lake/w",
        "store": {"endpoint": server.endpoint, "path_style": True, "region": "us-east-1"},
    }  # fmt: skip
    (root / "profiles.yml").write_text(json.dumps({"lake": {"target": "s3", "outputs": {"s3": output}}}))
    (root / "models").mkdir()
    (root / "in").mkdir()
    (root / "models" / "shop.yml").write_text(
        "version: 2\nsources: [{name: ods, schema: ods, ingest: {format: debezium, files: {path: in/*.jsonl}}, "
        "tables: [{name: orders, ingest: {database: shop, table: orders, primary_key: [id]}}]}]\n"
    )
    (root / "models" / "customers.sql").write_text(
        "select customer, sum(amount) as total, count(*) as n from {{ source('ods', 'orders') }} group by customer"
    )
    events(root, "a", range(200), 1)
    return root


def events(root: Path, name: str, ids: range, amount: int) -> None:
    """A file of orders of seven customers."""
    lines = [
        json.dumps({
            "op": "c", "ts_ms": 1_700_000_000_000 + order, "before": None,
            "source": {"db": "shop", "table": "orders", "pos": order, "ts_ms": 1_700_000_000_000 + order},
            "after": {"id": order, "customer": order % 7, "amount": amount},
        }) for order in ids
    ]  # fmt: skip
    (root / "in" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


def begin(shop: Path, server: S3Server, *words: str, fault: str = "") -> subprocess.Popen[str]:
    environment = {**os.environ, **server.environment, **({"SML_FAULT": fault} if fault else {})}
    command = [sys.executable, "-m", "sqlmesh_like", *words, "--project-dir", str(shop)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def sml(shop: Path, server: S3Server, *words: str, fault: str = "") -> tuple[int, str]:
    process = begin(shop, server, *words, fault=fault)
    shown, _ = process.communicate(timeout=SECONDS)
    return process.returncode, shown


def totals(shop: Path, server: S3Server) -> list[tuple[int, int, int]]:
    code, shown = sml(shop, server, "show", "customers", "--output", "json", "--limit", "-1")
    assert code == 0, shown
    rows = json.loads(shown[shown.index("[") :])
    return sorted((row["customer"], row["total"], row["n"]) for row in rows)


def expected(*amounts: tuple[range, int]) -> list[tuple[int, int, int]]:
    orders = {order: amount for ids, amount in amounts for order in ids}
    of = {customer: [amount for order, amount in orders.items() if order % 7 == customer] for customer in range(7)}
    return [(customer, sum(each), len(each)) for customer, each in of.items()]


def test_a_lake_on_a_store_is_ingested_run_and_read(shop: Path, server: S3Server) -> None:
    for words in (["debug"], ["ingest"], ["run"]):
        code, shown = sml(shop, server, *words)
        assert code == 0, shown
    assert totals(shop, server) == expected((range(200), 1))
    events(shop, "b", range(100, 150), 5)
    for words in (["ingest"], ["run"]):
        code, shown = sml(shop, server, *words)
        assert code == 0, shown
    assert totals(shop, server) == expected((range(200), 1), (range(100, 150), 5))
    lease = json.loads(bytes(client_of("s3a://lake").get("w/dws/customers/.hoodie/.locks/table_lock.json").bytes()))
    assert lease["expired"] is True


@pytest.mark.fault("two runs of one lake on a store", ends="refuses")
def test_of_two_runs_at_once_one_commits_and_the_other_is_refused(shop: Path, server: S3Server) -> None:
    events(shop, "c", range(300, 320), 2)
    assert sml(shop, server, "ingest")[0] == 0
    before = commits(server)
    runs = [begin(shop, server, "run") for _ in range(2)]
    answers = [(run.communicate(timeout=SECONDS)[0], run.returncode) for run in runs]
    refused = [shown for shown, code in answers if code == 1]
    assert sorted(code for _, code in answers) == [0, 1], answers
    assert "another `sml run` is writing s3a://lake/w/dws/customers" in refused[0]
    assert len(commits(server)) == len(before) + 1
    assert totals(shop, server) == expected((range(200), 1), (range(100, 150), 5), (range(300, 320), 2))


@pytest.mark.fault("a kill of a run on a store", ends="recovers")
def test_a_run_that_was_killed_at_its_commit_is_repeated_at_once(shop: Path, server: S3Server) -> None:
    events(shop, "d", range(400, 410), 3)
    assert sml(shop, server, "ingest")[0] == 0
    code, shown = sml(shop, server, "run", fault="spark.write.begin")
    assert code == -9, shown
    code, shown = sml(shop, server, "run")
    assert code == 0, shown
    want = expected((range(200), 1), (range(100, 150), 5), (range(300, 320), 2), (range(400, 410), 3))
    assert totals(shop, server) == want
    code, shown = sml(shop, server, "verify")
    assert code == 0, shown


def commits(server: S3Server) -> list[str]:
    """Completed commits of the model's table."""
    timeline = server.folder / "lake" / "w" / "dws" / "customers" / ".hoodie" / "timeline"
    return sorted(path.name for path in timeline.glob("*_*.*commit"))
