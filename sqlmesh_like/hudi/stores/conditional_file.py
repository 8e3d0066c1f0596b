"""One small file of a store that several processes change. Owns reading it with its version and replacing just that.

A put that timed out may have succeeded: its retry then fails as if another had been faster. Content that tells its
writer and its version apart lets the caller see that by reading it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmesh_like.errors import MachineError, NodeError
from sqlmesh_like.hudi.stores.store_client import client_of, failing, key_of
from sqlmesh_like.names import is_store
from sqlmesh_like.secrets import scrub_text

if TYPE_CHECKING:
    from obstore import UpdateVersion


ONE_WRITER = "see to it that one call writes at a time, then set `store: {single_writer: true}` in the target"


@dataclass(frozen=True)
class Version:
    """The content of a file, and the tag, at Google also the number, by which the store knows it."""

    content: bytes
    tag: str | None
    number: str | None = None


class ConditionalFile:
    """A file by its URI."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._client, self._key = client_of(uri), key_of(uri)

    def read(self) -> Version | None:
        """Return the file as it is, None where there is none."""
        with failing(self.uri):
            try:
                answer = self._client.get(self._key)
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None
            return Version(bytes(answer.bytes()), answer.meta["e_tag"], answer.meta["version"])

    def changed_at(self) -> float:
        """When the store says that the file was written, in seconds since the epoch."""
        with failing(self.uri):
            return float(self._client.head(self._key)["last_modified"].timestamp())

    def replace(self, content: bytes, seen: Version | None) -> Version | None:
        """Write the file if it is still as it was `seen` (None: if there is none); return None where it is not."""
        if (written := self.put(content, seen)) is not None:
            return written
        now = self.read()  # of a put that had succeeded, and was repeated
        return now if now is not None and now.content == content else None

    def put(self, content: bytes, seen: Version | None) -> Version | None:
        """The same without looking, where it fails, whether an earlier attempt had succeeded."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with failing(self.uri):
            try:
                done = self._client.put(self._key, content, mode="create" if seen is None else _update(seen))
                return Version(content, done["e_tag"], done["version"])
            except (AlreadyExistsError, PreconditionError):
                return None


def _update(seen: Version) -> UpdateVersion:
    update: UpdateVersion = {}
    if seen.tag is not None:
        update["e_tag"] = seen.tag
    if seen.number is not None:
        update["version"] = seen.number
    return update


def lock_folder(warehouse: str) -> str:
    """The folder of the record of locks of a warehouse."""
    return f"{warehouse.rstrip('/')}/_sml/locks"


def require_lockable(warehouse: str) -> None:
    """Raises MachineError where no locks can be kept: obstore does not reach the place."""
    if not is_store(warehouse):
        raise MachineError(
            f"{scrub_text(warehouse)}: no locks can be kept there: two calls would overwrite each other's commits",
            hint=ONE_WRITER,
        )


def require_conditional_writes(folder: str) -> None:
    """Raises MachineError where the store of a folder writes over a file that a condition protects."""
    from obstore.exceptions import NotSupportedError

    probe = ConditionalFile(f"{folder}/probe")
    try:
        is_kept = probe.put(b"sml", None) is None or probe.put(b"other", None) is None
        is_kept = is_kept and probe.put(b"other", Version(b"", '"00000000000000000000000000000000"')) is None
    except NotSupportedError:
        is_kept = False
    except NodeError as error:
        if "501 Not Implemented" not in str(error.__cause__):
            raise
        is_kept = False
    if not is_kept:
        raise MachineError(
            f"the store of {scrub_text(folder)} has no conditional writes (If-None-Match, If-Match): two calls at once "
            "would overwrite each other's commits",
            hint=ONE_WRITER,
        )
