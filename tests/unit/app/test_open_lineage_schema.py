"""Events by the file and the HTTP transport, judged by OpenLineage's own JSON schemas."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urldefrag

import pytest
import requests
from jsonschema import Draft202012Validator, FormatChecker
from openlineage.client.serde import Serde
from referencing import Registry, Resource

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.open_lineage.datasets import Datasets
from sqlmesh_like.cli.app import main
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.plan.history import CommitSummary
from sqlmesh_like.spark.jvm.jars import cache_dir
from tests.unit.app.test_open_lineage import configure_file
from tests.unit.app.test_open_lineage import project as project
from tests.unit.app.test_open_lineage import receiver as receiver

SPECIFICATION = "https://openlineage.io/spec/"
LOCK = tomllib.loads(Path(__file__).with_name("open_lineage.lock.toml").read_text("utf-8"))["schema"]
_SECONDS = 20
Json = Mapping[str, object]
Schemas = Registry[Mapping[str, object]]


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    """Those of the lock, by their addresses; no other is ever fetched."""
    pinned = ((SPECIFICATION + each["path"], schema(each["path"], each["sha256"])) for each in LOCK)
    return Registry().with_resources((address, Resource.from_contents(text)) for address, text in pinned)


def schema(path: str, sha256: str) -> Json:
    """A pinned schema, from the user's cache once it was fetched; skips where it cannot be."""
    file = cache_dir() / "open_lineage" / path
    if not file.is_file():
        try:
            answer = requests.get(SPECIFICATION + path, timeout=_SECONDS)
            answer.raise_for_status()
        except requests.RequestException as error:
            pytest.skip(f"OpenLineage's schemas are out of reach: {error}")
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as part:
            part.write(answer.content)
        os.replace(part.name, file)
    content = file.read_bytes()
    assert hashlib.sha256(content).hexdigest() == sha256, f"{file} is not the schema that is pinned"
    parsed: Json = json.loads(content)
    return parsed


def faults(schemas: Schemas, instance: object, address: str) -> list[str]:
    """What is wrong with an event or a facet by the schema that it names."""
    validator = Draft202012Validator({"$ref": address}, registry=schemas, format_checker=FormatChecker())
    return [
        f"{urldefrag(address).fragment} {error.json_path}: {error.message}" for error in validator.iter_errors(instance)
    ]


def all_faults(schemas: Schemas, event: Json) -> list[str]:
    """Those of an event and of all its facets: its own schema lets these be anything."""
    return [
        *faults(schemas, event, str(event["schemaURL"])),
        *(fault for facet in facets(event) for fault in faults(schemas, facet, str(facet["_schemaURL"]))),
    ]


def facets(value: object) -> list[Json]:
    """Each object within a value that names its own schema."""
    match value:
        case {"_schemaURL": _}:
            return [value]
        case dict():
            return [facet for each in value.values() for facet in facets(each)]
        case list():
            return [facet for each in value for facet in facets(each)]
    return []


def test_events_of_a_file_follow_the_schemas(schemas: Schemas, project: Path) -> None:
    (project / "models/schema.yml").write_text(
        "models: [{name: per_code, columns: [{name: best, data_tests: [{accepted_values: {values: [2]}}]}]}]\n"
    )
    path = configure_file(project)
    assert main(["build", "-q"]) == 1
    events = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert {event["eventType"] for event in events} == {"START", "COMPLETE", "FAIL"}
    assert [fault for event in events for fault in all_faults(schemas, event)] == []
    named = {urldefrag(str(facet["_schemaURL"])).url for event in events for facet in facets(event)}
    expected = {
        "ColumnLineageDataset",
        "ErrorMessageRun",
        "JobTypeJob",
        "ParentRun",
        "SQLJob",
        "SchemaDataset",
        "TagsRun",
    }
    assert {address.rpartition("/")[2].removesuffix("Facet.json") for address in named} == expected


def test_events_by_http_follow_the_schemas(
    schemas: Schemas, receiver: tuple[str, list[dict[str, object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, came = receiver
    monkeypatch.setenv("OPENLINEAGE_URL", address)
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__COMPRESSION", "")
    assert main(["run", "-q"]) == 0
    assert [event.pop("path") for event in came] == ["/api/v1/lineage"] * 4
    assert [fault for event in came for fault in all_faults(schemas, event)] == []


def test_statistics_of_a_commit_follow_the_schemas(schemas: Schemas, project: Path) -> None:
    datasets = Datasets(load(Invocation(project_dir=project, profiles_dir=project)))
    written = CommitSummary("20260101000000000", rows=3, files=1, bytes=400)
    output = Serde.to_dict(datasets.output(NodeId("seed", "shop", "rates"), TableName("dws", "rates"), written))
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert faults(schemas, output, f"{SPECIFICATION}2-0-2/OpenLineage.json#/$defs/OutputDataset") == []
    assert [fault for facet in facets(output) for fault in faults(schemas, facet, str(facet["_schemaURL"]))] == []


@pytest.mark.parametrize(
    ("part", "key", "value", "fault"),
    [
        ("run", "runId", "seven", "is not a 'uuid'"),
        ("job", "name", 7, "is not of type 'string'"),
        ("columnLineage", "fields", {"code": {}}, "'inputFields' is a required property"),
    ],
)
def test_what_does_not_follow_them_is_refused(
    schemas: Schemas, project: Path, part: str, key: str, value: object, fault: str
) -> None:
    path = configure_file(project)
    assert main(["run", "-q"]) == 0
    event = json.loads(path.read_text("utf-8").splitlines()[2])
    event.get(part, event["outputs"][0]["facets"].get(part))[key] = value
    (message,) = all_faults(schemas, event)
    assert fault in message
