"""Which tables are written without Spark: a property, an action or a type that is not known leaves a table to it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sqlmesh_like.hudi import timeline as timelines
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError
from sqlmesh_like.hudi.writer.table_support import unsupported_reason
from sqlmesh_like.hudi.writer.upsert import Upsert, upsert
from tests.written_table import WrittenTable

PLAIN = {"p": "string", "v": "long"}


@pytest.fixture
def table(tmp_path: Path) -> WrittenTable:
    table = WrittenTable(tmp_path / "t", PLAIN, "p").create()
    table.upsert([("a", "x", 1), ("b", "x", 2), ("c", "y", 3)])
    return table


def reason(table: WrittenTable, **options: str) -> str | None:
    return unsupported_reason(table.timeline, table.ordering, table.partition, options)


CHANGED = {
    "hoodie.table.type": ("MERGE_ON_READ", "merge-on-read"),
    "hoodie.table.version": ("8", "hoodie.table.version is 8"),
    "hoodie.timeline.layout.version": ("1", "layout.version is 1"),
    "hoodie.table.base.file.format": ("ORC", "format is ORC"),
    "hoodie.table.recordkey.fields": ("id", "recordkey.fields is id"),
    "hoodie.table.keygenerator.type": ("COMPLEX", "type is COMPLEX"),
    "hoodie.datasource.write.hive_style_partitioning": ("false", "hive_style_partitioning is false"),
    "hoodie.datasource.write.partitionpath.urlencode": ("true", "urlencode is true"),
    "hoodie.datasource.write.drop.partition.columns": ("true", "columns is true"),
    "hoodie.populate.meta.fields": ("false", "fields is false"),
    "hoodie.table.cdc.enabled": ("true", "cdc.enabled is true"),
    "hoodie.table.metadata.partitions": ("files", "partitions is files"),
    "hoodie.table.timeline.timezone": ("LOCAL", "timezone is LOCAL"),
    "hoodie.table.partition.fields": ("p,q", "partitioned by p, q"),
    "hoodie.record.merge.mode": ("EVENT_TIME_ORDERING", "decides otherwise"),
    "hoodie.table.partial.update.mode": ("KEEP_VALUES", "decides otherwise"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_property_that_is_not_known_leaves_a_table_to_spark(table: WrittenTable, name: str) -> None:
    value, why = CHANGED[name]
    path = table.root / ".hoodie" / "hoodie.properties"
    path.write_text(f"{path.read_text()}{name}={value}\n")
    assert why in str(reason(table))


@pytest.mark.parametrize("name", ["hoodie.table.version", "hoodie.table.timeline.timezone", "hoodie.record.merge.mode"])
def test_a_property_that_is_not_stated_leaves_a_table_to_spark(table: WrittenTable, name: str) -> None:
    path = table.root / ".hoodie" / "hoodie.properties"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith(name)))
    assert reason(table) is not None


def test_an_option_that_is_not_known_leaves_a_table_to_spark(table: WrittenTable) -> None:
    assert reason(table) is None
    assert reason(table, **{"hoodie.write.lock.provider": "x"}) == "the option hoodie.write.lock.provider"
    assert unsupported_reason(table.timeline, (), None, {}) == "it is partitioned by p"
    assert unsupported_reason(table.timeline, ("v",), "p", {}) == "it decides otherwise between two rows of a key"


UNFINISHED = (
    "commit.requested", "inflight", "clean.requested", "rollback.inflight", "clustering.requested", "restore.inflight",
)  # fmt: skip


@pytest.mark.parametrize("action", UNFINISHED)
def test_an_action_that_has_not_completed_leaves_a_table_to_spark(table: WrittenTable, action: str) -> None:
    (table.root / ".hoodie" / "timeline" / f"29990101000000000.{action}").touch()
    assert "has not completed" in str(reason(table))


def test_a_savepoint_is_no_hindrance(table: WrittenTable) -> None:
    frontier = table.frontier
    timeline = table.root / ".hoodie" / "timeline"
    (timeline / f"{frontier[:17]}.savepoint.inflight").touch()
    (timeline / f"{frontier}.savepoint").touch()
    table.upsert([("a", "x", 7)])
    assert sorted(table.rows()) == [("a", "x", 7), ("b", "x", 2), ("c", "y", 3)]


def test_files_that_were_replaced_are_not_gone_on_with(table: WrittenTable) -> None:
    """As an overwritten partition leaves it: another file group of the same bucket."""
    (old,) = [file for file in table.timeline.slices(table.frontier).values() if file.partition == "p=x"]
    instant = str(int(table.frontier[18:]) + 1)
    file_id = f"00000000-{'1' * 4}-1111-1111-{'1' * 12}-0"
    path = f"p=x/{file_id}_0-0-0_{instant}.parquet"
    shutil.copy(table.root / old.path, table.root / path)
    stat = {
        "fileId": file_id,
        "path": path,
        "prevCommit": "null",
        "numWrites": 2,
        "numInserts": 2,
        "fileSizeInBytes": 9,
    }
    record = {
        "partitionToWriteStats": {"p=x": [stat]}, "partitionToReplaceFileIds": {"p=x": [old.file_id]},
        "operationType": "INSERT_OVERWRITE", "extraMetadata": {"schema": table.avro, "sml.by": "test"},
    }  # fmt: skip
    name = f"{instant}_{int(instant) + 1}.replacecommit"
    (table.root / ".hoodie" / "timeline" / name).write_text(json.dumps(record))
    table.upsert([("a", "x", 7)], [("b", "x", None)])
    assert sorted(table.rows()) == [("a", "x", 7), ("c", "y", 3)]
    (newest,) = [write for write in table.timeline.data_commits[-1].writes if write.partition == "p=x"]
    assert (newest.file_id, newest.previous) == (file_id, instant)


def test_file_groups_of_no_bucket_leave_a_table_to_spark(table: WrittenTable) -> None:
    """As clustering leaves it."""
    name = next(path for path in (table.root / "p=x").glob("*.parquet")).name
    newest = table.root / ".hoodie" / "timeline" / f"{table.frontier}.commit"
    newest.write_bytes(newest.read_bytes().replace(name[:8].encode(), b"abcdefgh"))
    timelines._table_commits.cache_clear()
    (table.root / "p=x" / name).rename(table.root / "p=x" / f"abcdefgh{name[8:]}")
    with pytest.raises(UnsupportedRowsError, match="not that of a bucket"):
        table.upsert([("a", "x", 7)])


NESTED = {
    "array of maps": {"type": "array", "items": {"type": "map", "values": "long"}},
    "map": {"type": "map", "values": "long"},
    "struct of a map": {
        "type": "record",
        "name": "s",
        "fields": [{"name": "f", "type": {"type": "map", "values": "string"}}],
    },
    "milliseconds": {"type": "long", "logicalType": "timestamp-millis"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "uuid": {"type": "string", "logicalType": "uuid"},
}


@pytest.mark.parametrize("name", NESTED)
def test_types_of_which_hudi_alone_knows_the_file_are_left_to_it(tmp_path: Path, name: str) -> None:
    table = WrittenTable(tmp_path / "t", {"v": NESTED[name]}).create()
    before = sorted(table.root.rglob("*"))
    with pytest.raises(UnsupportedRowsError, match="a column of type"):
        upsert(Upsert(table.timeline, table.frontier, None, 1, {}))
    assert sorted(table.root.rglob("*")) == before
