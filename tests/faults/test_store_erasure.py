"""`sml forget` on an object store, on a real S3 server: rows of a source leave every object, kills in between."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.fault_points import ERASURE_POINTS
from sqlmesh_like.hudi.erasure.byte_search import Needles, texts_in
from sqlmesh_like.hudi.erasure.searched_files import searched_files
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.store_client import client_of, use_store
from sqlmesh_like.hudi.stores.table_lease import TableLease
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.project.reading.store_settings import StoreSettings
from tests.faults.calls import finished, start
from tests.faults.shop import CUSTOMERS, DETAIL, MODELS, ORDERS
from tests.faults.store_shop import StoreShop
from tests.faults.test_erasure import CHANGED, JOINED, NAME, OTHER, Register
from tests.faults.test_erasure import built as built
from tests.levels import parametrize
from tests.services.proxy import proxy_of
from tests.services.s3 import S3Server
from tests.services.s3 import server as server
from tests.written_table import WrittenTable

WORDS = ("till.customers", "3", "--text", NAME, "--yes")


@dataclass
class StoreRegister(StoreShop, Register):
    """The register's lake in a bucket."""

    def objects_with(self, text: str) -> list[str]:
        """Objects of the warehouse that have a text in any form, and files beside it."""
        needles = Needles([text])
        objects = [str(each.path) for file in searched_files(self.warehouse) for each in texts_in(file, needles)]
        return objects + [str(path) for path in self.files_with(text) if "warehouse" not in path.parts]

    def put_table(self, table: WrittenTable, below: str) -> None:
        """A table of a disk, put below the warehouse."""
        client = client_of(self.warehouse)
        for path in table.root.rglob("*"):
            if path.is_file():
                client.put(f"w/{below}/{path.relative_to(table.root)}", path.read_bytes())


