"""A few events, ingested without Spark: the rows of each format, and all that is left to Spark untouched."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyarrow import dataset

from demo.shop.generate import generate
from sqlmesh_like.cdc.formats.message import BEGINS, ENDS, READS_AGAIN
from sqlmesh_like.cdc.in_process.json_values import json_value
from sqlmesh_like.cdc.in_process.values import NotProvenError, Rewritten
from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.cdc.sources.file_log import FileLog
from sqlmesh_like.cdc.sources.query_log import QueryLog, read_query_log
from sqlmesh_like.cdc.stream.ingest_run import ingest_source
from sqlmesh_like.cdc.stream.query_batches import QueryBatches
from sqlmesh_like.cdc.stream.query_records import QueryRecords
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import Location, MachineError
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import file_schema
from sqlmesh_like.names import Column, TableName
from sqlmesh_like.project.nodes import (
    IngestSource,
    IngestTable,
    ParsedProject,
    PartitionBy,
    Source,
    SourceTable,
    Target,
)

_AT = Location("models/sources.yml", 3, 5)
_FIRST_FILE = 1_700_000_000


class SparkAskedError(Exception):
    """Spark would have been started."""


def spark() -> NoReturn:
    raise SparkAskedError


def declared(name: str = "t", types: Mapping[str, str] | None = None, **ingest: Any) -> SourceTable:
    own = IngestTable(**{"database": "db", "table": name, "primary_key": ("id",), **ingest})
    columns = tuple(Column(column, kind) for column, kind in (types or {}).items())
    table = TableName("ods", name)
    return SourceTable(f"source.p.shop.{name}", "shop", name, table, None, "hudi", own, columns, "", (), {}, _AT)


@dataclass
class Lake:
    root: Path
    tables: tuple[SourceTable, ...] = (declared(),)
    format: str = "debezium"
    settings: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    files: int = 0
    reasons: list[str] = field(default_factory=list)

    @property
    def warehouse(self) -> Path:
        return self.root / "warehouse"

    def land(self, *events: object, name: str = "{:04d}.jsonl") -> Path:
        (self.root / "landing").mkdir(exist_ok=True)
        path = self.root / "landing" / name.format(self.files)
        lines = (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in events)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        self.files += 1
        return path

    def ingest(self, *events: object) -> IngestReport:
        if events:
            self.land(*events)
        stream = replace(IngestSource(self.format, files="landing/*"), **self.settings)  # type: ignore[arg-type]
        source = Source("shop", "ods", stream, self.tables, "", _AT)
        project = ParsedProject("p", self.root, "", None, "target", (), {}, (), (), (source,), (), ())
        target = Target("p", "t", "spark", warehouse=str(self.warehouse), **self.target)
        return ingest_source(spark, project, target, source, on_spark=self.reasons.append)

    def rows(self, name: str = "t") -> list[dict[str, Any]]:
        timeline = Timeline(str(self.warehouse / "ods" / name))
        assert timeline.frontier is not None
        schema = file_schema(timeline.schema_json(timeline.frontier) or "")
        files = [f"{timeline.uri}/{each.path}" for each in timeline.slices(timeline.frontier).values()]
        shown = [column for column in schema.names if not column.startswith(("_hoodie", "_sml"))]
        rows = dataset.dataset(files, schema=schema, format="parquet").to_table(columns=shown).to_pylist()
        return sorted(rows, key=lambda row: str(row.get("id")))

    def commits(self, name: str = "t") -> int:
        return len(list(Timeline(str(self.warehouse / "ods" / name)).data_commits))


def change(op: str, after: object = None, before: object = None, table: str = "t") -> dict[str, object]:
    return {"op": op, "before": before, "after": after, "source": {"db": "db", "table": table}, "ts_ms": 1}


def stated(op: str, after: Mapping[str, object], **fields: Mapping[str, object]) -> dict[str, object]:
    """A change of `t` with a schema, in which columns are whole numbers of 64 bits, or `fields`."""
    kinds = [{"field": name, "type": "int64", "optional": True, **fields.get(name, {})} for name in after]
    images = [{"type": "struct", "fields": kinds, "field": image} for image in ("before", "after")]
    return {"schema": {"type": "struct", "fields": images}, "payload": change(op, after)}


def flat(row: Mapping[str, object], op: str) -> dict[str, object]:
    return {**row, "__op": op, "__table": "t", "__db": "db"}


def canal(kind: str, *rows: Mapping[str, object], old: object = None) -> dict[str, object]:
    types = {"id": "bigint", "name": "varchar(9)", "price": "decimal(9,2)"}
    texts = [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]
    return {"type": kind, "isDdl": False, "database": "db", "table": "t", "data": texts, "old": old, "mysqlType": types}


def maxwell(kind: str, row: Mapping[str, object], old: object = None) -> dict[str, object]:
    return {"type": kind, "database": "db", "table": "t", "data": row, **({"old": old} if old else {})}


def ogg(op: str, after: object = None, before: object = None) -> dict[str, object]:
    return {"table": "db.t", "op_type": op, "op_ts": "x", "before": before, "after": after}


def dms(op: str, row: Mapping[str, object]) -> dict[str, object]:
    return {"data": row, "metadata": {"operation": op, "record-type": "data", "schema-name": "db", "table-name": "t"}}


ONE, TWO = {"id": 1, "name": "ü", "price": "1.50"}, {"id": 2, "name": None, "price": "0.10"}
NEW, GONE = {**ONE, "name": "new"}, {"id": 3, "name": "gone", "price": "3.00"}
DEBEZIUM: tuple[list[object], list[object]] = (
    [change("r", ONE), change("c", TWO), change("c", GONE)],
    [change("u", NEW, ONE), change("d", None, GONE)],
)
FORMATS: Mapping[str, tuple[list[object], list[object]]] = {
    "debezium": DEBEZIUM,
    "debezium_flat": ([flat(ONE, "r"), flat(TWO, "c"), flat(GONE, "c")], [flat(NEW, "u"), flat(GONE, "d")]),
    "flink_cdc": DEBEZIUM,
    "canal": ([canal("INSERT", ONE, TWO, GONE)], [canal("UPDATE", NEW, old=[{"name": "ü"}]), canal("DELETE", GONE)]),
    "maxwell": (
        [maxwell("bootstrap-insert", ONE), maxwell("insert", TWO), maxwell("insert", GONE)],
        [maxwell("update", NEW, {"name": "ü"}), maxwell("delete", GONE)],
    ),
    "ogg": ([ogg("I", ONE), ogg("I", TWO), ogg("I", GONE)], [ogg("U", NEW, ONE), ogg("D", None, GONE)]),
    "dms": ([dms("load", ONE), dms("insert", TWO), dms("insert", GONE)], [dms("update", NEW), dms("delete", GONE)]),
}  # fmt: skip


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_each_format_is_read(tmp_path: Path, form: str) -> None:
    types = {"id": "bigint", "name": "string", "price": "decimal(9,2)"}
    update = {"updates": "full"} if form == "ogg" else {}
    lake = Lake(tmp_path, (declared(types=types, **update),), form)
    first, second = FORMATS[form]
    lake.ingest(*first)
    lake.ingest(*second)
    lake.ingest()
    assert lake.rows() == [
        {"id": 1, "name": "new", "price": Decimal("1.50")}, {"id": 2, "name": None, "price": Decimal("0.10")}
    ]  # fmt: skip
    assert lake.commits() == 2


def test_values_of_all_types_are_the_sources(tmp_path: Path) -> None:
    kinds = {
        "id": "int64", "small": "int16", "double": "double", "flag": "boolean", "text": "string", "raw": "bytes",
        "day": ("int32", "io.debezium.time.Date"), "at": ("int64", "io.debezium.time.MicroTimestamp"),
        "zoned": ("string", "io.debezium.time.ZonedTimestamp"), "time": ("int64", "io.debezium.time.MicroTime"),
        "exact": ("bytes", "org.apache.kafka.connect.data.Decimal"), "doc": ("string", "io.debezium.data.Json"),
    }  # fmt: skip
    fields = []
    for name, kind in kinds.items():
        type_, semantic = kind if isinstance(kind, tuple) else (kind, None)
        parameters = {"parameters": {"scale": "2"}} if name == "exact" else {}
        fields.append({"field": name, "type": type_, "optional": True, "name": semantic, **parameters})
    row = {
        "id": 1, "small": -7, "double": 0.1, "flag": True, "text": "it's \\ \"ü\"\n𝄞", "raw": "AP8=", "day": -1,
        "at": 1_700_000_000_123_456, "zoned": "2024-02-29T23:59:59.5+02:00", "time": 3_723_000_001, "exact": "fQ==",
        "doc": '{"b": 1.50, "a": [1,  2]}',
    }  # fmt: skip
    schema = {
        "type": "struct",
        "fields": [{"type": "struct", "fields": fields, "field": each} for each in ("before", "after")],
    }
    lake = Lake(tmp_path)
    lake.ingest({"schema": schema, "payload": change("c", row)}, {"schema": schema, "payload": change("c", {"id": 2})})
    empty = {**dict.fromkeys(row), "id": 2}
    assert lake.rows() == [
        {
            **row, "raw": b"\x00\xff", "day": date(1969, 12, 31), "exact": Decimal("1.25"), "time": "01:02:03.000001",
            "at": datetime(2023, 11, 14, 22, 13, 20, 123456, UTC),
            "zoned": datetime(2024, 2, 29, 21, 59, 59, 500000, UTC),
        },
        empty,
    ]  # fmt: skip


def test_bytes_of_canal_are_those_of_its_one_byte_texts(tmp_path: Path) -> None:
    """Anything else was decoded before: Spark would encode it as question marks."""
    lake = Lake(tmp_path, format="canal")
    rows = [canal("INSERT", {"id": id, "raw": raw}) for id, raw in enumerate(["\xff\x80a", "a中"])]
    report = lake.ingest(*({**row, "mysqlType": {"id": "bigint", "raw": "blob"}} for row in rows))
    assert lake.rows() == [{"id": 0, "raw": b"\xff\x80a"}] and lake.reasons == []
    assert "column `raw`: cannot read a中 as binary" in str(report.first_dead_letter)


def test_a_shops_log_gives_its_rows(tmp_path: Path) -> None:
    """Partitions, an order, moves, deletes, late events and tombstones, in many batches without Spark."""
    keys = {"user": "id", "product": "pid", "user_order": "id"}
    shop = generate(tmp_path / "log", users=30, products=8, orders=60, changes=150, seed=11)
    by_month = PartitionBy("create_time", "yyyyMM", "year_month")
    tables = tuple(
        declared(
            name,
            {"age": "int"} if name == "user" else {"create_time": "timestamp", "modify_time": "timestamp"},
            database="test_db",
            primary_key=(key,),
            order_by=("modify_time",),
            partition_by=by_month,
        )
        for name, key in keys.items()
    )
    lake = Lake(tmp_path, tables)
    parts = sorted(path for part in ("part1", "part2") for path in (tmp_path / "log" / part).iterdir())
    lines = [line for path in parts for line in path.read_text(encoding="utf-8").splitlines()]
    dice = random.Random(7)
    while lines:
        size = dice.randrange(20, 60)
        lake.ingest(*lines[:size])
        del lines[:size]
    assert lake.commits("user") > 3
    for name, key in keys.items():
        expected = [_shown(row) for _, row in sorted(shop.rows(name).items(), key=lambda item: str(item[0]))]
        stored = sorted(
            ({k: v for k, v in row.items() if k != "year_month"} for row in lake.rows(name)),
            key=lambda row: str(row[key]),
        )
        assert [{k: v for k, v in row.items() if v is not None} for row in stored] == expected, name
        assert all(f"{row['create_time']:%Y%m}" == row["year_month"] for row in lake.rows(name))


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    moments = {name: value.replace(tzinfo=UTC) for name, value in row.items() if isinstance(value, datetime)}
    return {name: value for name, value in {**row, **moments}.items() if value is not None}


@pytest.mark.parametrize("ingest", [{}, {"partition_by": PartitionBy("name", None, "part")}, {"order_by": ("id",)}])
def test_rows_that_are_gone_before_there_is_a_table_are_not_in_it(tmp_path: Path, ingest: dict[str, Any]) -> None:
    lake = Lake(tmp_path, (declared(**ingest),))
    report = lake.ingest(change("c", ONE), change("d", None, ONE), change("d", None, GONE))
    assert (report.tables[0].upserts, report.tables[0].deletes) == (0, 2)
    assert (lake.rows(), lake.commits()) == ([], 1)
    lake.ingest(change("c", {**TWO, "id": 4}))
    assert ([row["id"] for row in lake.rows()], lake.commits(), lake.reasons) == ([4], 2, [])


def test_a_changed_key_leaves_no_second_row(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.ingest(change("c", {"id": 1, "v": 1}), change("c", {"id": 2, "v": 2}))
    lake.ingest(change("u", {"id": 9, "v": 3}, {"id": 1, "v": 1}), change("u", {"id": 2, "v": 4}, {"id": 2, "v": 2}))
    assert lake.rows() == [{"id": 2, "v": 4}, {"id": 9, "v": 3}]


def test_a_changed_key_takes_the_row_of_the_new_key_from_any_partition(tmp_path: Path) -> None:
    """Neither event says where rows of the other key are: the new key's is in another partition, the old one's not."""
    lake = Lake(tmp_path, (declared(partition_by=PartitionBy("kind", None, "part"), types={"kind": "string"}),))
    lake.ingest(*(change("c", {"id": id, "kind": kind, "v": id}) for id, kind in enumerate("abbc", start=1)))
    lake.ingest(
        change("d", None, {"id": 3}),
        change("u", {"id": 3, "kind": "a", "v": 10}, {"id": 1, "kind": "a", "v": 1}),
        change("u", {"id": 5, "kind": "c", "v": 20}, {"id": 4}),
    )
    kept = [(2, "b", 2, "b"), (3, "a", 10, "a"), (5, "c", 20, "c")]
    assert [(row["id"], row["kind"], row["v"], row["part"]) for row in lake.rows()] == kept
    assert lake.reasons == []


def test_a_table_grows(tmp_path: Path) -> None:
    """Rows of other files keep what they have, in new columns NULL; a whole number gets 64 bits."""
    by_kind = PartitionBy("kind", None, "part")
    lake = Lake(tmp_path, (declared(partition_by=by_kind, types={"kind": "string"}),))
    small = {"v": {"type": "int32"}, "kind": {"type": "string"}}
    lake.ingest(*(stated("c", {"id": id, "kind": kind, "v": id}, **small) for id, kind in enumerate("aab")))
    files = {path.name for path in (lake.warehouse / "ods" / "t").rglob("*.parquet")}
    named = {"kind": {"type": "string"}, "note": {"type": "string"}}
    report = lake.ingest(stated("u", {"note": "ü", "id": 1, "kind": "a", "v": 2**40}, **named))
    assert report.tables[0].changes == ("+ note string", "v int → bigint")
    assert lake.rows() == [
        {"id": 0, "kind": "a", "v": 0, "part": "a", "note": None},
        {"id": 1, "kind": "a", "v": 2**40, "part": "a", "note": "ü"},
        {"id": 2, "kind": "b", "v": 2, "part": "b", "note": None},
    ]
    assert len({path.name for path in (lake.warehouse / "ods" / "t").rglob("*.parquet")} - files) == 1
    lake.ingest(stated("u", {"id": 2, "kind": "b", "v": 5}, **small), stated("u", {"id": 0, "kind": "a"}, **named))
    assert [(row["v"], row["note"]) for row in lake.rows()] == [(None, None), (2**40, "ü"), (5, None)]


@pytest.mark.parametrize(("policy", "columns"), [("lenient", {"id", "v", "v__boolean", "w"}), ("ignore", {"id", "v"})])
def test_the_policy_says_which_columns_are_added(tmp_path: Path, policy: str, columns: set[str]) -> None:
    lake = Lake(tmp_path, settings={"on_schema_change": policy})
    lake.ingest(stated("c", {"id": 1, "v": 1}))
    text = {"type": "string"}
    if policy == "ignore":
        lake.ingest(stated("c", {"id": 2, "v": 2, "w": "x"}, w=text))
    else:
        lake.ingest(stated("c", {"id": 2, "v": True, "w": "x"}, v={"type": "boolean"}, w=text))
    assert lake.rows()[1].keys() == columns and len(lake.rows()) == 2


@pytest.mark.parametrize("order", [(), ("v",)])
def test_stored_rows_get_the_default_of_a_new_column(tmp_path: Path, order: tuple[str, ...]) -> None:
    by_kind = PartitionBy("kind", None, "part")
    lake = Lake(tmp_path, (declared(partition_by=by_kind, order_by=order),))
    text = {"kind": {"type": "string"}}
    lake.ingest(*(stated("c", {"id": id, "kind": kind, "v": 5}, **text) for id, kind in enumerate("aabb")))
    new = {**text, "w": {"type": "int32", "optional": False, "default": 7}}
    lake.ingest(
        # Of the schema before: the default is older than the first event that has the column.
        stated("u", {"id": 2, "kind": "b", "v": 6}, **text),
        stated("u", {"id": 1, "kind": "a", "v": 6, "w": 1}, **new),
        stated("u", {"id": 3, "kind": "b", "v": 4, "w": 2}, **new),  # with an order, it is late
    )
    late = (5, 7) if order else (4, 2)
    assert [(row["id"], row["v"], row["w"]) for row in lake.rows()] == [(0, 5, 7), (1, 6, 1), (2, 6, 7), (3, *late)]
    assert lake.commits() == 2


KEPT = [{"id": 1, "v": 1}, {"id": 2, "v": 3}, {"id": 3, "v": 5}, {"id": 7, "v": 2}]
TRUNCATED: Mapping[str, tuple[dict[str, Any], list[dict[str, int]]]] = {
    "in the log's order": ({}, KEPT[2:3]),
    "with an order": ({"order_by": ("v",)}, KEPT[2:3]),
    "without a key": ({"primary_key": ()}, KEPT[2:3]),
    "with soft deletes": ({"deletes": "soft"}, KEPT),
    "with retention": ({"deletes": "retention"}, [*KEPT[:3], {"id": 7, "v": 1}]),
}


@pytest.mark.parametrize("what", sorted(TRUNCATED))
def test_a_truncate_empties_what_came_before_it(tmp_path: Path, what: str) -> None:
    settings, rows = TRUNCATED[what]
    lake = Lake(tmp_path, (declared(**settings),))
    lake.ingest(*(change("c", {"id": id, "v": 1}) for id in (1, 2, 7)))
    if settings.get("primary_key") != ():
        lake.ingest(change("d", None, {"id": 7, "v": 2}))
        lake.ingest(change("u", {"id": 2, "v": 3}, {"id": 2, "v": 1}), change("t"), change("c", {"id": 3, "v": 5}))
    else:
        lake.ingest(change("c", {"id": 2, "v": 3}), change("t"), change("c", {"id": 3, "v": 5}))
    assert lake.rows() == rows
    lake.ingest(change("t"))
    assert len(lake.rows()) == (0 if len(rows) == 1 else 4)
    lake.ingest(change("c", {"id": 1, "v": 9}))
    assert lake.rows()[0] == {"id": 1, "v": 9}


@pytest.mark.parametrize("ingest", [{}, {"order_by": ("id",)}, {"partition_by": PartitionBy("name", None, "part")}])
def test_a_row_that_a_truncate_marks_as_deleted_has_its_last_values(tmp_path: Path, ingest: dict[str, Any]) -> None:
    lake = Lake(tmp_path, (declared(deletes="soft", **ingest),))
    lake.ingest(change("c", ONE), change("u", NEW, ONE), change("c", GONE), change("d", None, GONE), change("t"))
    lake.ingest(change("c", TWO), change("u", {**TWO, "name": "last"}, TWO), change("t"))
    assert [row["name"] for row in lake.rows()] == ["new", "last", "gone"]
    assert (lake.commits(), lake.reasons) == (2, [])


def test_a_truncate_of_one_of_several_tables_leaves_the_others(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(table=r"t_\d", origin="shard", primary_key=("shard", "id")),))
    lake.ingest(change("c", {"id": 1}, table="t_1"), change("c", {"id": 1}, table="t_2"))
    lake.ingest(change("t", table="t_1"))
    assert lake.rows() == [{"shard": "db.t_2", "id": 1}]


READ_AGAIN = {**change("t"), READS_AGAIN: True}
"""What the spool of a database has before all rows of a table."""


@pytest.mark.parametrize("what", [{}, {"order_by": ("v",)}, {"deletes": "soft"},
                                  {"partition_by": PartitionBy("kind", None, "part")}])  # fmt: skip
def test_a_row_that_is_read_again_and_becomes_a_dead_letter_stays_as_it_is(
    tmp_path: Path, what: dict[str, Any]
) -> None:
    """Rows that the source no longer has go; a truncate of the source's own takes all."""
    types = {"id": "int", "kind": "string", "v": "int", "n": "int"}
    lake = Lake(tmp_path, (declared(types=types, **what),))

    def row(id: int, v: int, n: object, kind: str = "a") -> dict[str, object]:
        return {"id": id, "kind": kind, "v": v, "n": n}

    lake.ingest(*(change("c", row(id, 1, id)) for id in (1, 2, 3, 4)))
    again = [change("r", row(1, 2, 10, "b")), change("r", row(2, 2, "x", "b")), change("r", row(5, 2, "x"))]
    report = lake.ingest(change("u", row(2, 2, 7)), READ_AGAIN, *again, change("d", None, row(4, 3, 4)))
    assert (report.dead_letters, lake.reasons) == (2, [])
    gone = [row(3, 1, 3), row(4, 3, 4)] if what.get("deletes") == "soft" else []
    shown = [{name: each[name] for name in types} for each in lake.rows()]
    assert shown == [row(1, 2, 10, "b"), row(2, 2, 7), *gone]
    lake.ingest(change("u", row(2, 4, 8), row(2, 2, "x", "b")), change("t"), change("r", row(1, 5, "x")))
    assert [each["id"] for each in lake.rows()] == ([1, 2, 3, 4] if gone else [])


