"""Environments on an object store without a JVM, on a real S3 server: clones by the store's own copies, and kills."""

from __future__ import annotations

import json
import os
import random
import signal
from datetime import date
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.cloning.clone import clone_table
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.server_copies import copy_files
from sqlmesh_like.hudi.stores.store_client import client_of, use_store
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.project.reading.store_settings import StoreSettings
from tests.faults import calls
from tests.faults.shop import CUSTOMERS, DAILY, DETAIL, ORDERS, REGION, Row, Shop
from tests.faults.store_shop import StoreShop
from tests.levels import parametrize
from tests.services.proxy import Proxy, proxy_of
from tests.services.s3 import S3Server
from tests.services.s3 import server as server
from tests.unit.app.test_environments import DAILY_SQL, FILTER, edit, expected, refusal

Shown = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def built(project: Shop, server: S3Server) -> tuple[StoreShop, dict[str, bytes]]:
    """A lake whose tables are up to date, and all of its files."""
    project.write_files()
    shop = StoreShop.copied(project, server, "built")
    dice = random.Random(1)
    for name in (CUSTOMERS, ORDERS, ORDERS):
        shop.commit(name, dice)
    assert main(["run", "--project-dir", str(shop.root)]) == 0
    place = folder(shop.warehouse)
    return shop, {path: place.read(path) for path in place.files()}


