"""Metadata that was cut short, emptied or overwritten: an error that names the file, whatever is in it."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmesh_like.errors import UnreadableTableError
from sqlmesh_like.hudi.commits import Commit, Instant, parse_commit
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.plan.history import TableRecord
from tests.properties.cases import examples
from tests.unit.hudi.test_timeline import Lake, at

STAT = {"name": "stat", "type": "record", "fields": [
    {"name": "fileId", "type": ["null", "string"]}, {"name": "path", "type": ["null", "string"]},
    {"name": "prevCommit", "type": ["null", "string"]}, {"name": "numWrites", "type": ["null", "long"]},
]}  # fmt: skip
SCHEMA = {"type": "record", "name": "HoodieCommitMetadata", "fields": [
    {"name": "partitionToWriteStats", "type": ["null", {"type": "map", "values": {"type": "array", "items": STAT}}]},
    {"name": "operationType", "type": ["null", "string"]},
    {"name": "extraMetadata", "type": ["null", {"type": "map", "values": "string"}]},
]}  # fmt: skip
WRITTEN = {"fileId": "a", "path": "p=1/a_0-1-2_20240101000001000.parquet", "prevCommit": None, "numWrites": 2}
RECORD = {"partitionToWriteStats": {"p=1": [WRITTEN]}, "operationType": "UPSERT", "extraMetadata": {"sml.record": "{}"}}


def avro() -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, SCHEMA, [RECORD], codec="deflate")
    return file.getvalue()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "t")


def read(lake: Lake, content: bytes) -> tuple[Commit, ...]:
    (lake.folder / f"{at(1)}_{at(2)}.commit").write_bytes(content)
    return lake.timeline.commits


@pytest.mark.fault("a commit of a model is truncated or overwritten", ends="refuses")
def test_every_beginning_of_a_commit_is_refused_by_its_name(lake: Lake) -> None:
    whole = avro()
    for length in range(len(whole) - 16):  # the last 16 bytes end a block: without them all of it is there
        with pytest.raises(UnreadableTableError, match=f"timeline/{at(1)}_{at(2)}.commit is not commit metadata"):
            read(lake, whole[:length])
    assert [write.path for write in read(lake, whole)[0].writes] == [WRITTEN["path"]]


@examples(300)
@given(st.integers(0, len(avro()) - 1), st.binary(min_size=1, max_size=8), st.sampled_from(["avro", "json"]))
def test_overwritten_bytes_are_read_or_refused(at_byte: int, content: bytes, form: str) -> None:
    whole = bytearray(avro() if form == "avro" else json.dumps(RECORD).encode())
    at_byte %= len(whole)
    whole[at_byte : at_byte + len(content)] = content
    with suppress(UnreadableTableError):
        parse_commit(Instant(at(1), at(2), "commit"), bytes(whole), "t")


OTHER_SHAPES = (
    "[]", "7", "null", "{", '{"partitionToWriteStats": []}', '{"partitionToWriteStats": {"p": 7}}',
    '{"partitionToWriteStats": {"p": [7]}}', '{"partitionToWriteStats": {"p": [{}]}}', '{"extraMetadata": "x"}',
    '{"partitionToReplaceFileIds": 1}', '{"partitionToReplaceFileIds": {"p": 1}}',
)  # fmt: skip


@pytest.mark.parametrize("content", OTHER_SHAPES)
@pytest.mark.fault("a commit of a model is truncated or overwritten", ends="refuses")
def test_json_of_another_shape_is_refused(content: str, lake: Lake) -> None:
    with pytest.raises(UnreadableTableError, match="is not commit metadata"):
        read(lake, content.encode())


@pytest.mark.parametrize("text", ["[]", "7", "null", '"x"', "x", "{}"])
def test_text_that_is_not_a_record_is_a_value_or_type_error(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        TableRecord.from_json(text)


@pytest.mark.parametrize("record", ["", "x", "[]", "{}", "7", '{"unique_id": 1}', '{"partition_by": 7}'])
@pytest.mark.fault("a commit of a model is truncated or overwritten", ends="refuses")
def test_a_record_of_ours_that_does_not_parse_is_refused(record: str, lake: Lake) -> None:
    lake.commit(1, ["a"], extra={"sml.record": record or " "})
    with pytest.raises(UnreadableTableError, match=f"the record in commit {at(1)}_{at(2)} cannot be read"):
        LakeHistory().state(str(lake.root))
