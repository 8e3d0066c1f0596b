"""Commits without Spark on stores, on a real S3 server and HDFS: crashes, standstills, lost answers, other writers."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from sqlmesh_like.app.operations import run_nodes
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import MachineError, RetryableError
from sqlmesh_like.fault_points import COMMIT_POINTS
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile, Version
from sqlmesh_like.hudi.stores.store_client import client_of
from sqlmesh_like.hudi.stores.table_lease import TableLease
from sqlmesh_like.hudi.writer.commit_encoding import CommitContent
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.hudi.writer.store_commit import StoreCommit, open_store_commit
from tests.faults import calls
from tests.faults.shop import CUSTOMERS, DAILY, MODELS, ORDERS, Shop
from tests.faults.store_shop import StoreShop
from tests.levels import parametrize
from tests.services.proxy import proxy_of
from tests.services.s3 import S3Server
from tests.services.stores import ONLY_S3, Server
from tests.services.stores import server as server
from tests.unit.app.test_frozen_partitions import split

CONTENT = CommitContent("UPSERT", (), {})


@pytest.fixture
def shop(project: Shop, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreShop:
    """A lake with changes of both inputs that no model has read."""
    project.write_files()
    shop = StoreShop.copied(project, server, f"shop-{abs(hash(tmp_path)) % 10**12}")
    dice = random.Random(3)
    for name in (CUSTOMERS, ORDERS, ORDERS):
        shop.commit(name, dice)
    monkeypatch.chdir(shop.root)
    return shop


def require_right(shop: StoreShop) -> None:
    assert {name: shop.stored(name) for name in MODELS} == {name: shop.expected(name) for name in MODELS}
    assert shop.remains() == []


def test_a_change_takes_the_path_of_a_local_disk_without_a_jvm(
    shop: StoreShop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--output", "json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert {(each["engine"], each["engine_because"]) for each in explained["models"]} == {("duckdb", "")}
    assert main(["run"]) == 0
    results = json.loads((shop.root / "target" / "run_results.json").read_text())["results"]
    assert {each["adapter_response"]["engine"] for each in results} == {"duckdb"}
    require_right(shop)
    shop.commit(ORDERS, random.Random(4))
    assert main(["run"]) == 0
    require_right(shop)


@pytest.mark.release
def test_frozen_rows_of_a_table_on_a_store_stay(shop: StoreShop) -> None:
    dice, before = random.Random(6), "2024-01-18"
    assert main(["run"]) == 0  # the table is there: what becomes frozen stays as this run leaves it
    text = (shop.root / "models/daily.sql").read_text()
    frozen_text = text.replace("partition_by='day'", f"partition_by='day', frozen_before='{before}'")
    (shop.root / "models/daily.sql").write_text(frozen_text)
    left_out = 0
    for number in range(6):
        kept = split(shop.stored(DAILY), before)[0]
        for _ in range(3):
            shop.commit(ORDERS, dice)
        assert main(["run", "-s", "daily", *(["--full-refresh"] * (number == 4))]) == 0
        results = json.loads((shop.root / "target" / "run_results.json").read_text())["results"]
        assert {each["adapter_response"]["engine"] for each in results} == {"duckdb"}
        queried, live = split(shop.expected(DAILY), before)
        assert split(shop.stored(DAILY), before) == (kept, live)
        left_out += queried != kept
    assert left_out, "the query has other rows there"


SUITE = ("hudi.commit.files", "hudi.commit.staged")


@parametrize("point", suite=list(SUITE), release=[point for point in COMMIT_POINTS if point not in SUITE])
@pytest.mark.fault("a run on a store killed in the middle of its commit", ends="recovers")
def test_a_killed_commit_is_completed_or_removed_by_the_next_run(shop: StoreShop, point: str) -> None:
    code, output = calls.finished(calls.start(shop.root, "run", "--select", "daily", fault=point))
    assert code == calls.KILLED, output
    assert main(["run", "--select", "daily"]) == 0
    assert shop.stored(DAILY) == shop.expected(DAILY)
    settled_timeline(shop.table(DAILY))  # as the next commit does
    assert shop.remains() == []


def begun(shop: StoreShop) -> StoreCommit:
    """A commit to the orders, with a data file that its markers name."""
    timeline = settled_timeline(shop.table(ORDERS))
    commit = open_store_commit(timeline, timeline.frontier)
    commit.mark("new.parquet", is_new=True)
    client_of(shop.warehouse).put("w/dws/orders/new.parquet", b"rows")
    return commit


def files(shop: StoreShop, part: str) -> list[str]:
    return sorted(path for path in shop.timeline(ORDERS).folder.files() if part in path)


@pytest.mark.fault("a commit to a store that stands still until another call has removed it", ends="refuses")
def test_a_commit_that_was_removed_meanwhile_is_never_completed(shop: StoreShop) -> None:
    stale, before = begun(shop), shop.timeline(ORDERS).frontier
    timeline = settled_timeline(shop.table(ORDERS))  # by the call that has the locks now
    assert (timeline.frontier, timeline.unfinished, files(shop, stale.instant)) == (before, (), [])
    shop.commit(ORDERS, random.Random(5))
    mine = shop.timeline(ORDERS).frontier
    # It comes back, writes the rest of its files, and even sees itself on the timeline.
    client_of(shop.warehouse).put("w/dws/orders/late.parquet", b"rows")
    client_of(shop.warehouse).put(f"w/dws/orders/.hoodie/timeline/{stale.instant}.inflight", b"")
    stale.others = shop.timeline(ORDERS).names
    with pytest.raises(RetryableError, match="another call has removed the commit"):
        stale.complete(CONTENT)
    stale.abandon(["late.parquet"])
    assert shop.timeline(ORDERS).frontier == mine
    assert files(shop, stale.instant) == files(shop, "new.parquet") == files(shop, "late.parquet") == []


@pytest.mark.parametrize("has_arrived", [True, False])
@pytest.mark.fault("a put to a store that timed out, whether it succeeded or not", ends="recovers")
def test_a_commit_whose_last_put_has_no_answer_is_completed_once(
    shop: StoreShop, monkeypatch: pytest.MonkeyPatch, has_arrived: bool
) -> None:
    commit, real = begun(shop), ConditionalFile.put

    def no_answer(self: ConditionalFile, content: bytes, seen: Version | None) -> Version | None:
        done = real(self, content, seen) if has_arrived or not self.uri.endswith(".commit") else None
        if self.uri.endswith(".commit"):
            raise MachineError("the store does not answer")
        return done

    monkeypatch.setattr("sqlmesh_like.hudi.writer.store_commit.time.sleep", lambda seconds: None)
    with monkeypatch.context() as patch:
        patch.setattr(ConditionalFile, "put", no_answer)
        with pytest.raises(RetryableError, match="it is not known whether"):
            commit.complete(CONTENT)
        commit.abandon(["new.parquet"])
    assert files(shop, "new.parquet"), "what may be completed is not removed"
    assert len(files(shop, f"timeline/{commit.instant}_")) == has_arrived
    timeline, (completed,) = settled_timeline(shop.table(ORDERS)), files(shop, f"timeline/{commit.instant}_")
    assert timeline.frontier == completed.rpartition("/")[2].removesuffix(".commit") and not timeline.unfinished
    assert files(shop, ".sml_writer") == files(shop, ".temp") == []


def test_who_comes_next_completes_what_was_ready_and_its_writer_learns_of_it(
    shop: StoreShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, real = begun(shop), ConditionalFile.replace

    def overtaken(self: ConditionalFile, content: bytes, seen: Version | None) -> Version | None:
        if self.uri.endswith(".commit"):
            monkeypatch.setattr(ConditionalFile, "replace", real)
            settled_timeline(shop.table(ORDERS))  # another call, between the claim and the completed instant
        return real(self, content, seen)

    monkeypatch.setattr(ConditionalFile, "replace", overtaken)
    frontier = commit.complete(CONTENT)
    assert shop.timeline(ORDERS).frontier == frontier
    assert len(files(shop, f"timeline/{commit.instant}_")) == 1 and files(shop, ".sml_writer") == []


def test_a_completed_commit_counts_where_what_is_left_of_it_cannot_be_removed(
    shop: StoreShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(uri: str, relative: list[str]) -> None:
        raise MachineError("the store does not answer")

    commit = begun(shop)
    with monkeypatch.context() as patch:
        patch.setattr("sqlmesh_like.hudi.writer.store_commit.delete_files", failing)
        frontier = commit.complete(CONTENT)
    assert files(shop, ".sml_writer") and settled_timeline(shop.table(ORDERS)).frontier == frontier
    assert files(shop, ".sml_writer") == files(shop, ".temp") == []


@pytest.mark.fault("a writer of Hudi, without locks, commits to a store in between", ends="refuses")
def test_a_commit_of_another_writer_in_between_is_seen(shop: StoreShop) -> None:
    commit = begun(shop)
    client_of(shop.warehouse).put("w/dws/orders/.hoodie/timeline/29991231000000000.commit.requested", b"")
    with pytest.raises(RetryableError, match="another writer has begun 29991231"):
        commit.complete(CONTENT)
    commit.abandon()
    assert files(shop, commit.instant) == files(shop, "new.parquet") == []


@pytest.mark.fault("two writers of a table on a store that begin at the same moment", ends="refuses")
def test_of_two_commits_with_one_instant_the_second_does_not_begin(
    shop: StoreShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeline = settled_timeline(shop.table(ORDERS))
    first = open_store_commit(timeline, timeline.frontier)
    monkeypatch.setattr("sqlmesh_like.hudi.writer.store_commit.next_instant", lambda names: first.instant)
    with pytest.raises(RetryableError, match="another writer has begun"):
        open_store_commit(timeline, timeline.frontier)
    assert len(files(shop, first.instant)) == 3, "the claim and the request of the first are left alone"


@ONLY_S3
def test_a_run_asks_for_little_and_for_all_tables_at_once(
    project: Shop, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write_files()
    with proxy_of(server.port) as proxy:
        shop = StoreShop.copied(project, server, f"few-{abs(hash(tmp_path)) % 10**12}", proxy.endpoint)
        shop.commit(CUSTOMERS, random.Random(3))
        shop.commit(ORDERS, random.Random(3))
        monkeypatch.chdir(shop.root)
        asked = proxy.requests
        asked.clear()
        assert main(["run", "--select", "customer"]) == 0
        assert len(asked) <= 58, "of which the commit needs 16, and the table's own lock 4"
        assert main(["run"]) == 0
        asked.clear()
        tables = len(MODELS) + 2
        # In the first place, all of them wait for one another: who lists one table after the other waits forever.
        proxy.together = threading.Barrier(tables, timeout=60)
        assert main(["run"]) == 0
        assert len(proxy.listings) == tables, "each once: nobody had locks in between"
        assert len(asked) == 2 * tables + 9, "none for locks of single tables"


def test_what_another_call_has_committed_before_the_locks_is_read(
    shop: StoreShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks, ran = run_nodes.lake_lock, list[int]()

    def lock_late(*words: Any, **options: Any) -> Any:
        if not ran:
            ran.append(0)
            shop.commit(ORDERS, random.Random(11))
            ran[0] = main(["run", "--select", "daily"])
        return locks(*words, **options)

    monkeypatch.setattr(run_nodes, "lake_lock", lock_late)
    assert main(["run"]) == 0
    assert ran == [0], "the other call was not refused"
    require_right(shop)
    daily = shop.timeline(DAILY).commit_instants
    assert main(["run"]) == 0
    assert shop.timeline(DAILY).commit_instants == daily, "all was read"


@pytest.mark.fault("a writer of Hudi with its own lock provider, while a model is to be written", ends="refuses")
def test_a_table_that_another_writer_has_locked_is_left_alone_and_the_others_are_built(
    shop: StoreShop, capsys: pytest.CaptureFixture[str]
) -> None:
    before, other = shop.stored(DAILY), TableLease(shop.table(DAILY), "spark-7", 600)
    assert other.take() is None
    assert main(["run"]) == 1
    assert "another writer holds the lock of" in capsys.readouterr().out
    results = json.loads((shop.root / "target" / "run_results.json").read_text())["results"]
    ended = {each["unique_id"]: each["status"] for each in results}
    assert [name for name, status in ended.items() if status == "error"] == [DAILY]
    assert shop.stored(DAILY) == before
    threading.Timer(2, other.release).start()
    assert main(["run", "--lock-timeout", "300"]) == 0, "it waits for the other's commit"
    require_right(shop)


@parametrize("point", suite=["rollback.marked", "rollback.in_flight"], release=["hudi.removal.files", None])
@pytest.mark.fault("a rollback of a table on a store is killed", ends="recovers")
def test_a_table_is_rolled_back_and_a_killed_rollback_goes_on(shop: StoreShop, point: str | None) -> None:
    known = [instant.frontier for instant in shop.timeline(ORDERS).commit_instants]
    words = ("rollback", "orders", "--to", known[0], "--yes")
    if point:
        code, output = calls.finished(calls.start(shop.root, *words, fault=point))
        assert code == calls.KILLED, output
        assert shop.stored(ORDERS) == shop.recorded(ORDERS), "readers see one of its commits"
    assert main([*words]) == 0
    assert [instant.frontier for instant in shop.timeline(ORDERS).commit_instants] == known[:1]
    assert shop.stored(ORDERS) == shop.rows_at[ORDERS, known[0]]
    assert files(shop, ".sml_writer/") == files(shop, ".temp/") == []
    assert not [path for path in shop.timeline(ORDERS).data_files if known[1][:17] in path or known[2][:17] in path]
    shop.commit(ORDERS, random.Random(6))
    assert shop.timeline(ORDERS).commit_instants[-1].requested > known[-1], "no instant is used again"
