"""Where a change event keeps its rows, whatever the format. Owns that description; `images` reads rows by it.

Three styles cover all formats. *pair*: one member holds the row before, another the row after. *overlay*: one member
holds the newest row, another only the former values of what changed. *row*: the message holds one row, whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from sqlmesh_like.ingest.types import Field

Style = Literal["pair", "overlay", "row"]
KINDS = ("upsert", "delete", "truncate", "skip", "tombstone", "bad")
"""What an event can be; only the first three change a table."""
CHANGES = ("upsert", "delete")
"""Kinds of event that carry rows."""


@dataclass(frozen=True)
class Message:
    """One layout of messages. `path` are the objects around the rows; `new` and `old` the members that hold them.

    A *row* message without `new` is the row itself, less the members in `ignored`. `is_list`: both members are lists
    of rows that belong together one by one. `fields` reads the columns that a message's schema states.
    """

    style: Style
    path: tuple[str, ...] = ()
    new: str | None = None
    old: str | None = None
    is_list: bool = False
    ignored: frozenset[str] = frozenset()
    fields: Callable[[str], tuple[Field, ...]] | None = None
    marks_unavailable: bool = False

    @property
    def members(self) -> tuple[str, ...]:
        """The members that hold rows, the newest first."""
        return tuple(name for name in (self.new, self.old) if name)


@dataclass(frozen=True)
class Dialect:
    """One way of writing change events.

    `envelope` gives Spark SQL, in order, over a message's text (`value`) and what the log says of its table
    (`log_database`, `log_table`, `log_schema`); each expression may use the ones before it. It ends up with `kind`
    (see `KINDS`), `reason` (of a bad one), `op` (c, u, d, r, t), `database`, `source_schema`, `source_table`,
    `schema_text` (NULL where nothing is stated) and `message` (a key of `messages`).
    """

    envelope: Callable[[str], Mapping[str, str]]
    messages: Mapping[str, Message]
