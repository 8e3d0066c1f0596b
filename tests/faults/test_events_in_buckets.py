"""Events in files of a bucket, ingested without Spark on a real S3 server, in turn with Spark, and killed."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.query_log import read_query_log
from sqlmesh_like.cdc.stream.log_files import MOST_BYTES, listed_files, open_files
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.stores.store_client import client_of, delete_files, put_content, use_store
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from tests.faults.calls import finished, start
from tests.faults.test_small_batches import _SOURCES, STORE_STEPS, Landed, _ingested, _killed_twice
from tests.levels import parametrize
from tests.services.stores import ONLY_S3, Server
from tests.services.stores import server as server

pytestmark = ONLY_S3
_NOBODY = "spark://127.0.0.1:1"
"""A master that does not answer: whatever asks for Spark fails."""


@dataclass
class InBucket(Landed):
    """The events, tables and checkpoint in a bucket."""

    bucket: str = ""

    def write(self, lines: Sequence[str]) -> None:
        content, name = "".join(lines).encode(), f"{self.files:04d}.jsonl"
        if self.files % 2:
            content, name = gzip.compress(content), f"{name}.gz"
        put_content(f"s3a://{self.bucket}/landing/{name}", content)


def landed(root: Path, dice: random.Random, server: Server, *, master: str = _NOBODY) -> InBucket:
    lake = InBucket(root, dice, warehouse=f"{new_bucket(root, server)}/w")
    lake.bucket = lake.warehouse.split("/")[2]
    write_profile(lake.root, lake.warehouse, server, master)
    sources = _SOURCES.replace("landing/*.jsonl", f"'s3a://{lake.bucket}/landing/*'")
    (root / "models/sources.yml").write_text(sources, encoding="utf-8")
    return lake


def new_bucket(root: Path, server: Server) -> str:
    bucket = f"events-{abs(hash(root)) % 10**12}"
    server.make_bucket(bucket)
    use_store(f"{server.uri(bucket)}/w", server.settings())
    put_content(f"{server.uri(bucket)}/landing/_begun", b"")  # the folder is there
    return server.uri(bucket)


def write_profile(root: Path, warehouse: str, server: Server, master: str, **more: str) -> None:
    output = {"type": "spark", "master": master, "warehouse": warehouse, **server.output(), "schema": "dws", **more}
    profile = {"lake": {"target": "store", "outputs": {"store": output}}}
    (root / "profiles.yml").write_text(json.dumps(profile), encoding="utf-8")


@parametrize("step", suite=["ingest.planned"], release=[step for step in STORE_STEPS if step != "ingest.planned"])
def test_a_batch_of_events_in_a_bucket_that_is_killed_counts_once(step: str, tmp_path: Path, server: Server) -> None:
    _killed_twice(landed(tmp_path, random.Random(step), server), step)


def parquet(rows: Sequence[tuple[int, str]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [row[0] for row in rows], "v": [row[1] for row in rows]}), file)
    return file.getvalue()


def csv(rows: Sequence[tuple[int, str]]) -> bytes:
    return "".join(f'{id},"{v}"\n' for id, v in [("id", "v"), *rows]).encode()


@pytest.mark.parametrize(("suffix", "encode"), [("parquet", parquet), ("csv", csv)])
def test_rows_of_files_in_a_bucket_need_no_spark(
    suffix: str, encode: Callable[[Sequence[tuple[int, str]]], bytes], tmp_path: Path, server: Server
) -> None:
    bucket = new_bucket(tmp_path, server)
    files = f"{{path: '{bucket}/landing/*/*/*.{suffix}'{', csv: {header: true}' if suffix == 'csv' else ''}}}"
    sources = f"""
sources:
- name: shop
  schema: ods
  ingest: {{format: rows, files: {files}}}
  tables: [{{name: t, columns: [{{name: id, data_type: bigint}}], ingest: {{database: db, primary_key: [id]}}}}]
