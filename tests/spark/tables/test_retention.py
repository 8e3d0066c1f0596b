"""Cleaning on real tables: what is kept stays readable as it was, what is gone is told before a run."""

from __future__ import annotations

from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.spark.tables.cleaner import clean_history
from tests.spark.lake import Lake, signed


def test_kept_commits_stay_readable_and_lost_ones_are_known(lake: Lake) -> None:
    table = lake.source("t", "id int, v int")
    frontiers = [table.upsert((number % 3, number)) for number in range(12)]
    before = signed(table.feed().changes(frontiers[-3], frontiers[-1]))
    clean_history(lake.spark, table.uri, retain=3)
    assert len(table.timeline.data_files) < 12
    assert signed(table.feed().changes(frontiers[-3], frontiers[-1])) == before
    assert LakeHistory().unreadable_reason(table.uri, frontiers[-3], frontiers[-1]) is None
    assert LakeHistory().unreadable_reason(table.uri, frontiers[0], frontiers[-1]) is not None
    assert table.frontier() == frontiers[-1]
