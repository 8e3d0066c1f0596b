"""A database as a source: its address and tables, what it is told to mend, and the spool between it and the tables."""

from __future__ import annotations

import gzip
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from sqlmesh_like.cdc.sources.database.connector_settings import connector_settings, wanted_tables
from sqlmesh_like.cdc.sources.database.engine import engine_error
from sqlmesh_like.cdc.sources.database.read_tables import ReadTables, begin, load_read_tables, store
from sqlmesh_like.cdc.sources.database.schema_changes.unlogged_changes import statements_of_tables
from sqlmesh_like.cdc.sources.database.schema_history import made_tables
from sqlmesh_like.cdc.sources.database.server import DatabaseAwayError, LogEnd, Table, database_error
from sqlmesh_like.cdc.sources.database.spool import Spool, spool_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import IngestError, Location, MachineError
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.project.keys.database_keys import read_address
from sqlmesh_like.project.nodes import DatabaseSettings, IngestSource, IngestTable, Source, SourceTable, Target

SETTINGS = DatabaseSettings("mysql", "db.example", 3306, "sml", "shop", password="secret99")
TABLES = (Table(None, "item", ("id",)), Table(None, "item_old", ("id",)), Table(None, "user_1", ("id",)))


def source_of(settings: DatabaseSettings, *names: str, discover: bool = False) -> Source:
    stream = IngestSource("debezium", database=settings, discover=discover)
    return Source("shop", "ods", stream, tuple(table(name) for name in names), "", Location("sources.yml", 1, 1))


def table(name: str) -> SourceTable:
    unique_id, place = NodeId("source", "p", "shop", name), Location("sources.yml", 2, 1)
    declared = IngestTable(None, name, ("id",))
    return SourceTable(unique_id, "shop", name, TableName("ods", name), None, "hudi", declared, (), "", (), {}, place)


def names(source: Source) -> list[str]:
    return [str(each) for each in wanted_tables(source, TABLES)]


def test_the_tables_that_are_read_are_the_declared_ones_unless_others_are_named() -> None:
    assert names(source_of(SETTINGS, "item", r"user_\d+")) == ["item", "user_1"]
    assert names(source_of(SETTINGS, "item", discover=True)) == ["item", "item_old", "user_1"]
    one = DatabaseSettings("mysql", "h", 1, "u", "shop", tables=("item.*",))
    assert names(source_of(one, discover=True)) == ["item", "item_old"]


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("(1045, \"Access denied for user 'sml'@'%'\")", MachineError, "SML_DATABASE_PASSWORD"),
        ("connection failed: FATAL:  password authentication failed", MachineError, "SML_DATABASE_PASSWORD"),
        ("(1044, \"Access denied for user 'sml'@'%' to database 'shop'\")", MachineError, "GRANT SELECT ON `shop`.*"),
        ("(1049, \"Unknown database 'shop'\")", MachineError, "change the database"),
        ("(1142, 'SELECT command denied to user')", MachineError, "sml debug"),
        ('(2003, "Can\'t connect to MySQL server")', DatabaseAwayError, "start it"),
    ],
)
def test_what_a_database_says_becomes_advice(said: str, kind: type[Exception], words: str) -> None:
    error = database_error(SETTINGS, said)
    assert type(error) is kind
    assert words in str(error) and "secret99" not in repr(SETTINGS) + str(error)


def test_a_lost_position_is_told_from_a_database_that_is_away() -> None:
    lost = "Error | DebeziumException: Could not find first log file name in binary log index file"
    assert isinstance(engine_error(SETTINGS, lost, "shop"), IngestError)
    assert isinstance(engine_error(SETTINGS, "x | ConnectException: refused", "shop"), DatabaseAwayError)
    statement = "alter table t add x inet6"
    unread = (
        f"DDL statement couldn't be parsed. Please … with the statement '{statement}' no viable alternative at input "
        f"'{statement}' | NoViable: null"
    )
    refused = engine_error(SETTINGS, unread, "shop")
    said = f"does not understand a statement of its log, near {statement!r}: {statement}"
    assert isinstance(refused, IngestError) and said in str(refused)


def test_columns_that_do_not_fit_to_the_log_are_not_taken_for_a_database_that_is_away() -> None:
    said = "DebeziumException: Error processing row in item, internal schema size 2, but row size 1"
    error = engine_error(SETTINGS, said, "shop")
    assert isinstance(error, IngestError) and "--from earliest" in str(error.hint)


