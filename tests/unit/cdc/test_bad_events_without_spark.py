"""Bad events in a small batch: dead letters without Spark, and what follows while they wait."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.project.nodes import PartitionBy
from tests.unit.cdc.test_small_batches import FORMATS, Lake, SparkAskedError, change, declared, stated

LETTERS = "shop__dead_letters"
BAD: list[tuple[str, str]] = [
    ("broken off {", "not a JSON object of a change event"),
    ('{"op": "c", "after": {"id": 1}', "not a JSON object of a change event"),
    (json.dumps(change("x", {"id": 1})), "unknown op `x`"),
    (json.dumps(change("c", {"id": None, "v": 1})), "primary key id is missing or NULL"),
    (json.dumps(change("c", {"id": "abc", "v": 1})), "column `id`: cannot read abc as bigint"),
    (json.dumps(change("c", {"id": 1, "v": 1, "price": "1,5"})), "column `price`: cannot read 1,5 as decimal(10,2)"),
    (json.dumps(change("c", {"id": 1, "v": 1, "day": "2022-02-30"})), "column `day`: cannot read 2022-02-30 as date"),
]
TYPES = {"id": "bigint", "v": "bigint", "day": "date", "price": "decimal(10,2)"}


def stored_letters(lake: Lake) -> list[dict[str, Any]]:
    return sorted(lake.rows(LETTERS), key=lambda row: (row["file"], row["position"]))


def test_bad_events_are_kept_with_their_reasons(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(types=TYPES),))
    report = lake.ingest(*(text for text, _ in BAD), change("c", {"id": 7, "v": 7}))
    assert lake.rows() == [{"id": 7, "v": 7, "day": None, "price": None}]
    assert [(row["position"], row["text"], row["reason"]) for row in stored_letters(lake)] == [
        (number, text, reason) for number, (text, reason) in enumerate(BAD, 1)
    ]
    first = stored_letters(lake)[4]
    assert (first["table_name"], first["row_key"], first["raw"]) == ("t", None, None)
    assert stored_letters(lake)[6]["row_key"] == "1" and stored_letters(lake)[0]["table_name"] is None
    assert report.dead_letters == len(BAD) and report.first_dead_letter == f"landing/0000.jsonl:1: {BAD[0][1]}"
    assert Timeline(str(lake.warehouse / "ods" / LETTERS)).extra("sml.open") == "true"


BY_KIND = PartitionBy("kind", None, "part")


def deleted_in_postgresql(before: dict[str, Any], **fields: dict[str, Any]) -> dict[str, Any]:
    """What Debezium makes of a delete of which PostgreSQL logs the key: columns that are NOT NULL are filled."""
    event = stated("d", before, **fields)
    event["payload"] = {**change("d", None, before), "source": {"db": "db", "table": "t", "connector": "postgresql"}}
    return event


FIELDS = {"kind": {"type": "string"}, "n": {"default": 7}}
ROWS = [{"id": id, "kind": kind, "n": id, "at": id} for id, kind in enumerate("aabb", 1)]


@pytest.mark.parametrize("filled", [{"kind": "", "n": 7, "at": 0}, {"kind": None, "n": 0, "at": None}])
def test_a_delete_without_its_row_has_no_order(tmp_path: Path, filled: dict[str, Any]) -> None:
    lake = Lake(tmp_path, (declared(order_by=("at",)),))
    lake.ingest(*(stated("c", row, **FIELDS) for row in ROWS))
    report = lake.ingest(
        deleted_in_postgresql({"id": 1, **filled}, **FIELDS),
        deleted_in_postgresql(ROWS[1], **FIELDS),
        deleted_in_postgresql({**ROWS[2], "kind": "", "n": 7, "at": 3}, **FIELDS),
    )
    assert [row["id"] for row in lake.rows()] == [1, 4]
    assert (report.dead_letters, lake.reasons) == (1, [])
    assert "let the source log full rows" in str(report.first_dead_letter)


@pytest.mark.parametrize("origin", [None, "came_from"])
def test_a_delete_without_its_row_is_looked_up(tmp_path: Path, origin: str | None) -> None:
    lake = Lake(tmp_path, (declared(partition_by=BY_KIND, origin=origin),))
    lake.ingest(*(stated("c", row, **FIELDS) for row in ROWS))
    filled = {"id": 1, "kind": "", "n": 7, "at": 0}
    lake.ingest(deleted_in_postgresql(filled, **FIELDS), change("d", None, {"id": 2}))
    assert ([row["id"] for row in lake.rows()], lake.reasons) == ([3, 4], [])


KINDS: dict[str, tuple[str, str | None, object, object]] = {
    "id": ("int32", None, 1, 1), "kind": ("string", None, "a", ""), "n": ("int32", None, 1, 0),
    "big": ("int64", None, 1, 7), "flag": ("boolean", None, True, False), "raw": ("bytes", None, "AP8=", ""),
    "real": ("double", None, 1.5, 0.0), "doc": ("string", None, "[1]", "{}"), "text": ("string", None, None, None),
    "day": ("int32", "io.debezium.time.Date", 9, 0), "at": ("int64", "io.debezium.time.MicroTimestamp", 9, 0),
    "price": ("bytes", "org.apache.kafka.connect.data.Decimal", "fQ==", "AA=="),
}  # fmt: skip
"""Of each column its type, a value, and what Debezium has of it where PostgreSQL logs the key alone."""
WHOLE = [{**{name: value for name, (_, _, value, _) in KINDS.items()}, "id": id} for id in (1, 2, 3)]
FILLED = {name: filled for name, (*_, filled) in KINDS.items()}


def of_all_types(op: str, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    """Events of PostgreSQL with these rows, each of the tables `ordered` and `parted`."""
    fields = [{"field": name, "type": kind, "name": of, "optional": True} for name, (kind, of, _, _) in KINDS.items()]
    fields[list(KINDS).index("big")]["default"] = 7
    fields[-1]["parameters"] = {"scale": "2"}
    schema = {"fields": [{"type": "struct", "fields": fields, "field": image} for image in ("before", "after")]}
    return [
        {"schema": schema, "payload": {**change(op, *images, table), "source": source}}
        for row in rows
        for images in [(None, row) if op == "d" else (row, None)]
        for table in ("ordered", "parted")
        for source in [{"db": "db", "table": table, "connector": "postgresql"}]
    ]


def test_values_of_all_types_that_stand_for_none_are_known(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared("ordered", order_by=("at",)), declared("parted", partition_by=BY_KIND)))
    lake.ingest(*of_all_types("c", *WHOLE))
    report = lake.ingest(*of_all_types("d", FILLED, WHOLE[1]))
    assert [[row["id"] for row in lake.rows(name)] for name in ("ordered", "parted")] == [[1, 3], [3]]
    assert (report.dead_letters, lake.reasons) == (1, [])


def test_a_declared_type_that_the_source_has_outgrown_is_named(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(types={"id": "int", "v": "int"}),))
    lake.ingest(stated("c", {"id": 1, "v": 1}, id={"type": "int32"}))
    report = lake.ingest(stated("c", {"id": 2**40, "v": 1}))
    why = "column `id`: cannot read 1099511627776 as int, as `columns:` declares; the source has bigint: declare that"
    assert report.dead_letters == 1 and why in str(report.first_dead_letter)


MIDNIGHT = ("2024-02-29", "2024-02-29 00:00:00", "2024-02-29T00:00:00.000+02:00", "2024-02-29Z", " 2024-02-29 00:00 ")
LATER = ("2024-02-29 00:00:01", "2024-02-29T10:30", "2024-02-29T00:00:00.000001Z", "2024-02-29T", "2024-02-29 noon")
MICROS = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}


@pytest.mark.parametrize("time", [*MIDNIGHT, *LATER, 1_709_164_800_000_000, 1_709_164_800_000_001])
def test_a_time_of_day_in_a_column_of_dates_is_not_cut_off(tmp_path: Path, time: str | int) -> None:
    lake = Lake(tmp_path, (declared(types={"id": "bigint", "day": "date"}),))
    kind = {"day": {"type": "string"} if isinstance(time, str) else MICROS}
    event = (
        stated("c", {"id": 1, "day": time}, **kind) if isinstance(time, int) else change("c", {"id": 1, "day": time})
    )
    report = lake.ingest(event, change("c", {"id": 2, "day": None}))
    is_day = time in MIDNIGHT or time == 1_709_164_800_000_000
    assert [row["day"] for row in lake.rows()] == ([date(2024, 2, 29)] if is_day else []) + [None]
    assert (report.dead_letters, lake.reasons) == (0 if is_day else 1, [])
    if not is_day:
        assert f"column `day`: cannot read {time} as date" in str(report.first_dead_letter)


@pytest.mark.parametrize("form", sorted(FORMATS.keys() - {"flink_cdc"}))
@pytest.mark.parametrize(
    "text", ['{"op": "c", "__op": "c", "type": "INSERT", "table": "db.t", "after": {"id": 1}', "broken"]
)
def test_a_broken_message_of_each_format_is_known_as_such(tmp_path: Path, form: str, text: str) -> None:
    lake = Lake(tmp_path, (declared(types=TYPES, updates="full"),), form)
    lake.ingest(text)
    (letter,) = stored_letters(lake)
    assert letter["reason"].startswith("not a JSON object of ") and letter["table_name"] is None


def test_events_go_on_without_spark_while_letters_wait(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(types=TYPES),))
    lake.ingest(change("c", {"id": 1, "v": 1}), change("c", {"id": 2, "v": 1}))
    lake.ingest(change("u", {"id": 1, "v": "abc"}, {"id": 1, "v": 1}))
    lake.ingest(change("u", {"id": 1, "v": 3}, {"id": 1, "v": 2}), change("d", None, {"id": 2, "v": 1}), "nonsense")
    assert lake.rows() == [{"id": 1, "v": 3, "day": None, "price": None}]
    assert len(stored_letters(lake)) == 2
    # Its letter may be replayed later: what was deleted meanwhile is remembered.
    assert Timeline(str(lake.warehouse / "_sml" / "tombstones" / "ods" / "t")).commit_instants


def test_a_row_whose_move_is_a_letter_is_not_doubled(tmp_path: Path) -> None:
    """The letter's event would have moved the row: the next one names a partition where it is not."""
    by = PartitionBy("part", None, "p")
    lake = Lake(tmp_path, (declared(types={**TYPES, "part": "string"}, partition_by=by),))
    lake.ingest(change("c", {"id": 1, "v": 1, "part": "a"}), change("c", {"id": 2, "v": 1, "part": "a"}))
    moved = {"id": 1, "v": "abc", "part": "b"}
    lake.ingest(change("u", moved, {"id": 1, "v": 1, "part": "a"}))
    lake.ingest(change("u", {"id": 1, "v": 3, "part": "c"}, {"id": 1, "v": 2, "part": "b"}))
    assert [(row["id"], row["v"], row["p"]) for row in lake.rows()] == [(1, 3, "c"), (2, 1, "a")]
    # The same within one batch.
    lake.ingest(
        change("u", {"id": 2, "v": "abc", "part": "d"}, {"id": 2, "v": 1, "part": "a"}),
        change("u", {"id": 2, "v": 5, "part": "e"}, {"id": 2, "v": 4, "part": "d"}),
    )
    assert [(row["id"], row["v"], row["p"]) for row in lake.rows()] == [(1, 3, "c"), (2, 5, "e")]


def test_a_source_without_letters_stops_at_the_first_bad_event(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(types=TYPES),), settings={"on_bad_record": "fail"})
    path = lake.land(change("c", {"id": 7, "v": 7}), BAD[3][0])
    with pytest.raises(IngestError, match="primary key id is missing or NULL") as caught:
        lake.ingest()
    assert caught.value.location is not None and caught.value.location.line == 2
    assert not (lake.warehouse / "ods").exists()
    path.write_text(f"{json.dumps(change('c', {'id': 7, 'v': 7}))}\n", encoding="utf-8")
    lake.ingest()
    assert [row["id"] for row in lake.rows()] == [7], "the repaired file is read"


def test_letters_are_written_once_if_spark_must_write_a_table(tmp_path: Path) -> None:
    """They are there before the tables: Spark, or the next call, finds them with the batch's mark."""
    lake = Lake(tmp_path, (declared(types=TYPES), declared("u", table_type="mor")))
    lake.land(BAD[0][0], change("c", {"id": 1}, table="u"))
    for _ in range(2):
        with pytest.raises(SparkAskedError):
            lake.ingest()
    assert len(stored_letters(lake)) == lake.commits(LETTERS) == 1