@pytest.fixture
def shop(
    built: tuple[StoreShop, dict[str, bytes]], server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StoreShop:
    """A copy of it, and of its project."""
    return copied(built, server, tmp_path, monkeypatch, server.endpoint)


def copied(
    built: tuple[StoreShop, dict[str, bytes]],
    server: S3Server,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    endpoint: str,
) -> StoreShop:
    kept, files = built
    bucket = f"environments-{abs(hash(root)) % 10**12}"
    server.make_bucket(bucket)
    for path in ("pyproject.toml", "profiles.yml", "models", "seeds"):
        for file in [kept.root / path] if (kept.root / path).is_file() else (kept.root / path).iterdir():
            target = root / file.relative_to(kept.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.read_text().replace("s3a://built/", f"s3a://{bucket}/"))
    profile = (root / "profiles.yml").read_text()
    (root / "profiles.yml").write_text(profile.replace(server.endpoint, endpoint))
    settings = StoreSettings(endpoint, path_style=True, access_key=server.access_key, secret_key=server.secret_key)
    use_store(f"s3a://{bucket}/w", settings)
    client = client_of(f"s3a://{bucket}")
    for path, content in files.items():
        client.put(f"w/{path}", content)
    monkeypatch.chdir(root)
    return StoreShop(root, dict(kept.rows_at), kept.changes, warehouse=f"s3a://{bucket}/w")


def production(shop: StoreShop) -> dict[str, bytes]:
    """Each file of production's tables, but for their locks."""
    place = folder(f"{shop.warehouse}/dws")
    return {path: place.read(path) for path in place.files() if "/.hoodie/.locks/" not in path}


def in_environments(shop: StoreShop) -> list[str]:
    return folder(f"{shop.warehouse}/_sml/environments").files()


def own_tables(shop: StoreShop, name: str = "dev") -> dict[str, str]:
    """Where the tables of an environment are, by the last part of their unique id."""
    below = f"{shop.warehouse}/_sml/environments/{name}"
    tables = json.loads(folder(below).read("environment.json"))["tables"]
    return {
        unique_id.rpartition(".")[2]: f"{below}/tables/{each['table']}-{each['place']}"
        for unique_id, each in tables.items()
    }


def rows_in(shop: StoreShop, unique_id: str, name: str = "dev") -> list[Row]:
    """The rows of an environment's own table."""
    uri = own_tables(shop, name)[unique_id.rpartition(".")[2]]
    rows = read_table_rows(table_state(Timeline(uri)), -1)
    assert rows is not None
    return sorted(tuple(str(v) if isinstance(v, date) else v for v in row) for row in rows.rows)


def engines(shop: StoreShop) -> set[str | None]:
    results = json.loads((shop.root / "target" / "run_results.json").read_text())["results"]
    return {each["adapter_response"].get("engine") for each in results if each["unique_id"].startswith("model.")}


def test_an_edit_is_made_compared_and_promoted_beside_production(shop: StoreShop, capsys: Shown) -> None:
    edit(shop.root, *FILTER)
    before, known = production(shop), shop.timeline(DETAIL).commit_instants
    assert main(["plan", "-e", "dev"]) == 0 and in_environments(shop) == []
    assert "dws.detail: cloned at" in (plan := capsys.readouterr().out) and "copied by the store" in plan
    assert main(["run", "-e", "dev"]) == 0
    shown = capsys.readouterr().out
    assert "EDT002 a narrower filter" in shown and "[aggregate_merge" in shown, "neither is built anew"
    assert engines(shop) == {"duckdb"} and own_tables(shop).keys() == {"detail", "region"}
    assert rows_in(shop, DETAIL) == expected(shop, DETAIL) and rows_in(shop, REGION) == expected(shop, REGION)
    assert expected(shop, DETAIL) != shop.expected(DETAIL) == shop.stored(DETAIL)
    assert main(["run", "-e", "dev"]) == 0 and "NO-OP=2" in capsys.readouterr().out
    assert main(["diff", "-e", "dev", "detail", "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows["removed"] == len(shop.stored(DETAIL)) - len(expected(shop, DETAIL)) > 0 == rows["changed"]
    assert main(["env", "list"]) == 0 and "dev" in capsys.readouterr().out
    assert production(shop) == before, "no call wrote to production"
    assert main(["promote", "dev"]) == 0
    assert in_environments(shop) == [] and shop.remains() == []
    after = production(shop)
    assert {path: after.get(path) for path in before} == before, "no file of production is changed"
    assert shop.timeline(DETAIL).commit_instants[:-1] == known
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)
    assert main(["run"]) == 0 and "NO-OP=4" in capsys.readouterr().out
    shop.commit(CUSTOMERS, random.Random(5))
    assert main(["run"]) == 0 and "full_refresh" not in capsys.readouterr().out
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)


LAYOUT = ("select day, id, amount", "select day, id, cast(amount as string) as amount")


@pytest.mark.release
def test_a_table_of_another_layout_and_a_new_one_take_their_places(shop: StoreShop, capsys: Shown) -> None:
    edit(shop.root, *LAYOUT, DAILY_SQL)
    (shop.root / "models/top.sql").write_text("select id, amount from {{ ref('daily') }}")
    before = production(shop)
    assert main(["run", "-e", "dev"]) == 0 and production(shop) == before
    assert own_tables(shop).keys() == {"daily", "top"} and engines(shop) == {"duckdb"}
    daily = sorted((day, key, str(amount)) for day, key, amount in shop.expected(DAILY))
    assert sorted(rows_in(shop, "top")) == sorted((key, amount) for _, key, amount in daily)
    assert main(["promote", "dev"]) == 0
    assert shop.stored(DAILY) == daily and in_environments(shop) == []
    assert not folder(shop.table(DAILY)).exists(".hoodie/.sml_dropped")
    shown = capsys.readouterr()
    assert main(["run"]) == 0 and "NO-OP=5 TOTAL=5" in capsys.readouterr().out, shown
    shop.commit(ORDERS, random.Random(6))
    assert main(["run"]) == 0 and "full_refresh" not in capsys.readouterr().out
    assert shop.stored("top") == sorted((key, str(amount)) for _, key, amount in shop.expected(DAILY))


def test_what_is_cloned_passes_through_no_call(
    built: tuple[StoreShop, dict[str, bytes]], server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy_of(server.port) as proxy:
        shop = copied(built, server, tmp_path, monkeypatch, proxy.endpoint)
        edit(shop.root, "o.amount, c.region", "o.amount, c.region, o.amount * 2 as twice")
        clear(proxy)
        assert main(["run", "-e", "dev"]) == 0
        made = [path for path in proxy.copies if path.endswith(".parquet")]
        assert len(made) == len(live_files(shop, DETAIL)) + len(live_files(shop, REGION)), "no older version of a row"
        assert {path.partition("/tables/")[2].partition("-")[0] for path in files(proxy)} == {"dws.detail"}
        assert rows_in(shop, REGION) == shop.stored(REGION)
        assert sorted(row[:4] for row in rows_in(shop, DETAIL)) == shop.expected(DETAIL)
        assert len(proxy.requests) <= 186, "of which the two tables need 16 for each change, as in production"
        clear(proxy)
        assert main(["promote", "dev"]) == 0
        assert files(proxy) == [] and [path.partition("/w/")[2][:10] for path in proxy.copies] == ["dws/detail"]
        assert len(proxy.requests) <= 25 + 22 * 2, "a new commit of a table"
        assert sorted(row[:4] for row in shop.stored(DETAIL)) == shop.expected(DETAIL)


def clear(proxy: Proxy) -> None:
    for counted in (proxy.requests, proxy.copies, proxy.passed):
        counted.clear()


def files(proxy: Proxy) -> list[str]:
    """The data files that were read or written by calls."""
    return [path for path, size in proxy.passed if path.endswith(".parquet") and size]


def live_files(shop: StoreShop, unique_id: str) -> list[str]:
    timeline = shop.timeline(unique_id)
    assert timeline.frontier is not None
    return [each.path for each in timeline.slices(timeline.frontier).values()]


def clone_folders(shop: StoreShop) -> set[str]:
    """The folders of clones that are there, also where the environment does not name them."""
    return {path.removeprefix("dev/tables/").partition("/")[0] for path in in_environments(shop) if "/tables/" in path}


@parametrize(
    "step",
    suite=[],
    release=[
        "clone.built:1",
        "clone.built:2",
        "clone.end:1",
        "environment.cloned:1",
        "hudi.commit.files:1",
        "hudi.commit.staged:2",
    ],
)
@pytest.mark.fault("a run on a store is killed while it makes an environment", ends="recovers")
def test_a_killed_run_leaves_production_as_it_is_and_the_next_one_makes_the_rest(shop: StoreShop, step: str) -> None:
    edit(shop.root, *FILTER)
    before = production(shop)
    code, output = calls.finished(calls.start(shop.root, "run", "-e", "dev", fault=step))
    assert code == calls.KILLED, output
    if step.startswith("clone"):
        assert own_tables(shop) == {}, "what is not whole is not named"
    code, output = calls.finished(calls.start(shop.root, "run", "-e", "dev"))
    assert code == 0, output
    assert production(shop) == before
    assert rows_in(shop, DETAIL) == expected(shop, DETAIL) and rows_in(shop, REGION) == expected(shop, REGION)
    assert clone_folders(shop) == {uri.rpartition("/")[2] for uri in own_tables(shop).values()}
    for uri in own_tables(shop).values():
        settled_timeline(uri)  # as the next commit does
        assert not [path for path in folder(uri).files() if "/.sml_writer/" in path or "/.temp/" in path]


@parametrize(
    ("step", "again"),
    suite=[("drop.end:1", "run")],
    release=[
        ("promotion.copied:1", "promote dev"),
        ("promotion.requested:1", "run"),
        ("promotion.begin:1", "run"),
        ("promotion.linked:1", "promote dev"),
        ("promotion.linked:1", "run"),
        ("promotion.committed:1", "run"),
        ("promotion.table:1", "promote dev"),
        ("drop.marked:1", "run"),
        ("drop.moved:1", "promote dev"),
        ("promotion.copied:1", "run"),
        ("promotion.moved:1", "run"),
        ("promotion.copied:2", "run"),
        ("promotion.moved:2", "promote dev"),
        ("promotion.table:3", "run"),
        ("promotion.released:1", "promote dev"),
        ("environment.removed:1", "run"),
        ("promotion.end:1", "run"),
    ],
)
@pytest.mark.fault("a promotion on a store is killed between its steps", ends="recovers")
def test_a_killed_promotion_is_completed_by_the_next_call(shop: StoreShop, step: str, again: str) -> None:
    edit(shop.root, *FILTER)
    edit(shop.root, *LAYOUT, DAILY_SQL)
    (shop.root / "models/top.sql").write_text("select id, amount from {{ ref('daily') }}")
    before = {name: shop.expected(name) for name in (DETAIL, REGION, DAILY)}
    daily = sorted((day, key, str(amount)) for day, key, amount in before[DAILY])
    after = {
        DETAIL: expected(shop, DETAIL), REGION: expected(shop, REGION), DAILY: daily,
        "top": sorted((key, amount) for _, key, amount in daily),
    }  # fmt: skip
    code, output = calls.finished(calls.start(shop.root, "run", "-e", "dev"))
    assert code == 0, output
    code, output = calls.finished(calls.start(shop.root, "promote", "dev", fault=step))
    assert code == calls.KILLED, output
    for name, rows in after.items():
        if shop.timeline(name).exists:
            assert shop.stored(name) in (before.get(name), rows), f"torn rows of {name}"
        else:
            assert name in (DAILY, "top"), "only what is replaced, or new, may be missing"
    code, output = calls.finished(calls.start(shop.root, *again.split()))
    was_removed = step.startswith(("environment.removed", "promotion.end"))
    assert code == 0 or (was_removed and again != "run"), output
    assert in_environments(shop) == []
    assert {name: shop.stored(name) for name in after} == after
    code, output = calls.finished(calls.start(shop.root, "run"))
    assert code == 0 and "NO-OP=5 TOTAL=5" in output, output
    for name in (*after,):
        assert not folder(shop.table(name)).exists(".hoodie/.sml_dropped")
    assert shop.remains() == []
    for name in (ORDERS, CUSTOMERS):
        shop.commit(name, random.Random(7))
    code, output = calls.finished(calls.start(shop.root, "run"))
    assert code == 0 and "full_refresh" not in output, output
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)


@pytest.mark.release
@pytest.mark.fault("other calls while a promotion on a store stands still", ends="refuses")
def test_nothing_else_uses_the_tables_of_a_promotion(shop: StoreShop) -> None:
    edit(shop.root, *FILTER)
    assert main(["run", "-e", "dev"]) == 0
    call = calls.start(shop.root, "promote", "dev", fault="promotion.linked:1:stop")
    assert calls.wait_until_stopped(call), calls.finished(call)[1]
    for words in (("promote", "dev"), ("run",), ("env", "drop", "dev")):
        output = calls.refused(calls.start(shop.root, *words))
        assert "another `sml promote` is writing" in output
    calls.kill_group(call)
    calls.finished(call)
    assert main(["promote", "dev"]) == 0
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)


