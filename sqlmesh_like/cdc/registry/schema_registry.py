"""Schemas by their number, from a registry. Owns asking, waiting and errors; `interfaces` knows paths and answers.

A number always means the same schema, so that each is asked for once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from sqlmesh_like.cdc.registry.avro_schema import avro_message_schema
from sqlmesh_like.cdc.registry.frames import Frame
from sqlmesh_like.cdc.registry.glue import Glue, GlueRefusedError, UnknownVersionError, ask_glue
from sqlmesh_like.cdc.registry.interfaces import Definition, Interface, interface_of
from sqlmesh_like.cdc.registry.message_schema import JsonSchema, MessageSchema, SchemaError
from sqlmesh_like.cdc.registry.protobuf_schema import ProtobufSchema, is_available, protobuf_schema
from sqlmesh_like.errors import IngestError
from sqlmesh_like.project.nodes import RegistrySettings
from sqlmesh_like.secrets import scrub_text

if TYPE_CHECKING:
    import requests

    Authorize = Callable[[requests.PreparedRequest], requests.PreparedRequest]
    """Adds to a request what it is allowed by."""

MAX_UNKNOWN = 1000
"""Numbers of one batch that may be unknown: arbitrary bytes could name as many as there are messages."""
_MAX_SCHEMA = 16 * 1024 * 1024
_MAX_REFERENCES = 1000
_INSTALL = "pip install 'sqlmesh_like[protobuf]'"
_ONE_TRY = 10.0
_WAITS = (0.2, 0.5, 1.0, 2.0)
"""Seconds between tries; the last is repeated."""
_TRY_AGAIN = {408, 429, 500, 502, 503, 504}


Known = MessageSchema | ProtobufSchema | JsonSchema | str
"""A schema, or why it cannot be used."""


@dataclass(frozen=True)
class KnownSchemas:
    """The schemas of a batch by their number, or why one cannot be used. `unknown`: what is said of all others."""

    known: Mapping[int, Known]
    unknown: str = "is not known to the schema registry"

    @property
    def protobuf(self) -> Mapping[int, ProtobufSchema]:
        """Those of messages in Protobuf."""
        return {number: schema for number, schema in self.known.items() if isinstance(schema, ProtobufSchema)}


class _UnknownError(Exception):
    """The registry has no such schema."""


@dataclass
class SchemaRegistry:
    """The registry of a source, with the schemas that it has given so far."""

    settings: RegistrySettings
    _known: dict[int, Known] = field(default_factory=dict)

    def schemas(self, numbers: Sequence[int]) -> KnownSchemas:
        """The schemas with these numbers. Raises IngestError where the registry does not answer, or refuses to."""
        unknown = 0
        for number in numbers:
            if number in self._known:
                continue
            if unknown == MAX_UNKNOWN:
                why = f"was not looked for: {MAX_UNKNOWN:,} others of its batch are not known to the schema registry"
                return KnownSchemas(self._known_of(numbers), why)
            try:
                self._known[number] = self._fetch_schema(number)
            except _UnknownError:
                unknown += 1
        return KnownSchemas(self._known_of(numbers))

    def check(self) -> None:
        """Ask for some schema, whether there is one or not. Raises IngestError where that is not answered."""
        with suppress(_UnknownError):
            self._definition(self._interface.path_of(1))

    @property
    def frame(self) -> Frame:
        """What messages begin with."""
        return self._interface.frame

    @cached_property
    def _interface(self) -> Interface:
        return Glue() if self.settings.region is not None else interface_of(self.settings.urls[0], self.settings.ids)

    def _known_of(self, numbers: Sequence[int]) -> dict[int, Known]:
        return {number: self._known[number] for number in numbers if number in self._known}

    def _fetch_schema(self, number: int) -> Known:
        schema = self._definition(self._interface.path_of(number))
        try:
            match schema.kind:
                case "AVRO":
                    return avro_message_schema(schema.text, [text for _, text in self._references(schema)])
                case "JSON":
                    return JsonSchema()
                case "PROTOBUF":
                    self._require_protobuf()
                    return protobuf_schema(schema.text, list(self._references(schema)))
                case other:
                    return f"is of type {other}, which is not supported: let the source write Avro, or JSON"
        except SchemaError as error:
            return str(error)

    def _require_protobuf(self) -> None:
        if not is_available():
            raise self._error("has schemas in Protobuf, whose packages are not installed", _INSTALL)

    def _references(self, schema: Definition) -> Iterator[tuple[str, str]]:
        """Name and text of the schemas that one refers to, each after those that it refers to itself."""
        met: set[str] = set()

        def below(parent: Definition) -> Iterator[tuple[str, str]]:
            for each in parent.references:
                if each.path in met:
                    continue
                met.add(each.path)
                if len(met) > _MAX_REFERENCES:
                    raise SchemaError(f"refers to more than {_MAX_REFERENCES:,} others")
                try:
                    child = self._definition(each.path)
                except _UnknownError as error:
                    raise SchemaError(f"refers to {each.words}, which is not known") from error
                yield from below(child)
                yield each.name, child.text

        return below(schema)

    def _definition(self, path: str) -> Definition:
        definition = self._interface.definition(path, self._get(path), self._get)
        if definition is None:
            raise self._is_none(200)
        return definition

    def _get(self, path: str) -> bytes:
        """What the registry answers. Waits for it, at most as long as the settings say."""
        end = time.monotonic() + self.settings.timeout
        waits = iter(_WAITS)
        wait, why = 0.0, ""
        while True:
            for url in self.settings.urls:
                left = max(0.1, end - time.monotonic())
                answer = self._try_address(url, path, min(_ONE_TRY, left))
                if isinstance(answer, bytes):
                    return answer
                why = answer
            wait = next(waits, wait or _WAITS[-1])
            if time.monotonic() + wait > end:
                raise self._error(
                    f"does not answer within {self.settings.timeout} seconds: {why}",
                    "nothing of this batch was written: start the registry, or change registry: {url: …, timeout: …}",
                )
            time.sleep(wait)

    def _try_address(self, url: str, path: str, seconds: float) -> bytes | str:
        """The answer of one address, or why there is none yet."""
        if self.settings.region is not None:
            return self._tried_glue(url, path, seconds)
        import requests  # here: the HTTP client costs a third of a second that only a registry needs

        base, authorize = _address(url, self.settings)
        settings = self.settings
        client = (settings.certificate, settings.key) if settings.certificate and settings.key else settings.certificate
        try:
            with requests.get(
                base + path,
                headers={"Accept": "application/vnd.schemaregistry.v1+json, application/json"},
                auth=authorize,
                # Given here, because the environment's authorities would come before those of a session.
                verify=settings.authorities or True,
                cert=client,
                timeout=seconds,
                stream=True,
            ) as answer:
                return self._read_answer(answer)
        except requests.exceptions.SSLError as error:
            raise self._error(
                f"cannot be asked by TLS: {_innermost(error)}", "set registry: {ssl_ca_location: …} to its authority"
            ) from error
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            return _innermost(error)
        except (requests.RequestException, OSError) as error:
            raise self._error(f"cannot be asked: {_innermost(error)}", "change registry: {url: …}") from error

    def _tried_glue(self, url: str, path: str, seconds: float) -> bytes | str:
        try:
            return ask_glue(url, self.settings, path, seconds)
        except UnknownVersionError as error:
            raise _UnknownError from error
        except GlueRefusedError as error:
            raise self._error(str(error), error.hint) from error

    def _read_answer(self, answer: requests.Response) -> bytes | str:
        text = b""
        for part in answer.iter_content(65536):
            text += part
            if len(text) > _MAX_SCHEMA:
                raise self._error(f"sends more than {_MAX_SCHEMA:,} bytes of one schema", "is this its address?")
        if answer.status_code in _TRY_AGAIN:
            return f"status {answer.status_code}"
        if answer.status_code in (401, 403):
            hint = "set username and password of registry:, or token, from variables DBT_ENV_SECRET_…"
            raise self._error(f"refuses to answer: status {answer.status_code}", hint)
        if answer.status_code == 404:
            with suppress(ValueError):
                if self._interface.is_unknown(json.loads(text)):
                    raise _UnknownError
        if answer.status_code != 200:
            raise self._is_none(answer.status_code)
        return text

    def _is_none(self, status: int) -> IngestError:
        hint = "give the address below which `schemas/ids/1` is, of Apicurio …/apis/ccompat/v7, or …/apis/registry/v2"
        return self._error(f"does not answer as one: status {status}", hint)

    def _error(self, what: str, hint: str) -> IngestError:
        shown = " or ".join(_address(url, self.settings)[0] for url in self.settings.urls)
        return IngestError(
            scrub_text(f"the schema registry at {shown} {what}"), location=self.settings.declared_at, hint=hint
        )


def _address(
    url: str, settings: RegistrySettings
) -> tuple[str, Callable[[requests.PreparedRequest], requests.PreparedRequest]]:
    """An address without its user and password, and what adds the authorization to a request."""
    parts = urlsplit(url.rstrip("/"))
    user = settings.username if settings.username is not None else unquote(parts.username or "")
    password = settings.password if settings.password is not None else unquote(parts.password or "")
    base = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def authorize(request: requests.PreparedRequest) -> requests.PreparedRequest:
        from requests.auth import HTTPBasicAuth

        if settings.token is not None:
            request.headers["Authorization"] = f"Bearer {settings.token}"
        elif user:
            HTTPBasicAuth(user.encode(), password.encode())(request)
        return request

    # Also where there is nothing to add: otherwise the password of a .netrc file would be sent.
    return base, authorize


def _innermost(error: BaseException) -> str:
    """Why a request failed, without the addresses and objects that libraries wrap around it."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return f"{type(error).__name__}: {error}"[:300]
