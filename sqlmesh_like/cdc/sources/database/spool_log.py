"""The log of a database's events: files of lines that hold a message and its key. Owns only their form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlmesh_like.cdc.sources.file_log import FileLog


@dataclass(frozen=True)
class SpoolLog(FileLog):
    """The segments of a spool (`database.spool`): JSON has no tab of its own, one separates message and key."""

    message: ClassVar[str] = "substring_index(value, '\\t', 1)"
    key: ClassVar[str] = "if(contains(value, '\\t'), substring_index(value, '\\t', -1), null)"
