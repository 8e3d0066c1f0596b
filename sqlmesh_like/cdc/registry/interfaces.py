"""The REST interfaces of schema registries. Owns their paths, and what their answers mean.

Confluent's, which Apicurio (`/apis/ccompat/v7`), Karapace and Redpanda speak as well:
https://docs.confluent.io/platform/current/schema-registry/develop/api.html. Apicurio's own (`/apis/registry/v2`), whose
numbers are those of messages that its converters write by default:
https://www.apicur.io/registry/docs/apicurio-registry/2.6.x/assets-attachments/registry-rest-api.htm
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol
from urllib.parse import quote

from sqlmesh_like.cdc.registry.frames import Frame, NumberFrame
from sqlmesh_like.project.keys.registry_keys import apicurio_version

Ids = Literal["globalId", "contentId"]


@dataclass(frozen=True)
class Reference:
    """Another schema: the path that it is asked for by, how it is called in messages, and what it is imported as."""

    path: str
    words: str
    name: str


@dataclass(frozen=True)
class Definition:
    """A schema: its text, its type in Confluent's words, and the schemas that it refers to."""

    text: str
    kind: str
    references: tuple[Reference, ...] = ()


Ask = Callable[[str], bytes]
"""The answer to a path."""


class Interface(Protocol):
    """One interface. `frame`: what messages with its numbers begin with."""

    @property
    def frame(self) -> Frame: ...

    def path_of(self, number: int) -> str:
        """The path of a schema."""
        ...

    def definition(self, path: str, answer: bytes, ask: Ask) -> Definition | None:
        """What the answer to a path says; None where it is not one of this interface."""
        ...

    def is_unknown(self, answer: object) -> bool:
        """Whether an answer of status 404 says that there is no such schema: another one is of no registry."""
        ...


class Confluent:
    """Confluent's interface."""

    frame = NumberFrame(4)

    def path_of(self, number: int) -> str:
        return f"/schemas/ids/{number}"

    def definition(self, path: str, answer: bytes, ask: Ask) -> Definition | None:  # noqa: ARG002 - one answer has all
        match _json(answer):
            case {"schema": str(text), **rest}:
                references = rest.get("references")
                places = tuple(map(_place, references)) if isinstance(references, list) else ()
                return Definition(text, str(rest.get("schemaType") or "AVRO"), places)
            case _:
                return None

    def is_unknown(self, answer: object) -> bool:
        # No such subject, version, schema.
        return isinstance(answer, Mapping) and answer.get("error_code") in (40401, 40402, 40403)


@dataclass(frozen=True)
class Apicurio:
    """Apicurio's own interface. `ids`: what the numbers are, as its converters' `use-id` says it."""

    version: int
    ids: Ids
    frame = NumberFrame(8)

    def path_of(self, number: int) -> str:
        return f"/ids/{self.ids}s/{number}"

    def definition(self, path: str, answer: bytes, ask: Ask) -> Definition | None:
        listed = _json(ask(f"{path.removesuffix('/content')}/references"))
        if not isinstance(listed, list):
            return None
        return Definition(answer.decode(errors="replace"), _kind(answer), tuple(map(self._place, listed)))

    def is_unknown(self, answer: object) -> bool:
        return isinstance(answer, Mapping) and str(answer.get("name")) in (
            "ArtifactNotFoundException",
            "ContentNotFoundException",
            "VersionNotFoundException",
        )

    def _place(self, reference: Mapping[str, object]) -> Reference:
        group, artifact = str(reference.get("groupId") or "default"), str(reference["artifactId"])
        version = str(reference["version"])
        parts = ("groups", group, "artifacts", artifact, "versions", version)
        path = "".join(f"/{quote(part, safe='')}" for part in parts)
        path += "/content" if self.version > 2 else ""
        return Reference(path, f"version {version} of {artifact}", str(reference.get("name") or ""))


def interface_of(url: str, ids: Ids | None) -> Interface:
    """The interface at an address.

    >>> interface_of("http://r:8080/apis/registry/v2/", None)
    Apicurio(version=2, ids='globalId')
    """
    version = apicurio_version(url)
    return Confluent() if version is None else Apicurio(version, ids or "globalId")


def _place(reference: Mapping[str, object]) -> Reference:
    subject, version = str(reference["subject"]), str(reference["version"])
    path = f"/subjects/{quote(subject, safe='')}/versions/{quote(version, safe='')}"
    return Reference(path, f"version {version} of {subject}", str(reference.get("name") or ""))


def _kind(content: bytes) -> str:
    """The type of a schema by its text, which is all that is sent."""
    match _json(content):
        case {"$schema": _} | {"type": "object"}:
            return "JSON"
        case dict() | list() | str():
            return "AVRO"
        case _:
            return "Protobuf, or another"


def _json(text: bytes) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
