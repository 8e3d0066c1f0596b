"""The folder of an environment, in a warehouse on this machine. Owns where it is, and replacing its object."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.environments.environment import Environment, decode_environment, encode_environment, require_name
from sqlmesh_like.errors import MachineError, nearest
from sqlmesh_like.hudi.recovery.table_removal import delete_remains, remove_table
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.remedies import remedy

_FILE = "environment.json"


@dataclass(frozen=True)
class EnvironmentFolder:
    """One environment on disk. Whoever changes it holds its lock."""

    warehouse: str
    name: str

    @property
    def path(self) -> Path:
        return _parent(self.warehouse) / require_name(self.name)

    @property
    def clones(self) -> Path:
        """Where tables are while they are being cloned."""
        return self.path / "cloning"

    def table_uri(self, table: str) -> str:
        """Where the environment's table of this name, `schema.identifier`, is."""
        schema, _, identifier = table.partition(".")
        return f"{_uri(self.warehouse)}/{self.name}/tables/{schema}/{identifier}"

    def read(self) -> Environment | None:
        """Return the environment, None where there is none. Raises MachineError where it cannot be read."""
        path = self.path / _FILE
        try:
            return decode_environment(path.read_bytes(), str(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MachineError(f"{path} cannot be read: {error.strerror}") from error

    def write(self, environment: Environment) -> None:
        """Replace the environment's object. Raises MachineError where it cannot be written."""
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

    def remove(self) -> None:
        """Remove the environment and its tables: readers see all of it or nothing."""
        remove_table(self.warehouse, str(self.path))
        delete_remains(self.warehouse)


def environment_folders(warehouse: str) -> Iterator[EnvironmentFolder]:
    """The environments of a warehouse by name, of whichever project; none where it is not on this machine."""
    place = folder(warehouse)
    if place.is_local and (parent := _parent(warehouse)).is_dir():
        for path in sorted(parent.iterdir()):
            if (path / _FILE).is_file():
                yield EnvironmentFolder(warehouse, path.name)


def nearest_environment(warehouse: str, name: str) -> str | None:
    """A hint with the nearest name of an environment."""
    return nearest(name, [each.name for each in environment_folders(warehouse)])


def _uri(warehouse: str) -> str:
    return f"{warehouse.rstrip('/')}/_sml/environments"


def _parent(warehouse: str) -> Path:
    return Path(folder(_uri(warehouse)).path)