BEGIN, END = {**change("t"), READS_AGAIN: BEGINS}, {**change("t"), READS_AGAIN: ENDS}
"""What the spool of a database has before and after all rows of a table."""


@pytest.mark.parametrize("what", [{}, {"order_by": ("v",)}, {"deletes": "soft"},
                                  {"partition_by": PartitionBy("kind", None, "part")}])  # fmt: skip
def test_rows_that_are_read_again_over_several_batches_stay_where_they_do_not_fit(
    tmp_path: Path, what: dict[str, Any]
) -> None:
    """Whatever batch they are in, and whatever becomes of the table between the batches."""
    types = {"id": "int", "kind": "string", "v": "int", "n": "int"}

    def row(id: int, v: int, n: object, kind: str = "a") -> dict[str, object]:
        return {"id": id, "kind": kind, "v": v, "n": n}

    last = [row(1, 2, 10, "b"), row(2, 1, 2), row(3, 2, 30), row(4, 1, 4), row(7, 2, 70), row(9, 3, 9)]
    gone = [row(5, 1, 5), row(6, 1, 6)] if what.get("deletes") == "soft" else []
    events: list[dict[str, object]] = [
        change("c", row(6, 1, 6)),  # the source has it no more when it is read
        BEGIN,
        change("r", row(1, 2, 10, "b")),
        change("r", row(2, 2, "x", "b")),
        change("r", row(3, 2, 30)),
        change("r", row(4, 2, "x")),
        change("r", row(7, 2, 70)),
        change("c", row(9, 3, 9)),
        END,
    ]
    for size in (1, 2, 3, len(events)):
        lake = Lake(tmp_path / str(size), (declared(types=types, **what),))
        lake.root.mkdir()
        lake.ingest(*(change("c", row(id, 1, id)) for id in (1, 2, 3, 4, 5)))
        letters = 0
        for at in range(0, len(events), size):
            assert {5} <= {each["id"] for each in lake.rows()}, "rows go when all have been read"
            letters += lake.ingest(*events[at : at + size]).dead_letters
        shown = [{name: each[name] for name in types} for each in lake.rows()]
        assert (letters, lake.reasons) == (2, [])
        assert shown == sorted((*last, *gone), key=lambda each: int(str(each["id"]))), size
        # A later truncate takes all, and an end without a beginning nothing.
        lake.ingest(change("t"), change("c", row(8, 1, 8)), END)
        assert [each["id"] for each in lake.rows() if each["id"] == 8 or not gone] == [8]


