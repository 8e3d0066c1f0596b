"""Kafka without Spark, as far as it needs no broker: settings, offsets of batches, their records, and which end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException

from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.event_log import LINE_COLUMNS
from sqlmesh_like.cdc.sources.kafka_log import LINE_EXPRESSIONS, KafkaLog, offsets_of
from sqlmesh_like.cdc.sources.query_log import events_in, read_query_log
from sqlmesh_like.cdc.stream import kafka_messages
from sqlmesh_like.cdc.stream.ingest_run import ingest_source
from sqlmesh_like.cdc.stream.kafka_batches import KafkaBatches, first_offsets
from sqlmesh_like.cdc.stream.kafka_messages import KafkaMessages, Partition, ranges_between
from sqlmesh_like.cdc.stream.kafka_settings import librdkafka_settings
from sqlmesh_like.cdc.stream.query_records import QueryRecords
from sqlmesh_like.errors import Location
from sqlmesh_like.project.nodes import IngestSource, ParsedProject, Source, Target
from tests.unit.cdc.test_small_batches import SparkAskedError, declared, spark

A, B = ("a.db.t", 0), ("b", 1)
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
USER = 'username="sml" password="se cret;="'
AS_USER = {"sasl.username": "sml", "sasl.password": "se cret;="}
PEM = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"}
TLS = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "https", "ssl.ca.location": "/ca.pem"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, {}),
        ({"kafka.security.protocol": "PLAINTEXT", "isolation.level": "read_uncommitted"}, {}),
        ({"failOnDataLoss": False, "minPartitions": 3, "kafka.max.poll.records": "5"}, {}),
        ({"security.protocol": "SSL", **PEM}, TLS),
        (
            {"security.protocol": "SSL", **PEM, "ssl.endpoint.identification.algorithm": "", "ssl.keystore.type": "PEM",
             "ssl.keystore.key": "K", "ssl.keystore.certificate.chain": "C", "ssl.key.password": "P"},
            {**TLS, "ssl.endpoint.identification.algorithm": "none", "ssl.key.pem": "K", "ssl.certificate.pem": "C",
             "ssl.key.password": "P"},
        ),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
             "sasl.jaas.config": f"{PLAIN_LOGIN} {USER};"},
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **AS_USER},
        ),
        (
            {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "SCRAM-SHA-512", **PEM,
             "kafka.sasl.jaas.config": f"{SCRAM_LOGIN}\n  {USER} ;"},
            {**TLS, "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", **AS_USER},
        ),
    ],
)  # fmt: skip
def test_settings_of_java_that_librdkafka_has(options: object, expected: Mapping[str, str]) -> None:
    settings = librdkafka_settings({"bootstrap_servers": "a.b:1,c:9092", "options": options})
    assert settings == {"bootstrap.servers": "a.b:1,c:9092", **expected}


SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"security.protocol": "SSL"}, "ssl.truststore.type"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/trust.jks"}, "ssl.truststore.type"),
        ({"security.protocol": "SSL", **PEM, "ssl.keystore.key": "s3cret"}, "ssl.keystore.type"),
        ({"security.protocol": "SSL", **PEM, "ssl.protocol": "TLSv1.2"}, "ssl.protocol"),
        ({"security.protocol": "ssl"}, "security.protocol"),
        (SASL, "sasl.jaas.config"),
        ({**SASL, "sasl.jaas.config": f"{SCRAM_LOGIN} {USER};"}, "sasl.jaas.config"),
        ({**SASL, "sasl.jaas.config": f'{PLAIN_LOGIN} username="a" password="s3cret\\"";'}, "sasl.jaas.config"),
        ({**SASL, "sasl.jaas.config": f'{PLAIN_LOGIN} {USER} tokenauth="true";'}, "sasl.jaas.config"),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": "s3cret"}, "sasl.jaas.config"),
        ({"sasl.jaas.config": "s3cret"}, "sasl.jaas.config"),
        ({"isolation.level": "read_committed"}, "isolation.level"),
        ({"group.id": "mine"}, "group.id"),
        ({"startingTimestamp": "5"}, "startingTimestamp"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger"),
        ({"client.rack": 5}, "client.rack"),
        ({"kafka.client.rack": "a", "client.rack": "b"}, "client.rack"),
    ],
)
def test_other_settings_are_sparks_and_no_value_is_shown(options: Mapping[str, object], named: str) -> None:
    with pytest.raises(NotProvenError, match=f"^the option {named} of Kafka") as raised:
        librdkafka_settings({"bootstrap_servers": "a:1", "options": options})
    assert "s3cret" not in str(raised.value)
    log = KafkaLog({"bootstrap_servers": "a:1", "options": options})
    assert "s3cret" not in repr(KafkaMessages(log, None)) + repr(log)  # type: ignore[arg-type]


@pytest.mark.parametrize("servers", ["PLAINTEXT://a:1", "a", "[::1]:9092", "a:1;b:2"])
def test_addresses_of_another_form_are_sparks(servers: str) -> None:
    with pytest.raises(NotProvenError, match="bootstrap_servers"):
        librdkafka_settings({"bootstrap_servers": servers})


@dataclass
class Topic:
    partitions: Mapping[int, Any]
    error: object = None


@dataclass
class Answer:
    topics: Mapping[str, Topic]


@dataclass
class Message:
    place: Partition
    at: int
    text: bytes | None = b"{}"
    code: int | None = None
    kind: int = TIMESTAMP_CREATE_TIME
    millis: int = 1_700_000_000_123

    def topic(self) -> str:
        return self.place[0]

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.at

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code)

    def timestamp(self) -> tuple[int, int]:
        return self.kind, self.millis

    def key(self) -> bytes | None:
        return b"k" if self.text else None

    def value(self) -> bytes | None:
        return self.text


@dataclass
class Consumer:
    """Brokers that have these topics and send these messages, then nothing."""

    names: Sequence[str] = ()
    messages: Sequence[Message] = ()
    ends: Mapping[Partition, tuple[int, int]] = field(default_factory=dict)
    sent: int = 0

    def list_topics(self, name: str | None = None, timeout: float = 0) -> Answer:
        assert timeout
        names = self.names if name is None else [name]
        missing = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        one = Topic({0: Topic({})})
        return Answer({each: one if each in self.names else Topic({}, missing) for each in names})

    def get_watermark_offsets(self, partition: Any, timeout: float = 0) -> tuple[int, int] | None:
        assert timeout
        return self.ends.get((partition.topic, partition.partition))

    def assign(self, partitions: Sequence[Any]) -> None:
        assert all(each.offset >= 0 for each in partitions)

    def unassign(self) -> None: ...

    def poll(self, timeout: float) -> Message | None:
        assert timeout
        self.sent += 1
        return self.messages[self.sent - 1] if self.sent <= len(self.messages) else None


def _messages(consumer: Consumer, **settings: object) -> KafkaMessages:
    return KafkaMessages(KafkaLog({"bootstrap_servers": "a:1", **settings}), consumer)  # type: ignore[arg-type]


END = KafkaError._PARTITION_EOF


def test_messages_up_to_the_end_of_a_batch_become_lines() -> None:
    sent = [
        Message(B, 7),
        Message(A, 3, b'{"x": "\xc3\xbc"}'),
        Message(A, 4, None),
        Message(B, 9),  # 8 was compacted away, and 9 is behind the end
        Message(A, 0, code=KafkaError.GROUP_AUTHORIZATION_FAILED),
        Message(A, 6, code=END),  # 5 is the marker of a transaction
        Message(A, 6),
    ]
    frame = _messages(Consumer(messages=sent)).read({A: (3, 6), B: (7, 9)}, 100)
    lines = frame.selectExpr(*LINE_EXPRESSIONS)
    assert [dict(zip(LINE_COLUMNS, row, strict=True)) for row in lines.rows] == [
        _line('{"x": "ü"}', A, 3, "db", "t", "k"),
        _line(None, A, 4, "db", "t", None),
        _line("{}", B, 7, None, "b", "k"),
    ]
    assert offsets_of(lines).ranges == ((*A, 3, 5), (*B, 7, 8)), "of messages, as Spark's are"
    assert offsets_of(frame.where("false").selectExpr(*LINE_EXPRESSIONS)).ranges == ()


def _line(text: str | None, place: Partition, at: int, database: str | None, table: str, key: str | None) -> object:
    topic, partition = place
    position = f"{topic}|{partition:06}|{at:020}"
    named = {"log_database": database, "log_schema": None, "log_table": table, "log_key": key}
    where = {"file": f"{topic}/{partition}", "line": at, "position": position, "logged_at": 1_700_000_000_123}
    return {"value": text, **where, **dict.fromkeys(set(LINE_COLUMNS) - {"value", *where, *named}), **named}


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ([Message(A, 3)], "do not send all messages"),
        ([Message(A, 3), Message(A, 4, code=END)], "no longer have all messages"),
        ([Message(A, 3, b"x" * 101)], "more than 0 MB"),
        ([Message(A, 3, kind=TIMESTAMP_NOT_AVAILABLE)], "without its time"),
        ([Message(A, 3, millis=10**15)], "beyond the year 9999"),
        ([Message(A, 3, code=KafkaError._AUTO_OFFSET_RESET)], "failed here: _AUTO_OFFSET_RESET"),
    ],
)
def test_messages_that_are_not_certain_are_sparks(sent: Sequence[Message], reason: str) -> None:
    with pytest.raises(NotProvenError, match=reason):
        _messages(Consumer(messages=sent)).read({A: (3, 6)}, 100)


def test_bytes_that_are_not_utf_8_are_sparks() -> None:
    frame = _messages(Consumer(messages=[Message(A, 0, b"\xff")])).read({A: (0, 1)}, 100)
    lines = frame.selectExpr(*LINE_EXPRESSIONS)
    assert lines.selectExpr("octet_length(value)", "hex(cast(value as binary))").rows == [[1, "FF"]]
    for sql in ("trim(value)", "value = 'a'", "size(json_object_keys(value))", "cast(value as int)"):
        with pytest.raises(NotProvenError):
            lines.selectExpr(f"{sql} as a")


NAMES = ("shop.db.a", "shop.db.b", "shopXdb.c", "my.shop.db.a", "other")


@pytest.mark.parametrize(
    ("pattern", "topics"),
    [
        (r"shop\..*", NAMES[:2] + NAMES[3:4]),  # Spark looks for it anywhere in a name
        (r"^shop.db\.[a-b]$", NAMES[:2]),
        (r"^(shop|other)", (*NAMES[:3], "other")),
        (r"\.[^b-]$", ("shop.db.a", "shopXdb.c", "my.shop.db.a")),
    ],
)
def test_topics_of_a_pattern(pattern: str, topics: Sequence[str]) -> None:
    ends = {(name, 0): (0, number) for number, name in enumerate(NAMES)}
    watermarks = _messages(Consumer(NAMES, ends=ends), topic_pattern=pattern).watermarks()
    assert watermarks == {(name, 0): ends[name, 0] for name in sorted(topics)}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        *(({"topic_pattern": each}, "which Java may read otherwise")
          for each in (r"(?i)shop", r"[a&&b]", r"[[a]]", r"[a--b]", r"\p{L}", r"a{2}", r"[]a]", r"\Qshop\E", "ü")),
        ({"topic_pattern": "a**"}, "which is not one of Python"),
        ({"topic_pattern": "nothing"}, "no topics, or those of Kafka itself"),
        ({"topic_pattern": "__consumer"}, "no topics, or those of Kafka itself"),
        ({"topics": ["other", "gone"]}, "the topic gone cannot be read now"),
        ({"topics": ["other"]}, "do not say which offsets"),
    ],
)  # fmt: skip
def test_topics_that_are_sparks(settings: Mapping[str, object], reason: str) -> None:
    with pytest.raises(NotProvenError, match=reason):
        _messages(Consumer((*NAMES, "__consumer_offsets")), **settings).watermarks()


@pytest.mark.parametrize(
    ("start", "end", "there", "reason"),
    [
        ({A: 1, B: 1}, {A: 2}, {A: (0, 9), B: (0, 9)}, "b/1 is no longer there"),
        ({A: 1}, {A: 2}, {B: (0, 9)}, "a.db.t/0 is no longer there"),
        ({A: 5}, {A: 9}, {A: (6, 9)}, "no longer has all offsets from 5"),
        ({A: 5}, {A: 3}, {A: (0, 3)}, "no longer has all offsets from 5"),
        ({A: 5}, {A: 9}, {A: (0, 8)}, "no longer has all offsets from 5"),
        ({}, {A: 9}, {A: (2, 9)}, "no longer has all offsets from 0"),
    ],
)
def test_offsets_that_are_gone_are_sparks(start: Any, end: Any, there: Any, reason: str) -> None:
    with pytest.raises(NotProvenError, match=reason):
        ranges_between(start, end, there)


def test_old_messages_that_were_read_may_be_gone() -> None:
    assert ranges_between({A: 5, B: 3}, {A: 5, B: 4}, {A: (8, 9), B: (3, 9)}) == {B: (3, 4)}


@pytest.mark.parametrize(
    "declared", [{"a.db.t": {0: 3}}, {"a.db.t": {0: 3}, "b": {1: -3}}, '{"b": {"1": 3}}', "Latest"]
)
def test_starting_offsets_that_are_sparks(declared: object) -> None:
    with pytest.raises(NotProvenError, match="starting_offsets"):
        first_offsets(declared, {A: (0, 9), B: (0, 9)})


@dataclass
class Brokers:
    """Messages of which only the offsets matter."""

    ends: dict[Partition, tuple[int, int]]

    def watermarks(self) -> dict[Partition, tuple[int, int]]:
        return dict(self.ends)


def _batches(root: Path, ends: dict[Partition, tuple[int, int]], most: int | None = None, **more: Any) -> KafkaBatches:
    log = KafkaLog({"bootstrap_servers": "a:1", **more}, most)
    return KafkaBatches(QueryRecords(str(root)), log, Brokers(ends))  # type: ignore[arg-type]


def _record(root: Path, name: str) -> Any:
    return json.loads((root / name).read_text("utf-8").splitlines()[-1])


def test_a_query_is_recorded_as_spark_does(tmp_path: Path) -> None:
    ends = {A: (2, 9), B: (0, 0)}
    first = _batches(tmp_path, ends).next()
    assert first is not None and (first.number, first.ranges, first.is_planned) == (0, {A: (2, 9)}, False)
    query = _batches(tmp_path, ends).records.query
    _batches(tmp_path, ends).begin(first)
    assert (tmp_path / "sources" / "0" / "0").read_bytes() == b'\0v1\n{"b":{"1":0},"a.db.t":{"0":2}}'
    version, settings, end = (tmp_path / "offsets" / "0").read_text("utf-8").splitlines()
    assert (version, end) == ("v1", '{"b":{"1":0},"a.db.t":{"0":9}}')
    assert json.loads(settings).keys() == {"batchWatermarkMs", "batchTimestampMs", "conf"}

    # A call that died here: the next one takes just what was recorded, whatever has come since.
    later = {A: (2, 12), B: (0, 1), ("new", 0): (0, 3)}
    batches = _batches(tmp_path, later)
    again = batches.next()
    assert again is not None and (again.number, again.ranges, again.is_planned) == (0, first.ranges, True)
    batches.begin(again)
    batches.records.complete(0)
    assert (tmp_path / "commits" / "0").read_text("utf-8") == 'v1\n{"nextBatchWatermarkMs":0}'
    second = batches.next()
    assert second is not None and second.ranges == {A: (9, 12), B: (0, 1), ("new", 0): (0, 3)}
    batches.begin(second)
    with pytest.raises(FileExistsError):
        batches.begin(second)
    batches.records.complete(1)
    assert batches.next() is None and batches.records.query == query
    assert [events_in(str(tmp_path), number) for number in (0, 1)] == [7, 7]
    log = read_query_log(str(tmp_path))
    assert log is not None and log.first_offsets == {A: 2, B: 0} and log.offsets[1] == second.end


def test_the_first_batch_of_a_query_may_be_empty(tmp_path: Path) -> None:
    batches = _batches(tmp_path, {A: (2, 9)}, starting_offsets="latest")
    batch = batches.next()
    assert batch is not None and batch.ranges == {} and batch.start == batch.end == {A: 9}
    batches.begin(batch)
    batches.records.complete(0)
    assert batches.next() is None
    third = _batches(tmp_path, {A: (2, 9), B: (0, 0)}).next()
    assert third is not None and third.ranges == {}, "a new partition is recorded, as Spark does"


def test_a_query_begins_where_it_once_was_to_begin(tmp_path: Path) -> None:
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "sources" / "0" / "0").write_bytes(b'\0v1\n{"a.db.t":{"0":4}}')
    batch = _batches(tmp_path, {A: (2, 9)}).next()
    assert batch is not None and batch.ranges == {A: (4, 9)}


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"offsets/0": "v1\n{}\n{}"}, "without some of its records"),
        ({"offsets/3": "v1\n{}\n{}", "commits/0": "v1\n{}"}, "without some of its records"),
        ({"sources/0/0": "x"}, "the first offsets cannot be read"),
        ({"offsets/0": "v1\n{}", "commits/0": "v1\n{}"}, "batch 0 has another form"),
        ({"offsets/0": 'v1\n{}\n{"logOffset":3}', "commits/0": "v1\n{}"}, "batch 0 has another form"),
        ({"offsets/0": "v1\n{}\n{", "commits/0": "v1\n{}"}, "batch 0 cannot be read"),
        ({"offsets/0": "v1\n{}\n{}\n{}", "commits/0": "v1\n{}"}, "batch 0 has another form"),
    ],
)
def test_records_of_another_form_are_sparks(tmp_path: Path, files: Mapping[str, str], reason: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(NotProvenError, match=reason):
        _batches(tmp_path, {A: (0, 9)}).next()
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == files.keys()


def test_many_events_are_left_before_they_are_fetched(tmp_path: Path) -> None:
    with pytest.raises(NotProvenError, match="more than 20,000 events"):
        _batches(tmp_path, {A: (0, 15_000), B: (0, 5_001)}).next()
    with pytest.raises(NotProvenError, match="more than the 4 events of a batch"):
        _batches(tmp_path, {A: (0, 5)}, 4).next()
    assert _batches(tmp_path, {A: (0, 4)}, 4).next() is not None


def _reasons(root: Path, **target: Any) -> list[str]:
    reasons: list[str] = []
    kafka = {"bootstrap_servers": "a:1", "topics": ["t"]}
    source = Source("shop", "ods", IngestSource("debezium", kafka=kafka), (declared(),), "", Location("s.yml", 3, 5))
    project = ParsedProject("p", root, "", None, "target", (), {}, (), (), (source,), (), ())
    with pytest.raises(SparkAskedError):
        ingest_source(spark, project, Target("p", "t", "spark", warehouse=str(root), **target), source,
                      on_spark=reasons.append)  # fmt: skip
    return [each.removeprefix("Spark ingests the events of source shop: ") for each in reasons]


def test_why_kafka_is_sparks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _reasons(tmp_path, spark={"spark.kafka.clusters.a.auth.bootstrap.servers": "a"}) == [
        "the target has settings of Spark's Kafka client"
    ]

    def fails(*_: object, **__: object) -> None:
        raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN, "password=s3cret"))

    with monkeypatch.context() as patch:
        patch.setattr("confluent_kafka.Consumer", fails)
        assert _reasons(tmp_path) == ["the client of Kafka failed here: _ALL_BROKERS_DOWN"]
    monkeypatch.setattr(kafka_messages, "find_spec", lambda _: None)
    assert _reasons(tmp_path) == ["the package confluent-kafka is not installed: pip install 'sqlmesh_like[kafka]'"]
    assert not list(tmp_path.rglob("offsets"))
