"""Debezium's events in Avro, from a real broker: the rows of their JSON form, and what a schema registry may do.

By Spark, and without it (`SML_SMALL_BATCHES`); the messages themselves decode alike.
"""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.frames import literal_frame
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.registry import schema_registry
from sqlmesh_like.cdc.registry.decoded_rows import decoded_rows
from sqlmesh_like.cdc.registry.glue import UnknownVersionError
from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.cdc.registry.wire_format import decoded_lines
from sqlmesh_like.cdc.stream.replay import replay
from sqlmesh_like.errors import IngestError
from sqlmesh_like.project.nodes import RegistrySettings
from tests.avro_events import RECORDED, Broken, Messages, envelope, in_json, payload
from tests.connect_avro import AvroConverter, completed, framed
from tests.levels import IS_DEEP, IS_RELEASE, count
from tests.semantic_types import FIELDS, ROW
from tests.services.glue_registry import REGION, glue_server
from tests.services.schema_registry import RegistryServer, registry_server
from tests.spark.ingest_lake import Lake, table


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


def send(
    spark: SparkSession, kafka: str, topic: str, *values: bytes | str | None, keys: Mapping[int, bytes] | None = None
) -> None:
    """One record each, in this order, to the topic's one partition."""
    data = [value.encode() if isinstance(value, str) else value for value in values]
    key_of = {number: key.hex() for number, key in (keys or {}).items()}
    rows = [[n, None if value is None else value.hex(), key_of.get(n)] for n, value in enumerate(data)]
    frame = literal_frame(spark, rows, "n INT, value STRING, key STRING").coalesce(1).sortWithinPartitions("n")
    frame = frame.selectExpr("unhex(key) as key", "unhex(value) as value")
    frame.write.format("kafka").option("kafka.bootstrap.servers", kafka).option("topic", topic).save()


def lake_on(spark: SparkSession, root: Path, kafka: str, topic: str, *tables: Any, **settings: Any) -> Lake:
    source = {"bootstrap_servers": kafka, "topics": [topic], "options": {"request.timeout.ms": 20000}}
    return Lake(spark, root, tables, {"files": None, "kafka": source, **settings})


def test_an_event_in_avro_gives_the_rows_of_its_json_form(
    spark: SparkSession, tmp_path: Path, kafka: str, registry: RegistryServer
) -> None:
    """A column of each semantic type, NULL in each, in every kind of event; and events of MySQL's connector.

    In the suite every eighth type: one table of all of them takes Spark minutes.
    """
    is_whole = IS_RELEASE or IS_DEEP
    fields = [
        each for number, each in enumerate(FIELDS) if is_whole or number % 8 == 0 or each["field"] in ("id", "isbn")
    ]
    row = {each["field"]: ROW[each["field"]] for each in fields}
    in_avro = Messages(registry)
    nothing = dict.fromkeys(row) | {"id": 2}
    whole = completed(envelope(*fields), payload("u", row, row))
    bodies = [payload("r", row), payload("c", nothing), payload("c", {**row, "id": 3, "isbn": "\ufffd\u2028\"\\\t{é"}),
              payload("u", {**nothing, "id": 3}, {**row, "id": 3}), payload("d", None, nothing)]  # fmt: skip
    events = [(whole, body) for body in bodies]
    for path in sorted(RECORDED.glob("*.jsonl")) if is_whole else ():
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith('{"schema"')]
        messages = [json.loads(line) for line in lines]
        events += [(completed(each["schema"], each["payload"]), each["payload"]) for each in messages]
    recorded = {"user": "id", "product": "pid"} if is_whole else {}
    tables = (table(), *(table(name, database="test_db", primary_key=(key,)) for name, key in recorded.items()))
    json_lake = lake_on(spark, tmp_path / "json", kafka, "twin_json", *tables)
    avro_lake = lake_on(
        spark, tmp_path / "avro", kafka, "twin_avro", *tables, registry=RegistrySettings((registry.url,))
    )
    send(spark, kafka, "twin_json", *(in_json(*each) for each in events))
    send(spark, kafka, "twin_avro", *(in_avro(*each) for each in events))
    reports = [lake.run() for lake in (json_lake, avro_lake)]
    assert [report.dead_letters for report in reports] == [0, 0]
    assert reports[0].skipped == reports[1].skipped
    written = [each.table.identifier for each in reports[0].tables]
    assert set(written) == {"t", *recorded}
    for name in written:
        assert avro_lake.types(name) == json_lake.types(name)
        assert avro_lake.rows(name) == json_lake.rows(name)
    assert len(avro_lake.rows("t")) == 2
    assert len(registry.asked) == len(set(registry.asked)) == len(registry.schemas)


