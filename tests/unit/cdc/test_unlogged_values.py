"""Values that a log leaves out, while rows come to keys that others had: no row gets another's values."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyarrow import dataset

from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import file_schema
from tests.levels import IS_RELEASE
from tests.unit.cdc.test_small_batches import Lake, SparkAskedError, declared
from tests.unlogged_log import FORMATS, Change, SourceTable, as_tuple, changes_for

TYPES = {"id": "int", "who": "int", "v": "int", "text": "string"}
SEEDS = 60 if IS_RELEASE else 2


def stored(lake: Lake) -> set[tuple[int, int, int, str]]:
    """The rows that the table shows."""
    timeline = Timeline(str(lake.warehouse / "ods" / "t"))
    if timeline.frontier is None:
        return set()
    schema = file_schema(timeline.schema_json(timeline.frontier) or "")
    files = [f"{timeline.uri}/{each.path}" for each in timeline.slices(timeline.frontier).values()]
    rows = dataset.dataset(files, schema=schema, format="parquet").to_table().to_pylist()
    return {as_tuple(row) for row in rows if not row.get("_sml_deleted")}


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_each_row_is_one_that_the_source_had(tmp_path: Path, form: str) -> None:
    how = FORMATS[form]
    for seed in range(SEEDS):
        dice = random.Random(f"{form} {seed}")
        deletes = ("hard", "retention", "soft")[seed % 3]
        ingest: dict[str, Any] = {"deletes": deletes, "updates": how.updates}
        ingest |= {"order_by": ("v",)} if seed % 4 == 1 else {}
        lake = Lake(tmp_path / str(seed), (declared(types=TYPES, **ingest),), how.name)
        lake.root.mkdir()
        # Of a row that the table keeps, an update and an insert with its key look alike if the events do not say which.
        source, letters, may_be_lost = SourceTable(dice), 0, deletes == "retention" and not how.inserts
        for _ in range(4):
            changes = changes_for(how, source, dice.randrange(4, 13))
            may_be_lost |= any(change.is_unknown for change in changes)
            try:
                letters += lake.ingest(*map(how.event, changes)).dead_letters
            except SparkAskedError:
                assert letters, lake.reasons
                break
            rows = stored(lake)
            assert rows <= source.history, (seed, rows - source.history)
            assert may_be_lost or not letters, seed
            if not letters:
                kept = rows if deletes != "retention" else {row for row in rows if row[0] in source.rows}
                assert kept == {as_tuple(row) for row in source.rows.values()}, seed


FIRST, SECOND = ({"id": id, "who": id, "v": id, "text": f"of {id}"} for id in (1, 2))
COMES = [Change(FIRST, {**FIRST, "id": 3, "v": 3}), Change(SECOND, {**SECOND, "id": 1, "v": 4}, True, "key")]
"""The first row leaves its key to the second one, of which the log has the text no more."""
LEFT_BEHIND = [Change(FIRST, None), Change(SECOND, None), Change(None, {**SECOND, "id": 1, "v": 4}, True)]
"""The first row is deleted, which the table does not follow; the second one's new key is a delete and an insert."""


@pytest.mark.parametrize(("form", "deletes", "changes"), [
    ("debezium", "hard", COMES),
    ("flink_cdc", "retention", COMES),
    ("ogg", "soft", COMES),
    ("maxwell", "hard", COMES),
    ("debezium", "retention", LEFT_BEHIND),
    ("debezium_flat without op", "retention", LEFT_BEHIND),
])  # fmt: skip
@pytest.mark.parametrize("batches", [1, 2])
def test_a_row_that_comes_to_a_key_without_all_of_its_values_is_a_dead_letter(
    tmp_path: Path, form: str, deletes: str, changes: list[Change], batches: int
) -> None:
    how = FORMATS[form]
    lake = Lake(tmp_path, (declared(types=TYPES, deletes=deletes, updates=how.updates),), how.name)
    lake.ingest(*(how.event(Change(None, row)) for row in (FIRST, SECOND)))
    for at in range(0, len(changes), 3 // batches):
        report = lake.ingest(*map(how.event, changes[at : at + 3 // batches]))
    assert "text: the source did not log this value" in str(report.first_dead_letter)
    assert ("of 1" in [row[3] for row in stored(lake)]) and (1, 2, 4, "of 1") not in stored(lake)
