"""Which events a declaration takes, and what happens to those that none takes. No JVM."""

from __future__ import annotations

import io
import random
import re
from pathlib import Path

import pytest

from sqlmesh_like.cdc.formats.debezium_flat import METADATA, flat_fields
from sqlmesh_like.cdc.formats.message import Message
from sqlmesh_like.cdc.formats.row_images import shape_of
from sqlmesh_like.cdc.formats.source_types import SourceField
from sqlmesh_like.cdc.report import IngestReport, TableReport
from sqlmesh_like.cdc.sources.batch_marker import BatchMarker
from sqlmesh_like.cdc.sources.offset_range import Offsets, files_of
from sqlmesh_like.cdc.sources.route import declares, route
from sqlmesh_like.cdc.sources.skipped_tables import forget_skipped, note_skipped, skipped_tables
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.sources.table_folders import also_possible, folder_names
from sqlmesh_like.cli.ingest_log import report_batch, report_end
from sqlmesh_like.cli.printing.output import Output
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import SourceTable, Target
from tests.unit.cdc.test_ods_layout import source, table


def test_a_database_is_a_pattern_of_whole_names_as_a_table_is() -> None:
    users = source(table("user", database=r"user_db_\d+", table=r"user_\d+"))

    def takes(database: str | None, name: str) -> bool:
        return route(users, database, None, name) is not None

    assert takes("user_db_0", "user_15") and takes("user_db_12", "user_0")
    for database, name in (("user_db_bak", "user_0"), ("my_user_db_0", "user_0"), ("user_db_0", "user_0_old")):
        assert not takes(database, name), f"{database}.{name}"
    assert not takes(None, "user_0")


def test_a_database_that_holds_signs_of_patterns_is_still_found_by_its_name() -> None:
    shop = source(table("t", database="shop+eu", table="t"))
    assert route(shop, "shop+eu", None, "t") is not None


SHOP_USER = table("user", database="shop", table="user")
SHARDS = table("user", database=r"shop_\d+", table=r"user_\d+")


@pytest.mark.parametrize(
    ("glob", "path", "declared", "names"),
    [
        ("*/*/*.parquet", "shop/user/LOAD1.parquet", SHOP_USER, ("shop", "user")),
        ("shop/user/*.parquet", "shop/user/LOAD1.parquet", SHOP_USER, ("shop", "user")),
        ("shop/user/*/*/*/*.parquet", "shop/user/2024/05/01/1.parquet", SHOP_USER, ("shop", "user")),
        ("shop/*/*/*/*/*/*.parquet", "shop/user/2024/05/01/13/1.parquet", SHOP_USER, ("shop", "user")),
        ("shop/user/*/*.parquet", "shop/user/2024-05-01/1.parquet", SHOP_USER, ("shop", "user")),
        ("shop/user/*/*.parquet", "shop/user/2024050113/1.parquet", SHOP_USER, ("shop", "user")),
        ("shop/user/*/*.parquet", "shop/user/05_2024_01/1.parquet", SHOP_USER, ("shop", "user")),
        ("*/*/*/*/*.parquet", "shop/user/2024/05/1.parquet", SHOP_USER, ("shop", "user")),
        ("shop/user/*/*.json", "shop/user/dt=2024-05-01/1.json", SHOP_USER, ("shop", "user")),
        ("*/*/*/*.json", "region=eu/shop/user/1.json", SHOP_USER, ("shop", "user")),
        ("*/*/*/*/*.json", "eu/raw/shop/user/1.json", SHOP_USER, ("shop", "user")),
        ("*/*/*/*/*/*.json", "shop_3/user_12/2024/05/01/1.json", SHARDS, ("shop_3", "user_12")),
        ("*/*/*.json", "shop/2024/1.json", table("year", database="shop", table=r"\d+"), ("shop", "2024")),
        ("*/*/*.json", "shop/order/1.json", SHOP_USER, ("shop", "order")),
        ("shop/*/*/*/*/*.parquet", "shop/order/2024/05/01/1.parquet", SHOP_USER, ("shop", "order")),
    ],
)
def test_a_declared_table_finds_itself_in_a_path(
    glob: str, path: str, declared: SourceTable, names: tuple[str, str]
) -> None:
    assert folder_names(f"/landing/{glob}", f"file:/landing/{path}", declares((declared,))) == names


_WORDS = ("shop", "user", "shop+eu", "a.b", "order-items", "t1", "姓名", "Größe", "x y", "(a)", "2fa", "v_2024_x")
_ORDERS = ("ymd", "ymdh", "ym", "myd", "dmy")
"""`DatePartitionSequence` of AWS DMS: year, month, day, hour."""


def test_declared_names_are_found_in_300_paths_that_a_generator_makes() -> None:
    dice = random.Random("38 E")
    for _ in range(300):
        database, name, other = (f"{dice.choice(_WORDS)}{dice.choice(('', '_7', '12'))}" for _ in range(3))
        parts = {"y": str(dice.randint(1999, 2030)), "m": f"{dice.randint(1, 12):02}", "d": f"{dice.randint(1, 31):02}"}
        parts["h"] = f"{dice.randint(0, 23):02}"
        dates = dice.choice("/_-").join(parts[part] for part in dice.choice(_ORDERS)).split("/")
        below = dice.choice(([], dates, ["".join(dates)], [f"dt={'-'.join(dates)}"], [f"p={name}", "q=1"]))
        above = dice.choice(([], [], ["raw"], ["region=eu"], ["raw", "v1"]))
        folders = [*above, database, name, *below]
        fixed = dice.choice((0, 0, dice.randint(0, len(above)), len(above) + 2))
        glob = "/".join((*folders[:fixed], *("*" for _ in folders[fixed:]), "*.json"))
        shards = dice.random() < 0.5
        wanted = (re.escape(database), re.escape(name)) if shards else (database, name)
        declared = declares((table("t", database=wanted[0], table=wanted[1]),))
        assert folder_names(f"/landing/{glob}", f"/landing/{'/'.join(folders)}/1.json", declared) == (database, name)
        if other not in (database, name):
            folders[len(above) + 1] = other
            glob = "/".join((*folders[:fixed], *("*" for _ in folders[fixed:]), "*.json"))
            assert not declared(*folder_names(f"/landing/{glob}", f"/landing/{'/'.join(folders)}/1.json", declared))


