"""What history is kept: everything that a model of the project has still to read, up to an age."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.plan.catalog import Catalog, TablePlace
from sqlmesh_like.plan.history import ChangeVolume, CommitSummary, TableRecord, TableState, Volume
from sqlmesh_like.run.retention import AT_LEAST, SLACK, Cleaning, due

SINCE = "20240501000000000"


@dataclass
class _History:
    """A lake of one table `t` with `commits` data commits, read by a model that stands `behind` of them back.

    `logged` of them came after its last compaction; `is_old`: the first unread commit is older than the limit.
    """

    commits: int
    behind: int
    logged: int = 0
    is_old: bool = False
    asked: list[str] = field(default_factory=list)

    def state(self, uri: str, format: str = "hudi") -> TableState:
        if uri == "t":
            return TableState("t", "cow", f"{self.commits:03}")
        record = TableRecord("model.p.m", "f", {"source.p.s.t": f"{self.commits - self.behind:03}"}, "now", "row_based")
        return TableState(uri, "cow", "001", record)

    def missing(self, uri: str) -> str | None:
        return None

    def unreadable_reason(self, uri: str, start: str, end: str) -> str | None:
        return None

    def change(self, uri: str, start: str, end: str) -> ChangeVolume:
        return ChangeVolume()

    def uncompacted_commits(self, uri: str) -> int:
        return self.logged

    def keep(self, uris: Iterable[str]) -> AbstractContextManager[None]:
        return nullcontext()

    def renew(self, uri: str | None = None) -> None:
        pass

    def unread_commits(self, uri: str, start: str, since: str) -> int:
        return 0 if self.is_old and since else self.commits - int(start)

    def pending_commits(self, uri: str, start: str, end: str) -> int:
        return int(end) - int(start)

    def last_write(self, uri: str) -> CommitSummary | None:
        return None

    def exceeds(self, uri: str, commits: int) -> bool:
        return self.commits > commits

    def volume(self, uri: str, frontier: str) -> Volume:
        return Volume()

    def repeats_keys(self, uri: str, frontier: str) -> bool:
        return False


def _due(
    commits: int, behind: int, logged: int = 0, *, is_old: bool = False, released: str = ""
) -> tuple[Cleaning, ...]:
    places = {
        "source.p.s.t": TablePlace(NodeId("source", "p", "s", "t"), TableName("ods", "t"), "t"),
        "model.p.m": TablePlace(NodeId("model", "p", "m"), TableName("dws", "m"), "m"),
    }
    catalog = Catalog(places, _History(commits, behind, logged, is_old))
    return due(catalog, ["source.p.s.t"], SINCE, released={"source.p.s.t": [released] if released else []})


def test_a_short_history_is_left_alone() -> None:
    assert _due(AT_LEAST + SLACK, behind=0) == ()


def test_a_table_whose_readers_are_up_to_date_keeps_the_minimum() -> None:
    assert _due(AT_LEAST + SLACK + 1, behind=0) == (Cleaning("t", AT_LEAST),)


def test_what_the_slowest_reader_has_not_read_is_kept_with_the_commit_it_stands_on() -> None:
    assert _due(100, behind=50) == (Cleaning("t", 51),)
    assert _due(55, behind=50) == ()


def test_commits_since_the_last_compaction_are_kept_for_their_change_logs() -> None:
    assert _due(100, behind=3, logged=19) == (Cleaning("t", 20),)


def test_however_many_commits_are_unread_they_are_kept_within_the_limit() -> None:
    assert _due(1000, behind=900) == (Cleaning("t", 901),)


def test_a_reader_that_is_further_behind_than_the_limit_holds_back_nothing() -> None:
    assert _due(1000, behind=900, is_old=True) == (Cleaning("t", AT_LEAST),)


def test_the_commit_of_a_release_is_kept_however_old_it_is() -> None:
    assert _due(100, behind=0, is_old=True, released="060") == (Cleaning("t", 41),)
    assert _due(100, behind=50, released="080") == (Cleaning("t", 51),)