def test_a_table_that_is_read_again_twice_has_the_rows_of_the_second_time(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(types={"id": "int", "n": "int"}),))
    lake.ingest(*(change("c", {"id": id, "n": id}) for id in (1, 2, 3, 4)))
    lake.ingest(BEGIN, change("r", {"id": 1, "n": 10}), change("r", {"id": 2, "n": "x"}))
    lake.ingest(BEGIN, change("r", {"id": 1, "n": 11}))
    lake.ingest(change("r", {"id": 3, "n": "x"}), END)
    assert lake.rows() == [{"id": 1, "n": 11}, {"id": 3, "n": 3}]


def test_one_of_several_tables_is_read_again_over_batches(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(table=r"t_\d", origin="shard", primary_key=("shard", "id")),))
    lake.ingest(*(change("c", {"id": id}, table=name) for name in ("t_1", "t_2") for id in (1, 2)))
    begin, end = ({**each, "source": {"db": "db", "table": "t_1"}} for each in (BEGIN, END))
    lake.ingest(begin, change("r", {"id": 1}, table="t_1"))
    lake.ingest(change("d", None, {"id": 2}, table="t_2"))
    lake.ingest(end)
    assert sorted((row["shard"], row["id"]) for row in lake.rows()) == [("db.t_1", 1), ("db.t_2", 1)]


