"""Changes of tables that other writers made, as DuckDB reads them; Spark reads the same (`test_read_plans` there)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from sqlmesh_like.duckdb.local_files import LocalTable
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.names import KEY, WEIGHT
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
