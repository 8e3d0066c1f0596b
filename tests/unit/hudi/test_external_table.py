"""DDL over tables whose timelines are made by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sqlmesh_like.hudi.external_table import external_ddl
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.names import TableName
from sqlmesh_like.plan.history import TableState
from tests.unit.hudi.test_timeline import Lake

SCHEMA = json.dumps({
    "type": "record", "name": "t",
    "fields": [
        {"name": "AgentId", "type": ["null", "int"]}, {"name": "AgentName", "type": ["null", "string"]},
        {"name": "p", "type": ["null", "string"]},
    ],
})  # fmt: skip


@pytest.fixture
def state(tmp_path: Path) -> TableState:
    lake = Lake(tmp_path / "t")
    lake.commit(1, ["a"], extra={"schema": SCHEMA})
    return LakeHistory().state(str(lake.root))


@pytest.mark.checklist(55)
def test_a_table_is_declared_with_metadata_columns_partitions_and_formats(state: TableState) -> None:
    create, partition = external_ddl(TableName("dwd", "agents"), state, "hive")
    assert create.splitlines()[:8] == [
        "CREATE EXTERNAL TABLE IF NOT EXISTS `dwd`.`agents` (", "  `_hoodie_commit_time` string,",
        "  `_hoodie_commit_seqno` string,", "  `_hoodie_record_key` string,", "  `_hoodie_partition_path` string,",
        "  `_hoodie_file_name` string,", "  `AgentId` int,", "  `AgentName` string",
    ]  # fmt: skip
    assert "PARTITIONED BY (`p` string)" in create
    assert "INPUTFORMAT 'org.apache.hudi.hadoop.HoodieParquetInputFormat'" in create
    assert f"LOCATION 'file://{state.uri}'" in create
    assert partition == (
        "ALTER TABLE `dwd`.`agents` ADD IF NOT EXISTS PARTITION (`p` = '1') "
        f"LOCATION 'file://{state.uri}/p=1'"
    )  # fmt: skip


def test_merge_on_read_has_another_input_format(state: TableState) -> None:
    create, _ = external_ddl(TableName("dwd", "agents"), replace(state, kind="mor"), "athena")
    assert "realtime.HoodieParquetRealtimeInputFormat" in create