def test_a_truncate_of_many_rows_is_sparks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path)
    lake.ingest(*(change("c", {"id": id}) for id in range(20)))
    monkeypatch.setattr("sqlmesh_like.cdc.in_process.commits._MOST_ROWS", 19)
    with pytest.raises(SparkAskedError):
        lake.ingest(change("t"))
    assert lake.reasons == ["Spark ingests the events of source shop: ods.t: t is large, and all of its rows are read"]
    assert len(lake.rows()) == 20


LEFT_OUT = "__debezium_unavailable_value"


def test_values_that_events_leave_out_are_those_of_earlier_versions(tmp_path: Path) -> None:
    """Of the row before, of an earlier event, else of the table; a key without any becomes a dead letter."""
    lake = Lake(tmp_path, (declared(types={"v": "int", "text": "string", "price": "decimal(9,2)"}),))

    def row(id: int, v: int, text: str | None, price: str | None = "1.50") -> dict[str, object]:
        return {"id": id, "v": v, "text": text, "price": price}

    lake.ingest(*(change("c", row(id, 0, f"text {id}")) for id in range(1, 6)), change("c", row(6, 0, None)))
    report = lake.ingest(
        change("u", row(1, 1, LEFT_OUT)),
        change("u", row(2, 1, "newer")),
        change("u", row(2, 2, LEFT_OUT, LEFT_OUT)),
        change("u", row(3, 1, LEFT_OUT), row(3, 0, "before")),
        change("d", None, row(4, 0, "text 4")),
        change("u", row(6, 1, LEFT_OUT)),
        change("u", row(9, 1, LEFT_OUT)),
    )
    assert (report.dead_letters, lake.reasons) == (1, [])
    assert "text: the source did not log this value" in str(report.first_dead_letter)
    stored = [(each["id"], each["v"], each["text"], each["price"]) for each in lake.rows()]
    texts = {1: "text 1", 2: "newer", 3: "before", 5: "text 5", 6: None}
    changed = {1: 1, 2: 2, 3: 1, 5: 0, 6: 1}
    assert stored == [(str(id) if isinstance(stored[0][0], str) else id, changed[id], text, Decimal("1.50"))
                      for id, text in texts.items()]  # fmt: skip
    # What the dead letter would have changed is not known.
    with pytest.raises(SparkAskedError):
        lake.ingest(change("u", row(9, 2, LEFT_OUT)))
    assert lake.reasons == [
        "Spark ingests the events of source shop: ods.t: events leave values out, and events of their table are dead"
        " letters"
    ]


