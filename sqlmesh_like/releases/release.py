"""The releases of a lake as one value. Owns its form on disk, and what becomes of it when a release is made or held."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sqlmesh_like.errors import MachineError, NewerVersionError, UsageError, nearest

VERSION = 1
KEPT = 10
"""How many of the newest releases stay listed; the current one and held ones do in any case."""


@dataclass(frozen=True)
class ReleasedTable:
    """A table of a release: its name, and the frontier of the commit that readers see."""

    table: str
    commit: str


Tables = Mapping[str, ReleasedTable]
"""By unique id."""


@dataclass(frozen=True)
class Release:
    """The commits that belong together. `command`: the one that made it; `created_at` is ISO 8601 in UTC."""

    id: int
    created_at: str
    command: str
    tables: Tables
    is_held: bool = False


@dataclass(frozen=True)
class Releases:
    """All releases of a lake, oldest first, and which of them readers see.

    `candidate`: what the last run left whole and did not release; `sml release create` does.
    """

    current: int | None = None
    listed: tuple[Release, ...] = ()
    candidate: Release | None = None

    @property
    def newest(self) -> Release | None:
        """The current release."""
        return next((each for each in self.listed if each.id == self.current), None)

    @property
    def protected(self) -> tuple[Release, ...]:
        """Those whose files are kept, the candidate included."""
        kept = [each for each in self.listed if each.is_held or each.id == self.current]
        return (*kept, self.candidate) if self.candidate is not None else tuple(kept)

    def find(self, text: str) -> Release:
        """Return the release with this number. Raises UsageError where there is none."""
        known = {str(each.id): each for each in self.listed}
        if text not in known:
            hint = nearest(text, known) or "`sml release list` shows them"
            raise UsageError(f"there is no release {text!r}", hint=hint)
        return known[text]

    def with_release(self, tables: Tables, command: str, created_at: str) -> Releases:
        """Return these with a new current release; old ones that are not held are forgotten. No candidate is left."""
        number = max((each.id for each in self.listed), default=0) + 1
        listed = (*self.listed, Release(number, created_at, command, tables))
        newest = {each.id for each in listed[-KEPT:]}
        return Releases(number, tuple(each for each in listed if each.id in newest or each.is_held))

    def with_candidate(self, tables: Tables, command: str, created_at: str) -> Releases:
        """Return these with tables that may be released later."""
        return replace(self, candidate=Release(0, created_at, command, tables))

    def with_hold(self, number: int, *, is_held: bool) -> Releases:
        """Return these with one release held, or let go."""
        listed = tuple(replace(each, is_held=is_held) if each.id == number else each for each in self.listed)
        return replace(self, listed=listed)


@dataclass(frozen=True)
class TableDifference:
    """A table that two releases name differently; None: it is in only one of them."""

    unique_id: str
    old: ReleasedTable | None
    new: ReleasedTable | None
    change: str = field(init=False)

    def __post_init__(self) -> None:
        change = "added" if self.old is None else "removed" if self.new is None else "moved"
        object.__setattr__(self, "change", change)


def differences(old: Tables, new: Tables) -> tuple[TableDifference, ...]:
    """Tables whose commits differ, by unique id.

    >>> a, b = ReleasedTable("dws.a", "1_2"), ReleasedTable("dws.a", "3_4")
    >>> [each.change for each in differences({"model.p.a": a, "model.p.b": a}, {"model.p.a": b, "model.p.c": b})]
    ['moved', 'removed', 'added']
    """
    names = sorted(old.keys() | new.keys())
    return tuple(
        TableDifference(each, old.get(each), new.get(each)) for each in names if old.get(each) != new.get(each)
    )


def encode_releases(releases: Releases) -> bytes:
    """Return the releases as JSON.

    >>> one = Releases().with_release({"model.p.a": ReleasedTable("dws.a", "1_2")}, "build", "2024-05-01T00:00:00Z")
    >>> decode_releases(encode_releases(one), "the file") == one
    True
    """
    document = {
        "version": VERSION,
        "current": releases.current,
        "candidate": None if releases.candidate is None else release_entry(releases.candidate),
        "releases": [release_entry(each) for each in releases.listed],
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def release_entry(release: Release) -> dict[str, object]:
    """Return one release as JSON has it, in the file and in output."""
    tables = {unique_id: {"table": each.table, "commit": each.commit} for unique_id, each in release.tables.items()}
    return {
        "id": release.id, "created_at": release.created_at, "command": release.command, "held": release.is_held,
        "tables": tables,
    }  # fmt: skip


def decode_releases(content: bytes, name: str) -> Releases:
    """Return the releases of a file. Raises MachineError where it has none, NewerVersionError for a later form."""
    try:
        document = json.loads(content)
        version = int(document["version"])
        if version <= VERSION:
            candidate = document["candidate"]
            releases = Releases(
                None if document["current"] is None else int(document["current"]),
                tuple(_parse_releases(document["releases"])),
                None if candidate is None else next(iter(_parse_releases([candidate]))),
            )
            if releases.current is not None and releases.newest is None:
                raise ValueError(f"the current release {releases.current} is not among them")
            return releases
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        hint = "restore it from a copy; without it `sml build` makes a first release again"
        raise MachineError(f"{name} does not hold releases: {error}", hint=hint) from error
    raise NewerVersionError(name, f"its form is version {version}, this one knows {VERSION}")


def _parse_releases(entries: Iterable[Mapping[str, object]]) -> Iterable[Release]:
    for entry in entries:
        tables = entry["tables"]
        if not isinstance(tables, dict):
            raise TypeError("tables are named by their unique ids")
        named = {name: ReleasedTable(str(each["table"]), str(each["commit"])) for name, each in tables.items()}
        number = int(str(entry["id"]))
        yield Release(number, str(entry["created_at"]), str(entry["command"]), named, entry["held"] is True)


def created_now() -> str:
    """Return this moment as releases note it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