@pytest.mark.parametrize(
    ("statements", "made", "replaced"),
    [
        ([("create table item", "CREATE item")], [], []),
        ([("DROP TABLE `shop`.`item`", "DROP item"), ("create table item", "CREATE item")], ["item"], []),
        ([("rename table item to a", "ALTER a item"), ("rename table b to item", "ALTER item b")], ["a", "item"], []),
        ([("alter table b rename to item", "ALTER item")], ["item"], []),
        ([("alter table item rename column a to b", "ALTER item")], [], []),
        ([("CREATE OR REPLACE TABLE shop . `It``em` (id int)", "")], [], ["it`em"]),
        ([("alter table item ", "ALTER item")], [], ["item"]),  # what Debezium records of `/*! modify … */`
        ([("alter table item , add n int", "ALTER item")], [], ["item"]),
        ([("/*!50000 ALTER ONLINE TABLE `shop`.`item` modify n bigint */", "")], [], ["item"]),
        ([("/*M!100000 alter table item add n int*/", "")], [], ["item"]),
        ([("/*!40000 ALTER TABLE `item` DISABLE KEYS */", "")], [], []),
        ([("alter table item drop partition p1", "ALTER item")], [], []),
        ([("alter table a exchange partition p with table `item`", "ALTER a")], [], []),
        ([("alter table item add partition (partition p4 values less than (40))", "ALTER item")], [], []),
        ([("drop database shop", ""), ("create table item", "CREATE item")], ["item"], []),
    ],
)  # fmt: skip
def test_tables_that_were_made_anew(
    tmp_path: Path, statements: list[tuple[str, str]], made: list[str], replaced: list[str]
) -> None:
    spool, lines = Spool(tmp_path), []
    for number, (statement, change) in enumerate([("first", "CREATE item"), *statements]):
        position = {"file": "b.1", "pos": number} | ({} if number else {"snapshot": "INITIAL"})
        kind, _, names = change.partition(" ")
        identifiers = [f'"shop"."{name}"' for name in names.split()]
        changes = [{"type": kind, **dict(zip(("id", "previousId"), identifiers, strict=False))}] if kind else []
        lines.append({"position": position, "databaseName": "shop", "ddl": statement, "tableChanges": changes})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (tmp_path / "schema_history").write_text(text + '{"ddl": "half a', encoding="utf-8")
    result = made_tables(spool, "shop")
    assert (sorted(result.anew), sorted(result.replaced)) == (made, replaced)
    assert ("item" in result.emptied) == any(" drop part" in text or " exchange " in text for text, _ in statements)
    record = ReadTables("mysql:shop", frozenset({"item"}))
    assert record.made_anew(result.anew) == {"item"}.intersection(made)
    assert record.completed(["item"], result.anew).made_anew(result.anew) == set()
    assert made_tables(spool, "other").anew == {}


def test_settings_go_to_the_engine_as_lines(tmp_path: Path) -> None:
    source = source_of(SETTINGS, "item")
    end = LogEnd("binlog.000002", 4)
    settings = connector_settings(source, Spool(tmp_path), TABLES[:1], end, mariadb=True, follows=False)
    assert settings["table.include.list"] == r"shop\.item" and settings["sml.end.position"] == "4"
    assert "sml.end.position" not in connector_settings(
        source, Spool(tmp_path), TABLES, end, mariadb=True, follows=True
    )


def test_columns_that_the_log_lacks_are_left_out_of_those_that_a_source_names(tmp_path: Path) -> None:
    one = DatabaseSettings(
        "postgresql", "h", 1, "u", "shop", options={"column.include.list": r"s\.item\..*,s.b.(x\,y)"}
    )
    tables = (Table("s", "item", ("id",), generated=("twice, it's",)),)
    settings = connector_settings(source_of(one, "item"), Spool(tmp_path), tables, None, mariadb=False, follows=False)
    patterns = re.split(r"(?<!\\),", settings["column.include.list"])
    assert len(patterns) == 2 and "column.exclude.list" not in settings
    names = ("s.item.id", "s.item.twice, it's", "s.item.twice")
    assert [bool(re.fullmatch(patterns[0], name)) for name in names] == [True, False, True]


