"""Runs stopped and killed between the commits of a chain: readers see one whole, tested release or the other."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
import sqlalchemy

from sqlmesh_like import Project
from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.stores.store_client import use_store
from sqlmesh_like.project.reading.store_settings import StoreSettings
from sqlmesh_like.releases.release import Releases
from sqlmesh_like.releases.release_file import StoredReleases
from tests.faults.calls import finished, kill_group, start, wait_until_stopped
from tests.faults.shop import CUSTOMERS, MODELS, ORDERS, Shop
from tests.faults.store_shop import StoreShop
from tests.levels import parametrize
from tests.services import mariadb, postgres
from tests.services.proxy import proxy_of
from tests.services.s3 import S3Server
from tests.services.s3 import server as server
from tests.services.wanted import need
from tests.unit.app.test_releases import FILES, MORE, SUMS
from tests.unit.publish.test_file_sets import Shop as Tables
from tests.unit.publish.test_file_sets import require_whole_releases

OLD, NEW = 55, 62


def sums(root: Path, at: str | None = None) -> tuple[int, int]:
    """ΣDWD and ΣDWS as a reader sees them."""
    with Project.load(root) as project:
        ((row),) = project.sql(SUMS, at=at).to_pylist()
    return row["below"], row["above"]


@parametrize(
    ("step", "total", "tables"),
    suite=[("hudi.commit.complete:2", OLD, (NEW, OLD)), ("release.staged:1", OLD, (NEW, NEW))],
    release=[
        ("hudi.commit.complete:1", OLD, (OLD, OLD)),
        ("hudi.commit.complete:3", OLD, (NEW, NEW)),
        ("hudi.commit.staged:3", OLD, (NEW, OLD)),
        ("release.complete:1", NEW, (NEW, NEW)),
    ],
)
@pytest.mark.fault("a run is killed before, or while, it makes a release", ends="recovers")
def test_sums_along_a_chain_are_equal_at_any_step(
    step: str, total: int, tables: tuple[int, int], tmp_path: Path
) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert finished(start(tmp_path, "build"))[0] == 0
    (tmp_path / "seeds/orders.csv").write_text(MORE)
    call = start(tmp_path, "build", fault=f"{step}:stop")
    assert wait_until_stopped(call), f"{step} is not reached: {finished(call)[1]}"
    assert sums(tmp_path, "latest-commit") == tables
    assert sums(tmp_path) == (total, total)
    kill_group(call)
    assert finished(call)[0] == -signal.SIGKILL
    assert sums(tmp_path) == (total, total)
    code, output = finished(start(tmp_path, "build"))
    assert code == 0, output
    assert sums(tmp_path) == (NEW, NEW)


@parametrize(
    "step",
    suite=["publish.written:2", "publish.together:3"],
    release=["publish.written:1", "publish.written:6", "publish.begin:2", "publish.together:1", "publish.together:2"],
)
@pytest.mark.fault("a run is killed while it publishes the tables of a release", ends="recovers")
def test_destinations_show_whole_releases(step: str, tmp_path: Path) -> None:
    files = {
        **FILES,
        "profiles.yml": "lake: {target: local, outputs: {local: {type: spark, warehouse: warehouse, schema: dws, "
        "publish: {bi: {duckdb: bi.duckdb}, db: {url: 'sqlite:///db.sqlite'}, files: {parquet: shown}}}}}\n",
        "models/orders_d.sql": "{{ config(publish=['bi', 'db', 'files']) }}" + FILES["models/orders_d.sql"],
        "models/daily.sql": FILES["models/daily.sql"].replace("'bi'", "['bi', 'db', 'files']"),
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert finished(start(tmp_path, "build"))[0] == 0
    assert published(tmp_path) == {(OLD, OLD)}
    (tmp_path / "seeds/orders.csv").write_text(MORE)
    code, output = finished(start(tmp_path, "build", fault=step))
    assert code == -signal.SIGKILL, output
    assert published(tmp_path) <= {(OLD, OLD), (NEW, NEW)}, "tables of two releases"
    assert (OLD, OLD) in published(tmp_path) and sums(tmp_path) == (NEW, NEW)
    assert finished(start(tmp_path, "publish"))[0] == 0
    assert published(tmp_path) == {(NEW, NEW)}


@pytest.mark.release
@pytest.mark.parametrize("step", ["publish.written:2", "publish.together:1", "publish.written:4", "publish.together:2"])
def test_servers_show_whole_releases(step: str, tmp_path: Path) -> None:
    need(mariadb.find_server, postgres.find_server)
    with mariadb.mariadb(tmp_path) as maria, postgres.postgres(tmp_path) as post:
        with maria.connect() as db, db.cursor() as cursor:
            cursor.execute("create database bi")
        urls = (
            f"mysql+pymysql://{maria.user}@127.0.0.1:{maria.port}/bi?charset=utf8mb4",
            f"postgresql+psycopg://{post.user}@127.0.0.1:{post.port}/postgres",
        )
        places = ", ".join(f"db{number}: {{url: '{url}'}}" for number, url in enumerate(urls))
        root, to = tmp_path / "shop", "['db0', 'db1']"
        files = {
            **FILES,
            "profiles.yml": "lake: {target: local, outputs: {local: {type: spark, warehouse: warehouse, schema: dws, "
            f"publish: {{{places}}}}}}}}}\n",
            "models/orders_d.sql": f"{{{{ config(publish={to}) }}}}{FILES['models/orders_d.sql']}",
            "models/daily.sql": FILES["models/daily.sql"].replace("'bi'", to),
        }
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        code, output = finished(start(root, "build"))
        assert code == 0, output
        assert shown(urls) == {(OLD, OLD)}
        (root / "seeds/orders.csv").write_text(MORE)
        code, output = finished(start(root, "build", fault=step))
        assert code == -signal.SIGKILL, output
        assert shown(urls) <= {(OLD, OLD), (NEW, NEW)} and (OLD, OLD) in shown(urls), "tables of two releases"
        code, output = finished(start(root, "publish"))
        assert code == 0 and shown(urls) == {(NEW, NEW)}, output
        # Another column, which needs a table beside the old one.
        for each in ("orders_d", "daily"):
            text = (root / f"models/{each}.sql").read_text()
            (root / f"models/{each}.sql").write_text(text.replace("select customer", "select customer, 1 as one"))
        code, output = finished(start(root, "build"))
        assert code == 0 and shown(urls) == {(NEW, NEW)}, output


def shown(urls: Iterable[str]) -> set[tuple[int, int]]:
    """The sums of both tables at each server."""
    sums: set[tuple[int, int]] = set()
    for url in urls:
        engine = sqlalchemy.create_engine(url)
        with engine.connect() as db:
            (row,) = db.exec_driver_sql("select (select sum(amount) from orders_d), (select sum(total) from daily)")
            sums.add((int(row[0]), int(row[1])))
        engine.dispose()
    return sums


def published(root: Path) -> set[tuple[int, int]]:
    """The sums of both tables at each destination."""
    query = "select (select sum(amount) from orders_d), (select sum(total) from daily)"
    with duckdb.connect(str(root / "bi.duckdb")) as bi, closing(sqlite3.connect(root / "db.sqlite")) as db:
        rows = [bi.execute(query).fetchone(), db.execute(query).fetchone()]
        for place in (root / "shown", root / "shown" / "current"):
            sums = (
                f"(select sum({column}) from '{place}/{name}.parquet')"
                for name, column in {"orders_d": "amount", "daily": "total"}.items()
            )
            rows.append(bi.execute(f"select {', '.join(sums)}").fetchone())
    return {(int(row[0]), int(row[1])) for row in rows if row is not None}


@pytest.mark.release
def test_a_lake_on_a_store_is_released_by_a_conditional_put(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(3)
    with proxy_of(server.port) as proxy:
        shop = StoreShop.copied(Shop.made(tmp_path / "shop"), server, "released", proxy.endpoint)
        with (shop.root / "pyproject.toml").open("a") as file:
            file.write('release = "always"\n')
        monkeypatch.chdir(shop.root)
        for name in (CUSTOMERS, ORDERS):
            shop.commit(name, dice)
        assert main(["run"]) == 0
        first = totals(capsys)
        shop.commit(ORDERS, dice)
        proxy.requests.clear()
        assert main(["run"]) == 0
        asked = [method for method, path in proxy.requests if "/_sml/releases/" in path]
        assert asked.count("PUT") == 1 and len(asked) <= 4, asked  # cleaning asks what is kept
        assert main(["release", "rollback", "1"]) == 0
        assert totals(capsys) == first
        latest = totals(capsys, "--at", "latest-commit")
        assert latest[0] == latest[1] and latest != first
        file = StoredReleases("s3a://released/w/_sml/releases/shop.dws.json")
        turns: list[Releases] = []

        def edit(releases: Releases) -> Releases:
            turns.append(releases)
            if len(turns) == 1:  # another call is faster
                file.change(lambda all: all.with_hold(1, is_held=True))
            return releases.with_release(releases.find("2").tables, "run", "2024-05-01T00:00:00Z")

        made = file.change(edit)
        assert len(turns) == 2 and made == file.read()
        assert [(each.id, each.is_held) for each in made.listed] == [(1, True), (2, False), (3, False)]


@pytest.mark.release
def test_a_release_costs_one_request_for_each_table_that_changed_and_its_object(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Shop.made(tmp_path / "shop")
    with proxy_of(server.port) as proxy:
        asked: dict[str, list[str]] = {}
        for mode in ("", 'release = "always"\n'):
            bucket, dice = f"cost{len(asked)}", random.Random(3)
            shutil.copytree(made.root, tmp_path / bucket)
            shop = StoreShop.copied(Shop(tmp_path / bucket, dict(made.rows_at)), server, bucket, proxy.endpoint)
            with (shop.root / "pyproject.toml").open("a") as file:
                file.write(mode)
            monkeypatch.chdir(shop.root)
            for _ in range(2):  # the first run builds, the second one is counted
                for name in (CUSTOMERS, ORDERS):
                    shop.commit(name, dice)
                proxy.requests.clear()
                assert main(["run"]) == 0
            asked[mode] = [_anonymous(f"{method} {path}".replace(bucket, "bucket")) for method, path in proxy.requests]
        off, on = asked.values()
        assert not Counter(off) - Counter(on) and not any("/_sml/releases/" in each for each in off)
        more = Counter(on) - Counter(off)
        of_file = [each for each in more.elements() if "/_sml/releases/" in each]
        properties = [each for each in more.elements() if each.endswith("/hoodie.properties")]
        assert more.total() == len(of_file) + len(properties), more
        assert len(of_file) <= 4 and len(properties) <= len(MODELS), more


def _anonymous(request: str) -> str:
    """A request without instants and names of file groups, which differ from run to run."""
    return re.sub(r"[0-9a-f-]{36}|\d{14,17}", "…", request)


@pytest.mark.release
def test_files_of_a_release_on_a_store_are_named_by_one_object(server: S3Server) -> None:
    server.make_bucket("shown")
    keys = {"access_key": server.access_key, "secret_key": server.secret_key}
    use_store("s3a://shown/x", StoreSettings(server.endpoint, path_style=True, **keys))
    require_whole_releases(Tables("s3a://shown/x"))


def totals(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, object]:
    """The sums of a model and of the one that reads it, in the lake of the shop."""
    capsys.readouterr()
    query = "select (select sum(amount) from detail) as below, (select sum(total) from region) as above"
    assert main(["sql", query, "--output", "json", *words]) == 0
    ((row),) = json.loads(capsys.readouterr().out)
    return row["below"], row["above"]
