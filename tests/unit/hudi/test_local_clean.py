"""Cleaning without a JVM: what is kept is read as before, what nothing needs goes, old instants move to the history."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlmesh_like.fault_points import ARCHIVE_POINTS, CLEAN_POINTS
from sqlmesh_like.hudi.commits import mapping_member, read_metadata
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.missing_files import earliest_kept, lost_files
from sqlmesh_like.hudi.recovery.savepoints import create_savepoint
from sqlmesh_like.hudi.services import archive, local_clean
from sqlmesh_like.hudi.services.local_clean import clean_here
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.time_travel import state_at
from sqlmesh_like.hudi.timeline import Timeline
from tests.faults.shop import ORDERS, Shop
from tests.levels import count


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Its orders have four file groups and twenty commits, one of which writes all rows anew."""
    shop, dice = Shop.of_inputs(tmp_path_factory.mktemp("made")), random.Random(7)
    shop.buckets = 4
    for number in range(19):
        shop.commit(ORDERS, dice)
        if number == 5:
            shop.replace_all(ORDERS)
    return shop


@pytest.fixture
def shop(made: Shop, tmp_path: Path) -> Shop:
    """A copy of the module's."""
    shutil.copytree(made.root, tmp_path, dirs_exist_ok=True)
    return Shop(tmp_path, dict(made.rows_at), made.changes, made.buckets)


def assert_kept(shop: Shop, retain: int) -> None:
    """The newest commits are there, and each that no former clean has ended is read as it was."""
    timeline = shop.timeline(ORDERS)
    assert timeline.unfinished == () and not timeline.before_gap
    kept = [commit.instant.frontier for commit in timeline.data_commits[-retain:]]
    assert kept == [frontier for name, frontier in shop.rows_at if name == ORDERS][-retain:]
    for frontier in (each for each in kept if each >= earliest_kept(timeline)):
        assert lost_files(timeline, frontier) == []
        stored = read_table_rows(state_at(table_state(timeline), frontier), -1)
        assert stored is not None
        rows = sorted((*row[:3], str(row[3])) for row in stored.rows)
        assert rows == sorted(shop.rows_at[ORDERS, frontier]), frontier


def needed(timeline: Timeline, retain: int) -> set[str]:
    """The files of the newest commits, and of what they have replaced."""
    frontiers = [commit.instant.frontier for commit in timeline.data_commits[-retain - 1 :]]
    return {each.path for frontier in frontiers for each in timeline.slices(frontier).values()}


def test_superfluous_files_and_old_instants_go(shop: Shop) -> None:
    before = shop.timeline(ORDERS)
    files, earliest = before.data_files, before.data_commits[-3].instant.requested
    assert clean_here(before.uri, 3)
    assert_kept(shop, 3)
    timeline = shop.timeline(ORDERS)
    assert timeline.data_files == needed(before, 3) and len(timeline.data_files) < len(files) / 3
    assert earliest_kept(timeline) == earliest
    assert [each.requested for each in timeline.commit_instants] == [
        each.requested for each in before.commit_instants[-5:]
    ]
    assert timeline.is_archived and timeline.archived_until == before.commit_instants[-6].requested
    removed = files - timeline.data_files
    clean = next(each for each in timeline.completed if each.action == "clean")
    name = f".hoodie/timeline/{clean.frontier}.clean"
    said = read_metadata(timeline.folder.read(name), name, mapping_member)
    assert said["totalFilesDeleted"] == len(removed)
    partitions = said["partitionMetadata"].values()
    assert {name for each in partitions for name in each["successDeleteFiles"]} == {
        path.rpartition("/")[2] for path in removed
    }
    assert clean_here(before.uri, 3) and shop.timeline(ORDERS).names == timeline.names, "there is nothing to do"