def test_which_tables_are_complete_survives_other_declarations(tmp_path: Path) -> None:
    spool, source = Spool(tmp_path), source_of(SETTINGS, "item", "user_1")
    spool.prepare()
    begin(spool, source, TABLES[:1])
    record = begin(spool, source, TABLES[1:])  # the first snapshot was not complete
    assert (set(record.complete), set(record.outdated)) == ({"item_old", "user_1"}, {"item"})
    (tmp_path / "offsets" / "3").write_text('[]\n{"file": "b.1", "pos": 7}', encoding="utf-8")
    left = load_read_tables(spool, source).followed(["user_1", "new"])
    store(spool, left)
    assert load_read_tables(spool, source) == left
    assert (set(left.complete), set(left.outdated)) == ({"user_1"}, {"item", "item_old"})
    whole = left.completed(["item", "new"])
    assert (set(whole.complete), set(whole.outdated)) == ({"item", "new", "user_1"}, {"item_old"})
    with pytest.raises(IngestError, match="has read mysql:shop before, not mysql:other"):
        load_read_tables(spool, source_of(DatabaseSettings("mysql", "h", 1, "u", "other"), "item"))
    assert spool.is_at(LogEnd("b.1", 7)) and not spool.is_at(LogEnd("b.1", 8))
    spool.forget(TABLES[:1], "shop")
    assert set(begin(spool, source, TABLES[:1]).outdated) == {"item_old", "user_1"}


def test_a_spool_that_begins_anew_empties_the_tables_first_and_uses_no_number_twice(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.prepare()
    (tmp_path / "log" / "000000000008.gz").write_bytes(b"")
    (tmp_path / "offsets" / "9").write_text('[]\n{"file": "b.1", "pos": 7}', encoding="utf-8")
    (tmp_path / "schema_history").write_text("{}\n{", encoding="utf-8")
    spool.forget(TABLES[:1], "shop")
    assert not spool.has_position and spool.newest == 0
    assert (tmp_path / "first").read_text() == "9" and not (tmp_path / "schema_history").exists()
    assert '"op": "t"' in gzip.decompress((tmp_path / "truncates.gz").read_bytes()).decode()


def test_a_segment_that_is_added_comes_after_all_others_at_their_position(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.prepare()
    newest = tmp_path / "log" / "000000000008.gz"
    newest.write_bytes(b"")
    os.utime(newest, (4e9, 4e9))  # a clock that went back since
    position = '[]\n{"file": "b.1", "pos": 7}'
    (tmp_path / "offsets" / "8").write_text(position, encoding="utf-8")
    spool.append([b'{"op": "d"}\n'])
    own = tmp_path / "log" / "000000000009.gz"
    assert gzip.decompress(own.read_bytes()) == b'{"op": "d"}\n' and own.stat().st_mtime > newest.stat().st_mtime
    assert (tmp_path / "offsets" / "9").read_text(encoding="utf-8") == position
    assert spool.is_at(LogEnd("b.1", 7)) and list((tmp_path / "staging").iterdir()) == []


def test_addresses() -> None:
    with_password = read_address("postgresql+psycopg://me:p%40ss@[::1]/a%20b")
    assert with_password is not None and (with_password.password, with_password.database) == ("p@ss", "a b")
    assert with_password.address == "postgresql://me@[::1]:5432/a b"
    assert [read_address(text) for text in ("oracle://h/x", "mysql://h", "mysql://h:port/x", "shop")] == [None] * 4


def test_rows_of_partitions_stay_where_deletes_are_retention(tmp_path: Path) -> None:
    target = Target("p", "t", "spark", warehouse=str(tmp_path))
    source = source_of(SETTINGS, "item", "user_1")
    kept = source.tables[1]
    assert kept.ingest is not None
    kept = replace(kept, ingest=replace(kept.ingest, deletes="retention"))
    source = replace(source, tables=(source.tables[0], kept))
    spool = spool_of(SourcePaths(target, source))
    spool.folder.mkdir(parents=True)

    def say(statement: str, *names: str) -> None:
        changes = [{"type": "ALTER", "id": f'"shop"."{name}"'} for name in names]
        line = {
            "position": {"file": "b.1", "pos": 7},
            "databaseName": "shop",
            "ddl": statement,
            "tableChanges": changes,
        }
        with (spool.folder / "schema_history").open("a") as file:
            file.write(f"{json.dumps(line)}\n")

    say("alter table x drop partition p", "item", "user_1")
    assert set(statements_of_tables(spool, source, TABLES).places) == {"item"}
    say("create or replace table user_1 (id int)")
    with pytest.raises(IngestError, match="has changed the columns of user_1 by CREATE OR REPLACE TABLE"):
        statements_of_tables(spool, source, TABLES)
    assert "item" in statements_of_tables(spool, source, TABLES[:1]).places, "the source does not read the other one"
