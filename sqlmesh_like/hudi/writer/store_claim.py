"""The claim of a commit in flight on an object store. Owns who may complete it and who may remove it: one of the two.

`.hoodie/.sml_writer/<instant>.claim` exists from before the request of the commit until its files are settled. It is
changed by conditional puts alone. Its writer makes it `ready`, with the content of the commit, before it creates the
completed instant; who removes a commit makes it `void` first. So a writer that stood still cannot complete what was
removed since, and what was ready is completed by whoever comes next: nobody can know whether a put that timed out, or
whose process died, will still arrive.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal
from uuid import uuid4

from sqlmesh_like.errors import UnreadableTableError
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile, Version

FOLDER = ".hoodie/.sml_writer"
_SUFFIX = ".claim"


@dataclass(frozen=True)
class Claim:
    """What the file says. `name`: of the completed instant's file, `content`: its bytes, both once it is ready.

    `others`: names on the timeline before the commit.
    """

    token: str
    state: Literal["open", "ready", "void"] = "open"
    others: tuple[str, ...] = ()
    name: str = ""
    content: bytes = b""

    def encode(self) -> bytes:
        """
        >>> Claim("t", "ready", (), "1_2.commit", b"x").encode()
        b'{"token": "t", "state": "ready", "others": [], "name": "1_2.commit"}\\nx'
        """
        head = {"token": self.token, "state": self.state, "others": self.others, "name": self.name}
        return json.dumps(head).encode() + b"\n" + self.content


def parse_claim(content: bytes, uri: str) -> Claim:
    """
    >>> parse_claim(Claim("t", "ready", ("a",), "n", b"x").encode(), "") == Claim("t", "ready", ("a",), "n", b"x")
    True
    """
    head, _, rest = content.partition(b"\n")
    try:
        record = json.loads(head)
        state = record["state"]
        if state not in ("open", "ready", "void"):
            raise ValueError(state)
        return Claim(str(record["token"]), state, tuple(map(str, record["others"])), str(record["name"]), rest)
    except (ValueError, TypeError, KeyError) as error:
        raise UnreadableTableError(f"{uri} is not a record of a commit in flight") from error


class ClaimFile:
    """The claim of one instant of a table. Not to be used by several threads at once."""

    def __init__(self, table: str, instant: str) -> None:
        self.uri = f"{table}/{claim_path(instant)}"
        self._file = ConditionalFile(self.uri)
        self._seen: Version | None = None
        self._claim = Claim("")

    def take(self, others: Collection[str]) -> bool:
        """Claim the instant; false where somebody else has."""
        return self._replace(Claim(uuid4().hex, others=tuple(sorted(others))))

    def make_ready(self, name: str, content: bytes) -> bool:
        """Allow the completion, by this process or the next; false where another has removed the commit."""
        return self._replace(replace(self._claim, state="ready", name=name, content=content))

    def make_void(self) -> bool:
        """Forbid the completion; false where another has changed the claim."""
        return self._replace(replace(self._claim, state="void", name="", content=b""))

    def read(self) -> Claim | None:
        """The claim as it is now; None where there is none."""
        self._seen = self._file.read()
        if self._seen is None:
            return None
        self._claim = parse_claim(self._seen.content, self.uri)
        return self._claim

    def _replace(self, claim: Claim) -> bool:
        try:
            written = self._file.replace(claim.encode(), self._seen)
        except FileNotFoundError:  # AWS's answer where there is nothing to replace
            return False
        if written is None:
            return False
        self._seen, self._claim = written, claim
        return True


def claim_path(instant: str) -> str:
    """The claim of an instant, relative to the table."""
    return f"{FOLDER}/{instant}{_SUFFIX}"


def claimed_instants(names: Collection[str]) -> list[str]:
    """The instants of claims, by the names of the files.

    >>> claimed_instants(["20240501000000000.claim", "20240401000000000"])
    ['20240501000000000']
    """
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
