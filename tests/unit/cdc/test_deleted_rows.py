"""Rows that `deletes: soft` keeps: they have the values that they had, whatever the log has of a delete."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import dataset

from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import file_schema
from sqlmesh_like.project.nodes import PartitionBy
from tests.levels import IS_RELEASE
from tests.unit.cdc.test_small_batches import Lake, change, declared, stated
from tests.unlogged_log import FORMATS, Change, Row, SourceTable, as_tuple, changes_for

TYPES = {"id": "int", "who": "int", "v": "int", "text": "string"}
SEEDS = 60 if IS_RELEASE else 3
ONE, TWO, OTHER = ({"id": id, "who": who, "v": v, "text": text} for id, who, v, text in [
    (1, 1, 0, "ü"), (1, 1, 7, "later"), (2, 2, 5, ""),
])  # fmt: skip
DELETED = Change(ONE, None, before="key")


def stored(lake: Lake, *more: str) -> list[tuple[object, ...]]:
    """The rows of the table, whether they are deleted, and further columns."""
    timeline = Timeline(str(lake.warehouse / "ods" / "t"))
    assert timeline.frontier is not None
    schema = file_schema(timeline.schema_json(timeline.frontier) or "")
    files = [f"{timeline.uri}/{each.path}" for each in timeline.slices(timeline.frontier).values()]
    rows = dataset.dataset(files, schema=schema, format="parquet").to_table().to_pylist()
    return sorted(tuple(row[name] for name in (*TYPES, "_sml_deleted", *more)) for row in rows)


def batches_of(changes: Sequence[object], count: int) -> list[Sequence[object]]:
    return [changes] if count == 1 else [[each] for each in changes]


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_delete_of_which_the_log_has_the_key_alone_keeps_the_row(tmp_path: Path, form: str, batches: int) -> None:
    how = FORMATS[form]
    table = declared(types=TYPES, deletes="soft", updates=how.updates, partition_by=PartitionBy("who", None, "part"))
    lake = Lake(tmp_path, (table,), how.name)
    for events in batches_of([how.event(Change(None, row)) for row in (ONE, OTHER)] + [how.event(DELETED)], batches):
        assert lake.ingest(*events).dead_letters == 0
    assert stored(lake, "part") == [(*ONE.values(), True, "1"), (*OTHER.values(), False, "2")]
    for events in batches_of([how.event(each) for each in (Change(None, TWO), DELETED, DELETED)], batches):
        lake.ingest(*events)
    assert stored(lake, "part") == [(*TWO.values(), True, "1"), (*OTHER.values(), False, "2")]
    assert lake.reasons == []


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_deleted_rows_are_the_last_that_the_source_had_of_their_keys(tmp_path: Path, form: str) -> None:
    how = replace(FORMATS[form], truncates=False)
    for seed in range(SEEDS):
        dice = random.Random(f"{form} {seed}")
        lake = Lake(tmp_path / str(seed), (declared(types=TYPES, deletes="soft", updates=how.updates),), how.name)
        lake.root.mkdir()
        source, last, present = SourceTable(dice), dict[int, tuple[Any, ...]](), set[int]()
        for _ in range(4):
            changes = [whole(each, form, dice) for each in changes_for(how, source, dice.randrange(4, 13))]
            assert lake.ingest(*map(how.event, changes)).dead_letters == 0, seed
            for each in changes:
                for row in filter(None, (each.old, each.new)):
                    last[row["id"]] = as_tuple(row)
                present -= {each.old["id"]} if each.old else set()
                present |= {each.new["id"]} if each.new else set()
            assert stored(lake) == sorted((*row, key not in present) for key, row in last.items()), seed


def whole(each: Change, form: str, dice: random.Random) -> Change:
    """The change with all values of its new row logged, and of the old one of a delete or a move perhaps its key.

    Canal and Maxwell say of an update what has changed, so nothing of the old row is unknown.
    """
    may_lack = each.new is None or (each.is_move and form not in ("canal", "maxwell"))
    return replace(each, unlogged=False, before=dice.choice(("all", "key")) if may_lack else "all")


def of_postgres(op: str, after: object = None, before: object = None) -> dict[str, object]:
    return {**change(op, after, before), "source": {"db": "db", "table": "t", "connector": "postgresql"}}


KEY_AND_ZEROS: Mapping[str, Row] = {
    "the key alone": {"id": 1, "who": None, "v": None, "text": None},
    "the key, and what columns that are NOT NULL are filled with": {"id": 1, "who": 0, "v": 0, "text": ""},
    "the columns of an index": {"id": 1, "who": 1, "v": 0, "text": None},
    "all of it": TWO,
}


@pytest.mark.parametrize("what", sorted(KEY_AND_ZEROS))
def test_what_postgresql_logs_of_a_deleted_row(tmp_path: Path, what: str) -> None:
    lake = Lake(tmp_path, (declared(types=TYPES, deletes="soft"),))
    lake.ingest(of_postgres("c", ONE), of_postgres("c", OTHER), of_postgres("u", TWO))
    lake.ingest(of_postgres("d", None, KEY_AND_ZEROS[what]))
    assert stored(lake) == [(*TWO.values(), True), (*OTHER.values(), False)]


def test_a_large_value_that_is_not_logged_of_a_deleted_row(tmp_path: Path) -> None:
    """With `order_by`, too: the row before has the order, and a mark instead of the value."""
    lake = Lake(tmp_path, (declared(types=TYPES, deletes="soft", order_by=("v",)),))
    lake.ingest(change("c", ONE), change("c", {**ONE, "id": 3, "text": None}))
    marked = {"text": "__debezium_unavailable_value", "v": 9}
    lake.ingest(change("d", None, {**ONE, **marked}), change("d", None, {**ONE, **marked, "id": 3}))
    assert stored(lake) == [(1, 1, 9, "ü", True), (3, 1, 9, None, True)]


def test_with_an_order_a_null_of_a_deleted_row_is_a_null(tmp_path: Path) -> None:
    """An update between, which has not come yet, may have set it."""
    lake = Lake(tmp_path, (declared(types=TYPES, deletes="soft", order_by=("v",)),))
    lake.ingest(of_postgres("c", ONE))
    lake.ingest(of_postgres("d", None, {**ONE, "v": 9, "text": None}))
    lake.ingest(of_postgres("u", {**ONE, "v": 8, "text": None}))
    assert stored(lake) == [(1, 1, 9, None, True)]


def test_a_delete_with_the_key_alone_of_a_row_that_is_not_known(tmp_path: Path) -> None:
    """Its mark is stored, as that of a delete with more values; a row with its key replaces it, in a partition."""
    lake = Lake(tmp_path, (declared(types=TYPES, deletes="soft", partition_by=PartitionBy("who", None, "part")),))
    lake.ingest(change("c", OTHER))
    lake.ingest(change("d", None, {"id": 1}))
    assert stored(lake, "part") == [(1, None, None, None, True, "__null__"), (*OTHER.values(), False, "2")]
    lake.ingest(change("c", ONE))
    assert stored(lake, "part") == [(*ONE.values(), False, "1"), (*OTHER.values(), False, "2")]


@pytest.mark.parametrize("partition", [None, PartitionBy("who", None, "part")])
def test_an_update_of_a_key_of_which_the_log_has_the_old_key_alone(
    tmp_path: Path, partition: PartitionBy | None
) -> None:
    """DMS, with `column-filter: pk-only` of its before image."""
    lake = Lake(tmp_path, (declared(types=TYPES, deletes="soft", partition_by=partition),), "dms")
    event = FORMATS["dms"].event
    lake.ingest(event(Change(None, ONE)), event(Change(None, OTHER)))
    report = lake.ingest(event(Change(ONE, {**ONE, "id": 9, "who": 3}, before="key")))
    assert stored(lake) == [(*ONE.values(), True), (*OTHER.values(), False), (9, 3, 0, "ü", False)]
    [table] = report.tables
    assert (table.upserts, table.deletes, lake.reasons) == (1, 1, [])


def test_a_key_that_is_left_stays_so_whatever_comes_late(tmp_path: Path) -> None:
    """The old key is deleted as of the update, though nothing else is known of its row."""
    lake = Lake(tmp_path, (declared(types=TYPES, deletes="soft", order_by=("v",)),), "dms")
    event = FORMATS["dms"].event
    lake.ingest(event(Change(ONE, {**ONE, "id": 9, "v": 7}, before="key")))
    lake.ingest(event(Change(None, {**ONE, "v": 5})))
    assert stored(lake) == [(1, None, 7, None, True), (9, 1, 7, "ü", False)]


def test_a_deleted_row_has_the_default_of_a_column_that_is_new(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(deletes="soft"),))
    lake.ingest(stated("c", {"id": 1, "v": 5}), stated("c", {"id": 2, "v": 6}))
    new = {"w": {"type": "int32", "optional": False, "default": 7}}
    event = stated("d", {"id": 1, "v": None, "w": None}, **new)
    event["payload"] = change("d", None, {"id": 1, "v": None, "w": None})
    lake.ingest(event)
    assert lake.rows() == [{"id": 1, "v": 5, "w": 7}, {"id": 2, "v": 6, "w": 7}]


def test_an_update_that_leaves_a_new_column_out_has_its_default(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(updates="partial"),))
    lake.ingest(stated("c", {"id": 1, "v": 5}), stated("c", {"id": 2, "v": 6}))
    new = {"w": {"type": "int32", "optional": False, "default": 7}}
    event = stated("u", {"id": 1, "v": 9, "w": 1}, **new)
    event["payload"] = change("u", {"id": 1, "v": 9})
    lake.ingest(event)
    assert lake.rows() == [{"id": 1, "v": 9, "w": 7}, {"id": 2, "v": 6, "w": 7}]