@parametrize("step", suite=[], release=["environment.removed", "drop"])
@pytest.mark.fault("a drop of an environment on a store is killed", ends="recovers")
def test_an_environment_is_dropped_as_a_whole(shop: StoreShop, capsys: Shown, step: str) -> None:
    edit(shop.root, *FILTER)
    before = production(shop)
    assert main(["run", "-e", "dev"]) == 0
    if step == "drop":
        assert main(["env", "drop", "dev"]) == 0
    else:
        code, output = calls.finished(calls.start(shop.root, "env", "drop", "dev", fault=step))
        assert code == calls.KILLED, output
        assert len(in_environments(shop)) > 5, "its files are still there"
        capsys.readouterr()
        assert main(["env", "list"]) == 0 and "There are no environments" in capsys.readouterr().out
        assert "there is no environment 'dev'" in refusal(capsys, "sql", "-e", "dev", "select 1 as a")
        edit(shop.root, FILTER[1], FILTER[0])
        assert main(["run"]) == 0  # the next run of production removes them
    assert in_environments(shop) == [] and production(shop) == before
    edit(shop.root, FILTER[0] if step != "drop" else FILTER[1], FILTER[1])
    assert main(["run", "-e", "dev"]) == 0 and rows_in(shop, DETAIL) == expected(shop, DETAIL)


