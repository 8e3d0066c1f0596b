"""How little of a timeline is read: a plan over many long histories must not cost what they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.hudi.commits import Instant
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.timeline import Timeline
from tests.unit.hudi.test_history import record
from tests.unit.hudi.test_timeline import Lake, at


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "t")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requested times of the commits whose files are read."""
    instants: list[str] = []
    read = Timeline._read_commit

    def counted(timeline: Timeline, instant: Instant) -> object:
        instants.append(instant.requested)
        return read(timeline, instant)

    monkeypatch.setattr(Timeline, "_read_commit", counted)
    return instants


def ingested(lake: Lake, count: int) -> str:
    """A source of `count` commits, as ingestion writes them."""
    return [lake.commit(n * 2, ["a"], extra={"sml.batch": "1", **_schema()}) for n in range(count)][-1]


def _schema() -> dict[str, str]:
    return {"schema": record()["schema"]}


def test_the_state_of_a_source_is_read_from_its_newest_commit_alone(lake: Lake, reads: list[str]) -> None:
    frontier = ingested(lake, 50)
    state = LakeHistory().state(str(lake.root))
    assert (state.frontier, state.record) == (frontier, None)
    assert reads == [at(98)]


def test_a_table_with_a_key_of_its_own_is_not_searched_for_records(lake: Lake, reads: list[str]) -> None:
    file = lake.root / ".hoodie" / "hoodie.properties"
    file.write_text(file.read_text() + "hoodie.table.recordkey.fields=id\n")
    for n in range(20):
        lake.commit(n * 2, ["a"], extra=_schema())
    assert LakeHistory().state(str(lake.root)).record is None
    assert reads == [at(38)]


def test_a_commit_is_read_once_however_often_the_table_is_asked(lake: Lake, reads: list[str]) -> None:
    start, history, uri = ingested(lake, 5), LakeHistory(), str(lake.root)
    lake.commit(20, ["a"], merged_from={"a": 8}, extra=record())
    end = lake.commit(22, ["a"], merged_from={"a": 20}, extra=record())
    for _ in range(3):
        history.state(uri)
        assert history.pending_commits(uri, start, end) == 2
        assert history.unreadable_reason(uri, end, end) is None
    assert len(reads) == len(set(reads))


def test_a_commit_that_came_since_is_seen(lake: Lake) -> None:
    first, history = ingested(lake, 2), LakeHistory()
    assert history.state(str(lake.root)).frontier == first
    second = lake.commit(20, ["a"], extra=record())
    state = history.state(str(lake.root))
    assert (state.frontier, state.record is None) == (second, False)


def test_a_commit_under_way_holds_the_frontier_back_although_no_commit_came(lake: Lake) -> None:
    ingested(lake, 2)
    history = LakeHistory()
    before = history.state(str(lake.root)).frontier
    lake.mark(f"{at(1)}.commit.requested")
    assert history.state(str(lake.root)).frontier != before


def test_sizes_are_those_of_the_newest_files_that_live(lake: Lake) -> None:
    lake.commit(1, ["a", "b"])
    middle = lake.commit(3, ["a"], merged_from={"a": 1})
    end = lake.commit(5, ["c"], operation="INSERT_OVERWRITE", action="replacecommit", replaced={"p=1": ["a"]})
    history, uri = LakeHistory(), str(lake.root)
    assert history.volume(uri, middle).files == 2
    assert (history.volume(uri, end).files, history.volume(uri, end).partitions) == (2, 1)
    assert set(Timeline(uri).sizes(end)) == {("p=1", "b"), ("p=1", "c")}