def test_messages_that_cannot_be_decoded_name_their_schema(spark: SparkSession, registry: RegistryServer) -> None:
    broken = Broken(registry)
    data = [value.encode() if isinstance(value, str) else value for value in broken.values]
    rows = [[place, None if value is None else value.hex()] for place, value in enumerate(data)]
    lines = literal_frame(spark, rows, "place INT, value STRING")
    lines = lines.selectExpr("place", "cast(unhex(value) as string) as value", "cast(null as string) as log_key")
    with decoded_lines(lines, SchemaRegistry(RegistrySettings((registry.url,))), "debezium") as decoded:
        rows_read = decoded.collect()
    faults = {row.place: row.fault for row in rows_read}
    assert json.loads(rows_read[14].value) == payload("c", {"id": 6, "v": "größe"})
    assert {place: fault for place, fault in faults.items() if fault} == broken.reasons


@pytest.mark.release
def test_a_schema_changes_in_the_middle_of_a_batch_and_letters_name_the_schema(
    spark: SparkSession, tmp_path: Path, kafka: str, registry: RegistryServer
) -> None:
    broken = Broken(registry)
    shop = lake_on(spark, tmp_path, kafka, "change", table(), registry=RegistrySettings((registry.url,)))
    send(spark, kafka, "change", *broken.values)
    report = shop.run()
    assert (report.skipped, shop.rows()) == (
        {"tombstone": 1},
        [(1, "a", None), (2, None, -1), (4, None, None), (6, "größe", None)],
    )
    reasons = {position: reason for _, position, reason, _ in shop.dead_letters()}
    assert reasons == broken.reasons
    # Once the registry has the schema, the letter is read as it was in the log: byte for byte.
    registry.schemas[77] = {"schema": json.dumps(broken.late)}
    project, target, source = shop.declared()
    assert replay(spark, project, target, source).resolved == 1
    assert (5, 0.5) in shop.rows("t", "id", "x")


def test_a_registry_that_is_down_stops_the_ingestion_with_nothing_lost(
    spark: SparkSession, tmp_path: Path, kafka: str, registry: RegistryServer
) -> None:
    in_avro = Messages(registry)
    block = completed(envelope({"field": "id", "type": "int32"}), payload("c", {}))
    shop = lake_on(spark, tmp_path, kafka, "down", table(), registry=RegistrySettings((registry.url,), timeout=1))
    send(spark, kafka, "down", in_avro(block, payload("c", {"id": 1})), '{"op": "no event"}')
    registry.failing = 503
    with pytest.raises(
        IngestError, match=f"schema registry at {registry.url} does not answer within 1 seconds: status 503"
    ):
        shop.run()
    assert not Path(shop.uri()).exists() and not Path(shop.uri("shop__dead_letters")).exists()
    registry.failing = None
    report = shop.run()
    assert (report.dead_letters, shop.rows()) == (1, [(1,)])


@pytest.mark.release
def test_a_flattened_row_is_deleted_by_its_key_in_avro(
    spark: SparkSession, tmp_path: Path, kafka: str, registry: RegistryServer
) -> None:
    in_avro = Messages(registry)
    fields = [{"field": "id", "type": "int64"}, {"field": "name", "type": "string"}]
    row = completed({"type": "struct", "name": "db.flat.Value", "fields": fields}, {})
    key = completed({"type": "struct", "name": "db.flat.Key", "fields": fields[:1]}, {})
    keys = {number: in_avro(key, {"id": each}) for number, each in enumerate((1, 2, 1))}
    unknown = framed(99, AvroConverter().schema(key), {"id": 2})
    shop = lake_on(
        *(spark, tmp_path, kafka, "x.db.flat", table("flat")),
        format="debezium_flat",
        registry=RegistrySettings((registry.url,)),
    )
    rows = [in_avro(row, {"id": each, "name": "a"}) for each in (1, 2)]
    send(spark, kafka, "x.db.flat", *rows, None, None, keys={**keys, 3: unknown})
    shop.run()
    assert shop.rows("flat") == [(2, "a")]
    assert [(line, reason) for _, line, reason, _ in shop.dead_letters()] == [
        (3, "its key: schema 99 is not known to the schema registry")
    ]
    registry.schemas[99] = registry.schemas[1]
    project, target, source = shop.declared()
    assert replay(spark, project, target, source).resolved == 1
    assert shop.rows("flat") == []