@pytest.fixture
def shop(built: Register, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreRegister:
    for name in CHANGED:
        shutil.rmtree(built.root / name, ignore_errors=True)
        if name != "warehouse":
            shutil.copytree(built.root / "built" / name, built.root / name)
    bucket = f"forget-{abs(hash(tmp_path)) % 10**12}"
    server.make_bucket(bucket)
    shop = StoreRegister(built.root, dict(built.rows_at), warehouse=f"s3a://{bucket}/w")
    use(shop, server, server.endpoint)
    client, kept = client_of(shop.warehouse), built.root / "built" / "warehouse"
    for path in kept.rglob("*"):
        if path.is_file() and "locks" not in path.parts:
            client.put(f"w/{path.relative_to(kept)}", path.read_bytes())
    monkeypatch.chdir(shop.root)
    return shop


def use(shop: StoreRegister, server: S3Server, endpoint: str, **more: object) -> None:
    """Give the project a target in the bucket."""
    keys = {"access.key": server.access_key, "secret.key": server.secret_key}
    output = {
        "type": "spark", "master": "local[2]", "schema": "dws", "warehouse": shop.warehouse,
        "store": {"endpoint": endpoint, "path_style": True, **more},
        "spark": {f"spark.hadoop.fs.s3a.{name}": value for name, value in keys.items()},
        "publish": {"bi": {"duckdb": "serving/bi.duckdb"}, "files": {"parquet": "serving/files"},
                    "db": {"url": "sqlite:///serving/db.sqlite"}},
    }  # fmt: skip
    (shop.root / "profiles.yml").write_text(json.dumps({"lake": {"target": "s3", "outputs": {"s3": output}}}))
    use_store(
        shop.warehouse,
        StoreSettings(endpoint, path_style=True, access_key=server.access_key, secret_key=server.secret_key),
    )


def assert_forgotten(shop: StoreRegister) -> None:
    assert shop.stored(CUSTOMERS) == [(4, OTHER), (5, "Katherine G. Johnson")]
    for model in MODELS:
        assert shop.stored(model) == shop.expected_of(model)
    assert shop.objects_with(NAME) == []
    for name in (CUSTOMERS, *MODELS):
        timeline = shop.timeline(name)
        slices = timeline.slices(timeline.commit_instants[-1].frontier).values()
        assert timeline.data_files == {each.path for each in slices}
    assert shop.remains() == []


def test_rows_leave_every_object_and_the_rest_stays_right(
    shop: StoreRegister, server: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(shop.objects_with(NAME)) > 6
    with proxy_of(server.port) as proxy:
        use(shop, server, proxy.endpoint)
        assert main(["forget", *WORDS]) == 0
        assert len(proxy.requests) <= 370, "of which a quarter fetches what is searched, and a quarter is for locks"
    use(shop, server, server.endpoint)
    said = capsys.readouterr().out
    assert "1 row deleted in dws.customers" in said and "Found in none of" in said
    assert "what the bucket keeps besides its objects" in said
    assert_forgotten(shop)
    shop.put(CUSTOMERS, (4, "Grace B. Hopper", False))
    code, output = finished(start(shop.root, "run"))
    assert code == 0 and "HIS" not in output, output
    for model in MODELS:
        assert shop.stored(model) == shop.expected_of(model)


@pytest.mark.release
def test_rows_leave_slices_of_a_rebuild_that_no_run_goes_on_with(shop: StoreRegister) -> None:
    model, query = (
        shop.root / "models/daily.sql",
        f"select o.day, o.id, c.region from {{{{ source('till', 'orders') }}}} o {JOINED}",
    )
    model.write_text(f"{{{{ config(partition_by='day') }}}}\n{query}\n")
    words = ("run", "-s", "daily", "--slices", "3", "--full-refresh")
    code, output = finished(start(shop.root, *words, fault="slices.committed:2"))
    assert code == -signal.SIGKILL, output
    assert shop.objects_with(NAME)
    code, output = finished(start(shop.root, "forget", *WORDS))
    assert code == 0, output
    assert shop.objects_with(NAME) == []
    assert folder(f"{shop.warehouse}/dws/daily__sml_slices").files() == []


@pytest.mark.release
@pytest.mark.parametrize("step", [*ERASURE_POINTS, "hudi.commit.staged"])
@pytest.mark.fault("an erasure on a store is killed", ends="recovers")
def test_killed_at_any_step_the_same_command_ends_it(shop: StoreRegister, step: str) -> None:
    code, output = finished(start(shop.root, "forget", *WORDS, fault=step))
    assert code == -signal.SIGKILL, output
    code, output = finished(start(shop.root, "forget", *WORDS))
    assert code == 0, output
    assert_forgotten(shop)


@parametrize("step", suite=[], release=["erasure.set_aside", "drop.marked", "drop.moved", "create.properties", None])
@pytest.mark.fault("a table on a store that is to be built anew is killed before it was", ends="recovers")
def test_a_table_with_a_partition_of_that_name_is_made_anew(shop: StoreRegister, step: str | None) -> None:
    words = ("forget", "till.orders", "5", "--text", "2024-01-05", "--yes")
    assert any("_sml_partition=2024-01-05" in each for each in shop.objects_with("2024-01-05"))
    if step:
        code, output = finished(start(shop.root, *words, fault=step))
        assert code == -signal.SIGKILL, output
    code, output = finished(start(shop.root, *words))
    assert code == 0, output
    assert shop.objects_with("2024-01-05") == [] and len(shop.stored(ORDERS)) == 8
    for model in MODELS:
        assert shop.stored(model) == shop.expected_of(model)
    assert folder(f"{shop.warehouse}/_sml/erasure").names() == [] and shop.remains() == []


@pytest.mark.release
def test_tables_beside_the_source_lose_their_rows_and_copies_go(
    shop: StoreRegister, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = {"reason": "string", "table_name": "string", "row_key": "string", "text": "string", "raw": "bytes"}
    dead = WrittenTable(tmp_path / "dead", columns).create()
    dead.upsert([
        ("a", None, "customers", "3", "{broken", None),
        ("c", "x", "customers", "4", '{"id": 4}', None),
        ("e", "x", None, None, f"{NAME} in no JSON", None),
    ])  # fmt: skip
    tombstones = WrittenTable(tmp_path / "tombstones", {"part": "long"}).create()
    tombstones.upsert([("3", 7), ("4", 8)])
    failures = WrittenTable(tmp_path / "failures", {"region": "string"}).create()
    failures.upsert([("a", NAME)])
    audit = "dws_dbt_test__audit/unique_detail_region"
    shop.put_table(dead, "dws/till__dead_letters")
    shop.put_table(tombstones, "_sml/tombstones/dws/customers")
    shop.put_table(failures, audit)
    client = client_of(shop.warehouse)
    client.put("w/_sml/publish/region.parquet", NAME.encode())
    client.put("w/export.json.gz", gzip.compress(json.dumps({"name": NAME}).encode()))
    (shop.root / "models" / "tests.yml").write_text(
        "models:\n  - name: detail\n    columns: [{name: region, tests: [unique]}]\n"
    )
    try:
        assert main(["forget", *WORDS]) == 1
        assert f"{shop.warehouse}/export.json.gz: {NAME}" in capsys.readouterr().out
        assert shop.objects_with(NAME) == [f"{shop.warehouse}/export.json.gz"]
        client.delete("w/export.json.gz")
        assert main(["forget", *WORDS]) == 0
    finally:
        (shop.root / "models" / "tests.yml").unlink()
    assert not Timeline(f"{shop.warehouse}/{audit}").exists
    for table, value in (("dws/till__dead_letters", '{"id": 4}'), ("_sml/tombstones/dws/customers", 8)):
        timeline = Timeline(f"{shop.warehouse}/{table}")
        rows = read_table_rows(table_state(timeline), -1)
        assert rows is not None and [value in row for row in rows.rows] == [True] and len(timeline.data_files) == 1
    assert_forgotten(shop)


@pytest.mark.fault("an erasure on a store that cannot be done as a whole", ends="refuses")
@pytest.mark.release
def test_what_cannot_be_forgotten_is_refused_before_it_begins(
    shop: StoreRegister, server: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(words: str) -> None:
        before = {each: folder(shop.warehouse).sizes()[each] for each in folder(shop.warehouse).files()}
        capsys.readouterr()
        assert main(["forget", *WORDS]) != 0
        assert words in capsys.readouterr().err
        after = folder(shop.warehouse).sizes()
        assert {path for path, size in before.items() if after.get(path) != size and "locks" not in path} == set()

    other, client = TableLease(shop.table(DETAIL), "spark-7", 600), client_of(shop.warehouse)
    assert other.take() is None
    refused(f"another writer holds the lock of {shop.table(DETAIL)}: owner spark-7")
    other.release()
    path = "w/dws/region/.hoodie/hoodie.properties"
    properties = bytes(client.get(path).bytes())
    client.put(path, properties.replace(b"COPY_ON_WRITE", b"MERGE_ON_READ"))
    refused("it is merge-on-read, on a store")
    client.put(path, properties)
    use(shop, server, server.endpoint, single_writer=True)
    refused("forgetting needs its locks (`single_writer`)")
    if server.buckets is None:  # versitygw keeps versions only where it was started to
        bucket = shop.warehouse.split("/")[2]
        body = b'<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status>'
        body += b"</VersioningConfiguration>"
        address, headers = f"{server.endpoint}/{bucket}?versioning", {"Content-Type": "application/xml"}
        request = urllib.request.Request(address, data=body, headers=headers, method="PUT")
        urllib.request.urlopen(request).close()
        customers = path.replace("region", "customers")
        client.put(customers, bytes(client.get(customers).bytes()))
        use(shop, server, server.endpoint)
        refused("keeps versions of objects that are deleted")
        use(shop, server, server.endpoint, versions_expire=True)
        assert main(["forget", *WORDS]) == 0
        assert shop.objects_with(NAME) == []