@pytest.mark.parametrize("seed", range(count(1, 12, 60)))
def test_whatever_is_kept_is_read_as_it_was(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    shop = Shop.of_inputs(tmp_path)
    shop.buckets = dice.randint(1, 4)
    uri, most = shop.timeline(ORDERS).uri, 0
    for _ in range(60):
        for _ in range(dice.randint(1, 3)):
            shop.replace_all(ORDERS) if dice.random() < 0.1 else shop.commit(ORDERS, dice)
        if dice.random() < 0.5:
            retain = dice.choice((1, 1, 2, 5, 9))
            assert clean_here(uri, retain)
            assert_kept(shop, min(retain, len(shop.timeline(ORDERS).data_commits)))
            levels = {name[-9] for name in shop.timeline(ORDERS).history_names if name.endswith(".parquet")}
            most = max([most, *map(int, levels)])
    assert most > 0, "files of the history became one of the next level"
    archived = archive._archived_instants(shop.timeline(ORDERS))
    written = {frontier.partition("_")[0] for name, frontier in shop.rows_at if name == ORDERS}
    on_timeline = {each.requested for each in shop.timeline(ORDERS).commit_instants}
    assert written <= archived | on_timeline and not on_timeline & archived


class _Killed(BaseException):
    pass


def killed_at(point: str, times: int) -> Callable[[str], None]:
    passed = 0

    def at(name: str) -> None:
        nonlocal passed
        passed += name == point
        if passed == times:
            raise _Killed

    return at


@pytest.mark.parametrize("point", [*CLEAN_POINTS, *ARCHIVE_POINTS])
def test_a_clean_that_is_cut_short_is_completed_by_the_next_one(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    uri = shop.timeline(ORDERS).uri
    made = shop.root / "made"
    shutil.copytree(uri, made)
    for times in (1, 3) if point in ("clean.file", "archive.removed") else (1,):
        copy = shop.root / f"copy{times}"
        shutil.copytree(made, copy)
        with monkeypatch.context() as patched:
            for module in (local_clean, archive):
                patched.setattr(module, "fault_point", killed_at(point, times))
            with pytest.raises(_Killed):
                clean_here(str(copy), 3)
        newest = read_table_rows(table_state(Timeline(str(copy))), -1)
        assert newest is not None and len(newest.rows) == len(shop.stored(ORDERS)), "readers see all rows meanwhile"
        assert clean_here(str(copy), 3)
        shutil.rmtree(uri)
        shutil.copytree(copy, uri)
        assert_kept(shop, 3)
        timeline = shop.timeline(ORDERS)
        assert timeline.data_files == needed(timeline, 3)
        assert len(timeline.commit_instants) == 5 and timeline.unfinished == ()
        assert archive._archived_instants(timeline).isdisjoint(each.requested for each in timeline.completed)


def _with_property(shop: Shop, line: str) -> None:
    place = Path(shop.timeline(ORDERS).uri) / ".hoodie/hoodie.properties"
    name = line.partition("=")[0]
    kept = [each for each in place.read_text().splitlines() if not each.startswith(f"{name}=")]
    place.write_text("\n".join([*kept, line, ""]))


def _savepoint(shop: Shop) -> None:
    timeline = shop.timeline(ORDERS)
    assert timeline.frontier is not None
    create_savepoint(timeline, timeline.frontier, "test", "")


def _pending(name: str, content: bytes = b"") -> Callable[[Shop], None]:
    return lambda shop: (
        Path(shop.timeline(ORDERS).uri, ".hoodie/timeline", name).write_bytes(content) and None  # type: ignore[func-returns-value]
    )


LEFT_TO_HUDI: dict[str, Callable[[Shop], None]] = {
    "merge-on-read": lambda shop: _with_property(shop, "hoodie.table.type=MERGE_ON_READ"),
    "an older table": lambda shop: _with_property(shop, "hoodie.table.version=8"),
    "a metadata table": lambda shop: _with_property(shop, "hoodie.table.metadata.partitions=files"),
    "a savepoint": _savepoint,
    "a service under way": _pending("20991231000000000.clustering.requested", b"x"),
    "a plan of another kind": _pending("20991231000000000.clean.requested", b'{"version": 1}'),
    "a plan that leaves the table": _pending(
        "20991231000000000.clean.requested",
        b'{"version": 2, "policy": "KEEP_LATEST_COMMITS", "earliestInstantToRetain": {"timestamp": "2"},'
        b' "filePathsToBeDeletedPerPartition": {"../customers": [{"filePath": "x"}]}}',
    ),
}


@pytest.mark.parametrize("what", LEFT_TO_HUDI)
def test_what_is_not_known_is_left_to_hudi(shop: Shop, what: str) -> None:
    LEFT_TO_HUDI[what](shop)
    place = Path(shop.timeline(ORDERS).uri)
    before = sorted(place.rglob("*"))
    assert not clean_here(str(place), 3)
    assert sorted(place.rglob("*")) == before


def test_instants_that_a_killed_archiver_left_hide_no_rows(tmp_path: Path) -> None:
    """A clean from between archived commits stays on the timeline, the commits do not."""
    shop, dice = Shop.of_inputs(tmp_path), random.Random(2)
    shop.buckets = 32  # so that few commits write to a file group
    uri = shop.timeline(ORDERS).uri
    for _ in range(9):
        shop.commit(ORDERS, dice)
    assert clean_here(uri, 3)
    clean = next(name for name in shop.timeline(ORDERS).names if name.endswith(".clean"))
    content = Path(uri, ".hoodie/timeline", clean).read_bytes()
    for _ in range(6):
        shop.commit(ORDERS, dice)
    assert clean_here(uri, 1) and clean not in shop.timeline(ORDERS).names
    timeline = shop.timeline(ORDERS)
    live = timeline.slices(timeline.frontier or "").values()
    assert any(clean[:17] < each.instant <= timeline.archived_until for each in live), (
        "rows of archived commits after it"
    )
    Path(uri, ".hoodie/timeline", clean).write_bytes(content)
    assert_kept(shop, 1)
