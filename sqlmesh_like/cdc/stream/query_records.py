"""The checkpoint of a streaming query, on a disk or a store, continued without Spark as Spark would: either may go on.

Spark writes what a batch covers before the batch (`offsets/<batch>`) and its completion afterwards (`commits/<batch>`).
Owns these records but for the end of a batch, which `query_batches` and `kafka_batches` know for their logs;
`sources.query_log` reads the same files. Layout and order: `MicroBatchExecution` and `HDFSMetadataLog` of Spark 3.5.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.hudi.storage import Folder, folder
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile
from sqlmesh_like.hudi.stores.store_client import delete_files
from sqlmesh_like.names import is_store

VERSION = "v1"
_KEPT = 100
"""Batches whose records stay, as in Spark."""


@dataclass(frozen=True)
class QueryRecords:
    """The records at a path or URI. Methods raise NotProvenError where only Spark can go on."""

    checkpoint: str

    @property
    def place(self) -> Folder:
        return folder(self.checkpoint)

    @property
    def query(self) -> str:
        """The id of the query, which is made with its first batch."""
        try:
            content = self.place.read("metadata")
        except FileNotFoundError:
            self.create("metadata", [compact_json({"id": str(uuid4())})])
            content = self.place.read("metadata")
        return str(json.loads(content)["id"])

    @property
    def completed(self) -> int:
        """The number of the last batch that was completed; -1: none was."""
        return max(self._numbers("commits"), default=-1)

    @property
    def planned(self) -> int:
        """The number of the last batch that was begun: `completed`, or the one after it."""
        newest = max(self._numbers("offsets"), default=-1)
        if newest not in (self.completed, self.completed + 1):
            raise NotProvenError("a checkpoint without some of its records")
        return newest

    def end_of(self, number: int) -> Any:
        """What the record of a batch of one source says of its end."""
        try:
            return json.loads(self._record(number)[2])
        except (OSError, ValueError):
            raise NotProvenError(f"the record of batch {number} cannot be read") from None

    def plan(self, number: int, end: Mapping[str, object]) -> None:
        """Record the end of a batch that begins. Raises FileExistsError where another call did it."""
        settings = {"batchWatermarkMs": 0, "conf": {}}
        if number:
            settings = json.loads(self._record(number - 1)[1])
        started = {**settings, "batchTimestampMs": time.time_ns() // 10**6}
        self.create(f"offsets/{number}", [VERSION, compact_json(started), compact_json(end)])

    def complete(self, number: int) -> None:
        """Record that a batch is completed, and drop old records."""
        self.create(f"commits/{number}", [VERSION, compact_json({"nextBatchWatermarkMs": 0})])
        for kind in ("offsets", "commits"):
            old = [f"{kind}/{each}" for each in self._numbers(kind) if each < number - _KEPT]
            if is_store(self.checkpoint):
                delete_files(self.checkpoint, old)
            else:
                for name in old:
                    Path(self.place.path, name).unlink(missing_ok=True)

    def create(self, name: str, lines: Iterable[str]) -> None:
        """Write a record that is there in full or not at all, and never over another, which is a FileExistsError."""
        content = "\n".join(lines).encode()
        if is_store(self.checkpoint):
            if ConditionalFile(f"{self.checkpoint}/{name}").replace(content, None) is None:
                raise FileExistsError(f"{self.checkpoint}/{name}")
            return
        place = Path(self.place.path, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}.{uuid4().hex}.tmp")
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, place)
        finally:
            beside.unlink()

    def _numbers(self, kind: str) -> list[int]:
        return [int(name) for name in self.place.names(kind) if name.isdigit()]

    def _record(self, number: int) -> list[str]:
        """Version, settings and end of a batch of one source."""
        lines = self.place.read(f"offsets/{number}").decode().splitlines()
        if len(lines) != 3 or lines[0] != VERSION:
            raise NotProvenError(f"the record of batch {number} has another form")
        return lines


def compact_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
