"""Which engine does what, by the target and the places of tables alone.

Of models, whose plans count too, see `tests/unit/cli/test_explain.py`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlmesh_like.plan.router import Router
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.reading.store_settings import StoreSettings

TARGET = Target("lake", "here", "spark")
CLUSTERS = ("spark://host:7077", "yarn", "k8s://https://host")
IN_REACH = ("/mnt/lake/t", "s3a://lake/t", "hdfs://name/lake/t")


@pytest.mark.parametrize("master", CLUSTERS)
@pytest.mark.parametrize("uri", IN_REACH)
def test_the_driver_of_a_cluster_reads_commits_creates_and_cleans_what_is_in_its_reach(master: str, uri: str) -> None:
    router = Router(replace(TARGET, master=master))
    assert router.why_spark_reads(uri) is None
    assert router.why_spark_commits(uri) is None
    assert router.why_spark_creates(uri) is None
    assert router.why_spark_cleans(uri) is None
    assert router.why_executors_commit(uri) == f"they are on the executors of {master}"
    assert router.most_bytes == 2_000_000_000


@pytest.mark.parametrize("uri", IN_REACH)
def test_on_one_machine_any_number_of_bytes_is_handled_here(uri: str) -> None:
    for master in ("local[*]", "local-cluster[2,1,1024]"):
        router = Router(replace(TARGET, master=master))
        assert (router.most_bytes, router.why_executors_commit(uri)) == (None, None)


@pytest.mark.parametrize("master", ["local[*]", *CLUSTERS])
def test_what_a_target_or_a_place_rules_out_is_sparks_everywhere(master: str) -> None:
    target = replace(TARGET, master=master)
    asked = Router(replace(target, delta_engine="spark"))
    assert (
        asked.why_spark_commits("/lake/t") == "the target's delta_engine is spark" == asked.why_spark_reads("/lake/t")
    )
    unknown = Router(target)
    assert unknown.why_spark_reads("oss://b/t") == "oss://b/t is out of this process's reach"
    assert unknown.why_spark_commits("gs://b/t") == "commits without Spark are tried on S3 and HDFS alone"
    alone = Router(replace(target, store=StoreSettings(single_writer=True)))
    assert alone.why_spark_commits("s3a://b/t") == "the store has no conditional writes (`single_writer`)"


def test_settings_that_may_change_values_leave_all_rows_to_spark_and_others_none() -> None:
    set_ = {"spark.sql.shuffle.partitions": "8", "spark.sql.session.timeZone": "UTC", "spark.executor.cores": "2"}
    assert Router(replace(TARGET, spark=set_)).why_spark_reads("/lake/t") is None
    for name in ("spark.sql.caseSensitive", "spark.sql.legacy.timeParserPolicy", "spark.sql.files.ignoreMissingFiles"):
        router = Router(replace(TARGET, spark={**set_, name: "x"}))
        assert router.why_spark_reads("/lake/t") == f"the target sets {name}, which may change values"
        assert router.why_spark_commits("/lake/t") is None, "rows that are there already"