def test_names_that_differ_in_case_only_stay_apart_in_the_text(spark: SparkSession, registry: RegistryServer) -> None:
    fields = [
        {"name": "ID", "type": "int"},
        {"name": "id", "type": ["null", "string"]},
        {"name": "größe", "type": "float"},
    ]
    schema = {"type": "record", "name": "r", "fields": fields}
    written = {**schema, "fields": [{**each, "name": f"f{i}"} for i, each in enumerate(fields)]}
    message = framed(registry.add(schema), written, {"f0": 1, "f1": None, "f2": 0.1})
    other = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    more = [framed(registry.add({**other, "name": f"r{each}"}), other, {"a": each}) for each in range(2, 9)]
    lines = literal_frame(spark, [[each.hex()] for each in (message, *more)], "value STRING")
    lines = lines.selectExpr("cast(unhex(value) as string) as value", "cast(null as string) as log_key")
    with decoded_lines(lines, SchemaRegistry(RegistrySettings((registry.url,))), "debezium") as decoded:
        texts = [row[0] for row in decoded.collect()]
    head = '{"schema":{"type":"struct","fields":"registry:%d"},"payload":%s}'
    assert texts == [head % (1, '{"ID":1,"id":null,"größe":0.1}'), *(head % (n, f'{{"a":{n}}}') for n in range(2, 9))]


@pytest.mark.release
def test_without_a_registry_a_letter_says_what_to_set(spark: SparkSession, tmp_path: Path, kafka: str) -> None:
    shop = lake_on(spark, tmp_path, kafka, "none", table())
    send(spark, kafka, "none", b"\0\0\0\0\7\2\4")
    shop.run()
    ((_, _, reason, text),) = shop.dead_letters()
    assert reason == "begins as messages of a schema registry do: set `registry: {url: …}` of the source"
    assert text == "\0\0\0\0\7\2\4"


def test_numbers_of_eight_bytes_are_those_of_apicurios_own_interface(
    spark: SparkSession, registry: RegistryServer
) -> None:
    in_avro = Messages(registry)
    block = completed(envelope({"field": "id", "type": "int32"}), payload("c", {}))
    message = in_avro(block, payload("c", {"id": 2**31 - 1}))
    values = [b"\0" + number.to_bytes(8, "big") + message[5:] for number in (1, 2**40, 2**64 - 1)] + [message[:8]]
    lines = literal_frame(
        spark, [[place, value.hex()] for place, value in enumerate(values)], "place INT, value STRING"
    )
    lines = lines.selectExpr("place", "cast(unhex(value) as string) as value", "cast(null as string) as log_key")
    settings = RegistrySettings((f"{registry.url}/apis/registry/v2",))
    with decoded_lines(lines, SchemaRegistry(settings), "debezium") as decoded:
        rows = {row.place: row for row in decoded.collect()}
    assert json.loads(rows[0].value)["payload"]["after"] == {"id": 2**31 - 1} and rows[0].fault is None
    assert rows[1].fault == f"schema {2**40} is not known to the schema registry"
    too_short = "begins with a byte 0, but no number of a schema follows"
    assert [rows[place].fault for place in (2, 3)] == [too_short, too_short]


