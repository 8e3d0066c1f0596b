"""Asking a schema registry: references, authorization, waiting, and what its answers mean. No JVM."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlmesh_like.cdc.registry import schema_registry
from sqlmesh_like.cdc.registry.frames import NumberFrame
from sqlmesh_like.cdc.registry.message_schema import JsonSchema, MessageSchema
from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.errors import IngestError, Location
from sqlmesh_like.project.nodes import RegistrySettings
from tests.services.schema_registry import RegistryServer, registry_server

RECORD = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry_server() as running:
        yield running


def test_a_schema_is_asked_for_once(server: RegistryServer) -> None:
    server.add(RECORD)
    registry = SchemaRegistry(RegistrySettings((server.url + "/",)))
    for _ in range(2):
        schemas = registry.schemas([1, 9])
        assert list(schemas.known) == [1] and isinstance(schemas.known[1], MessageSchema)
        assert schemas.unknown == "is not known to the schema registry"
    # One that is not known yet may be registered later.
    assert server.asked == ["/schemas/ids/1", "/schemas/ids/9", "/schemas/ids/9"]


@pytest.mark.parametrize("interface", ["", "/apis/registry/v2"])
def test_references_are_followed_to_the_innermost(server: RegistryServer, interface: str) -> None:
    inner = {"type": "enum", "name": "kinds.Kind", "symbols": ["A"]}
    middle = {"type": "record", "name": "places.Place", "fields": [{"name": "kind", "type": "kinds.Kind"}]}
    fields = [{"name": "place", "type": "places.Place"}, {"name": "kind", "type": "kinds.Kind"}]
    of_kind = {"name": "kinds.Kind", "subject": "kinds/Kind", "version": 1}
    of_place = {"name": "places.Place", "subject": "place", "version": 3}
    server.versions["kinds/Kind", "1"] = {"schema": json.dumps(inner)}
    server.versions["place", "3"] = {"schema": json.dumps(middle), "references": [of_kind]}
    server.add({"type": "record", "name": "r", "fields": fields}, references=[of_place, of_kind])
    server.add(RECORD, references=[{"name": "x", "subject": "gone", "version": 2}])
    known = SchemaRegistry(RegistrySettings((server.url + interface,))).schemas([1, 2]).known
    assert isinstance(known[1], MessageSchema)
    assert [each["type"] for each in json.loads(known[1].fields)] == ["struct", "string"]
    assert known[2] == "refers to version 2 of gone, which is not known"


@pytest.mark.parametrize(("interface", "kind"), [("", "THRIFT"), ("/apis/registry/v2", "Protobuf, or another")])
def test_schemas_of_other_kinds_are_named(server: RegistryServer, interface: str, kind: str) -> None:
    server.add('syntax = "proto3";', schemaType="THRIFT")
    server.add({"type": "object"}, schemaType="JSON")
    known = SchemaRegistry(RegistrySettings((server.url + interface,))).schemas([1, 2]).known
    assert known[2] == JsonSchema()
    assert known[1] == f"is of type {kind}, which is not supported: let the source write Avro, or JSON"


def test_apicurio_is_asked_by_the_numbers_that_its_converter_writes(server: RegistryServer) -> None:
    server.add(RECORD)
    for ids, path in ((None, "globalIds"), ("globalId", "globalIds"), ("contentId", "contentIds")):
        registry = SchemaRegistry(RegistrySettings((f"{server.url}/apis/registry/v2",), ids=ids))  # type: ignore[arg-type]
        schemas = registry.schemas([1, 9])
        assert list(schemas.known) == [1] and isinstance(schemas.known[1], MessageSchema)
        assert registry.frame == NumberFrame(8)
        asked = [each.removeprefix("/apis/registry/v2/ids/") for each in server.asked]
        assert asked == [f"{path}/1", f"{path}/1/references", f"{path}/9"]
        registry.check()
        server.asked.clear()


@pytest.mark.parametrize(
    ("header", "settings"),
    [
        ("Basic bWU6aHVudGVyMg==", {"username": "me", "password": "hunter2"}),
        ("Bearer word", {"token": "word"}),
    ],
)
def test_it_is_told_who_asks(server: RegistryServer, header: str, settings: dict[str, str]) -> None:
    server.add(RECORD)
    server.authorization = header
    assert SchemaRegistry(RegistrySettings((server.url,), **settings)).schemas([1]).known  # type: ignore[arg-type]
    place = Location("models/sources.yml", 3, 9)
    with pytest.raises(IngestError) as caught:
        SchemaRegistry(RegistrySettings((server.url,), declared_at=place)).schemas([1])
    assert str(caught.value).startswith(
        f"models/sources.yml:3:9: the schema registry at {server.url} refuses to answer"
    )


def test_a_password_in_its_address_is_used_and_not_shown(
    server: RegistryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = server.url.removeprefix("http://")
    server.authorization = "Basic bWU6aHVudGVyMg=="
    server.add(RECORD)
    assert SchemaRegistry(RegistrySettings((f"http://me:hunter2@{host}",))).schemas([1]).known
    server.failing = 403
    with pytest.raises(IngestError) as caught:
        SchemaRegistry(RegistrySettings((f"http://me:hunter2@{host}",))).schemas([1])
    assert "hunter2" not in str(caught.value) and server.url in str(caught.value)
    # A password for this host in .netrc is for other programs.
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.failing = None
    with pytest.raises(IngestError, match="refuses to answer"):
        SchemaRegistry(RegistrySettings((server.url,))).schemas([1])


def test_it_is_waited_for_and_another_address_is_tried(server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.add(RECORD)
    server.failing = 503
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        server.failing = None if len(waited) == 2 else 503

    monkeypatch.setattr(schema_registry.time, "sleep", sleep)
    assert SchemaRegistry(RegistrySettings((server.url,))).schemas([1]).known
    assert waited == [0.2, 0.5]
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}"
        assert SchemaRegistry(RegistrySettings((nowhere, server.url))).schemas([1]).known
        with pytest.raises(IngestError, match="does not answer within 1 seconds: ConnectionRefusedError") as caught:
            SchemaRegistry(RegistrySettings((nowhere,), timeout=1)).schemas([1])
    assert "nothing of this batch was written" in str(caught.value)


def test_an_answer_of_something_else_is_no_unknown_schema(server: RegistryServer) -> None:
    """Otherwise a wrong address would turn all events into dead letters."""
    with pytest.raises(IngestError, match="does not answer as one: status 404") as caught:
        SchemaRegistry(RegistrySettings((f"{server.url}/api",))).schemas([1])
    assert "/apis/ccompat/v7" in str(caught.value)


def test_it_can_be_checked_without_knowing_a_schema(server: RegistryServer) -> None:
    SchemaRegistry(RegistrySettings((server.url,))).check()
    server.failing = 500
    with pytest.raises(IngestError, match="does not answer within 1 seconds: status 500"):
        SchemaRegistry(RegistrySettings((server.url,), timeout=1)).check()


def test_bytes_that_are_no_messages_do_not_ask_for_ever(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_registry, "MAX_UNKNOWN", 3)
    server.add(RECORD)
    schemas = SchemaRegistry(RegistrySettings((server.url,))).schemas([1, *range(100, 200)])
    assert (list(schemas.known), len(server.asked)) == ([1], 4)
    assert schemas.unknown.startswith("was not looked for: 3 others of its batch are not known")
