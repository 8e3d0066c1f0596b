"""Apicurio, a real registry: what it answers about schemas, references and numbers that it does not know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import requests

from sqlmesh_like.cdc.registry.message_schema import MessageSchema
from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.errors import IngestError
from sqlmesh_like.project.nodes import RegistrySettings
from tests.services.apicurio import apicurio, application, ccompat
from tests.services.wanted import need

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
