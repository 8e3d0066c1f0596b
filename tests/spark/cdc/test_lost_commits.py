"""Tables that went back behind their source's back: seen, never called nothing new, and healed by reading again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.timeline import Timeline
from tests.spark.ingest_lake import Lake, event, table


def test_a_table_that_was_replaced_by_an_older_copy_or_restored_is_seen_and_healed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path, (table("a"), table("b")))
    lake.land(event("c", {"id": 1, "v": "x"}, table="a"), event("c", {"id": 1, "v": "x"}, table="b"))
    lake.run()
    uri, copy = Path(lake.uri("a")), tmp_path / "copy"
    shutil.copytree(uri, copy)
    saved = Timeline(lake.uri("a")).completed[-1].requested
    spark.sql(f"call create_savepoint(path => '{uri}', commit_time => '{saved}')").collect()
    lake.land(event("u", {"id": 1, "v": "y"}, table="a"), event("c", {"id": 2, "v": "z"}, table="a"))
    lake.run()
    assert lake.run().events == 0

    spark.sql(f"call rollback_to_savepoint(path => '{uri}', instant_time => '{saved}')").collect()
    for went_back in ("restored", "an older copy"):
        if went_back == "an older copy":
            shutil.rmtree(uri)
            shutil.copytree(copy, uri)
        commits = Timeline(lake.uri("a")).completed
        with pytest.raises(IngestError, match=r"ods\.a is not as its source left it: commit .* is gone"):
            lake.run()
        lake.land(event("c", {"id": 3, "v": went_back}, table="a"))
        with pytest.raises(IngestError, match="nothing was ingested"):
            lake.run()
        assert Timeline(lake.uri("a")).completed == commits
        lake.run("earliest")
        assert lake.rows("a", "id", "v") == [(1, "y"), (2, "z"), (3, went_back)]
        assert lake.run().events == 0
        assert lake.rows("b", "id", "v") == [(1, "x")]
