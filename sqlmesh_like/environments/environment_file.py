"""The folder of an environment. Owns where it is, and replacing its object on a disk; `stored_environment` on S3."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sqlmesh_like.environments.environment import (
    Environment,
    EnvironmentTable,
    decode_environment,
    encode_environment,
    is_name,
    require_name,
)
from sqlmesh_like.errors import MachineError, nearest
from sqlmesh_like.hudi.recovery.table_removal import delete_remains, remove_table
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.names import is_local, is_s3
from sqlmesh_like.remedies import remedy

_FILE = "environment.json"


class EnvironmentFolder(Protocol):
    """One environment, of a warehouse. Whoever changes it holds its lock. Not to be used by several threads at once."""

    @property
    def name(self) -> str: ...

    def table_uri(self, table: str, place: str = "") -> str:
        """Where the environment's table of this name, `schema.identifier`, is."""
        ...

    def read(self) -> Environment | None:
        """Return the environment, None where there is none. Raises MachineError where it cannot be read."""
        ...

    def write(self, environment: Environment) -> None:
        """Replace the environment's object, on a store as it was read last.

        Raises MachineError where it cannot be written, RetryableError where another call was faster.
        """
        ...

    def moved_in(self, entry: EnvironmentTable) -> EnvironmentTable:
        """The table in the folder that a new clone of it gets."""
        ...

    def remove_tables(self, kept: Environment, tables: Iterable[str]) -> None:
        """Remove these tables, by name, which the environment `kept` no longer has; and what interrupted calls left."""
        ...

    def remove(self) -> None:
        """Remove the environment and its tables: readers see all of it or nothing."""
        ...

    def remove_remains(self) -> bool:
        """Complete a removal that was cut short; false where there is none."""
        ...


@dataclass(frozen=True)
class LocalEnvironment:
    """An environment on this machine."""

    warehouse: str
    name: str

    @property
    def path(self) -> Path:
        return _parent(self.warehouse) / require_name(self.name)

    def table_uri(self, table: str, place: str = "") -> str:  # noqa: ARG002 (see `EnvironmentFolder`)
        schema, _, identifier = table.partition(".")
        return f"{environments_uri(self.warehouse)}/{self.name}/tables/{schema}/{identifier}"

    def read(self) -> Environment | None:
        path = self.path / _FILE
        try:
            return decode_environment(path.read_bytes(), str(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MachineError(f"{path} cannot be read: {error.strerror}") from error

    def write(self, environment: Environment) -> None:
        path = self.path / _FILE
        aside = path.with_suffix(".new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with aside.open("wb") as file:
                file.write(encode_environment(environment))
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        except OSError as error:
            hint = remedy(error, "the same command again") or "check `warehouse` in profiles.yml"
            raise MachineError(f"{path} cannot be written: {error.strerror}", hint=hint) from error

    def moved_in(self, entry: EnvironmentTable) -> EnvironmentTable:
        return entry

    def remove_tables(self, kept: Environment, tables: Iterable[str]) -> None:  # noqa: ARG002
        for table in tables:
            shutil.rmtree(folder(self.table_uri(table)).path, ignore_errors=True)

    def remove(self) -> None:
        remove_table(self.warehouse, str(self.path))
        delete_remains(self.warehouse)

    def remove_remains(self) -> bool:
        return False  # a removal is one rename


def environment_at(warehouse: str, name: str) -> EnvironmentFolder:
    """Where an environment of this name is, or would be. Raises UsageError for one that it cannot have."""
    require_name(name)
    if is_local(warehouse):
        return LocalEnvironment(warehouse, name)
    from sqlmesh_like.environments.stored_environment import StoredEnvironment  # needs obstore

    return StoredEnvironment(environments_uri(warehouse), name)


def environment_folders(warehouse: str) -> Iterator[EnvironmentFolder]:
    """The environments of a warehouse by name, of whichever project; none where it is neither on a disk nor on S3."""
    if is_local(warehouse):
        if (parent := _parent(warehouse)).is_dir():
            for path in sorted(parent.iterdir()):
                if (path / _FILE).is_file():
                    yield LocalEnvironment(warehouse, path.name)
    elif is_s3(warehouse):
        names = folder(environments_uri(warehouse)).names()
        yield from (environment_at(warehouse, name) for name in sorted(names) if is_name(name))


def nearest_environment(warehouse: str, name: str) -> str | None:
    """A hint with the nearest name of an environment."""
    return nearest(name, [each.name for each in environment_folders(warehouse)])


def environments_uri(warehouse: str) -> str:
    """The folder of a warehouse's environments."""
    return f"{warehouse.rstrip('/')}/_sml/environments"


def _parent(warehouse: str) -> Path:
    return Path(folder(environments_uri(warehouse)).path)
