"""Messages in Protobuf with a registry: the rows of their JSON form, and what cannot be decoded."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from google.protobuf import descriptor_pb2

from sqlmesh_like.cdc.registry import schema_registry
from sqlmesh_like.cdc.registry.message_schema import SchemaError
from sqlmesh_like.cdc.registry.protobuf_reader import ProtobufReader
from sqlmesh_like.cdc.registry.protobuf_schema import protobuf_schema
from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.errors import IngestError, Location
from sqlmesh_like.project.nodes import RegistrySettings
from tests.protobuf_events import FIELDS, block, framed, message, rows_of, schema_text
from tests.services.schema_registry import RegistryServer, registry_server
from tests.unit.cdc.test_avro_without_spark import Brokers, body, decoded, from_kafka
from tests.unit.cdc.test_small_batches import Lake, declared

ENVELOPE = (1,)
SOURCE = {"db": "db", "table": "t"}


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


def change(op: str, after: object = None, before: object = None) -> dict[str, Any]:
    images = {"before": before, "after": after}
    return {
        **{name: image for name, image in images.items() if image is not None},
        "source": SOURCE,
        "op": op,
        "tsMs": 1,
    }


def in_json(op: str, after: object = None, before: object = None) -> dict[str, Any]:
    return {"schema": block(), "payload": {"before": before, "after": after, "source": SOURCE, "op": op, "ts_ms": 1}}


def add(registry: RegistryServer, text: str, **more: Any) -> int:
    return registry.add(text, schemaType="PROTOBUF", **more)


def test_an_event_with_each_type_gives_the_rows_of_its_json_form(
    tmp_path: Path, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confluent_kafka, "Consumer", Brokers)
    schema, number = protobuf_schema(schema_text()), add(registry, schema_text())
    names = tuple(FIELDS)
    row, same = rows_of(names, 1), rows_of(names, 3)
    lists = {"tags": [], "hstore": {}}
    nothing = {**dict.fromkeys(same), **lists, "id": 2}
    events = [
        (("r", {**row, "left": 0}), ("r", {**same, "left": 0, "right": None})),
        (("c", {"id": 2}), ("c", {**nothing, "left": None, "right": None})),
        (("u", {"id": 2, "right": "r"}, {"id": 2}), ("u", {**nothing, "right": "r"}, nothing)),
        (("c", {**row, "id": 3}), ("c", {**same, "id": 3})),
        (("d", None, {**row, "id": 3}), ("d", None, {**same, "id": 3})),
    ]
    values = [framed(number, ENVELOPE, message(schema, ENVELOPE, change(*each))) for each, _ in events]
    lakes = [from_kafka(tmp_path / "protobuf", registry, *values), Lake(tmp_path / "json")]
    (tmp_path / "json").mkdir()
    reports = [lakes[0].ingest(), lakes[1].ingest(*(in_json(*each) for _, each in events))]
    assert lakes[0].rows() == lakes[1].rows() and [row["id"] for row in lakes[0].rows()] == [1, 2]
    assert not lakes[0].reasons and [report.dead_letters for report in reports] == [0, 0]


def test_numbers_that_java_writes_otherwise_are_texts_of_one_form(registry: RegistryServer) -> None:
    text = 'syntax = "proto3"; message A { double d = 1; float f = 2; repeated double l = 3; }'
    schema, number = protobuf_schema(text), add(registry, text)
    value = message(schema, (0,), {"d": 2e23, "f": "Infinity", "l": ["NaN", 0.0, -0.0]})
    ((read, _, fault),) = decoded(registry, framed(number, (0,), value))
    assert (body(read), fault) == (',"payload":{"d":2.0E23,"f":"Infinity","l":["NaN",0.0,-0.0]}}', None)


def test_a_message_of_several_in_a_schema_is_the_one_that_its_header_names(registry: RegistryServer) -> None:
    schema, number = protobuf_schema(schema_text()), add(registry, schema_text())
    inner = framed(number, (0, 0), message(schema, (0, 0), {"x": 5}))
    assert [row[0] for row in decoded(registry, inner, None, keys=(None, inner))] == [
        '{"schema":{"type":"struct","fields":"registry:1/0.0"},"payload":{"x":5}}',
        None,
    ]
    assert decoded(registry, None, keys=(inner,))[0][1] == '{"x":5}'
    known = ProtobufReader(schema)
    assert json.loads(known.fields((0, 0))) == [{"type": "int32", "optional": True, "field": "x"}]


def test_what_cannot_be_decoded_names_its_schema(registry: RegistryServer) -> None:
    schema, number = protobuf_schema(schema_text()), add(registry, schema_text())
    odd = framed(number, ENVELOPE, message(schema, ENVELOPE, change("c", {"id": 1, "day": {"year": 2017, "month": 9}})))
    recursive = add(registry, 'syntax = "proto3"; message A { A a = 1; }')
    broken = add(registry, 'syntax = "proto3"; message A { Gone a = 1; }')
    shadowed = add(registry, 'syntax = "proto3"; message A { int32 Clear = 1; }')
    fault = "cannot be decoded by schema 1"
    cases = {
        odd: fault,
        framed(number, (7,), b""): fault,
        framed(number, (0,), b"\xff"): fault,
        framed(number, (0,), b"")[:5]: fault,
        framed(99, (0,), b""): "schema 99 is not known to the schema registry",
        framed(shadowed, (0,), b""): f"schema {shadowed} has a field named Clear, which Google's runtime for Python "
        "cannot give",
        framed(recursive, (0,), b""): f"schema {recursive} contains itself, or too many levels at a",
    }
    assert [row[2] for row in decoded(registry, *cases)] == list(cases.values())
    (why,) = (row[2] for row in decoded(registry, framed(broken, (0,), b"")))
    assert why.startswith(f"schema {broken} is not a Protobuf schema that can be compiled: line 1:")
    assert '"Gone" is not defined' in why


def test_schemas_refer_to_others_by_the_names_that_they_import(registry: RegistryServer) -> None:
    inner = 'syntax = "proto3"; package o; message B { string n = 1; }'
    middle = 'syntax = "proto3"; package o; import "o/b.proto"; message M { B b = 1; }'
    text = 'syntax = "proto3"; import "o/m.proto"; message A { o.M m = 1; }'
    registry.versions["b", "1"] = {"schema": inner}
    registry.versions["m", "2"] = {
        "schema": middle,
        "references": [{"name": "o/b.proto", "subject": "b", "version": 1}],
    }
    number = add(registry, text, references=[{"name": "o/m.proto", "subject": "m", "version": 2}])
    outside = add(registry, text, references=[{"name": "../m.proto", "subject": "b", "version": 1}])
    schema = protobuf_schema(text, [("o/b.proto", inner), ("o/m.proto", middle)])
    value = message(schema, (0,), {"m": {"b": {"n": "x"}}})
    rows = decoded(registry, framed(number, (0,), value), framed(outside, (0,), value))
    assert body(rows[0][0]) == ',"payload":{"m":{"b":{"n":"x"}}}}'
    assert rows[1][2] == f"schema {outside} imports '../m.proto', which is not a path below its own folder"


def test_a_descriptor_in_base64_is_read_as_its_text(registry: RegistryServer) -> None:
    """As clients in Python register it, and registries such as Apicurio keep it."""
    text = 'syntax = "proto3"; import "google/type/date.proto"; message A { google.type.Date d = 1; }'
    files = descriptor_pb2.FileDescriptorSet.FromString(protobuf_schema(text).files)
    number = add(registry, base64.b64encode(files.file[-1].SerializeToString()).decode())
    value = message(protobuf_schema(text), (0,), {"d": {"year": 1970, "month": 1, "day": 2}})
    assert body(decoded(registry, framed(number, (0,), value))[0][0]) == ',"payload":{"d":1}}'
    cases = {
        "y.proto": "imports y.proto, which",
        "--plugin=x=/bin/sh": "imports --plugin=x=/bin/sh, which is not known",
    }
    for name, why in cases.items():
        alone = descriptor_pb2.FileDescriptorProto(name="x", dependency=[name])
        with pytest.raises(SchemaError, match=why):
            protobuf_schema(base64.b64encode(alone.SerializeToString()).decode())
    with pytest.raises(SchemaError, match="is not a Protobuf schema that can be read: "):
        protobuf_schema(base64.b64encode(_of_unknown_type().SerializeToString()).decode())


def _of_unknown_type() -> Any:
    field = {"name": "a", "number": 1, "type": 11, "label": 1, "type_name": ".Gone"}
    return descriptor_pb2.FileDescriptorProto(message_type=[{"name": "A", "field": [field]}])


def test_without_its_packages_the_call_says_what_to_install(
    registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = add(registry, 'syntax = "proto3"; message A { }')
    monkeypatch.setattr(schema_registry, "is_available", lambda: False)
    place = Location("models/sources.yml", 3, 9)
    with pytest.raises(IngestError) as caught:
        SchemaRegistry(RegistrySettings((registry.url,), declared_at=place)).schemas([number])
    assert str(caught.value).startswith("models/sources.yml:3:9: the schema registry at ")
    assert "pip install 'sqlmesh_like[protobuf]'" in str(caught.value)


def test_plain_rows_need_no_envelope(tmp_path: Path, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confluent_kafka, "Consumer", Brokers)
    text = 'syntax = "proto3"; message Row { int64 id = 1; optional string v = 2; } message Key { int64 id = 1; }'
    schema, number = protobuf_schema(text), add(registry, text)
    rows = [framed(number, (0,), message(schema, (0,), {"id": each, "v": "a"})) for each in (1, 2)]
    lake = from_kafka(tmp_path, registry, *rows)
    lake.format, lake.tables = "rows", (declared(database=None),)
    lake.ingest()
    assert lake.rows() == [{"id": 1, "v": "a"}, {"id": 2, "v": "a"}]


def test_what_a_schema_imports_is_never_run(tmp_path: Path) -> None:
    """The compiler is a module of Python, and names of references are those of files."""
    text = 'syntax = "proto3"; message A { }'
    code = f"import pathlib; pathlib.Path({str(tmp_path / 'run')!r}).touch()"
    names = ("grpc_tools/__init__.py", "grpc_tools/protoc.py", "sitecustomize.py", "google/__init__.py")
    protobuf_schema(text, [(name, code) for name in names])
    assert not list(tmp_path.iterdir())
