"""AWS Glue's schema registry: its header, what its answers mean, and its errors. A server stands in for AWS."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.registry import decoded_rows as decoded_rows_module
from sqlmesh_like.cdc.registry import glue, schema_registry
from sqlmesh_like.cdc.registry.decoded_rows import decoded_rows
from sqlmesh_like.cdc.registry.glue import UnknownVersionError
from sqlmesh_like.cdc.registry.message_schema import JsonSchema, MessageSchema
from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.cdc.registry.wire_header import referenced_schema
from sqlmesh_like.errors import IngestError, Location
from sqlmesh_like.project.nodes import RegistrySettings
from tests.connect_avro import framed
from tests.services.glue_registry import REGION, GlueServer, glue_server, with_boto3

RECORD = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}


@pytest.fixture
def server() -> Iterator[GlueServer]:
    with glue_server() as running:
        yield running


@pytest.fixture
def without_client(server: GlueServer, monkeypatch: pytest.MonkeyPatch) -> GlueServer:
    """The server, asked without AWS's client."""

    def ask(url: str, settings: RegistrySettings, version: str, seconds: float) -> bytes:
        assert (url, settings.region) == (server.url, REGION) and seconds
        status, said = server.answer("AWSGlue.GetSchemaVersion", {"SchemaVersionId": version})
        if status == 400:
            raise UnknownVersionError
        return json.dumps(said).encode()

    monkeypatch.setattr(schema_registry, "ask_glue", ask)
    return server


def registry_of(server: GlueServer, **settings: Any) -> SchemaRegistry:
    return SchemaRegistry(RegistrySettings((server.url,), region=REGION, **settings))


def header(version: UUID, *, is_packed: bool = False) -> bytes:
    return bytes([3, 5 if is_packed else 0]) + version.bytes


def decoded(registry: SchemaRegistry, *values: bytes | None, keys: tuple[bytes | None, ...] = ()) -> list[Any]:
    padded = (*keys, *[None] * (len(values) - len(keys)))
    lines = RowFrame(("value", "log_key"), list(zip(values, padded, strict=True)))
    lines = lines.selectExpr("cast(value as string) as value", "cast(log_key as string) as log_key")
    return [tuple(row) for row in decoded_rows(lines, registry, "debezium").rows]


def test_messages_are_unpacked_and_read_by_the_version_in_their_header(without_client: GlueServer) -> None:
    version, in_json = without_client.add(RECORD), without_client.add({"type": "object"}, "JSON")
    body = framed(0, RECORD, {"a": 300})[5:]
    text = f'{{"schema":{{"type":"struct","fields":"registry:{version}"}},"payload":{{"a":300}}}}'
    registry = registry_of(without_client)
    rows = decoded(
        registry,
        header(version) + body,
        header(version, is_packed=True) + zlib.compress(body),
        header(in_json, is_packed=True) + zlib.compress(b'{"a": 1}'),
        b'{"op": "c"}',
        None,
        keys=(header(version) + body,),
    )
    assert [row[0] for row in rows] == [text, text, '{"a": 1}', '{"op": "c"}', None]
    assert rows[0][1] == '{"a":300}' and not any(row[2] for row in rows)
    assert json.loads(referenced_schema(f"registry:{version}", registry))[0]["type"] == "int32"
    assert referenced_schema("registry:7", registry) == "registry:7"


def test_what_cannot_be_read_names_the_version(without_client: GlueServer) -> None:
    version, other = without_client.add(RECORD), without_client.add('syntax = "proto3";', "PROTOBUF")
    body, unknown = framed(0, RECORD, {"a": 300})[5:], UUID(int=7)
    fault = f"cannot be decoded by schema {version}"
    short = "begins with a byte 3, but AWS Glue's header does not follow"
    cases = {
        header(version) + body + b"x": fault,
        header(version, is_packed=True) + body: fault,
        header(version, is_packed=True) + zlib.compress(body)[:-1]: fault,
        header(version, is_packed=True) + zlib.compress(body) + b"x": fault,
        header(unknown) + body: f"schema {unknown} is not known to the schema registry",
        header(other) + body: f"schema {other} is of type Protobuf in AWS Glue, which is not supported: "
        "let the source write Avro, or JSON",
        header(version)[:17]: short,
        b"\x03\x01" + header(version)[2:] + body: short,
    }
    assert [row[2] for row in decoded(registry_of(without_client), *cases)] == list(cases.values())


def test_few_bytes_do_not_become_too_many(without_client: GlueServer, monkeypatch: pytest.MonkeyPatch) -> None:
    version = without_client.add({"type": "object"}, "JSON")
    bomb = header(version, is_packed=True) + zlib.compress(bytes(40_000_000))
    assert decoded(registry_of(without_client), bomb)[0][2] == f"cannot be decoded by schema {version}"
    monkeypatch.setattr(decoded_rows_module, "_MOST_BYTES", 100)
    many = header(version, is_packed=True) + zlib.compress(b'"' + b"a" * 90 + b'"')
    with pytest.raises(NotProvenError, match="unpacked"):
        decoded(registry_of(without_client), many, many)


def test_without_its_package_the_call_says_what_to_install(server: GlueServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glue, "find_spec", lambda _: None)
    with pytest.raises(IngestError) as caught:
        registry_of(server, declared_at=Location("models/sources.yml", 3, 9)).schemas([7])
    assert str(caught.value).startswith(f"models/sources.yml:3:9: the schema registry at {server.url} is AWS Glue's")
    assert "pip install 'sqlmesh_like[glue]'" in str(caught.value)


@pytest.mark.release
def test_awss_client_asks_and_its_errors_are_told(server: GlueServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"AWS_ACCESS_KEY_ID": "AKIA0", "AWS_SECRET_ACCESS_KEY": "hunter2"}.items():
        monkeypatch.setenv(name, value)
    version, in_json = server.add(RECORD), server.add({"type": "object"}, "JSON")
    with with_boto3():
        known = registry_of(server).schemas([version.int, in_json.int, 7]).known
        assert isinstance(known[version.int], MessageSchema) and known[in_json.int] == JsonSchema()
        assert list(known) == [version.int, in_json.int]
        assert all(f"/{REGION}/glue/aws4_request" in each and "AKIA0" in each for each in server.signed)
        registry_of(server).check()
        server.failing = (400, "AccessDeniedException")
        with pytest.raises(IngestError, match="refuses to answer: AccessDeniedException") as caught:
            registry_of(server).schemas([7])
        assert "glue:GetSchemaVersion" in str(caught.value) and "hunter2" not in str(caught.value)
        for failing in ((400, "ThrottlingException"), (503, "ServiceUnavailable")):
            server.failing = failing
            with pytest.raises(IngestError, match=f"does not answer within 1 seconds: {failing[1]}"):
                registry_of(server, timeout=1).schemas([7])
        gone = GlueServer("http://127.0.0.1:9")
        with pytest.raises(IngestError, match="does not answer within 1 seconds: EndpointConnectionError"):
            registry_of(gone, timeout=1).schemas([7])
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
        server.failing = None
        with pytest.raises(IngestError, match="cannot be asked: NoCredentialsError"):
            registry_of(server).schemas([7])
