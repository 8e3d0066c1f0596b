"""Apicurio, a real registry: what it answers about schemas, references and unknown ones; both engines with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import requests
from pyspark.sql import SparkSession

import tests.spark.ingest_lake as ingest_lake
from sqlmesh_like.cdc.registry.message_schema import MessageSchema
from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.errors import IngestError
from sqlmesh_like.project.nodes import RegistrySettings, SourceTable
from tests.avro_events import Messages, envelope, payload
from tests.connect_avro import completed
from tests.semantic_types import FIELDS, ROW
from tests.services.apicurio import apicurio, application, ccompat
from tests.services.kafka import create_topics, produce
from tests.services.wanted import need
from tests.spark.cdc.test_kafka import lake_on
from tests.spark.cdc.test_small_batches import LETTERS, _stored
from tests.spark.ingest_lake import table

pytestmark = pytest.mark.release


def test_a_real_registry_gives_schemas_with_references_and_says_which_it_does_not_know(tmp_path: Path) -> None:
    need(application)
    kind = {"type": "enum", "name": "kinds.Kind", "symbols": ["A"]}
    record = {"type": "record", "name": "r", "fields": [{"name": "kind", "type": "kinds.Kind"}]}
    reference = {"name": "kinds.Kind", "subject": "kind", "version": 1}
    with apicurio(tmp_path) as address:
        url = ccompat(address)
        answers = [
            requests.post(f"{url}/subjects/{subject}/versions", json=body, timeout=60)
            for subject, body in (
                ("kind", {"schema": json.dumps(kind)}),
                ("record", {"schema": json.dumps(record), "references": [reference]}),
            )
        ]
        assert all(answer.ok for answer in answers)
        number = answers[1].json()["id"]
        known = SchemaRegistry(RegistrySettings((url,))).schemas([number, 4711]).known
        assert list(known) == [number] and isinstance(known[number], MessageSchema)
        assert json.loads(known[number].fields) == [{"type": "string", "optional": False, "field": "kind"}]
        with pytest.raises(IngestError, match="does not answer as one: status 404"):
            SchemaRegistry(RegistrySettings((address,))).schemas([number])


def test_a_real_registry_is_asked_by_its_own_interface(tmp_path: Path) -> None:
    need(application)
    kind = {"type": "enum", "name": "kinds.Kind", "symbols": ["A"]}
    record = {"type": "record", "name": "r", "fields": [{"name": "kind", "type": "kinds.Kind"}]}
    reference = {"groupId": "g", "artifactId": "kind", "version": "1", "name": "kinds.Kind"}
    with apicurio(tmp_path) as address:
        url = f"{address}/apis/registry/v2"
        numbers = []
        for name, body, form in (
            ("kind", kind, "application/json"),
            ("record", {"content": json.dumps(record), "references": [reference]}, "application/create.extended+json"),
        ):
            headers = {"Content-Type": form, "X-Registry-ArtifactId": name, "X-Registry-ArtifactType": "AVRO"}
            answer = requests.post(f"{url}/groups/g/artifacts", json=body, headers=headers, timeout=60)
            assert answer.ok
            numbers.append(answer.json())
        for ids in ("globalId", "contentId"):
            number = numbers[1][ids]
            registry = SchemaRegistry(RegistrySettings((url,), ids=ids))  # type: ignore[arg-type]
            known = registry.schemas([number, 4711]).known
            assert list(known) == [number] and isinstance(known[number], MessageSchema)
            assert json.loads(known[number].fields) == [{"type": "string", "optional": False, "field": "kind"}]
            registry.check()


def test_both_engines_write_the_same_from_a_real_registry(
    spark: SparkSession, tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every type that is taken here, a schema that changes within a batch, and messages that cannot be decoded."""
    assert_engines_agree(
        spark, tmp_path, kafka, monkeypatch, "twin_of_registry", TABLES, (3, 1, 4),
        lambda registry: _batches(Messages(registry)),
    )  # fmt: skip


