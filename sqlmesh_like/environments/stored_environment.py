"""The folder of an environment on an object store. Owns replacing its object, and what is removed of its tables.

Its object is only ever replaced as it was read (a conditional put), and each clone has a folder of its own that nobody
else writes to: it counts once the object names it. So a call that stood still while another one took over changes
nothing that counts, and what a kill leaves is in no reader's way until the next call removes it. An environment is
removed in the same way: its object says so first, then its files go, then the object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

from sqlmesh_like.environments.environment import (
    Environment,
    EnvironmentTable,
    decode_environment,
    encode_environment,
)
from sqlmesh_like.errors import RetryableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile, Version
from sqlmesh_like.hudi.stores.store_client import delete_files
from sqlmesh_like.secrets import scrub_text

_FILE = "environment.json"
_REMOVED = b'{"removed": true}'
"""The object of an environment that is being removed."""
_OF_CLONE = re.compile(r"[^/]+-[0-9a-f]{32}")
"""The folder of a clone below `tables`, beside those of schemas, where data tests keep failing rows."""


class StoredEnvironment:
    """An environment on a store (`EnvironmentFolder`); `parent`: the folder of all environments of the warehouse."""

    def __init__(self, parent: str, name: str) -> None:
        self.name = name
        self._uri = f"{parent}/{name}"
        self._file = ConditionalFile(f"{self._uri}/{_FILE}")
        self._seen: Version | None = None

    def table_uri(self, table: str, place: str = "") -> str:
        below = f"{table}-{place}" if place else table.replace(".", "/", 1)
        return f"{self._uri}/tables/{below}"

    def read(self) -> Environment | None:
        self._seen = self._file.read()
        if self._seen is None or self._seen.content == _REMOVED:
            return None
        return decode_environment(self._seen.content, scrub_text(self._file.uri))

    def write(self, environment: Environment) -> None:
        self._replace(encode_environment(environment))

    def moved_in(self, entry: EnvironmentTable) -> EnvironmentTable:
        return replace(entry, place=uuid4().hex)

    def remove_tables(self, kept: Environment, tables: Iterable[str]) -> None:  # noqa: ARG002 (they are not in `kept`)
        named = {f"{entry.table}-{entry.place}" for entry in kept.tables.values()}
        below = f"{self._uri}/tables"
        for name in folder(below).names():
            if _OF_CLONE.fullmatch(name) and name not in named:
                delete_files(f"{below}/{name}", folder(f"{below}/{name}").files())

    def remove(self) -> None:
        self._replace(_REMOVED)
        fault_point("environment.removed")
        self._remove_files()

    def remove_remains(self) -> bool:
        if self.read() is not None:
            return False
        self._remove_files()
        return True

    def _remove_files(self) -> None:
        delete_files(self._uri, [path for path in folder(self._uri).files() if path != _FILE])
        delete_files(self._uri, [_FILE])

    def _replace(self, content: bytes) -> None:
        if self._seen is not None and self._seen.content == content:
            return
        written = self._file.replace(content, self._seen)
        if written is None:
            message = f"another call has changed the environment {self.name!r}"
            raise RetryableError(message, hint="run the same command again")
        self._seen = written
