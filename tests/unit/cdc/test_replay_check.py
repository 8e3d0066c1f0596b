"""Before a source's table goes back: whether its source could fill it again, told from its checkpoint without a JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cdc.sources.query_log import PartitionOffsets
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.tables.last_commits import forget_last_commits, note_last_commits
from sqlmesh_like.cdc.tables.replay_check import batches_to_replay
from sqlmesh_like.errors import IngestError
from tests.unit.cdc.test_last_commits import NAME, lake, place
from tests.unit.cdc.test_missing_batches import entry, query
from tests.unit.hudi.test_timeline import Lake

__all__ = ["lake", "place"]  # fixtures


def nothing_kept(partitions: list[tuple[str, int]]) -> PartitionOffsets:
    raise AssertionError(f"files have no brokers: {partitions}")


def ingested(place: SourcePaths, lake: Lake, root: Path, *, without: str = "") -> list[str]:
    """A table of three batches of a file each; the frontiers after them."""
    entries = [entry(root / "landing", f"f {n}", n, exists=without != f"f {n}") for n in range(3)]
    sources = {str(n): entries[n : n + 1] for n in range(3)}
    query(Path(place.checkpoint), {n: {"logOffset": n} for n in range(3)}, sources, done=2)
    frontiers = []
    for n in range(3):
        last = (root / "landing" / f"f {n}").as_uri()
        marker = json.dumps({"query": "q", "batch": n, "offsets": {"digest": "d", "last": last}})
        frontiers.append(lake.commit(2 * n + 1, [f"g{n}"], extra={"sml.ingest": marker}))
        note_last_commits(place, [NAME])
    return frontiers


def test_what_the_source_has_is_counted_from_the_commit_that_stays(
    place: SourcePaths, lake: Lake, tmp_path: Path
) -> None:
    known, table = ingested(place, lake, tmp_path), place.source.tables[0]
    assert [batches_to_replay(place, table, at, nothing_kept) for at in known] == [2, 1, 0]
    assert batches_to_replay(place, table, None, nothing_kept) == 3


def test_where_a_file_is_gone_only_what_comes_after_it_can_be_read_again(
    place: SourcePaths, lake: Lake, tmp_path: Path
) -> None:
    known, table = ingested(place, lake, tmp_path, without="f 1"), place.source.tables[0]
    assert batches_to_replay(place, table, known[1], nothing_kept) == 1
    with pytest.raises(IngestError, match="of which 1 are gone"):
        batches_to_replay(place, table, known[0], nothing_kept)


def test_dead_letters_that_came_in_later_mean_all_of_the_log(place: SourcePaths, lake: Lake, tmp_path: Path) -> None:
    known, table = ingested(place, lake, tmp_path), place.source.tables[0]
    note_last_commits(place, [NAME], dead_letters=True)
    assert batches_to_replay(place, table, known[1], nothing_kept) == 3
    assert batches_to_replay(place, table, known[2], nothing_kept) == 0
    forget_last_commits(place)  # read from another start: its query does not know all of the log
    assert batches_to_replay(place, table, known[1], nothing_kept) == 1
    with pytest.raises(IngestError, match="from another start"):
        batches_to_replay(place, table, None, nothing_kept)


def test_without_a_checkpoint_nothing_is_known(place: SourcePaths, lake: Lake) -> None:
    frontier = lake.commit(1, ["a"])
    with pytest.raises(IngestError, match="has no checkpoint"):
        batches_to_replay(place, place.source.tables[0], frontier, nothing_kept)