def assert_engines_agree(
    spark: SparkSession,
    root: Path,
    kafka: str,
    monkeypatch: pytest.MonkeyPatch,
    topic: str,
    tables: Sequence[SourceTable],
    counts: Sequence[int],
    batches: Callable[[RealRegistry], Batches],
) -> None:
    """Two batches of messages with schemas in a real registry, taken by Spark, here, and by both in turn.

    Rows, dead letters and reports are the same. `counts`: rows of the tables and, last, of dead letters.
    """  # fmt: skip
    need(application)
    engines = {"spark": "ss", "here": "hh", "in turn": "hs"}
    create_topics(kafka, {topic: 1})
    names = [*(each.name for each in tables), LETTERS]
    with apicurio(root) as address:
        settings = RegistrySettings((ccompat(address),))
        lakes = {
            name: lake_on(spark, root / name.replace(" ", "_"), kafka, topic, *tables, registry=settings)
            for name in engines
        }
        reports: dict[str, list[Any]] = {name: [] for name in engines}
        for number, batch in enumerate(batches(RealRegistry(settings.urls[0]))):
            produce(kafka, *((topic, 0, value) for value in batch))
            for name, lake in lakes.items():
                monkeypatch.setattr(ingest_lake, "SMALL_BATCHES", engines[name][number] == "h")
                report = lake.run()
                assert not report.failed and not lake.reasons, (report, lake.reasons)
                said = sorted((each.table, each.upserts, each.deletes, each.events) for each in report.tables)
                reports[name].append((report.dead_letters, report.first_dead_letter, report.skipped, said))
        rows = {name: _stored(spark, lake, names) for name, lake in lakes.items()}
    assert tuple(len(rows["spark"][name]) for name in names) == tuple(counts)
    for name in engines:
        assert rows[name] == rows["spark"], name
        assert reports[name] == reports["spark"], name


Batches = list[list[bytes | None]]
TABLES = (table(), table("k"))
OF_SPARK = {"structured_timestamp", "structured_zoned_timestamp"}
"""Columns of which only Spark knows the value: their texts have parts without zeros."""
OWN = [each for each in FIELDS if each["field"] not in OF_SPARK]
VALUES = {each["field"]: ROW[each["field"]] for each in OWN}


class RealRegistry:
    """A registry that new schemas are posted to."""

    def __init__(self, url: str) -> None:
        self.url, self.count = url, 0

    def add(self, schema: Any, **more: Any) -> int:
        self.count += 1
        body = {"schema": schema if isinstance(schema, str) else json.dumps(schema), **more}
        answer = requests.post(f"{self.url}/subjects/s{self.count}/versions", json=body, timeout=60)
        assert answer.ok, answer.text
        return int(answer.json()["id"])


def _batches(in_avro: Messages) -> Batches:
    empty = dict.fromkeys(VALUES)
    whole = completed(envelope(*OWN), payload("u", VALUES, VALUES))
    grown = completed(envelope(*OWN, {"field": "more", "type": "string"}), payload("u", VALUES, VALUES))
    other = completed(envelope({"field": "id", "type": "int64"}, name="k"), payload("c", {}))
    good = in_avro(whole, payload("c", {**VALUES, "id": 3, "isbn": "ü"}))
    first: list[bytes | None] = [in_avro(whole, payload("r", VALUES)), good, None, b"\0\0\x7f\xff\xff" + good[5:]]
    second: list[bytes | None] = [
        in_avro(whole, payload("u", {**empty, "id": 3}, {**VALUES, "id": 3})),
        in_avro(grown, payload("c", {**VALUES, "id": 4, "more": "x"})),
        in_avro(whole, payload("d", None, VALUES)),
        in_avro(whole, payload("r", {**empty, "id": 2})),
    ]
    return [
        [*first, good[:-2], in_avro(other, payload("c", {"id": 7}, name="k"))],
        [*second, b"\0\0", b"\x03\0" + bytes(16)],
    ]
