"""The machine checks a declared key before anything is written: on rows in memory, with each way of writing."""

from __future__ import annotations

from contextlib import closing

import pytest

from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.delta.machine import Machine, MaintainedTable
from sqlmesh_like.delta.program import Moves
from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, MemoryLake
from sqlmesh_like.duckdb.programs.memory_steps import MemoryWriter, RowActions
from sqlmesh_like.errors import NodeError
from tests.properties.lake import T, compiled, schema, states

COLUMNS = schema(id="int", city="string")
PLAN = compiled("select id, city from ods.t", COLUMNS)
PARTITIONED = compiled("select city, id, count(distinct id) as n from ods.t group by city, id", COLUMNS, ["city"])
WHOLE = {"1": (1, "a"), "2": (2, "b")}


class Overwriting(MemoryWriter):
    """Replaces partitions as a whole, as Spark does; here they are only counted."""

    def overwrite_partitions(self, rescan: object) -> RowActions:
        return RowActions(len(self.steps.db.execute("SELECT * FROM _sml_fresh").fetchall()), 0)


def run(
    before: LakeSnapshot, after: LakeSnapshot, strategy: Strategy, *, overwrites: bool = False
) -> tuple[RowActions | str, list[tuple[object, ...]]]:
    """What a run with the declared key `id` did, or the error, and the rows after it."""
    plan = PARTITIONED if strategy == "partition_rescan" else PLAN
    with closing(MemoryLake({T: COLUMNS})) as lake:
        lake.build(plan, before)
        lake._load_changes(before, after)
        lake._load("current", after)
        lake._steps.begin(lake._empty)
        writer = (Overwriting if overwrites else MemoryWriter)(lake._steps, lambda: None, overwrites)
        table = MaintainedTable("m", unique_key=("id",))
        machine = Machine(plan.table, lake._steps, writer, table, lake._now, lake._then)
        try:
            done: RowActions | str = machine.run(strategy, Moves())
        except NodeError as error:
            done = error.message
        return done, sorted(lake.rows(), key=repr)


@pytest.mark.parametrize("strategy", ["row_based", "recompute_merge"])
@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"3": (2, "c")}, "unique_key (id) of m repeats: up to 2 rows share one"),  # of a row that stays
        ({"3": (3, "c"), "4": (3, "d")}, "unique_key (id) of m repeats: up to 2 rows share one"),
        ({"1": (None, "a")}, "1 rows of m have NULL in unique_key (id)"),
    ],
)
def test_a_key_that_repeats_or_is_null_stops_the_run_and_changes_nothing(
    strategy: Strategy, batch: dict[str, tuple[object, ...]], message: str
) -> None:
    before, after = states(WHOLE, batch)
    done, rows = run(before, after, strategy)
    assert (done, rows) == (message, [(1, "a"), (2, "b")])


@pytest.mark.parametrize("strategy", ["row_based", "recompute_merge"])
def test_a_key_may_pass_from_a_row_that_leaves_to_one_that_enters(strategy: Strategy) -> None:
    before, after = states(WHOLE, {"2": None, "3": (2, "c")})
    done, rows = run(before, after, strategy)
    assert (done, rows) == (RowActions(1, 1), [(1, "a"), (2, "c")])


@pytest.mark.parametrize("overwrites", [False, True])
def test_a_rescan_compares_its_rows_with_other_partitions(overwrites: bool) -> None:
    before, after = states(WHOLE, {"3": (2, "a")})
    done, rows = run(before, after, "partition_rescan", overwrites=overwrites)
    assert done == "unique_key (id) of m repeats: up to 2 rows share one"
    assert len(rows) == 2
    moved = run(before, states(WHOLE, {"2": (2, "a")})[1], "partition_rescan", overwrites=overwrites)
    assert isinstance(moved[0], RowActions), "the row left the partition that is replaced, too"


@pytest.mark.parametrize("strategy", ["row_based", "recompute_merge"])
def test_no_row_changes_where_a_row_was_only_rewritten(strategy: Strategy) -> None:
    before, after = states(WHOLE, {"1": (*WHOLE["1"],)})
    assert run(before, after, strategy) == (RowActions(0, 0), [(1, "a"), (2, "b")])
