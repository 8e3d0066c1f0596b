"""Every incremental query of TPC-H follows inserts, updates, deletes and new keys in all its tables exactly."""

from __future__ import annotations

from contextlib import closing
from functools import cache
from itertools import pairwise

import pytest

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, MemoryLake
from tests.levels import IS_DEEP, parametrize
from tests.properties.lake import compare
from tests.properties.tpch_data import states
from tests.tpc.plans import compiled_suite

SEEDS = range(20) if IS_DEEP else (1, 4)
QUERIES = [f"q{number:02d}" for number in range(1, 23)]
FEW = ["q03", "q13"]
"""A join of three, and an aggregate of an aggregate over an outer join: of other forms there are random cases."""
BATCHES = 4
ENOUGH = 2
"""Batches that must change a result; further data is drawn only where the first does not do so."""


@cache
def incremental() -> dict[str, CompiledModel]:
    """The maintained queries by name."""
    return {
        name: compiled for name, compiled in compiled_suite("h") if compiled.classification.strategy != "full_refresh"
    }


@cache
def path(seed: int) -> list[LakeSnapshot]:
    return states(seed, BATCHES)


@parametrize("name", suite=FEW, release=[name for name in QUERIES if name not in FEW])
def test_a_query_of_tpch_equals_a_recompute_after_every_batch(name: str) -> None:
    compiled = incremental().get(name)
    if compiled is None:
        pytest.skip("a full refresh: tests/tpc/h/plans.txt says why")
    changed: list[int] = []
    for seed in SEEDS:
        if IS_DEEP or max(changed, default=0) < ENOUGH:
            changed.append(follow(compiled, path(seed)))
    assert max(changed) >= ENOUGH, f"batches that changed the result: {changed}"


def follow(compiled: CompiledModel, snapshots: list[LakeSnapshot]) -> int:
    """Maintain one query through the states of its tables; the number of batches that changed its rows."""
    schemas = {ref.unique_id: ref.declared for ref in compiled.facts.inputs}
    with closing(MemoryLake(schemas)) as lake:
        lake.build(compiled, snapshots[0])
        results = [sorted(lake.rows(), key=repr)]
        for number, (before, after) in enumerate(pairwise(snapshots), 2):
            lake.apply(compiled, before, after)
            compare(lake, compiled, snapshots[:number])
            results.append(sorted(lake.rows(), key=repr))
    return sum(one != other for one, other in pairwise(results))
