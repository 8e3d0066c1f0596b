"""Tables on stores made, and their history removed, without a JVM, on a real S3 server and HDFS; kills in between."""

from __future__ import annotations

import json
import random
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.fault_points import ARCHIVE_POINTS, CLEAN_POINTS, COMMIT_POINTS, STORE_TABLE_POINTS
from sqlmesh_like.hudi.missing_files import lost_files
from sqlmesh_like.hudi.recovery.savepoints import savepoints
from sqlmesh_like.hudi.services.local_clean import clean_here
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.store_client import client_of, delete_files
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError
from sqlmesh_like.hudi.writer.new_table import NewTable
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.hudi.writer.store_table import begin_table
from tests.faults import calls
from tests.faults.shop import CUSTOMER, CUSTOMERS, DETAIL, FILES, MODELS, ORDERS, Shop
from tests.faults.store_shop import StoreShop
from tests.faults.test_first_builds import ROWS, SEEDS
from tests.levels import parametrize
from tests.services.stores import Server
from tests.services.stores import server as server

PROPERTIES = b"hoodie.table.name=t\n"


@pytest.fixture
def shop(project: Shop, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreShop:
    project.write_files()
    shop = StoreShop.copied(project, server, f"tables-{abs(hash(tmp_path)) % 10**12}")
    monkeypatch.chdir(shop.root)
    return shop


@pytest.fixture
def empty(shop: StoreShop) -> StoreShop:
    """A project with seeds of some rows, whose bucket has no table."""
    for path, text in SEEDS.items():
        (shop.root / path).write_text(text)
    place = folder(shop.warehouse)
    delete_files(shop.warehouse, place.files())
    assert place.files() == []
    return shop


def engines(shop: Shop) -> set[str | None]:
    results = json.loads((shop.root / "target" / "run_results.json").read_text())["results"]
    return {each["adapter_response"].get("engine") for each in results if each["unique_id"].startswith("model.")}


def test_a_project_is_built_without_a_jvm(empty: StoreShop, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build"]) == 0
    assert engines(empty) == {"duckdb"}
    assert sorted(empty.stored(DETAIL)) == ROWS and empty.remains() == []
    before = empty.timeline(ORDERS).frontier
    (empty.root / "seeds/orders.csv").write_text(SEEDS["seeds/orders.csv"].replace("1,1,20,", "1,1,21,"))
    assert main(["build"]) == 0
    assert engines(empty) == {"duckdb"} and empty.timeline(ORDERS).frontier != before
    assert sorted(empty.stored(DETAIL)) == [(1, 1, 21, "north"), *ROWS[1:]] and empty.remains() == []
    assert main(["run", "--full-refresh"]) == 0
    assert engines(empty) == {"duckdb"}
    assert sorted(empty.stored(DETAIL)) == [(1, 1, 21, "north"), *ROWS[1:]] and empty.remains() == []


def next_call(shop: Shop, *words: str) -> None:
    """A call that succeeds, in a process that remembers nothing of the one before."""
    code, output = calls.finished(calls.start(shop.root, *words))
    assert code == 0, output


_BUILD_POINTS = [point for point in COMMIT_POINTS if point != "hudi.commit.log"]


@parametrize(
    ("point", "time"),
    suite=[(STORE_TABLE_POINTS[0], 3), ("hudi.commit.file", 3)],
    release=[
        *((STORE_TABLE_POINTS[0], time) for time in (1, 6)),
        *((each, time) for each in _BUILD_POINTS for time in (1, 5)),
    ],
)
@pytest.mark.fault("a first build on a store is killed", ends="recovers")
def test_a_killed_build_leaves_no_row_or_all_and_the_next_one_goes_on(empty: StoreShop, point: str, time: int) -> None:
    code, output = calls.finished(calls.start(empty.root, "build", fault=f"{point}:{time}"))
    assert code == calls.KILLED, f"{point} is not reached {time} times: {output}"
    for name in (ORDERS, CUSTOMERS, *MODELS):
        if empty.timeline(name).frontier is not None:
            assert empty.stored(name), f"a table of {name} without rows after {point}"
    next_call(empty, "build")
    assert engines(empty) <= {"duckdb", None} and sorted(empty.stored(DETAIL)) == ROWS
    for name in MODELS:
        settled_timeline(empty.table(name))  # as the next commit does
    assert empty.remains() == []


def test_what_another_writer_has_left_is_not_taken_for_a_table(shop: StoreShop) -> None:
    uri, client = f"{shop.warehouse}/dws/t", client_of(shop.warehouse)
    client.put("w/dws/t/day=1/a_0-1-2_20240101000000000.parquet", b"rows")
    with pytest.raises(UnsupportedRowsError, match=r"a folder that has files, e[.]g[.] day=1/a_0-1-2"):
        begin_table(uri, PROPERTIES)
    delete_files(uri, ["day=1/a_0-1-2_20240101000000000.parquet"])
    client.put("w/dws/t/.hoodie/timeline/20240101000000000.commit.requested", b"")
    with pytest.raises(UnsupportedRowsError, match="another writer has begun"):
        begin_table(uri, PROPERTIES)
    with pytest.raises(RetryableError, match="another writer has made"):
        begin_table(shop.table(ORDERS), PROPERTIES)
    assert Timeline(uri).properties == {}
    delete_files(uri, [".hoodie/timeline/20240101000000000.commit.requested"])
    client.put("w/dws/t/day=1/.hoodie_partition_metadata", b"commitTime=20240101000000000\n")
    for properties in (PROPERTIES, b"hoodie.table.name=u\n"):  # the second after an edit of the model
        assert begin_table(uri, properties).frontier is None
        assert folder(uri).read(".hoodie/hoodie.properties") == properties


def assert_history(shop: StoreShop, retain: int, before: Collection[str]) -> None:
    """The newest commits are there with their files, the other files of `before` are gone."""
    timeline = shop.timeline(ORDERS)
    kept = [frontier for name, frontier in shop.rows_at if name == ORDERS][-retain:]
    assert [commit.instant.frontier for commit in timeline.data_commits[-retain:]] == kept
    assert timeline.unfinished == () and not timeline.before_gap and timeline.is_archived
    for frontier in kept:
        assert lost_files(timeline, frontier) == []
    assert len(timeline.commit_instants) == retain + 2
    assert len(timeline.data_files) == retain + 1 and len({*before} - timeline.data_files) > retain
    assert shop.stored(ORDERS) == sorted(shop.rows_at[ORDERS, kept[-1]])


def with_history(shop: StoreShop) -> frozenset[str]:
    dice = random.Random(2)
    for _ in range(9):
        shop.commit(ORDERS, dice)
    return shop.timeline(ORDERS).data_files


def test_history_is_removed_without_a_jvm(shop: StoreShop) -> None:
    dice = random.Random(3)
    for _ in range(22):
        shop.commit(ORDERS, dice)
    before = shop.timeline(ORDERS).data_files
    assert main(["run"]) == 0
    timeline = shop.timeline(ORDERS)
    assert [each.action for each in timeline.completed].count("clean") == 1
    assert_history(shop, 10, before)
    assert {name: shop.stored(name) for name in MODELS} == {name: shop.expected(name) for name in MODELS}
    shop.commit(ORDERS, dice)
    assert main(["run"]) == 0
    assert {name: shop.stored(name) for name in MODELS} == {name: shop.expected(name) for name in MODELS}


@parametrize(
    "point",
    suite=["clean.file", "archive.version"],
    release=[*(each for each in (*CLEAN_POINTS, *ARCHIVE_POINTS) if each not in ("clean.file", "archive.version"))],
)
@pytest.mark.fault("the removal of history on a store is killed", ends="recovers")
def test_a_killed_removal_of_history_is_completed_by_the_next(
    shop: StoreShop, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    before = with_history(shop)

    class Killed(BaseException):
        pass

    def killing(name: str) -> None:
        if name == point:
            raise Killed

    with monkeypatch.context() as patched:
        for module in ("local_clean", "archive"):
            patched.setattr(f"sqlmesh_like.hudi.services.{module}.fault_point", killing)
        with pytest.raises(Killed):
            clean_here(shop.table(ORDERS), 3)
    assert shop.stored(ORDERS) == sorted(shop.recorded(ORDERS)), "readers see all rows meanwhile"
    assert clean_here(shop.table(ORDERS), 3)
    assert_history(shop, 3, before)


@pytest.mark.fault("two calls remove the history of a table on a store at once", ends="refuses")
def test_of_two_removals_of_history_one_adds_to_it(shop: StoreShop, monkeypatch: pytest.MonkeyPatch) -> None:
    with_history(shop)
    history, client = "w/dws/orders/.hoodie/timeline/history", client_of(shop.warehouse)

    def other_call(uri: str) -> None:
        client.put(f"{history}/manifest_1", b'{"files": []}')

    before = shop.timeline(ORDERS).commit_instants
    with monkeypatch.context() as patched:
        patched.setattr("sqlmesh_like.hudi.services.archive.require_locks", other_call)
        with pytest.raises(RetryableError, match=r"another call has written .*manifest_1"):
            clean_here(shop.table(ORDERS), 3)
    timeline = shop.timeline(ORDERS)
    assert {*before} <= {*timeline.completed} and "_version_" not in timeline.history_names
    assert clean_here(shop.table(ORDERS), 3)
    assert len(shop.timeline(ORDERS).commit_instants) == 5 and shop.stored(ORDERS) == sorted(shop.recorded(ORDERS))


@parametrize("point", suite=["drop.moved"], release=["drop.marked", "drop.end", None])
@pytest.mark.fault("the removal of an orphan on a store is killed", ends="recovers")
def test_a_table_of_no_model_is_dropped_as_a_whole(shop: StoreShop, point: str | None) -> None:
    uri = shop.table(CUSTOMER)
    (shop.root / "models/customer.sql").unlink()
    words = ("clean", "--orphans", "--yes")
    if point:
        code, output = calls.finished(calls.start(shop.root, *words, fault=point))
        assert code == calls.KILLED, output
        assert Timeline(uri).exists == (point == "drop.marked"), "readers see a table or none"
    next_call(shop, *words)
    (shop.root / "models/customer.sql").write_text(FILES["models/customer.sql"])
    assert all(path.startswith(".hoodie/.locks/") for path in folder(uri).files())
    assert shop.timeline(DETAIL).frontier, "other tables stay"
    assert main(["run", "-s", "customer"]) == 0 and engines(shop) == {"duckdb"}
    assert shop.stored(CUSTOMER) == shop.expected(CUSTOMER)


@parametrize("point", suite=["drop.moved"], release=["drop.marked", "create.properties", "hudi.commit.staged", None])
@pytest.mark.fault("a table on a store that gets another layout is killed in between", ends="recovers")
def test_a_table_with_other_types_or_partitions_is_made_in_its_place(empty: StoreShop, point: str | None) -> None:
    assert main(["build"]) == 0
    path, text = empty.root / "models/detail.sql", FILES["models/detail.sql"]
    edited = text.replace("o.amount,", "cast(o.amount as bigint) as amount,")
    path.write_text("{{ config(partition_by='region') }}\n" + edited)
    if point:
        code, output = calls.finished(calls.start(empty.root, "run", fault=point))
        assert code == calls.KILLED, output
        if empty.timeline(DETAIL).exists and empty.timeline(DETAIL).frontier is not None:
            assert sorted(empty.stored(DETAIL)) == ROWS
    next_call(empty, "run")
    timeline = empty.timeline(DETAIL)
    assert engines(empty) <= {"duckdb", None} and sorted(row[:4] for row in empty.stored(DETAIL)) == ROWS
    assert timeline.partition_fields == ("_sml_partition",) and empty.remains() == []
    assert not timeline.folder.exists(".hoodie/.sml_dropped")


def test_a_table_goes_back_to_a_savepoint(shop: StoreShop, capsys: pytest.CaptureFixture[str]) -> None:
    with_history(shop)
    known = [each.frontier for each in shop.timeline(ORDERS).commit_instants]
    saved = known[3].partition("_")[0]
    assert main(["savepoint", "create", "orders", "--at", saved]) == 0
    (savepoint,) = savepoints(shop.timeline(ORDERS))
    assert savepoint.instant == saved and savepoint.files
    assert not clean_here(shop.table(ORDERS), 3), "Hudi knows which files it keeps"
    with pytest.raises(NodeError, match=f"has the savepoint {saved}"):
        NewTable(shop.table(ORDERS), "orders", ()).replace(pa.table({}), {})
    assert main(["rollback", "orders", "--to", known[1], "--yes"]) == 1
    assert f"has the savepoint {saved}" in capsys.readouterr().err
    assert main(["rollback", "orders", "--to", saved, "--yes"]) == 0
    assert shop.stored(ORDERS) == sorted(shop.rows_at[ORDERS, known[3]])
    assert main(["savepoint", "delete", "orders", saved]) == 0
    assert savepoints(shop.timeline(ORDERS)) == ()
    assert clean_here(shop.table(ORDERS), 1)
