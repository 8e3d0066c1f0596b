"""A watch beside calls that take commits or rows off tables: those of its own are refused, and it goes on."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from tests.faults.calls import Call, finished, refused, start

_FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n',
    "profiles.yml": "lake: {target: local, outputs: {local: {type: spark, master: 'local[2]', warehouse: warehouse,"
    " schema: dws}}}",
    "models/sources.yml": """
version: 2
sources:
- name: till
  schema: ods
  ingest: {format: debezium, files: {path: till/*.jsonl}}
  tables:
  - {name: orders, ingest: {database: db, primary_key: [id]}}
  - {name: refunds, ingest: {database: db, primary_key: [id]}}
- name: office
  schema: ods
  ingest: {format: debezium, files: {path: office/*.jsonl}}
  tables:
  - {name: customers, ingest: {database: db, primary_key: [id]}}
""",
    "models/daily.sql": "select id, v from {{ source('till', 'orders') }}",
    "models/people.sql": "select id, v from {{ source('office', 'customers') }}",
}


class _Project:
    def __init__(self, root: Path) -> None:
        self.root, self.landed = root, 0
        for name, text in _FILES.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")

    def land(self, source: str, table: str, *ids: int) -> None:
        rows = ({"id": id, "v": 10 * id} for id in ids)
        events = ({"op": "c", "before": None, "after": row, "source": {"db": "db", "table": table}} for row in rows)
        staged = self.root / "staged"
        staged.write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
        (self.root / source).mkdir(exist_ok=True)
        staged.rename(self.root / source / f"{self.landed:04d}.jsonl")
        self.landed += 1

    def ended(self, *words: str) -> str:
        code, output = finished(start(self.root, *words))
        assert code == 0 and "Started Spark" not in output, output
        return output

    def ids(self, table: str) -> list[int]:
        read = read_table_rows(table_state(Timeline(f"{self.root}/warehouse/{table}")), -1)
        assert read is not None
        at = [column.name for column in read.schema].index("id")
        return sorted(int(str(row[at])) for row in read.rows)

    def first_commit(self, table: str) -> str:
        return Timeline(f"{self.root}/warehouse/{table}").commit_instants[0].requested

    def wait_for(self, watch: Call, table: str, ids: list[int]) -> None:
        limit = time.monotonic() + 120
        while self.ids(table) != ids:
            assert time.monotonic() < limit and not watch.ended(), watch.output.read_text()[-3000:]
            time.sleep(0.2)


@pytest.mark.fault("two calls that need the same table", ends="refuses")
def test_what_a_watch_writes_is_not_rolled_back_and_what_it_does_not_is(tmp_path: Path) -> None:
    project = _Project(tmp_path)
    for part in ((1, 2), (3,)):
        project.land("till", "orders", *part)
        project.land("till", "refunds", *part)
        project.land("office", "customers", *part)
        project.ended("ingest")
        project.ended("run")
    watch = start(tmp_path, "watch", "-s", "daily", "--trigger", "1 second")
    try:
        project.land("till", "orders", 4)
        project.wait_for(watch, "dws/daily", [1, 2, 3, 4])
        for name in ("ods.orders", "ods.refunds", "dws.daily"):  # refunds: the watch reads its source
            to = project.first_commit(name.replace(".", "/"))
            said = refused(start(tmp_path, "rollback", name, "--to", to, "--yes"))
            assert f"another `sml watch` is writing {name} of" in said
        for name in ("ods.orders", "ods.customers"):  # an erasure searches the whole lake
            assert "another `sml watch` is writing" in refused(start(tmp_path, "forget", name, "1", "--yes"))
        said = project.ended("rollback", "ods.customers", "--to", project.first_commit("ods/customers"), "--yes")
        assert "the next `sml ingest` reads 1 batch of its source again" in said
        project.land("till", "orders", 5)
        project.wait_for(watch, "dws/daily", [1, 2, 3, 4, 5])
        assert project.ids("ods/customers") == [1, 2] and project.ids("dws/people") == [1, 2, 3]
    finally:
        if not watch.ended():
            os.kill(watch.pid, signal.SIGTERM)
        code, output = finished(watch)
    assert code == 128 + signal.SIGTERM and "Started Spark" not in output, output
    project.ended("rollback", "dws.daily", "--to", project.first_commit("dws/daily"), "--yes")
    project.ended("run")
    assert project.ids("dws/daily") == [1, 2, 3, 4, 5] and project.ids("dws/people") == [1, 2]
