"""A small server that speaks the REST interface of schema registries: what it has, what it is asked, how it fails.

It stands in for a real one where only its answers matter; `tests/spark/cdc/test_live_avro.py` runs a real one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.services.loopback import Handler, loopback_server


@dataclass
class RegistryServer:
    """The server's schemas by number, and by subject and version. `failing`: the status of every answer, if any.

    `authorization`: the header that it demands. `asked`: the paths that were asked for, in order.
    """

    url: str = ""
    schemas: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    versions: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    failing: int | None = None
    authorization: str | None = None
    asked: list[str] = field(default_factory=list)

    def add(self, schema: Any, **more: Any) -> int:
        """Register a schema under the next number."""
        number = len(self.schemas) + 1
        self.schemas[number] = {"schema": schema if isinstance(schema, str) else json.dumps(schema), **more}
        return number

    def answer(self, path: str, authorization: str | None) -> tuple[int, Any]:
        self.asked.append(path)
        if self.failing is not None:
            return self.failing, {"error_code": self.failing, "message": "not now"}
        if self.authorization is not None and authorization != self.authorization:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        parts = [unquote(part) for part in path.strip("/").split("/")]
        match parts:
            case ["schemas", "ids", number]:
                known = self.schemas.get(int(number))
                return (404, {"error_code": 40403, "message": "Schema not known"}) if known is None else (200, known)
            case ["subjects", subject, "versions", version]:
                known = self.versions.get((subject, version))
                return (404, {"error_code": 40402, "message": "Version not known"}) if known is None else (200, known)
            case ["apis", "registry", "v2", "ids", "globalIds" | "contentIds", number, *more]:
                known = self.schemas.get(int(number))
                return self._of_apicurio(known, "ArtifactNotFoundException", is_list=more == ["references"])
            case ["apis", "registry", "v2", "groups", "g", "artifacts", subject, "versions", version, *more]:
                known = self.versions.get((subject, version))
                return self._of_apicurio(known, "VersionNotFoundException", is_list=more == ["references"])
            case _:
                return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    @staticmethod
    def _of_apicurio(known: Mapping[str, Any] | None, unknown: str, *, is_list: bool) -> tuple[int, Any]:
        """What Apicurio answers in its own interface, version 2.6: a schema's content, or what it refers to."""
        if known is None:
            return 404, {"error_code": 404, "name": unknown, "message": "No such artifact was found"}
        if not is_list:
            return 200, known["schema"].encode()
        names = ({**each, "groupId": "g", "artifactId": each["subject"]} for each in known.get("references", ()))
        return 200, [{key: value for key, value in each.items() if key != "subject"} for each in names]


@contextmanager
def registry_server() -> Iterator[RegistryServer]:
    """A server on loopback while the context is open."""
    server = RegistryServer()

    class Answers(Handler):
        def do_GET(self) -> None:
            status, body = server.answer(self.path, self.headers.get("Authorization"))
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send(status, "application/vnd.schemaregistry.v1+json", text)

    with loopback_server(Answers) as server.url:
        yield server
