"""A table whose metadata is broken: built again where that is asked for, and never where its rows are nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

import pytest

from sqlmesh_like.errors import UnreadableTableError
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.plan.catalog import Catalog, TablePlace
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import RenderedModel, RenderedProject, SourceMap

MODEL = NodeId("model", "p", "m")


@dataclass
class BrokenHistory:
    def state(self, uri: str, format: str = "hudi") -> TableState:
        raise UnreadableTableError(f"{uri}/x.commit is not commit metadata")


def planned(full_refresh: bool, materialized: Literal["incremental", "snapshot"] = "incremental") -> TableState:
    sql, table = "select 1 as id", TableName("dws", "m")
    config = replace(ModelConfig(), materialized=materialized)
    model = RenderedModel(MODEL, "m", "m.sql", sql, sql, config, table, (), SourceMap(sql, sql))
    catalog = Catalog({MODEL: TablePlace(MODEL, table, "/lake/dws/m")}, BrokenHistory())  # type: ignore[arg-type]
    planner = Planner(RenderedProject("p", (model,)), catalog, datetime(2024, 1, 1, tzinfo=UTC), full_refresh)
    plan = planner.plan(model, {})
    assert plan.strategy == "full_refresh" and not plan.is_refused
    return plan.target


def test_a_full_refresh_builds_it_again() -> None:
    assert planned(full_refresh=True) == TableState("/lake/dws/m", "unreadable")


@pytest.mark.fault("a commit of a model is truncated or overwritten", ends="refuses")
def test_any_other_run_says_which_file_and_what_to_do() -> None:
    with pytest.raises(UnreadableTableError, match=r"dws.m: /lake/dws/m/x.commit is not") as refused:
        planned(full_refresh=False)
    assert "sml run --full-refresh --select m" in (refused.value.hint or "")


@pytest.mark.parametrize("full_refresh", [False, True])
@pytest.mark.fault("a commit of a snapshot is truncated or overwritten", ends="refuses")
def test_a_snapshot_is_never_built_again(full_refresh: bool) -> None:
    with pytest.raises(UnreadableTableError, match="is not commit metadata") as refused:
        planned(full_refresh, "snapshot")
    assert "from a backup" in (refused.value.hint or "")
