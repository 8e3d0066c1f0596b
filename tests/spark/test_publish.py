"""Published tables equal their models: real MariaDB and PostgreSQL, a DuckDB file and Parquet files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy as sa
from pyarrow import parquet
from pyspark.sql import SparkSession

from sqlmesh_like.cli.app import main
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.database import DatabaseStore
from sqlmesh_like.publish.store import KEY_COLUMN
from tests.levels import IS_DEEP
from tests.published import Killed, Place, Row, publish_killed
from tests.services import mariadb, postgres
from tests.services.wanted import need
from tests.spark.demo_lake import share
from tests.spark.lake import ORDERS, Lake


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """SQLAlchemy URLs of an empty database on each server."""
    need(mariadb.find_server, postgres.find_server)
    folder = tmp_path_factory.mktemp("databases")
    with mariadb.mariadb(folder) as maria, postgres.postgres(folder) as post:
        with maria.connect() as db, db.cursor() as cursor:
            cursor.execute("create database bi character set latin1")
        yield {
            "maria": f"mysql+pymysql://{maria.user}@127.0.0.1:{maria.port}/bi?charset=utf8mb4",
            "post": f"postgresql+psycopg://{post.user}@127.0.0.1:{post.port}/postgres",
        }


def rows_of(url: str, table: str) -> list[Row]:
    """Rows of a published table, without its key."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as db:
        selected = db.execute(sa.text(f"select * from {table}"))
        names = list(selected.keys())
        return [
            tuple(value for name, value in zip(names, each, strict=True) if name != KEY_COLUMN) for each in selected
        ]


def _spelt(is_post: bool) -> Callable[[Row], Row]:
    def value(given: Any) -> object:
        if isinstance(given, datetime) and not is_post:
            return given.replace(tzinfo=None)
        if isinstance(given, bool) and not is_post:
            return int(given)
        return json.dumps(given, ensure_ascii=False) if isinstance(given, list) else given

    return lambda row: tuple(map(value, row))


@pytest.mark.release
@pytest.mark.parametrize("name", ["maria", "post"])
def test_a_server_shows_the_table_after_each_round_and_after_a_kill_at_any_statement(
    urls: dict[str, str], name: str
) -> None:
    schema = "shown" if name == "post" else None
    place = Place(
        lambda: DatabaseStore(Destination(name, "url", urls[name], schema)),
        lambda: [tuple(map(_utc, each)) for each in rows_of(urls[name], "shown.t" if schema else "t")],
        _spelt(name == "post"),
    )
    assert publish_killed(place, 1 if IS_DEEP else 4) > 25


def _utc(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


_PROFILE = """
lake:
  target: local
  outputs:
    local:
      type: spark
      warehouse: warehouse
      schema: dws
      publish:
        maria: {{url: "{maria}"}}
        post: {{url: "{{{{ env_var('DBT_ENV_SECRET_BI') }}}}", schema: lake}}
        file: {{duckdb: serving.duckdb}}
        files: {{parquet: shown}}
"""
_ALL = "publish=['maria', 'post', 'file', 'files']"


@pytest.mark.checklist(80)
def test_every_destination_equals_its_models_after_each_run(
    lake: Lake, spark: SparkSession, urls: dict[str, str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    share(spark, monkeypatch)
    monkeypatch.setenv("DBT_ENV_SECRET_BI", urls["post"])
    (lake.root / "profiles.yml").write_text(_PROFILE.format(maria=urls["maria"]))
    orders = lake.source("orders", ORDERS)
    daily = f"{{{{ config({_ALL}, partition_by='ym') }}}}"
    lake.model("daily", f"{daily}select ym, city, sum(amount) as total, count(1) as n from @orders group by ym, city")
    # Rows that look alike, in a merge-on-read table.
    lines = "{{ config(publish={'to': ['maria', 'file'], 'table': 'all_lines'}, table_type='mor') }}"
    lake.model("lines", f"{lines}select buyer, amount from @orders where city is not null")

    def sml(*words: str, code: int = 0) -> str:
        assert main([*words, "--project-dir", str(lake.root)]) == code
        return capsys.readouterr().out

    def check() -> None:
        shown = {name: _all_rows(name, lake.root, urls, "daily") for name in ("maria", "post", "file", "files")}
        assert shown == dict.fromkeys(shown, lake.rows("daily"))
        shown = {name: _all_rows(name, lake.root, urls, "all_lines") for name in ("maria", "file")}
        assert shown == dict.fromkeys(shown, lake.rows("lines"))

    orders.upsert(
        (1, 7, D(5), "Ulm", "01"), (2, 7, D(5), "Ulm", "01"), (3, 8, D(1), None, "02"), (4, 8, D(2), "Bonn", "02")
    )
    assert "published to maria and post and file and files" in sml("run")
    check()
    orders.upsert((1, 7, D(6), "Ulm", "01"), (5, 7, D(5), "Ulm", "03"), delete=[(4, 8, D(2), "Bonn", "02")])
    sml("run")
    check()
    assert "NO-OP=2" in sml("run"), "nothing to send"

    # A database that fails costs its node, not the table, nor what reads it.
    orders.upsert((6, 9, D(9), "Köln", "03"))
    with monkeypatch.context() as broken:
        broken.setattr(DatabaseStore, "_load", _dies)
        out = sml("run", code=1)
    assert "publishing it failed" in out and urls["post"] not in out
    assert ("03", "Köln", D("9.00"), 1) in lake.rows("daily")
    assert "Köln" not in repr(_all_rows("maria", lake.root, urls, "daily")), "the old rows"
    assert "rows to maria" in sml("publish")
    check()
    assert "NO-OP=2" in sml("publish")

    # Killed in the middle, then a change on top of what was not sent.
    orders.upsert((7, 1, D(1), "Rom", "04"))
    with monkeypatch.context() as broken:
        broken.setattr(DatabaseStore, "_load", _is_killed)
        with pytest.raises(Killed):
            sml("run")
    orders.upsert((7, 1, D(2), "Rom", "04"), delete=[(1, 7, D(6), "Ulm", "01")])
    sml("run")
    check()

    lake.model("daily", f"{daily}select ym, city, count(1) as n, max(amount) as top from @orders group by ym, city")
    sml("run", "--full-refresh")
    check()


def _dies(*_: object) -> None:
    raise sa.exc.OperationalError("insert", {}, Exception("the disk is full"))


def _is_killed(*_: object) -> None:
    raise Killed


def _all_rows(name: str, root: Path, urls: dict[str, str], table: str) -> list[Row]:
    if name == "file":
        with duckdb.connect(str(root / "serving.duckdb"), read_only=True) as db:
            rows = db.execute(f"select * exclude ({KEY_COLUMN}) from {table}").fetchall()
    elif name == "files":
        whole = parquet.ParquetFile(root / "shown" / f"{table}.parquet").read().drop_columns([KEY_COLUMN])
        rows = [tuple(each.values()) for each in whole.to_pylist()]
    else:
        rows = rows_of(urls[name], f"lake.{table}" if name == "post" else table)
    return sorted(map(tuple, rows), key=repr)
