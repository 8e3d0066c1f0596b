"""Which statements of a database leave all stored values as they are, so that a table need not be read again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlmesh_like.cdc.sources.database.read_tables import ReadTables
from sqlmesh_like.cdc.sources.database.schema_changes.alter_statements import TableColumns, changing_clause
from sqlmesh_like.cdc.sources.database.schema_changes.column_definitions import ColumnDefinition, keeps_values
from sqlmesh_like.cdc.sources.database.schema_changes.row_statements import Acting, changed_tables
from sqlmesh_like.cdc.sources.database.schema_changes.table_layouts import (
    LayoutColumn,
    ReplicaIdentity,
    TableLayout,
    layout_from,
    why_values_changed,
)
from sqlmesh_like.cdc.sources.database.schema_history import made_tables
from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.cdc.sources.database.spool import RowStatement, Spool

COLUMNS = {
    each.name: each
    for each in (
        ColumnDefinition("id", "INT", 11, is_optional=False),
        ColumnDefinition("n", "INT", 11),
        ColumnDefinition("v", "VARCHAR", 20, charset="utf8mb4"),
        ColumnDefinition("d", "DECIMAL", 10, 3),
        ColumnDefinition("e", "ENUM", 1, charset="utf8mb4", labels=("'a'", "'b'")),
    )
}


def clause_of(statement: str, *after: ColumnDefinition, declared: frozenset[str] | None = frozenset()) -> str | None:
    """The first clause that may change values, of a table that had a column `gone` before."""
    columns = TableColumns(COLUMNS, {*COLUMNS, "gone"}, {"late": "4", "later": None})
    return changing_clause(statement, columns, {**COLUMNS, **{each.name.lower(): each for each in after}}, declared)


@pytest.mark.parametrize(
    "clauses",
    [
        "add index (v)",
        "ADD KEY ix USING BTREE (v(3) desc, n) COMMENT 'a, b'",
        "add unique (v), add fulltext index f (v), add spatial index (v)",
        "add constraint fk foreign key (n) references other (id) on delete cascade",
        "add constraint check (n > 0), add check (char_length(v) > 1)",
        "add constraint primary key (id)",
        "add primary key using btree (`id`)",
        "drop column n, drop v, drop column if exists x cascade",
        "drop index ix, drop key if exists b, drop foreign key fk, drop primary key, drop constraint c",
        "rename index a to b, rename key `c` to d",
        "rename to other, rename as d.other",
        "alter n set default 3, alter column v drop default, alter `d` set default (1 + 1)",
        "alter index ix ignored",
        "comment='it''s, so', engine=InnoDB auto_increment = 5 row_format dynamic",
        "default character set latin1 collate = latin1_swedish_ci",
        "add column x int, algorithm=instant, lock=none",
        "force",
        "add column x int",
        "add x varchar(20) character set latin1 collate latin1_bin null default null comment 'x, y' after id",
        "add column if not exists (x decimal(9,2) unsigned, y enum('a','b'), z timestamp null)",
        "add column c int not null default 4",
        "add c decimal(9,2) default -1.50, add column t varchar(20) not null default 'new', add i int default + 7",
        "add at datetime(3) default '2024-01-01 10:00:00.125', add day date not null default '2024-01-31'",
        "add partition (partition p3 values less than (10))",
        "drop partition p1, p2",
        "partition by range (id) (partition p1 values less than (10), partition p2 values less than maxvalue)",
        "order by n",
    ],
)
def test_clauses_that_keep_all_values(clauses: str) -> None:
    assert clause_of(f"alter table `shop`.item {clauses}") is None


@pytest.mark.parametrize(
    ("clauses", "changing"),
    [
        ("modify n varchar(9)", ""),
        ("add index (v), modify n int", "modify n int"),  # the record has other columns than the text says
        ("change n m int", ""),
        ("rename column n to m", ""),
        ("convert to character set latin1", ""),
        ("add column x int not null", ""),
        ("add x int generated always as (id * 2) stored", ""),
        ("add x int as (id) virtual", ""),
        ("add x datetime default current_timestamp", ""),
        ("add x datetime default current_timestamp() on update current_timestamp()", ""),
        ("add x char(36) default uuid()", ""),
        ("add x int default (1 + 1)", ""),
        ("add x int unsigned auto_increment unique", ""),
        ("add x serial", ""),
        ("add x timestamp", ""),
        ("add gone int", ""),
        ("add `gone` int default 4", ""),
        ("add x int default 1.5", ""),
        ("add x int default '4'", ""),
        ("add x decimal(9,2) default 1.555", ""),
        ("add x char(9) default 'a '", ""),
        ("add x varchar(9) default 'é'", "add x varchar(9) default '?'"),
        ("add x double default 0.1", ""),
        ("add x date default '0000-00-00'", ""),
        ("add (x int, y int not null)", "add (x int , y int not null)"),
        ("alter late set default 5", ""),  # what the lake gives to all rows is not known
        ("alter later set default 5", ""),
        ("add primary key (n)", ""),
        ("add primary key (x)", ""),
        ("engine = MyISAM", ""),
        ("add system versioning", ""),
        ("drop system versioning", ""),
        ("convert partition p1 to table other", ""),
        ("import everything", ""),
    ],
)
def test_clauses_that_may_change_values(clauses: str, changing: str) -> None:
    shown = clause_of(f"alter table item {clauses}", replace(COLUMNS["n"], name="n", type="VARCHAR"))
    assert shown is not None and shown.replace(" ", "") == (changing or clauses).replace(" ", "")


@pytest.mark.parametrize(
    "statement",
    [
        "alter ignore table item add unique (v)",
        "alter table item add index (v) /* , modify n int */",
        "alter table item add index (v) -- x",
        "alter table item comment 'a\\'', modify n int",
        "alter table item comment 'a",
        "alter table item add index (v",
        "set statement max_statement_time=1 for alter table item add index (v)",
        "alter sequence item restart",
    ],
)
def test_a_statement_that_is_not_understood_may_change_values(statement: str) -> None:
    assert clause_of(statement) is not None


@pytest.mark.parametrize(
    "statement",
    [
        "rename table a to b",
        "create unique index ix on item (v)",
        "create index ix on item (v)",
        "drop index i on item",
    ],
)
def test_statements_about_no_row(statement: str) -> None:
    assert clause_of(statement) is None


def test_defaults_are_left_to_events_only_where_the_lake_takes_them() -> None:
    added = "alter table item add x int default 4"
    assert clause_of(added) is None
    assert clause_of(added, declared=None) is not None, "tables share one of the lake"
    assert clause_of(added, declared=frozenset({"x"})) is not None, "the lake has the column already"
    assert clause_of("alter table item add x int", declared=None) is None
    columns = TableColumns(COLUMNS, set(COLUMNS))
    after = {**COLUMNS, "x": ColumnDefinition("x", "INT")}
    assert changing_clause(added, columns, after, frozenset()) is None
    columns.become(after)
    wider = {**COLUMNS, "x": ColumnDefinition("x", "BIGINT")}
    assert changing_clause("alter table item modify x bigint default 4", columns, wider, frozenset()) is None
    for default in ("", " default 5", " default current_timestamp"):
        clause = changing_clause(f"alter table item modify x bigint{default}", columns, wider, frozenset())
        assert clause is not None, default
    assert changing_clause("alter table item add x int default 4", columns, after, frozenset()) is not None


INT, TEXT, DECIMAL = COLUMNS["n"], COLUMNS["v"], COLUMNS["d"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (INT, replace(INT, type="BIGINT", length=None)),
        (replace(INT, type="TINYINT UNSIGNED"), replace(INT, type="INT UNSIGNED")),
        (COLUMNS["id"], INT),
        (TEXT, TEXT),
        (TEXT, replace(TEXT, length=40)),
        (TEXT, replace(TEXT, type="TEXT", length=None)),
        (replace(TEXT, type="TEXT", length=None), replace(TEXT, type="LONGTEXT", length=None)),
        (DECIMAL, replace(DECIMAL, length=12)),
        (COLUMNS["e"], replace(COLUMNS["e"], labels=("'a'", "'b'", "'c'"))),
        (ColumnDefinition("at", "DATETIME"), ColumnDefinition("at", "DATETIME", 6)),
        (ColumnDefinition("j", "JSON"), ColumnDefinition("j", "JSON")),
    ],
)
def test_a_wider_column_keeps_its_values_and_a_narrower_one_does_not(
    before: ColumnDefinition, after: ColumnDefinition
) -> None:
    assert keeps_values(before, after)
    assert before == after or not keeps_values(after, before)


def test_a_column_that_becomes_wider_is_known_by_the_record() -> None:
    wide = replace(TEXT, length=40)
    assert (
        clause_of("alter table item modify v varchar(40) comment 'x' first, change column v v varchar(40)", wide)
        is None
    )
    assert clause_of("alter table item modify v varchar(40)", replace(wide, is_optional=False)) is not None
    assert clause_of("alter table item change v V varchar(40)", replace(wide, name="V")) is not None
    assert clause_of("alter table item modify x int") is not None, "a column that is not known"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (INT, replace(INT, is_optional=False)),
        (INT, replace(INT, type="INT UNSIGNED")),
        (INT, replace(INT, type="BIGINT UNSIGNED")),
        (INT, replace(INT, is_numbered=True)),
        (INT, replace(INT, type="DECIMAL")),
        (TEXT, replace(TEXT, charset="latin1")),
        (TEXT, replace(TEXT, type="TINYTEXT", length=None)),
        (TEXT, replace(TEXT, type="TEXT", length=100)),
        (DECIMAL, replace(DECIMAL, scale=2)),
        (DECIMAL, replace(DECIMAL, length=11, scale=4)),
        (COLUMNS["e"], replace(COLUMNS["e"], labels=("'b'", "'a'"))),
        (COLUMNS["e"], replace(COLUMNS["e"], labels=("'a'", "'x'", "'b'"))),
        (ColumnDefinition("b", "BIT", 3), ColumnDefinition("b", "BIT", 5)),
        (ColumnDefinition("b", "BINARY", 3), ColumnDefinition("b", "BINARY", 5)),
        (ColumnDefinition("f", "FLOAT"), ColumnDefinition("f", "DOUBLE")),
        (ColumnDefinition("t", "DATETIME"), ColumnDefinition("t", "DATE")),
    ],
)
def test_changes_of_columns_that_may_change_values(before: ColumnDefinition, after: ColumnDefinition) -> None:
    assert not keeps_values(before, after)


def history(folder: Path, *entries: tuple[str, str, list[dict[str, object]]], snapshot: int = 1) -> Spool:
    """A record of statements about `item`, of which the first ones are those of the snapshot."""
    lines = []
    for number, (kind, ddl, columns) in enumerate(entries):
        position: dict[str, object] = {"file": "binlog.1", "pos": number}
        change = {"type": kind, "id": '"shop"."item"', "table": {"columns": columns}}
        lines.append({
            "position": {**position, "snapshot": "INITIAL"} if number < snapshot else position,
            "databaseName": "shop", "ddl": ddl, "tableChanges": [change],
        })  # fmt: skip
    (folder / "schema_history").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return Spool(folder)


def column(name: str, kind: str = "INT", **more: object) -> dict[str, object]:
    return {"name": name, "typeName": kind, "optional": True, **more}


def test_the_record_of_statements_names_the_tables_that_were_rewritten(tmp_path: Path) -> None:
    item, wide = [column("id"), column("n")], [column("id"), column("n", "BIGINT")]
    spool = history(
        tmp_path,
        ("CREATE", "CREATE TABLE `item` (…)", item),
        ("ALTER", "alter table item modify n bigint", wide),
        ("ALTER", "alter table item add unique (n)", wide),
    )
    assert made_tables(spool, "shop").rewritten == {}
    spool = history(
        tmp_path,
        ("CREATE", "CREATE TABLE `item` (…)", wide),
        ("ALTER", "alter table item modify n int", item),
        ("ALTER", "alter table item add index (n)", item),
    )
    made = made_tables(spool, "shop")
    assert (made.rewritten, made.clauses) == ({"item": "binlog.1:1"}, {"item": "modify n int"})
    assert made_tables(spool, "other").rewritten == {}
    first, second, _ = (spool.folder / "schema_history").read_bytes().splitlines(keepends=True)
    assert made_tables(spool, "shop", size=len(first)).rewritten == {}, "the log has not been read so far"
    assert made_tables(spool, "shop", size=len(first + second)) == made
    dropped = [column("id")]
    spool = history(
        tmp_path,
        ("CREATE", "CREATE TABLE `item` (…)", item),
        ("ALTER", "alter table item drop n", dropped),
        ("ALTER", "alter table item add n int", item),  # the lake has the values of the former one
    )
    assert made_tables(spool, "shop").rewritten == {"item": "binlog.1:2"}


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("insert into item values (1, 'other')", {"Item"}),
        ("INSERT IGNORE INTO `shop`.`Item`(id) select id from other", {"Item"}),
        ("insert into third select * from item", set()),
        ("insert into far.item values (1)", set()),
        ("insert low_priority item set id = 1", {"Item"}),
        ("/* app */ replace into item values (1)", {"Item"}),
        ("insert into item values (1, …", {"Item", "other"}),  # the rest may name a view or a function
        ("update third t join item i on i.id = t.id set t.v = 1", {"Item"}),
        ("delete from other where id in (select id from item)", {"Item", "other"}),
        ("delete i from `item` i", {"Item"}),
        ("update third set v = 1 …", {"Item", "other"}),
        ("update seen set v = 1", {"Item", "other"}),
        ("insert into third values (next_id())", {"Item", "other"}),
        ("update third set v = 1", set()),
        ("ROLLBACK `item`", {"Item"}),
        ("XA ROLLBACK `seen`", set()),  # rows that its triggers have changed are named, too
        ("XA COMMIT X'61',X'',1 …", {"Item", "other"}),
        ("XA COMMIT `other`", {"other"}),
        ("LOAD DATA …", {"Item", "other"}),
    ],
)
def test_which_tables_a_statement_changes_that_is_logged_instead_of_rows(statement: str, changed: set[str]) -> None:
    tables = [Table(None, "Item"), Table(None, "other")]
    acting = Acting("shop", frozenset({"seen", "next_id"}))
    assert set(changed_tables([RowStatement("shop", statement)], tables, acting)) == changed


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("insert into item values (1)", set()),
        ("insert into shop.item values (1)", {"item"}),
        ("update item set v = 1", set()),
        ("update item, shop.item i set i.v = 1", {"item"}),
        ("ROLLBACK `item`", set()),
    ],
)
def test_statements_of_another_database_change_what_they_name_of_this_one(statement: str, changed: set[str]) -> None:
    assert set(changed_tables([RowStatement("far", statement)], [Table(None, "item")], Acting("shop"))) == changed


def test_statements_that_a_killed_process_did_not_note_whole_are_read_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.row_statements() == ((), 0)
    (tmp_path / "row_statements").write_bytes("shop\tinsert into é values (1)\n\tLOAD DATA …\ndel".encode())
    statements, size = spool.row_statements()
    assert statements == (RowStatement("shop", "insert into é values (1)"), RowStatement("", "LOAD DATA …"))
    assert spool.row_statements(size) == ((), size)
    spool.forget_row_statements()
    assert spool.row_statements() == ((), 0)


A, B = (
    LayoutColumn(name, number, "700", kind, -1, None, None, False, ())
    for name, number, kind in (("id", 1, "23"), ("v", 2, "1043"))
)
LAYOUT = TableLayout("16384", ("16384",), (A, B), former=frozenset({"gone"}))
LATE = LayoutColumn("c", 3, "701", "23", -1, None, None, is_filled=False, labels=())
FOUR = replace(LATE, default="4", missing="{4}", is_filled=True)


def may_have_changed(
    *columns: LayoutColumn, files: str = "16384", before: TableLayout = LAYOUT, table: str = "16384"
) -> bool:
    return why_values_changed(before, TableLayout(table, (files,), columns), frozenset({"mine"})) is not None


def test_what_the_catalog_proves_to_keep_all_values() -> None:
    other = replace(B, written="705")
    assert not may_have_changed(A, B)
    assert not may_have_changed(A, B, files="17000"), "VACUUM FULL, TRUNCATE"
    assert not may_have_changed(A, replace(other, modifier=44)), "varchar(40): the files are the same"
    assert not may_have_changed(A, replace(other, type="25"))
    assert not may_have_changed(A, replace(other, default="'x'::text"))
    assert not may_have_changed(A), "one that is gone"
    assert not may_have_changed(A, B, LATE)
    assert not may_have_changed(A, B, FOUR)
    for kind, default, missing in (("25", "'x y'::text", '{"x y"}'), ("16", "true", "{t}"), ("1700", "1.50", "{1.50}")):
        assert not may_have_changed(A, B, replace(FOUR, type=kind, default=default, missing=missing)), default
    labels = replace(B, labels=("1=a",))
    before = replace(LAYOUT, columns=(A, labels))
    assert not may_have_changed(A, replace(labels, labels=("1=a", "2=b")), before=before)


IDENTITY = ReplicaIdentity("16384", "700", False, "16390", ("16391=700",))


@pytest.mark.parametrize(
    ("before", "now", "is_read_again"),
    [
        ({}, {"written": "705"}, False),  # rights, columns, FULL for a while
        ({}, {"indexes": ("16391=700", "16392=701")}, False),  # made concurrently
        ({}, {"written": "705", "indexes": ()}, False),
        ({}, {"written": "705", "indexes": ("16391=705",)}, True),
        ({}, {"key": "16400"}, True),
        ({"key": None}, {}, False),
        ({"is_full": True}, {"is_full": True, "key": "16400"}, False),
        ({"is_full": True}, {"is_full": True, "key": "16400", "written": "705"}, True),
        ({}, {"table": "16500", "written": "705", "indexes": ("16391=705",)}, False),  # a later partition
    ],
)
def test_what_the_catalog_shows_of_the_keys_that_the_log_has(
    before: dict[str, Any], now: dict[str, Any], is_read_again: bool
) -> None:
    former, layout = (replace(LAYOUT, identities=(replace(IDENTITY, **each),)) for each in (before, now))
    assert layout_from(layout.to_json()) == layout
    assert (why_values_changed(former, layout) is not None) is is_read_again
    assert why_values_changed(replace(LAYOUT), layout) is None, "an earlier version has recorded none"
    # Deletes had only the primary key while it was not FULL, and the key in the lake is another one.
    is_written = "written" in now and "table" not in now
    assert (why_values_changed(former, layout, needs_full=True) is not None) is (is_read_again or is_written)


def test_what_the_catalog_does_not_prove_to_keep_all_values() -> None:
    other = replace(B, written="705")
    assert may_have_changed(A, B, table="17000")
    assert may_have_changed(A, other, files="17000"), "USING upper(v)"
    assert may_have_changed(A, replace(other, type="1042"))
    assert may_have_changed(A, replace(other, name="w")), "renamed"
    assert may_have_changed(A, replace(B, number=3, name="v")), "dropped and added again"
    assert may_have_changed(A, B, replace(LATE, name="gone"))
    assert may_have_changed(A, B, LATE, files="17000"), "a volatile default that was dropped, a generated column"
    assert may_have_changed(A, B, replace(FOUR, default=None)), "the default has gone since"
    assert may_have_changed(A, B, replace(FOUR, default="5"))
    assert may_have_changed(A, B, replace(FOUR, default="now()", missing='{"2024-01-01"}'))
    assert may_have_changed(A, B, replace(LATE, default="5")), "events state it, and old rows have NULL"
    assert may_have_changed(A, B, replace(FOUR, name="mine")), "the lake has the column already"
    before = replace(LAYOUT, columns=(A, B, FOUR), added=frozenset({"c"}))
    assert not may_have_changed(A, B, FOUR, before=before)
    assert may_have_changed(A, B, replace(FOUR, default="5", written="706"), before=before)
    labels = replace(B, labels=("1=a",))
    assert may_have_changed(A, replace(labels, labels=("1=z",)), before=replace(LAYOUT, columns=(A, labels)))


def test_a_layout_remembers_columns_that_are_gone() -> None:
    now = TableLayout("16384", ("16384",), (A, LATE)).after(LAYOUT)
    assert (now.former, now.added) == (frozenset({"gone", "v"}), frozenset({"c"}))
    assert layout_from(json.loads(json.dumps(now.to_json()))) == now
    record = ReadTables("", frozenset({"public.Item"}), layouts={"public.item": LAYOUT})
    known = record.with_layouts(
        {"public.item": TableLayout("16384", ("16384",), (A, LATE)), "x": LAYOUT}, ["public.Item"]
    )
    assert known.layouts == {"public.item": now}