def test_a_skipped_file_may_later_belong_to_any_table_that_its_path_can_name() -> None:
    files = ["file:/landing/eu/shop/user/1.json", "file:/landing/us/shop/user/1.json"]
    assert also_possible("/landing/*/*/*/*.json", files, {("eu", "shop")}) == {("eu", "shop"), ("shop", "user")}


@pytest.fixture
def place(tmp_path: Path) -> SourcePaths:
    return SourcePaths(Target("p", "t", "spark", warehouse=str(tmp_path)), source())


def test_skipped_tables_are_remembered_since_their_first_batch(place: SourcePaths) -> None:
    user, order = ("db", None, "user"), ("db", "s", "order")
    note_skipped(place, BatchMarker("q", 3, Offsets((("t", 0, 40, 50),))), [user])
    note_skipped(place, BatchMarker("q", 4, Offsets((("t", 0, 50, 60),))), [user, order])
    known = {each.source: (each.batch, dict(each.starts)) for each in skipped_tables(place)}
    assert known == {user: (3, {("t", 0): 40}), order: (4, {("t", 0): 50})}
    forget_skipped(place, [user])
    assert [each.source for each in skipped_tables(place)] == [order]
    # Another query has read the log from another start.
    note_skipped(place, BatchMarker("r", 0, files_of([(1, "a")])), [user])
    assert [(each.query, each.source) for each in skipped_tables(place)] == [("r", user)]
    forget_skipped(place)
    assert skipped_tables(place) == []


def shown(*reports: IngestReport) -> tuple[int, str]:
    stream = io.StringIO()
    output = Output(stream=stream)
    for report in reports:
        report_batch(report, output)
    return report_end(output, reports), stream.getvalue()


def test_a_declaration_that_matches_nothing_is_a_warning_with_both_names() -> None:
    report = IngestReport("shop", batches=1, events=3, skipped={"undeclared shop.users": 3}, unmatched=(SHOP_USER,))
    code, text = shown(report)
    assert code == 0
    assert "no event belongs to ods.user, declared as shop.user; the skipped ones are of shop.users" in text
    assert str(SHOP_USER.declared_at) in text
    assert "WARN=1" in text and "Nothing new" not in text


def test_a_run_whose_events_all_became_dead_letters_has_failed() -> None:
    name = TableName("ods", "user")
    lost = TableReport(name, events=2, dead_letters=2)
    stored = TableName("ods", "shop__dead_letters")
    report = IngestReport("shop", (lost,), 1, 2, dead_letters=2, dead_letter_table=stored, first_dead_letter="f:1: why")
    code, text = shown(report)
    assert code == 1
    assert "OK ingested" not in text and "no event could be ingested: 2 dead letters" in text
    assert "sml ingest --replay-dead-letters" in text and "ERROR=1" in text
    garbage = IngestReport("shop", (), 1, 2, dead_letters=2, dead_letter_table=stored, first_dead_letter="f:1: why")
    assert shown(garbage)[0] == 1
    other = TableReport(TableName("ods", "order"), upserts=1, events=1)
    part = IngestReport("shop", (lost, other), 1, 3, dead_letters=2, dead_letter_table=stored, first_dead_letter="f:1")
    code, text = shown(part)
    assert code == 0 and "WARN ods.user" in text, "the other table's events are there"


def test_columns_of_an_older_table_keep_their_names_and_new_ones_get_theirs() -> None:
    shape = shape_of(Message("row"), [SourceField("größe", "int"), SourceField("имя", "string")], ())
    assert [shape.column_of(field.name) for field in shape.fields] == ["größe", "имя"]
    older = shape_of(Message("row"), shape.fields, (), ascii_names=frozenset(("id", "gr__e")))
    assert [older.column_of(field.name) for field in older.fields] == ["gr__e", "имя"]


def test_two_columns_with_one_name_in_the_table_never_merge() -> None:
    fields = [SourceField(name, "int") for name in ("价格(元)", "价格[元]", "价格（元）", "价格")]
    shape = shape_of(Message("row"), fields, ())
    assert [shape.column_of(field.name) for field in shape.fields] == ["价格_元_", "价格_xFF08_元_xFF09_", "价格"]
    assert shape.clashes == ("价格(元)",)


def test_a_flattened_events_schema_states_the_tables_columns_alone() -> None:
    text = (
        '[{"field": "id", "type": "int32"}, {"field": "__op", "type": "string"}, {"field": "__lsn", "type": "int64"}]'
    )
    assert [field.name for field in flat_fields(text)] == ["id", "__lsn"]
    metadata = ("__lsn", "__source_ts_ms", "__table", "__transaction_id")
    assert all(re.fullmatch(METADATA, name) for name in metadata)
    assert not any(re.fullmatch(METADATA, name) for name in ("id", "__my_column", "lsn"))
