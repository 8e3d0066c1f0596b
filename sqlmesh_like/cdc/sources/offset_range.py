"""The part of a source's log that one batch ingested. Owns its written form; `event_log` reads the lines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Files:
    """Files of a batch, each (modification time in ms, path), in the order of the log."""

    files: tuple[tuple[int, str], ...]

    @property
    def summary(self) -> Mapping[str, object]:
        """The part as a table's commit records it; equal only for the same files.

        >>> files_of([(2, "b"), (1, "a")]).summary["last"]
        'b'
        """
        text = "\n".join(f"{time} {path}" for time, path in self.files)
        last = self.files[-1][1] if self.files else ""
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return {"files": len(self.files), "last": last, "digest": digest}

    def to_json(self) -> Mapping[str, object]:
        return {"files": [list(file) for file in self.files]}


@dataclass(frozen=True)
class Offsets:
    """Records of a batch, each (topic, partition, first offset, offset after the last)."""

    ranges: tuple[tuple[str, int, int, int], ...]

    @property
    def summary(self) -> Mapping[str, object]:
        """The part as a table's commit records it: by topic and partition, first offset and the one after the last."""
        entries: dict[str, dict[str, list[int]]] = {}
        for topic, partition, first, end in self.ranges:
            entries.setdefault(topic, {})[str(partition)] = [first, end]
        return entries

    def to_json(self) -> Mapping[str, object]:
        return {"offsets": [list(part) for part in self.ranges]}


OffsetRange = Files | Offsets


def files_of(files: Sequence[tuple[int, str]]) -> Files:
    """These (modification time, path) pairs in the order of the log."""
    return Files(tuple(sorted(files)))


def offset_range_from(text: str) -> OffsetRange:
    """Parse what `to_json` wrote.

    >>> offset_range_from('{"offsets": [["t", 0, 5, 9]]}').summary
    {'t': {'0': [5, 9]}}
    """
    data = json.loads(text)
    if "files" in data:
        return Files(tuple((int(time), str(path)) for time, path in data["files"]))
    return Offsets(tuple((str(t), int(p), int(first), int(end)) for t, p, first, end in data["offsets"]))