@pytest.mark.release
def test_where_production_has_moved_on_nothing_is_promoted(shop: StoreShop, capsys: Shown) -> None:
    edit(shop.root, *FILTER)
    assert main(["run", "-e", "dev"]) == 0
    edit(shop.root, FILTER[1], FILTER[0])
    shop.commit(ORDERS, random.Random(2))
    at = shop.timeline(DETAIL).frontier
    assert main(["run"]) == 0
    edit(shop.root, *FILTER)
    before, error = production(shop), refusal(capsys, "promote", "dev")
    assert f"dws.detail was at {at}, is at {shop.timeline(DETAIL).frontier}" in error and "sml run -e dev" in error
    assert production(shop) == before
    assert main(["run", "-e", "dev"]) == 0 and main(["promote", "dev"]) == 0
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)


@parametrize("step", suite=[], release=["promotion.linked", "promotion.begin", "promotion.requested"])
@pytest.mark.fault("another writer commits to a table on a store whose promotion was interrupted", ends="refuses")
def test_a_promotion_that_is_given_up_leaves_no_file(shop: StoreShop, capsys: Shown, step: str) -> None:
    edit(shop.root, *FILTER)
    assert main(["run", "-e", "dev"]) == 0
    known = production(shop)
    code, output = calls.finished(calls.start(shop.root, "promote", "dev", fault=step))
    assert code == calls.KILLED, output
    instant = "29991231000000000"
    newest = f"dws/detail/.hoodie/timeline/{shop.timeline(DETAIL).frontier}.commit"
    client = client_of(shop.warehouse)
    client.copy(f"w/{newest}", f"w/dws/detail/.hoodie/timeline/{instant}_{instant}.commit")
    assert "dws.detail cannot be promoted" in refusal(capsys, "promote", "dev")
    after = production(shop)
    assert after.keys() ^ known.keys() == {f"detail/.hoodie/timeline/{instant}_{instant}.commit"}
    assert {path: after[path] for path in known} == known
    client.delete(f"w/dws/detail/.hoodie/timeline/{instant}_{instant}.commit")
    assert main(["promote", "dev"]) == 0
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)