@pytest.mark.parametrize("batches", [1, 2, 3])
@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_a_row_with_the_key_of_a_deleted_one_does_not_get_its_values(
    tmp_path: Path, deletes: str, batches: int
) -> None:
    """PostgreSQL logs that row 2 has the key 1 now as a delete and an insert, without a large value of it."""
    lake, unlogged = (
        Lake(tmp_path, (declared(deletes=deletes),)),
        {**TWO, "id": 1, "name": "__debezium_unavailable_value"},
    )
    changes = [
        change("c", ONE),
        change("c", TWO),
        change("d", None, ONE),
        change("d", None, TWO),
        change("c", unlogged),
    ]
    for events in {1: [changes], 2: [changes[:2], changes[2:]], 3: [changes[:2], changes[2:4], changes[4:]]}[batches]:
        report = lake.ingest(*events)
    assert report.dead_letters == 1 and "no earlier version of the row is known" in str(report.first_dead_letter)
    assert [row["name"] for row in lake.rows()] == (["ü", None] if deletes == "soft" else [])


def test_partial_updates_need_no_spark(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(updates="partial", types={"v": "int", "w": "string"}),))
    lake.ingest(change("c", {"id": 1, "v": 1, "w": "a"}), change("c", {"id": 2, "v": 1, "w": "b"}))
    lake.ingest(change("u", {"id": 1, "v": 2}), change("u", {"id": 1, "w": "c"}), change("u", {"id": 2, "w": None}))
    assert lake.reasons == []
    assert [(row["v"], row["w"]) for row in lake.rows()] == [(2, "c"), (1, None)]


