"""What a source's streaming query has read, according to Spark's checkpoint. Owns reading it; needs no JVM.

Spark keeps the end of each of the last 100 batches (`offsets/<batch>`; `commits/<batch>` once it is done), where a
query began in Kafka (`sources/0/0`) and every file that it has listed (`sources/0/<log id>`, compacted from time to
time into one `.compact`). Layout: `HDFSMetadataLog` and `CompactibleFileStreamLog` of Spark 3.5.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlmesh_like.hudi.storage import folder

PartitionOffsets = Mapping[tuple[str, int], int]
"""Offsets by topic and partition."""


@dataclass(frozen=True)
class ListedFile:
    """A file that the query has listed: id in its log of listings, modification time (ms since 1970), URI."""

    log_id: int
    modified: int
    uri: str


@dataclass(frozen=True)
class QueryLog:
    """The checkpoint of one query. `query`: its id. `ends`: Spark's record of the end of each completed batch."""

    uri: str
    query: str
    ends: Mapping[int, Mapping[str, object]]

    @property
    def log_ids(self) -> Mapping[int, int]:
        """The id of the last listing in each batch. For logs of files only."""
        return {batch: int(str(end["logOffset"])) for batch, end in self.ends.items()}

    @property
    def offsets(self) -> Mapping[int, PartitionOffsets]:
        """The offsets after each batch. For logs in Kafka only."""
        return {batch: by_partition(end) for batch, end in self.ends.items()}

    @cached_property
    def first_offsets(self) -> PartitionOffsets:
        """The offsets at which the query began in Kafka, without partitions that were created later."""
        text = folder(self.uri).read("sources/0/0").decode()
        return by_partition(json.loads(text[text.index("{") :]))

    @cached_property
    def files(self) -> tuple[ListedFile, ...]:
        """All files that were listed, ordered by id."""
        listings = folder(f"{self.uri}/sources/0")
        names = listings.names()
        compact = max((int(name.split(".")[0]) for name in names if name.endswith(".compact")), default=-1)
        kept = [f"{compact}.compact"] if compact >= 0 else []
        kept += [name for name in names if name.isdigit() and int(name) > compact]
        entries = (json.loads(line) for name in kept for line in _lines(listings.read(name)))
        files = {ListedFile(int(entry["batchId"]), int(entry["timestamp"]), str(entry["path"])) for entry in entries}
        return tuple(sorted(files, key=lambda file: (file.log_id, file.modified, file.uri)))


def read_query_log(checkpoint: str) -> QueryLog | None:
    """Read the checkpoint at a path; None where no batch was completed."""
    place = folder(checkpoint)
    done = {int(name) for name in folder(f"{checkpoint}/commits").names() if name.isdigit()}
    known = {int(name) for name in folder(f"{checkpoint}/offsets").names() if name.isdigit()}
    if not done & known or not place.exists("metadata"):
        return None
    ends = {batch: json.loads(list(_lines(place.read(f"offsets/{batch}")))[-1]) for batch in sorted(done & known)}
    return QueryLog(checkpoint, str(json.loads(place.read("metadata"))["id"]), ends)


def events_in(checkpoint: str, batch: int) -> int:
    """About how many messages of Kafka a batch that was begun has: offsets, some of which may have none."""
    query = QueryLog(checkpoint, "", {})
    records = folder(f"{checkpoint}/offsets")
    end, *before = (
        by_partition(json.loads(list(_lines(records.read(str(number))))[-1]))
        for number in range(batch, max(batch - 2, -1), -1)
    )
    start = before[0] if before else query.first_offsets
    return sum(max(0, offset - start.get(partition, 0)) for partition, offset in end.items())


def _lines(content: bytes) -> Iterator[str]:
    """The lines after the first, which is the version."""
    return (line for line in content.decode().splitlines()[1:] if line.strip())


def by_partition(offsets: Mapping[str, object]) -> PartitionOffsets:
    """Offsets as Spark writes them: by topic, then by partition."""
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in offsets.items()
        if isinstance(partitions, dict)
        for partition, offset in partitions.items()
    }
