"""A standalone cluster whose tables are on S3: executors build there, and look rows up for programs on the driver."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.services.s3 import S3Server
from tests.services.s3 import server as server
from tests.spark.lakes.test_cluster import MODELS, THEN, applications, built_by_executors, project, sml, write_orders
from tests.spark.lakes.test_cluster import master as master
from tests.spark.lakes.test_cluster import work as work

pytestmark = pytest.mark.release

_LARGE = "select id, sha2(cast(id as string), 256) as text from (select explode(sequence(0, 299999)) as id)"
"""More than twice the bound: its text cannot be compressed."""
_NAMED = "select o.id, o.amount, l.text from {{ ref('orders') }} o join {{ ref('large') }} l on o.buyer = l.id"


@pytest.mark.timeout(3600)
def test_executors_look_rows_up_on_s3_for_a_program_on_the_driver(
    master: str, work: Path, server: S3Server, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    project(root, master)
    server.make_bucket("lake")
    output = dict(server.output())
    settings = {"spark.sql.shuffle.partitions": 2, "spark.executor.memory": "768m", **output.pop("spark")}
    output |= {"type": "spark", "master": master, "warehouse": server.uri("lake") + "/w", "schema": "dws"}
    output |= {"spark": settings, "driver_max_bytes": 8_000_000}
    (root / "profiles.yml").write_text(json.dumps({"lake": {"target": "s3", "outputs": {"s3": output}}}))
    (root / "models" / "large.sql").write_text(f"{{{{ config(refresh='full') }}}} {_LARGE}")
    (root / "models" / "named.sql").write_text(f"{{{{ config(refresh='incremental') }}}} {_NAMED}")
    built = built_by_executors(root, work)
    write_orders(root, THEN)
    sml(root, "seed")
    sml(root, "run", "--select", *MODELS)
    assert applications(work) == built, "nothing of it is large"
    assert sml(root, "run")["named"] == "row_based"
    looked_up = applications(work)
    assert len(looked_up - built) == 1
    results = json.loads((root / "target" / "run_results.json").read_text())["results"]
    (named,) = (each["adapter_response"] for each in results if each["unique_id"] == "model.shop.named")
    assert named["engine"] == "duckdb" and named["spark_jobs"] == 2, "the keys, and the rows that have them"
    sml(root, "verify")
