"""The next batch of a source's streaming query, planned and recorded without Spark, as Spark would: either may go on.

Spark writes what a batch covers before the batch (`sources/0/<log id>`, then `offsets/<batch>`) and its completion
afterwards (`commits/<batch>`). Owns these three steps for logs of files; `query_log` reads the same files.
Layout and order: `FileStreamSource`, `CompactibleFileStreamLog` and `MicroBatchExecution` of Spark 3.5.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.query_log import ListedFile, QueryLog
from sqlmesh_like.fault_points import fault_point

_VERSION = "v1"
_COMPACTED_EVERY = 10
_KEPT = 100
"""Batches whose records stay, as in Spark."""
_CERTAIN_PATH = re.compile(r"/[A-Za-z0-9/._=+@,-]+")
"""Paths whose characters are the same in a URI."""


@dataclass(frozen=True)
class QueryBatch:
    """A batch: its number, the id of its listing, and its files (modification time in ms, URI).

    `is_listed`, `is_planned`: the record of its files, or that of the batch as well, is there from an earlier call.
    """

    number: int
    log_id: int
    files: tuple[tuple[int, str], ...]
    is_listed: bool = False
    is_planned: bool = False


@dataclass(frozen=True)
class QueryBatches:
    """The checkpoint of a query at a path of this machine."""

    checkpoint: Path

    def next(self, listed: Sequence[Path], most: int | None) -> QueryBatch | None:
        """The batch that was begun and not completed, else one of listed files that no batch had; None: there is none.

        `most`: files of a batch. Raises NotProvenError where only Spark can go on.
        """
        done, begun = self._numbers("commits"), self._numbers("offsets")
        last, newest, listings = max(done, default=-1), max(begun, default=-1), self._listings
        end = self._log_id(last) if done else -1
        newest_listing = max((each.log_id for each in listings), default=-1)
        if newest not in (last, last + 1) or newest_listing < end:
            raise NotProvenError("a checkpoint without some of its records")
        if newest == last + 1 or newest_listing > end:
            log_id = self._log_id(newest) if newest > last else newest_listing
            files = tuple((each.modified, each.uri) for each in listings if end < each.log_id <= log_id)
            return QueryBatch(last + 1, log_id, files, is_listed=True, is_planned=newest > last)
        seen = {each.uri for each in listings}
        fresh = sorted((path.stat().st_mtime_ns // 10**6, _uri(path)) for path in listed)
        files = tuple(file for file in fresh if file[1] not in seen)[:most]
        return QueryBatch(last + 1, end + 1, files) if files else None

    def begin(self, batch: QueryBatch) -> None:
        """Record what the batch covers, unless that is recorded. Raises FileExistsError where another call did it."""
        if not batch.is_listed:
            self._list(batch)
            fault_point("ingest.listed")
        if not batch.is_planned:
            settings = {"batchWatermarkMs": 0, "conf": {}}
            if batch.number:
                settings = json.loads(self._record(batch.number - 1)[1])
            started = {**settings, "batchTimestampMs": time.time_ns() // 10**6}
            self._create(f"offsets/{batch.number}", [_VERSION, _json(started), _json({"logOffset": batch.log_id})])
            fault_point("ingest.planned")

    def _list(self, batch: QueryBatch) -> None:
        is_compacted = (batch.log_id + 1) % self._interval() == 0
        listed = [ListedFile(batch.log_id, modified, uri) for modified, uri in batch.files]
        lines = [
            _json({"path": each.uri, "timestamp": each.modified, "batchId": each.log_id})
            for each in (*(self._listings if is_compacted else ()), *listed)
        ]
        name = f"{batch.log_id}.compact" if is_compacted else str(batch.log_id)
        self._create(f"sources/0/{name}", [_VERSION, *lines])

    def end(self, batch: QueryBatch) -> None:
        """Record that the batch is completed, and drop old records."""
        self._create(f"commits/{batch.number}", [_VERSION, _json({"nextBatchWatermarkMs": 0})])
        for folder in ("offsets", "commits"):
            for number in self._numbers(folder):
                if number < batch.number - _KEPT:
                    (self.checkpoint / folder / str(number)).unlink(missing_ok=True)

    @property
    def query(self) -> str:
        """The id of the query, which is made with its first batch."""
        if not (self.checkpoint / "metadata").exists():
            self._create("metadata", [_json({"id": str(uuid4())})])
        return str(json.loads((self.checkpoint / "metadata").read_text(encoding="utf-8"))["id"])

    @property
    def _listings(self) -> tuple[ListedFile, ...]:
        return QueryLog(str(self.checkpoint), "", {}).files

    def _numbers(self, folder: str) -> list[int]:
        place = self.checkpoint / folder
        return [int(path.name) for path in place.iterdir() if path.name.isdigit()] if place.exists() else []

    def _interval(self) -> int:
        """After how many listings Spark expects one that has all, which follows from those that are there."""
        compacted = sorted(int(path.stem) for path in (self.checkpoint / "sources" / "0").glob("*.compact"))
        if len(compacted) > 1:
            return compacted[-1] - compacted[-2]
        if not compacted:
            return _COMPACTED_EVERY
        size = compacted[0] + 1
        divisors = (number for number in range(_COMPACTED_EVERY, size // 2 + 1) if size % number == 0)
        return next(divisors, size) if size // 2 > _COMPACTED_EVERY else size

    def _log_id(self, number: int) -> int:
        """The id of the last listing in a batch."""
        try:
            return int(json.loads(self._record(number)[2])["logOffset"])
        except (OSError, ValueError, LookupError, TypeError):
            raise NotProvenError(f"the record of batch {number} cannot be read") from None

    def _record(self, number: int) -> list[str]:
        """Version, settings and end of a batch of one source."""
        lines = (self.checkpoint / "offsets" / str(number)).read_text(encoding="utf-8").splitlines()
        if len(lines) != 3 or lines[0] != _VERSION:
            raise NotProvenError(f"the record of batch {number} has another form")
        return lines

    def _create(self, name: str, lines: Sequence[str]) -> None:
        """Write a record that is there in full or not at all, and never over another."""
        place = self.checkpoint / name
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}.{uuid4().hex}.tmp")
        with beside.open("wb") as file:
            file.write("\n".join(lines).encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, place)
        finally:
            beside.unlink()


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _uri(path: Path) -> str:
    text = str(path)
    if not _CERTAIN_PATH.fullmatch(text) or ".." in path.parts:
        raise NotProvenError(f"the path {text}, which Spark may spell otherwise")
    return f"file://{text}"
