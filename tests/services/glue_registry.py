"""A small server that speaks the HTTP interface of AWS Glue's schema registry, as far as schemas are asked for.

https://docs.aws.amazon.com/glue/latest/webapi/API_GetSchemaVersion.html
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.environments import python_of
from tests.services.loopback import Handler, loopback_server

REGION = "eu-central-1"


@dataclass
class GlueServer:
    """The server's schemas, (format, text) by version. `failing`: status and error of every answer, if any.

    `signed`: the authorization of each request.
    """

    url: str = ""
    schemas: dict[UUID, tuple[str, str]] = field(default_factory=dict)
    failing: tuple[int, str] | None = None
    signed: list[str] = field(default_factory=list)

    def add(self, text: object, kind: str = "AVRO") -> UUID:
        """Register a schema as a new version."""
        version = UUID(int=2**127 + len(self.schemas))
        self.schemas[version] = (kind, text if isinstance(text, str) else json.dumps(text))
        return version

    def answer(self, action: str, asked: Mapping[str, Any]) -> tuple[int, dict[str, str]]:
        assert action == "AWSGlue.GetSchemaVersion"
        if self.failing is not None:
            return self.failing[0], {"__type": self.failing[1], "Message": "not now"}
        version = asked["SchemaVersionId"]
        known = self.schemas.get(UUID(version))
        if known is None:
            return 400, {"__type": "EntityNotFoundException", "Message": "Schema version is not found."}
        return 200, {
            "SchemaVersionId": version,
            "SchemaDefinition": known[1],
            "DataFormat": known[0],
            "Status": "AVAILABLE",
        }


@contextmanager
def glue_server() -> Iterator[GlueServer]:
    """A server on loopback while the context is open."""
    server = GlueServer()

    class Answers(Handler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.signed.append(self.headers["Authorization"])
            status, said = server.answer(self.headers["X-Amz-Target"], json.loads(body))
            self.send(status, "application/x-amz-json-1.1", json.dumps(said).encode())

    with loopback_server(Answers) as server.url:
        yield server


@contextmanager
def with_boto3() -> Iterator[None]:
    """AWS's client in this process while the context is open, from the environment of the tests' S3 server."""
    python = python_of("s3", Path(__file__).parent / "s3.txt")
    (packages,) = python.parent.parent.glob("lib/python*/site-packages")
    before = set(sys.modules)
    sys.path.append(str(packages))
    try:
        yield
    finally:
        sys.path.remove(str(packages))
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("boto3", "botocore", "s3transfer", "jmespath", "dateutil"):
                del sys.modules[name]