GOOD = json.dumps(change("c", {"id": 5, "v": 1}))
LEFT: Mapping[str, tuple[tuple[object, ...], str, str]] = {
    "two texts in JSON": ((GOOD, "{} {}"), "{}", "a text that is not JSON"),
    "a member that is there twice": (
        (GOOD.replace('{"op"', '{"op": "d", "op"'),), "{}", "a member of a JSON object that is there twice",
    ),
    "another type": ((change("c", {"id": 5, "v": "x"}),), "{}", "ods.t: v changes from bigint to string"),
    "carriage returns": (('{"op": "m"}\r',), "{}", "@/1 is large, or has carriage returns or a byte order mark"),
    "a name that a URI spells otherwise": ((GOOD,), "a b{}", "the path @/a b1, which Spark may spell otherwise"),
    "a packed file": ((GOOD,), "{}.bz2", "a file packed as .bz2"),
}  # fmt: skip
"""Events, the name of their file, and the reason that is shown."""


@pytest.mark.parametrize("what", sorted(LEFT))
def test_what_is_not_certain_is_left_to_spark(tmp_path: Path, what: str) -> None:
    lake = Lake(tmp_path)
    lake.ingest(change("c", {"id": 1, "v": 1}))
    before = {path: path.read_bytes() for path in lake.warehouse.rglob("*") if path.is_file()}
    events, name, reason = LEFT[what]
    lake.land(*events, name=name)
    with pytest.raises(SparkAskedError):
        lake.ingest()
    shown = reason.replace("@", str(tmp_path / "landing"))
    assert lake.reasons == [f"Spark ingests the events of source shop: {shown}"]
    checkpoint = lake.warehouse / "_sml" / "checkpoints"
    fresh = {path for path in lake.warehouse.rglob("*") if path.is_file()} - before.keys()
    assert all(path.is_relative_to(checkpoint) for path in fresh), "no table is written"
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("table", "target", "reason"),
    [
        ({"table_type": "mor"}, {}, ["ods.t: it is merge-on-read"]),
        ({"hudi": {"hoodie.index.type": "SIMPLE"}}, {}, ["ods.t: the option hoodie.index.type"]),
        (
            {},
            {"spark": {"spark.sql.caseSensitive": "true"}},
            ["the target sets spark.sql.caseSensitive, which may change values"],
        ),
        ({}, {"delta_engine": "spark"}, []),
        ({}, {"catalog": "hive"}, ["the catalog hive is told of new columns and partitions"]),
    ],
)
def test_sources_that_only_spark_ingests(
    tmp_path: Path, table: dict[str, Any], target: dict[str, Any], reason: list[str]
) -> None:
    lake = Lake(tmp_path, (declared(**table),), target=target)
    with pytest.raises(SparkAskedError):
        lake.ingest(change("c", {"id": 1}))
    assert lake.reasons == [f"Spark ingests the events of source shop: {each}" for each in reason]
    assert not (lake.warehouse / "ods" / "t").exists()


