"""The object of a lake that names its releases. Owns where it is, and replacing it as a whole.

On this machine it is replaced by a rename, under a lock that lasts as long as that; on a store by a put that succeeds
only where nobody was faster. Readers need no lock: they see the old object or the new one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from filelock import FileLock, Timeout

from sqlmesh_like.errors import MachineError, RetryableError, UsageError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile, Version
from sqlmesh_like.hudi.stores.store_client import put_content
from sqlmesh_like.names import is_local, is_store
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.releases.release import Releases, decode_releases, encode_releases
from sqlmesh_like.remedies import remedy
from sqlmesh_like.secrets import scrub_text

Edit = Callable[[Releases], Releases]
_TURNS = 20
"""How often a put is tried against calls that were faster: each of them has made its release."""
_SECONDS = 10.0
"""For another call to write a small file."""


class ReleaseFile(Protocol):
    """Reads and changes the releases of a lake."""

    def read(self) -> Releases:
        """Return the releases; none where there is no object yet."""
        ...

    def change(self, edit: Edit) -> Releases:
        """Replace the releases by what `edit` makes of them; it is called again where another call was faster."""
        ...


def release_file(target: Target, project: str) -> ReleaseFile:
    """Return the object for a project's tables under a target. Raises UsageError where no such object can be kept."""
    name = f"{quote(project, safe='')}.{quote(target.schema, safe='')}.json"
    uri = f"{target.warehouse.rstrip('/')}/_sml/releases/{name}"
    if is_local(uri):
        return LocalReleases(Path(folder(uri).path))
    if is_store(uri):
        return StoredReleases(uri, has_conditions=not target.store.single_writer)
    hint = "leave `release` out of the project's settings for this target"
    raise UsageError(f"{scrub_text(uri)}: releases are kept on local disks and object stores only", hint=hint)


@dataclass(frozen=True)
class LocalReleases:
    """A file on this machine."""

    path: Path

    def read(self) -> Releases:
        try:
            return decode_releases(self.path.read_bytes(), str(self.path))
        except FileNotFoundError:
            return Releases()
        except OSError as error:
            raise MachineError(f"{self.path} cannot be read: {error.strerror}") from error

    def change(self, edit: Edit) -> Releases:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.path.with_suffix(".lock"), timeout=_SECONDS):
                before = self.read()
                after = edit(before)
                if after != before:
                    self._write(encode_releases(after))
                return after
        except Timeout:
            raise RetryableError(
                f"another call has been writing {self.path} for seconds: it may be suspended"
            ) from None
        except OSError as error:
            hint = remedy(error, "the same command again") or "check `warehouse` in profiles.yml"
            raise MachineError(f"{self.path} cannot be written: {error.strerror}", hint=hint) from error

    def _write(self, content: bytes) -> None:
        aside = self.path.with_suffix(".new")
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fault_point("release.staged")
        aside.replace(self.path)
        fault_point("release.complete")


@dataclass(frozen=True)
class StoredReleases:
    """An object of a store. `has_conditions`: several calls may write it, else the target has a single writer."""

    uri: str
    has_conditions: bool = True

    def read(self) -> Releases:
        return self._decode(ConditionalFile(self.uri).read())

    def change(self, edit: Edit) -> Releases:
        file = ConditionalFile(self.uri)
        for _ in range(_TURNS):
            seen = file.read()
            before = self._decode(seen)
            after = edit(before)
            if after == before:
                return after
            content = encode_releases(after)
            fault_point("release.staged")
            if not self.has_conditions:
                put_content(self.uri, content)
            elif file.replace(content, seen) is None:
                continue
            fault_point("release.complete")
            return after
        raise RetryableError(f"{scrub_text(self.uri)}: other calls were faster {_TURNS} times")

    def _decode(self, seen: Version | None) -> Releases:
        return Releases() if seen is None else decode_releases(seen.content, scrub_text(self.uri))