def test_this_process_decodes_as_spark_does(spark: SparkSession, registry: RegistryServer) -> None:
    """Whole messages, such as cannot be decoded, and each with random bytes changed: what it decides is Spark's."""
    broken, dice = Broken(registry), random.Random(41)
    in_avro = Messages(registry)
    kinds = {"i": "int32", "l": "int64", "d": "double", "f": "float", "b": "boolean", "t": "string", "y": "bytes"}
    row = completed(
        {"type": "struct", "name": "db.k.Value", "fields": [{"field": n, "type": k} for n, k in kinds.items()]}, {}
    )
    values: list[Any] = [each.encode() if isinstance(each, str) else each for each in broken.values]
    for _ in range(count(40, 1000, 20_000)):
        number = dice.choice((dice.uniform(-1e6, 1e6), round(dice.uniform(-1e9, 1e9), 2), float(dice.getrandbits(60))))
        text = "".join(map(chr, dice.choices((9, 31, 65, 127, 228, 0x2028, 0xFFFD, 0x1D11E), k=5)))
        own = {"i": dice.getrandbits(31), "l": -dice.getrandbits(62), "d": number, "f": dice.random(), "b": True,
               "t": text, "y": base64.b64encode(text.encode()).decode()}  # fmt: skip
        values.append(in_avro(row, {name: None if dice.random() < 0.1 else value for name, value in own.items()}))
    values += [_spoilt(dice, dice.choice(values)) for _ in range(count(40, 3000, 50_000))]
    keys = [value if value is not None and dice.random() < 0.2 else None for value in values]
    rows = [
        [n, *(None if each is None else each.hex() for each in pair)]
        for n, pair in enumerate(zip(values, keys, strict=True))
    ]
    lines = literal_frame(spark, rows, "place INT, value STRING, log_key STRING")
    texts = ("cast(unhex(value) as string) as value", "cast(unhex(log_key) as string) as log_key")
    known = SchemaRegistry(RegistrySettings((registry.url,)))
    with decoded_lines(lines.selectExpr("place", *texts), known, "rows") as frame:
        columns = ("cast(value as binary) as value", "cast(log_key as binary) as log_key", "fault")
        in_spark = {each.place: tuple(each[1:]) for each in frame.selectExpr("place", *columns).collect()}
    decided = 0
    for place, pair in enumerate(zip(values, keys, strict=True)):
        own = RowFrame(("value", "log_key"), [pair]).selectExpr(
            "cast(value as string) as value", "cast(log_key as string) as log_key"
        )
        try:
            read = decoded_rows(own, known, "rows").selectExpr(*columns).rows
        except NotProvenError:
            continue
        decided += 1
        assert tuple(read[0]) == in_spark[place], (pair, read[0])
    assert decided > len(values) * 0.7


def _spoilt(dice: random.Random, message: bytes | None) -> bytes:
    """The message with a few other bytes, without its end, or with more behind it."""
    data = bytearray(message or b"\0\0\0\0\1")
    for _ in range(dice.randrange(3)):
        data[dice.randrange(min(5, len(data) - 1), len(data))] = dice.choice((0, 1, 2, 3, 128, dice.randrange(256)))
    cut = dice.randrange(6)
    return bytes(data[: dice.randrange(len(data))]) if cut == 0 else bytes(data) + b"\x02" * (cut == 1)


@pytest.mark.release
def test_messages_of_aws_glue_are_unpacked_alike(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
    with glue_server() as server:

        def ask(_url: str, _settings: object, version: str, _seconds: float) -> bytes:
            status, said = server.answer("AWSGlue.GetSchemaVersion", {"SchemaVersionId": version})
            if status == 400:
                raise UnknownVersionError
            return json.dumps(said).encode()

        monkeypatch.setattr(schema_registry, "ask_glue", ask)
        avro, in_json = server.add(record), server.add({"type": "object"}, "JSON")
        body = framed(0, record, {"a": "ü" * 100})[5:]
        plain, packed = (bytes([3, kind]) + avro.bytes for kind in (0, 5))
        of_json = b"\x03\x05" + in_json.bytes
        values = [
            *(plain + body, packed + zlib.compress(body), packed + body, packed + zlib.compress(body)[:-2], plain[:9]),
            *(of_json + zlib.compress(b'{"a":1}'), of_json + zlib.compress(b"\xff"), of_json + b"x", b"{}", None),
            *(b"\x03\0" + bytes(16) + body, b"\x03\x07" + plain[2:], plain + body[:-1], plain, packed + b""),
        ]
        known = SchemaRegistry(RegistrySettings((server.url,), region=REGION))
        columns = ("cast(value as binary) as value", "cast(log_key as binary) as log_key", "fault")
        own = RowFrame(("value", "log_key"), [(value, value) for value in values])
        own = own.selectExpr("cast(value as string) as value", "cast(log_key as string) as log_key")
        here = [tuple(row) for row in decoded_rows(own, known, "rows").selectExpr(*columns).rows]
        rows = [[place, None if value is None else value.hex()] for place, value in enumerate(values)]
        lines = literal_frame(spark, rows, "place INT, value STRING")
        lines = lines.selectExpr("place", *(f"cast(unhex(value) as string) as {name}" for name in ("value", "log_key")))
        with decoded_lines(lines, known, "rows") as frame:
            in_spark = {row.place: tuple(row[1:]) for row in frame.selectExpr("place", *columns).collect()}
    assert [in_spark[place] for place in range(len(values))] == here
    assert [row[2] is None for row in here[:6]] == [True, True, False, False, False, True]
