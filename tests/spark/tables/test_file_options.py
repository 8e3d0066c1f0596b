"""Options of files reach them: codec, largest size, small-file limit, number of buckets, tasks of a write."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from unittest import mock

import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.spark.tables import hudi_table
from tests.spark.ingest_lake import Lake as IngestLake
from tests.spark.ingest_lake import event, table
from tests.spark.lake import Lake

D = Decimal
SMALL = "hoodie.parquet.max.file.size"
CODEC = "hoodie.parquet.compression.codec"
SIMPLE = {"hoodie__index__type": "SIMPLE"}


def codecs(uri: str) -> set[str]:
    footers = (parquet.ParquetFile(Path(uri) / file).metadata for file in live(uri))
    return {footer.row_group(0).column(0).compression for footer in footers}


def live(uri: str) -> list[str]:
    """Paths of the files that hold the table's rows now."""
    timeline = Timeline(uri)
    return [file_slice.path for file_slice in timeline.slices(timeline.frontier or "").values()]


@pytest.mark.checklist(43, 44, 50)
@pytest.mark.release
def test_codec_largest_size_and_tasks_reach_a_models_files(lake: Lake) -> None:
    orders = lake.source("orders", "id int, amount decimal(12,2)")
    orders.write(*((number, D(number)) for number in range(3000)))
    volume = sum(size.bytes for size in orders.timeline.sizes(orders.frontier()).values())
    limit = volume // 4
    config = f"{{{{ config(hudi={{'{SMALL}': '{limit}', '{CODEC}': 'snappy'}}) }}}}"
    lake.model("cut", f"{config} select id, amount from @orders")
    lake.model("whole", "select id, amount from @orders")
    lake.use_engine("spark")
    with mock.patch.object(hudi_table, "write", side_effect=hudi_table.write) as written:
        lake.run_well()
    tasks = {call.args[1].name: call.args[1].tasks for call in written.call_args_list}
    assert tasks == {"dws_cut": -(-volume // limit), "dws_whole": 2}
    assert (len(live(lake.uri("cut"))), len(live(lake.uri("whole")))) == (volume // limit + 1, 1)
    assert (codecs(lake.uri("cut")), codecs(lake.uri("whole"))) == ({"SNAPPY"}, {"ZSTD"})
    # Another number of buckets would double keys: a table keeps the one that it was made with.
    lake.model("cut", "{{ config(hudi={'hoodie.bucket.index.num.buckets': '2'}) }} select id, amount from @orders")
    orders.upsert(*((number, D(-1)) for number in range(50)), delete=[(60, D(60))])
    lake.run_well()
    lake.assert_maintained()
    assert len(lake.keys("cut")) == len(set(lake.keys("cut"))) == 2999


@pytest.mark.release
@pytest.mark.checklist(50)
def test_codec_and_buckets_of_an_ods_table(spark: SparkSession, tmp_path: Path) -> None:
    wanted = {CODEC: "snappy", "hoodie.bucket.index.num.buckets": "3"}
    shop = IngestLake(spark, tmp_path, (table("a", hudi=wanted), table("b")))
    shop.ingest(*(event("c", {"id": number}, table=name) for name in ("a", "b") for number in range(20)))
    assert (codecs(shop.uri("a")), codecs(shop.uri("b"))) == ({"SNAPPY"}, {"ZSTD"})
    assert (len(live(shop.uri("a"))), len(live(shop.uri("b")))) == (3, 1)
    shop.tables = (table("a"), table("b"))
    shop.ingest(*(event("u", {"id": number, "n": 1}, {"id": number}, table="a") for number in range(20)))
    assert shop.rows("a", "id", "n") == sorted(((number, 1) for number in range(20)), key=str)


@pytest.mark.release
@pytest.mark.checklist(42)
def test_many_small_batches_leave_as_many_files_as_there_are_buckets(lake: Lake) -> None:
    names = ("ours", "packed", "scattered")
    ours, packed, scattered = (lake.source(name, "id int, name string") for name in names)
    for number in range(4):
        ours.upsert((number, "x"))
        packed.write((number, "x"), **SIMPLE)
        scattered.write((number, "x"), hoodie__parquet__small__file__limit="0", **SIMPLE)
    assert [len(live(each.uri)) for each in (ours, packed, scattered)] == [1, 1, 4]
