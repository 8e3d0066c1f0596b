"""Changes of tables that other writers made, as DuckDB reads them; Spark reads the same (`test_read_plans` there)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from types import ModuleType

import pytest

from sqlmesh_like.duckdb import local_files
from sqlmesh_like.duckdb.local_files import LocalTable
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.hudi.commits import Commit, FileGroup, touched_groups
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.reading import change_plan
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, RECORD_KEY, WEIGHT
from tests.hand_made_table import SCENARIOS, HandMadeTable, scenario
from tests.written_table import fetched


def reader(table: HandMadeTable) -> LocalTable:
    local = local_table(LakeHistory().state(str(table.root)), MergedSlices(), hidden=False)
    assert local is not None
    return local


def net(query: str, names: str) -> Counter[tuple[object, ...]]:
    weights: Counter[tuple[object, ...]] = Counter()
    for *row, weight in fetched(f"SELECT {names}, {WEIGHT} FROM ({query})"):
        weights[tuple(row)] += int(str(weight))
    return Counter({row: weight for row, weight in weights.items() if weight})


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_change_is_what_happened(tmp_path: Path, name: str) -> None:
    case = scenario(tmp_path / "t", name)
    assert net(reader(case.table).change(case.start, case.end), "id, v, p") == case.change


@pytest.mark.parametrize("name", SCENARIOS)
def test_rows_at_the_end_are_those_at_the_start_and_the_change(tmp_path: Path, name: str) -> None:
    case = scenario(tmp_path / "t", name)
    rows = {
        at: Counter(fetched(f"SELECT id, v, p FROM ({reader(case.table).rows(at)})")) for at in (case.start, case.end)
    }
    after = Counter(rows[case.start])
    after.update(case.change)
    assert rows[case.end] == Counter({row: count for row, count in after.items() if count})


def test_rows_that_stay_have_one_key_though_keys_repeat_from_now_on(tmp_path: Path) -> None:
    """Before the insert a key was enough to tell rows apart; with another key they would look removed and added."""
    case = scenario(tmp_path / "t", "inserted beside the same key")
    change = net(reader(case.table).change(case.start, case.end), f"{KEY}, v")
    assert change == {("3/p=x/1/20240101000003000_0_1", 12): 1}


def at_the_frontier(timeline: Timeline, start: str, commits: Iterable[Commit]) -> str:
    return start.split("_")[0]


def without_a_look_at_deletes(commits: Collection[Commit]) -> frozenset[FileGroup]:
    is_upsert = all(commit.operation == "UPSERT" and not commit.replaced for commit in commits)
    return touched_groups(commits) if is_upsert else frozenset()


def those_that_data_commits_touched(commits: Iterable[Commit]) -> frozenset[FileGroup]:
    return touched_groups(commit for commit in commits if commit.is_data)


NAIVE: dict[str, tuple[str, ModuleType, str, object]] = {
    "time of the frontier": ("deleted after a rewrite", change_plan, "_since", at_the_frontier),
    "every group superseded": ("inserted beside the same key", change_plan, "_superseded_groups", touched_groups),
    "deletes overlooked": ("moved", change_plan, "_superseded_groups", without_a_look_at_deletes),
    "services overlooked": ("clustered and updated", change_plan, "touched_groups", those_that_data_commits_touched),
    "rows by key": ("moved", local_files, "ROW", (RECORD_KEY,)),
    "records by key": ("records of two partitions", local_files, "RECORD", (RECORD_KEY,)),
}
"""A rule as one might write it, the scenario that shows why not, and where it stands."""


@pytest.mark.parametrize("rule", NAIVE)
def test_a_naive_rule_is_caught(tmp_path: Path, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, module, replaced, naive = NAIVE[rule]
    case = scenario(tmp_path / "t", name)
    monkeypatch.setattr(module, replaced, naive)
    assert net(reader(case.table).change(case.start, case.end), "id, v, p") != case.change
