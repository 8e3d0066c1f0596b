"""Names of partitions that `sml forget` has to find in a model's commits."""

from __future__ import annotations

from pathlib import Path

from sqlmesh_like.app.operations.erasure.proof import names_partition
from sqlmesh_like.hudi.erasure.byte_search import Needles
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.plan.catalog import TablePlace
from tests.unit.hudi.test_timeline import Lake


def test_a_partition_that_a_commit_has_emptied_is_still_named_by_earlier_ones(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t")
    lake.commit(1, ["a"])
    frontier = lake.commit(3, action="replacecommit", operation="INSERT_OVERWRITE", replaced={"p=1": ["a"]})
    assert not lake.timeline.slices(frontier)
    place = TablePlace(NodeId("model", "p", "t"), TableName("dws", "t"), str(lake.root))
    assert names_partition(place, Needles(["p=1"]))
    assert not names_partition(place, Needles(["p=2"])) and not names_partition(place, Needles(["p="], {"p=": ["p=1"]}))
