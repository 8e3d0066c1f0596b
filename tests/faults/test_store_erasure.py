"""`sml forget` on an object store, on a real S3 server: rows of a source leave every object, kills in between."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.fault_points import ERASURE_POINTS
from sqlmesh_like.hudi.erasure.byte_search import Needles, texts_in
from sqlmesh_like.hudi.erasure.searched_files import searched_files
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.store_client import client_of, use_store
from sqlmesh_like.hudi.stores.table_lease import TableLease
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.project.reading.store_settings import StoreSettings
from tests.faults.calls import finished, start
from tests.faults.shop import CUSTOMERS, MODELS, ORDERS
from tests.faults.store_shop import StoreShop
from tests.faults.test_erasure import CHANGED, NAME, OTHER, Register
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
        found = [str(each.path) for file in searched_files(self.warehouse) for each in texts_in(file, needles)]
        return found + [str(path) for path in self.files_with(text) if "warehouse" not in path.parts]

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
        searched = [path for method, path in proxy.requests if method == "GET" and path.endswith(".parquet")]
        assert len(proxy.requests) < 1, sorted(proxy.requests)
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


@parametrize(
    "step",
    suite=["erasure.old_file"],
    release=[*(point for point in ERASURE_POINTS if point != "erasure.old_file"), "hudi.commit.staged"],
)
@pytest.mark.fault("an erasure on a store is killed", ends="recovers")
def test_killed_at_any_step_the_same_command_ends_it(shop: StoreRegister, step: str) -> None:
    code, output = finished(start(shop.root, "forget", *WORDS, fault=step))
    assert code == -signal.SIGKILL, output
    code, output = finished(start(shop.root, "forget", *WORDS))
    assert code == 0, output
    assert_forgotten(shop)