@parametrize(
    "step", suite=[], release=["promotion.begin", "promotion.linked", "promotion.requested", "promotion.copied"]
)
@pytest.mark.fault("a promotion on a store stands still until another call has completed it", ends="refuses")
def test_a_promotion_that_comes_back_changes_nothing(shop: StoreShop, step: str) -> None:
    edit(shop.root, *FILTER)
    edit(shop.root, *LAYOUT, DAILY_SQL)
    assert main(["run", "-e", "dev"]) == 0
    call = calls.start(shop.root, "promote", "dev", fault=f"{step}:1:stop")
    assert calls.wait_until_stopped(call), calls.finished(call)[1]
    assert main(["unlock", "detail"]) == 0
    assert main(["promote", "dev"]) == 0
    shop.commit(ORDERS, random.Random(3))
    assert main(["run"]) == 0
    before = production(shop)
    os.kill(call.pid, signal.SIGCONT)
    output = calls.refused(call)
    assert "locks" in output or "another call has changed the environment" in output, output
    assert production(shop) == before and in_environments(shop) == []
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)


@parametrize("step", suite=[], release=["clone.built", "clone.end", "environment.cloned"])
@pytest.mark.fault("a run that makes an environment on a store stands still until another one has", ends="refuses")
def test_a_run_that_comes_back_changes_nothing_of_the_environment(shop: StoreShop, step: str) -> None:
    edit(shop.root, *FILTER)
    call = calls.start(shop.root, "run", "-e", "dev", fault=f"{step}:1:stop")
    assert calls.wait_until_stopped(call), calls.finished(call)[1]
    assert main(["unlock", "detail"]) == 0
    assert main(["run", "-e", "dev"]) == 0
    uris = own_tables(shop)
    os.kill(call.pid, signal.SIGCONT)
    calls.refused(call)
    assert own_tables(shop) == uris
    assert rows_in(shop, DETAIL) == expected(shop, DETAIL) and rows_in(shop, REGION) == expected(shop, REGION)
    assert main(["promote", "dev"]) == 0 and in_environments(shop) == []


@pytest.mark.release
def test_a_reader_that_is_behind_follows_from_an_older_commit(shop: StoreShop, capsys: Shown) -> None:
    shop.commit(ORDERS, random.Random(4))
    assert main(["run", "-s", "detail"]) == 0  # region has read the commit before
    edit(shop.root, *FILTER)
    capsys.readouterr()
    assert main(["run", "-e", "dev"]) == 0
    shown = capsys.readouterr().out
    assert "dws.region" in shown and "[aggregate_merge" in shown and "full_refresh" not in shown
    assert rows_in(shop, REGION) == expected(shop, REGION)
    assert main(["promote", "dev"]) == 0
    assert shop.stored(REGION) == expected(shop, REGION)


@pytest.mark.release
@pytest.mark.parametrize("what", ["instant", "file", "copy"])
@pytest.mark.fault("files of a table on a store go while it is cloned", ends="refuses")
def test_a_table_whose_files_go_while_it_is_cloned_is_not_taken_for_whole(
    shop: StoreShop, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    timeline, target, client = shop.timeline(DETAIL), f"{shop.warehouse}/_sml/clone", client_of(shop.warehouse)
    assert timeline.frontier is not None
    oldest = timeline.commit_instants[0]

    def copying(source: str, to: str, paths: list[str]) -> None:
        if what == "file":
            client.delete(f"w/dws/detail/{live_files(shop, DETAIL)[0]}")
        copy_files(source, to, [path for path in paths if what != "copy" or not path.endswith(".parquet")])
        if what == "instant":
            client.delete(f"w/dws/detail/.hoodie/timeline/{oldest.requested}_{oldest.completed}.commit")

    monkeypatch.setattr("sqlmesh_like.hudi.cloning.store_clone.copy_files", copying)
    words = {"instant": "has changed", "file": "is gone", "copy": "was not copied as a whole"}[what]
    with pytest.raises(RetryableError, match=words):
        clone_table(timeline.uri, timeline.frontier, target)
    assert Timeline(target).exists == (what == "copy"), "and no object names it"