"""
    lake = Landed(tmp_path, random.Random(1), warehouse=f"{bucket}/w")
    (tmp_path / "models/sources.yml").write_text(sources)
    write_profile(tmp_path, lake.warehouse, server, _NOBODY)
    for name, rows in (("b", [(1, "a"), (2, "b")]), ("a", [(2, "ü"), (3, "c")])):  # the second one is listed first
        put_content(f"{bucket}/landing/db/t/{name}.{suffix}", encode(rows))
        _ingested(lake)
    read = read_table_rows(table_state(Timeline(f"{lake.warehouse}/ods/t")), -1)
    assert read is not None and sorted(row[:2] for row in read.rows) == [(1, "a"), (2, "ü"), (3, "c")]


def test_what_spark_may_list_or_read_otherwise_is_left_to_it(tmp_path: Path, server: Server) -> None:
    bucket = new_bucket(tmp_path, server)
    place, glob = f"{bucket}/landing", f"{bucket}/landing/*.json*"

    def refused(name: str, content: bytes, why: str) -> None:
        put_content(f"{place}/{name}", content)
        with pytest.raises(NotProvenError, match=why):
            listed_files(glob)
        delete_files(place, [name])

    put_content(f"{place}/b.json", b"{}\n")
    put_content(f"{place}/.c.json", b"{}\n")
    put_content(f"{place}/b.txt", b"{}\n")
    [(modified, uri)] = listed_files(glob)
    assert uri == f"{place}/b.json" and modified % 1000 == 0
    put_content(f"{place}/empty.json", b"")
    assert [name for _, name in sorted(listed_files(glob))] == [uri, f"{place}/empty.json"]
    refused("x.json/y", b"", "has folders")
    refused("x y.json", b"{}", "may spell otherwise")
    for other in (f"{bucket}/landing/{{a,b}}.json", f"{bucket}/**/b.json", "gs://lake/landing/*"):
        with pytest.raises(NotProvenError, match="only Spark lists"):
            listed_files(other)
    with pytest.raises(NotProvenError, match="cannot be listed"):
        listed_files("s3a://no-such-bucket-as-this/landing/*")
    [file] = open_files([(modified, uri)])
    assert file.open().read() == b"{}\n" and file.location == uri
    with pytest.raises(NotProvenError, match="was written again"):
        open_files([(modified - 1000, uri)])
    with pytest.raises(NotProvenError, match="is gone"):
        open_files([(modified, f"{place}/gone.json")])
    put_content(f"{place}/large.json", bytes(MOST_BYTES // 2 + 1))
    [large] = [each for each in listed_files(glob) if each[1].endswith("large.json")]
    with pytest.raises(NotProvenError, match="32 MB"):
        open_files([large, large])


@pytest.mark.release
def test_spark_goes_on_after_events_of_a_bucket_and_so_does_this_process(tmp_path: Path, server: Server) -> None:
    lake = landed(tmp_path, random.Random(4), server, master="local[2]")
    for number in range(6):
        lake.land()
        if number % 2:
            write_profile(tmp_path, lake.warehouse, server, "local[2]", delta_engine="spark")
            code, output = finished(start(lake.root, "ingest"))
            assert code == 0 and "Started Spark" in output, output
        else:
            write_profile(tmp_path, lake.warehouse, server, _NOBODY)
            _ingested(lake)
        lake.check()
    log = read_query_log(f"{lake.warehouse}/_sml/checkpoints/shop")
    assert log is not None
    names = sorted(str(each["path"]) for page in client_of(lake.warehouse).list("landing") for each in page)
    listed = {each.uri: each.modified for each in log.files}
    assert sorted(listed) == [f"s3a://{lake.bucket}/{name}" for name in names if not name.endswith("_begun")]
    assert {uri: modified for modified, uri in listed_files(f"s3a://{lake.bucket}/landing/*")} == listed
