"""An ingestion without Spark is killed at each of its steps: after the next call, every event counts once."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sqlmesh_like.cdc.formats.message import BEGINS, ENDS, READS_AGAIN
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.kafka_log import KafkaLog
from sqlmesh_like.cdc.stream.kafka_messages import open_messages
from sqlmesh_like.fault_points import COMMIT_POINTS, CREATE_POINTS, SMALL_BATCH_POINTS, STORE_TABLE_POINTS
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.stores.store_client import use_store
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from tests.faults.calls import KILLED, finished, start
from tests.levels import count
from tests.services.kafka import broker, broker_jars, produce
from tests.services.stores import Server
from tests.services.stores import server as server
from tests.services.wanted import need

STEPS = (
    *SMALL_BATCH_POINTS,
    *CREATE_POINTS,
    "ingest.dead_letters",
    "ingest.truncates",
    "ingest.floors",
    "ingest.table",
    "ingest.batch",
    *COMMIT_POINTS,
)
STORE_STEPS = (*STORE_TABLE_POINTS, *(step for step in STEPS if step not in CREATE_POINTS))
_SOURCES = """
version: 2
sources:
- name: shop
  schema: ods
  ingest: {format: debezium, files: {path: landing/*.jsonl}}
  tables:
  - {name: ordered, ingest: {database: db, primary_key: [id], order_by: [m]}}
  - {name: plain, ingest: {database: db, primary_key: [id]}}
"""
_PROFILES = (
    "lake: {target: local, outputs: {local: {type: spark, master: 'local[2]', warehouse: warehouse, schema: dws}}}"
)
_TOPICS = "kafka: {bootstrap_servers: '%s', topics: [%s], options: %s}"
Rows = dict[int, tuple[int, int]]


@dataclass
class Landed:
    """A project, and the rows that its tables must have after all that has been landed."""

    root: Path
    dice: random.Random
    rows: Mapping[str, Rows] = field(default_factory=lambda: {"ordered": {}, "plain": {}})
    files: int = 0
    warehouse: str = ""

    def __post_init__(self) -> None:
        self.warehouse = self.warehouse or str(self.root / "warehouse")
        for path, text in (
            ("pyproject.toml", '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n'),
            ("profiles.yml", _PROFILES),
            ("models/sources.yml", _SOURCES),
        ):
            (self.root / path).parent.mkdir(exist_ok=True, parents=True)
            (self.root / path).write_text(text, encoding="utf-8")
        (self.root / "landing").mkdir()

    def land(self) -> None:
        """One more file of changes of both tables, with a new column, a bad event and perhaps a truncate."""
        lines = []
        for name, rows in self.rows.items():
            for number in range(12):
                id, m = self.dice.randrange(15), self.files * 100 + number
                if number == 7:
                    lines.append(_event(name, "u", None, {"v": 1}))
                if number == 5 and self.dice.random() < 0.5:
                    lines.append(_event(name, "t", None, None))
                    rows.clear()
                before = self._row(id, rows[id]) if id in rows else None
                if before and self.dice.random() < 0.3:
                    lines.append(_event(name, "d", before, None))
                    del rows[id]
                else:
                    rows[id] = (self.dice.randrange(1000), m)
                    after = {**self._row(id, rows[id]), f"w{self.files}": 1}  # a new column in each file
                    lines.append(_event(name, "u" if before else "c", before, after))
        self.write(lines)
        self.files += 1

    def write(self, lines: Sequence[str]) -> None:
        staged = self.root / "staged"
        staged.write_text("".join(lines), encoding="utf-8")
        staged.rename(self.root / "landing" / f"{self.files:04d}.jsonl")

    @staticmethod
    def _row(id: int, values: tuple[int, int]) -> dict[str, int]:
        return {"id": id, "v": values[0], "m": values[1]}

    def check(self) -> None:
        """Each table has its rows, once, and as many commits as there were batches with events for it."""
        for table, rows in self.rows.items():
            uri = f"{self.warehouse}/ods/{table}"
            read = read_table_rows(table_state(Timeline(uri)), -1)
            assert read is not None
            names = [column.name for column in read.schema]
            stored = [tuple(row[names.index(name)] for name in ("id", "v", "m")) for row in read.rows]
            assert sorted(stored) == sorted((id, *values) for id, values in rows.items()), table
            assert len(list(Timeline(uri).data_commits)) == self.files, table
        read = read_table_rows(table_state(Timeline(f"{self.warehouse}/ods/shop__dead_letters")), -1)
        assert read is not None and len(read.rows) == 2 * self.files


@dataclass
class InKafka(Landed):
    """The same in a topic of Kafka."""

    kafka: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    login: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        sources = self.root / "models" / "sources.yml"
        topics = _TOPICS % (self.kafka, self.root.name, json.dumps(self.options))
        sources.write_text(_SOURCES.replace("files: {path: landing/*.jsonl}", topics), encoding="utf-8")

    def write(self, lines: Sequence[str]) -> None:
        produce(self.kafka, *((self.root.name, 0, line) for line in lines), login=self.login)


def _on_store(root: Path, dice: random.Random, server: Server) -> Landed:
    """The same with tables and checkpoint in a new bucket, and a cluster's master that does not answer."""
    bucket = f"landed-{abs(hash(root)) % 10**12}"
    server.make_bucket(bucket)
    lake = Landed(root, dice, warehouse=f"{server.uri(bucket)}/w")
    output = {"type": "spark", "master": "spark://127.0.0.1:1", "warehouse": lake.warehouse, **server.output()}
    profile = {"lake": {"target": "store", "outputs": {"store": {**output, "schema": "dws"}}}}
    (root / "profiles.yml").write_text(json.dumps(profile), encoding="utf-8")
    use_store(lake.warehouse, server.settings())
    return lake


def _event(table: str, op: str, before: object, after: object) -> str:
    source = {"db": "db", "table": table}
    return json.dumps({"op": op, "before": before, "after": after, "source": source, "ts_ms": 1}) + "\n"


@pytest.mark.parametrize("step", STEPS[:: count(8, 1, 1)])
def test_a_batch_that_is_killed_counts_once(tmp_path: Path, step: str) -> None:
    _killed_twice(Landed(tmp_path, random.Random(step)), step)


_REREAD_STEPS = ("ingest.dead_letters", "ingest.truncates", "ingest.floors", "ingest.table", "ingest.batch")


@pytest.mark.parametrize("step", _REREAD_STEPS[:: count(5, 1, 1)])
def test_a_table_that_is_read_again_over_several_batches_is_killed_in_each(tmp_path: Path, step: str) -> None:
    lake = Landed(tmp_path, random.Random(step))
    sources = tmp_path / "models" / "sources.yml"
    types = "columns: [{name: id, data_type: int}, {name: v, data_type: int}, {name: m, data_type: int}]"
    sources.write_text(sources.read_text().replace("{name: plain,", f"{{name: plain, {types},"), encoding="utf-8")

    def read(id: int, v: object) -> str:
        return _event("plain", "r", None, {"id": id, "v": v, "m": 1})

    begins, ends = (
        json.dumps({**json.loads(_event("plain", "t", None, None)), READS_AGAIN: mark}) + "\n"
        for mark in (BEGINS, ENDS)
    )
    batches = (
        [_event("plain", "c", None, {"id": id, "v": id, "m": 0}) for id in (1, 2, 3, 4)],
        [begins, read(1, 10), read(2, "x")],
        [read(3, "x"), read(5, 50)],
        [ends, _event("plain", "d", {"id": 5, "v": 50, "m": 1}, None)],
    )
    codes = []
    for lines in batches:
        lake.write(lines)
        lake.files += 1
        codes.append(finished(start(lake.root, "ingest", fault=f"{step}:1"))[0])
        _ingested(lake)
    assert KILLED in codes and set(codes) <= {KILLED, 0}
    read_again = read_table_rows(table_state(Timeline(f"{lake.warehouse}/ods/plain")), -1)
    assert read_again is not None and sorted(read_again.rows) == [(1, 10, 1), (2, 2, 0), (3, 3, 0)]


@pytest.mark.release
@pytest.mark.parametrize("step", STORE_STEPS)
def test_a_batch_on_a_store_that_is_killed_counts_once(tmp_path: Path, step: str, server: Server) -> None:
    _killed_twice(_on_store(tmp_path, random.Random(step), server), step)


@pytest.mark.release
@pytest.mark.parametrize(
    "step", ["ingest.listed", "ingest.planned", "ingest.dead_letters", "hudi.commit.complete", "ingest.batch"]
)
def test_a_batch_from_kafka_that_is_killed_counts_once(tmp_path: Path, step: str, kafka: str) -> None:
    root = tmp_path / step
    root.mkdir()
    _killed_twice(InKafka(root, random.Random(step), kafka=kafka), step)


@pytest.mark.release
def test_a_broker_that_wants_a_password_is_read_without_spark(tmp_path: Path) -> None:
    need(broker_jars)
    (tmp_path / "broker").mkdir()
    (tmp_path / "shop").mkdir()
    mechanism = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    login = {**mechanism, "sasl.username": "sml", "sasl.password": "s3cret word"}

    def options(password: str) -> dict[str, str]:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        return {**mechanism, "sasl.jaas.config": f'{module} username="sml" password="{password}";'}

    with broker(tmp_path / "broker", "s3cret word") as address:
        lake = InKafka(tmp_path / "shop", random.Random(1), kafka=address, options=options("s3cret word"), login=login)
        lake.land()
        _ingested(lake)
        lake.check()
        log = KafkaLog({"bootstrap_servers": address, "topics": ["shop"], "options": options("wr0ng")})
        with pytest.raises(NotProvenError, match="failed here: _") as raised, open_messages(log) as messages:
            messages.watermarks()
        assert "wr0ng" not in str(raised.value)


def _killed_twice(lake: Landed, step: str) -> None:
    codes = []
    for _ in range(2):  # a first load, and a batch of changes
        lake.land()
        code, output = finished(start(lake.root, "ingest", fault=f"{step}:1"))
        assert code in (KILLED, 0), output
        codes.append(code)
        _ingested(lake)
        lake.check()
    assert KILLED in codes
    lake.land()
    _ingested(lake)
    lake.check()


def _ingested(lake: Landed) -> None:
    code, output = finished(start(lake.root, "ingest"))
    assert code == 0 and "Started Spark" not in output, output