def test_the_driver_of_a_cluster_ingests_small_batches_into_files_that_it_may_rewrite(tmp_path: Path) -> None:
    lake = Lake(tmp_path, target={"master": "yarn", "spark": {"spark.sql.shuffle.partitions": "64"}})
    lake.ingest(change("c", {"id": 1}))
    lake.ingest(change("c", {"id": 2}))
    assert (lake.reasons, lake.rows()) == ([], [{"id": 1}, {"id": 2}])
    lake.target = {"master": "yarn", "driver_max_bytes": 1}
    with pytest.raises(SparkAskedError):
        lake.ingest(change("c", {"id": 3}))
    (reason,) = lake.reasons
    assert reason.endswith("bytes of files would be rewritten") and lake.rows() == [{"id": 1}, {"id": 2}]


def test_many_events_are_sparks(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with pytest.raises(SparkAskedError):
        lake.ingest(*(json.dumps(change("c", {"id": id})) for id in range(20_001)))
    assert lake.reasons == ["Spark ingests the events of source shop: more than 20,000 events, or 32 MB of them"]


def test_a_path_that_goes_up_is_sparks(tmp_path: Path) -> None:
    """Spark writes it without the detour: by both engines, its file would be read twice."""
    lake = Lake(tmp_path, settings={"files": "models/../landing/*"})
    (tmp_path / "models").mkdir()
    with pytest.raises(SparkAskedError):
        lake.ingest(change("c", {"id": 1}))


def test_a_text_whose_digits_are_unknown_is_not_taken_for_its_like() -> None:
    assert json_value('{"a": 1.5}') == {"a": 1.5}
    with pytest.raises(NotProvenError):
        json_value(Rewritten('{"a": 1.5}'))


def test_the_record_of_files_is_compacted_as_spark_does(tmp_path: Path) -> None:
    """Every tenth listing has all files, so that Spark finds them: `CompactibleFileStreamLog`."""
    lake = Lake(tmp_path)
    for number in range(23):
        lake.ingest(change("c", {"id": number}))
    checkpoint = lake.warehouse / "_sml" / "checkpoints" / "shop"
    names = {path.name for path in (checkpoint / "sources" / "0").iterdir()}
    assert names == {str(number) for number in range(23) if number not in (9, 19)} | {"9.compact", "19.compact"}
    assert len((checkpoint / "sources" / "0" / "19.compact").read_text(encoding="utf-8").splitlines()) == 21
    log = read_query_log(str(checkpoint))
    assert log is not None and [file.log_id for file in log.files] == list(range(23)) and max(log.ends) == 22


@pytest.mark.parametrize(
    ("there", "interval"),
    [([], 10), ([9], 10), ([19], 20), ([39], 10), ([29], 10), ([59], 10), ([9, 19], 10), ([29, 59], 30), ([4], 5)],
)
def test_the_interval_of_compaction_follows_from_what_is_there(tmp_path: Path, there: list[int], interval: int) -> None:
    """`deriveCompactInterval` of Spark 3.5, with the default of ten."""
    (tmp_path / "sources" / "0").mkdir(parents=True)
    for number in there:
        (tmp_path / "sources" / "0" / f"{number}.compact").write_text("v1", encoding="utf-8")
    assert QueryBatches(QueryRecords(str(tmp_path)), FileLog("*"))._interval() == interval


def test_a_batch_goes_on_where_a_call_ended(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text("{}\n", encoding="utf-8")
    batches = QueryBatches(QueryRecords(str(tmp_path / "checkpoint")), FileLog(f"{tmp_path}/*.jsonl", 2))
    batch = batches.next()
    assert batch is not None and (batch.number, len(batch.files), batch.is_listed) == (0, 2, False)
    batches._list(batch)
    listed = batches.next()
    assert listed == replace(batch, is_listed=True), "the third file comes later"
    batches.begin(listed)
    planned = batches.next()
    assert planned == replace(batch, is_listed=True, is_planned=True)
    batches.begin(planned)
    batches.records.complete(planned.number)
    second = batches.next()
    assert second is not None and (second.number, [Path(uri).name for _, uri in second.files]) == (1, ["2.jsonl"])
    with pytest.raises(FileExistsError):
        batches.begin(replace(second, log_id=0))
    assert len(QueryLog(str(tmp_path / "checkpoint"), "", {}).files) == 2


def _project(tmp_path: Path, *events: object) -> None:
    """A project of its own, for calls of the command line."""
    Lake(tmp_path).land(*events)
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n', encoding="utf-8")
    output = "{type: spark, master: 'local[1]', warehouse: warehouse, schema: dws}"
    (tmp_path / "profiles.yml").write_text(f"lake: {{target: local, outputs: {{local: {output}}}}}", encoding="utf-8")
    (tmp_path / "models").mkdir()
    source = "name: shop, schema: ods, ingest: {format: debezium, files: {path: landing/*}}"
    source = f"{{{source}, tables: [{{name: t, ingest: {{primary_key: [id]}}}}]}}"
    (tmp_path / "models" / "sources.yml").write_text(f"version: 2\nsources: [{source}]\n", encoding="utf-8")


def test_pyspark_is_not_even_imported(tmp_path: Path) -> None:
    _project(tmp_path, change("c", {"id": 1}))
    program = "import sys; from sqlmesh_like.cli.app import main; code = main(['ingest']); "
    program += "assert code == 0 and not {'pyspark', 'py4j'} & sys.modules.keys(), code"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[1 upserts, 0 deletes" in done.stdout


def test_a_line_says_why_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start_spark(*_: object, **__: object) -> NoReturn:
        raise MachineError("no Java")

    _project(tmp_path, "{} {}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sqlmesh_like.app.lakes.spark_session.start_spark", start_spark)
    assert main(["ingest"]) == 2
    assert "Spark ingests the events of source shop: a text that is not JSON\n" in capsys.readouterr().err
