"""When a plan prefers a full refresh to following the change, from commit metadata alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from sqlmesh_like.compiler import CompiledModel
from sqlmesh_like.errors import NodeError
from sqlmesh_like.plan.builder import PlannedModel, plan_model
from sqlmesh_like.plan.cost import WORTH_IT, Estimate, InputCost, estimate
from sqlmesh_like.plan.explain import explained
from sqlmesh_like.plan.fingerprint import fingerprint
from sqlmesh_like.plan.history import Change, TableRecord, TableState, Volume, Written
from sqlmesh_like.project.spec import Refresh
from tests.properties.lake import T, U, compiled, schema

NOW = datetime(2024, 1, 1, tzinfo=UTC)
LARGE = Volume(bytes=100_000_000, rows=1_000_000, files=10, partitions=10)
ALL = Change(rows=1_000_000, files=10, bytes=100_000_000, partitions=10)
FEW = Change(rows=10, files=5, bytes=50_000_000, partitions=5)
COLUMNS = schema(a="int", s="string", dt="date")
ROWS = "select a, s from ods.t where a > 0"


def found(strategy: str, change: Change, target: Volume = LARGE, volume: Volume = LARGE) -> Estimate:
    return estimate(strategy, [InputCost(volume, change)], target)  # type: ignore[arg-type]


def test_a_burst_over_all_rows_is_dearer_to_follow_than_to_rebuild() -> None:
    for strategy in ("row_based", "group_recompute"):
        assert found(strategy, ALL).is_full_clearly_cheaper
    assert found("aggregate_merge", ALL).is_full_clearly_cheaper


def test_a_change_that_touches_every_file_by_few_rows_is_followed() -> None:
    spread = replace(ALL, rows=2 * WORTH_IT)
    assert not found("row_based", spread).is_full_clearly_cheaper


def test_few_rows_of_a_small_table_are_followed_however_many_they_are_of_it() -> None:
    small = Volume(bytes=5000, rows=10, files=1, partitions=1)
    every = Change(rows=10, files=1, bytes=5000, partitions=1)
    assert not found("row_based", every, small, small).is_full_clearly_cheaper


def test_a_rescan_of_partitions_never_costs_much_more_than_all_of_them() -> None:
    assert not found("partition_rescan", ALL).is_full_clearly_cheaper


def test_a_rescan_reads_and_writes_the_partitions_that_changed() -> None:
    half = found("partition_rescan", FEW).incremental
    assert (half.read, half.rewritten) == (2 * 50_000_000 + 50_000_000, 50_000_000)


def test_a_few_rows_rewrite_the_files_that_they_fall_into() -> None:
    one = found("row_based", replace(FEW, rows=1)).incremental
    assert one.rewritten == LARGE.bytes // LARGE.files
    assert found("row_based", ALL).incremental.rewritten == LARGE.bytes


def test_a_merge_on_read_target_takes_changed_rows_alone() -> None:
    few = estimate("row_based", [InputCost(LARGE, FEW)], LARGE, has_logs=True).incremental
    assert few.rewritten == FEW.rows * LARGE.bytes // LARGE.rows
    assert not estimate("row_based", [InputCost(LARGE, ALL)], LARGE, has_logs=True).is_full_clearly_cheaper


def test_rows_without_known_bytes_decide_nothing() -> None:
    blank = Volume(bytes=0, rows=1_000_000, files=10, partitions=1)
    assert not found("row_based", replace(ALL, bytes=0), blank, blank).is_full_clearly_cheaper


def test_changed_rows_of_a_join_meet_the_whole_other_side() -> None:
    sides = [InputCost(LARGE, FEW), InputCost(replace(LARGE, bytes=7), Change())]
    assert estimate("row_based", sides, LARGE).incremental.read == 2 * FEW.bytes + 7


def test_nothing_is_assumed_of_an_input_without_metadata() -> None:
    blank = estimate("row_based", [InputCost(Volume(), Change())], Volume())
    assert (blank.incremental.seconds, blank.full.seconds, blank.is_full_clearly_cheaper) == (0, 0, False)


@dataclass
class _History:
    """A lake whose inputs all hold `LARGE` and changed by `pending`."""

    pending: Change

    def state(self, uri: str, format: str = "hudi") -> TableState:
        raise AssertionError("states are given")

    def lost(self, uri: str, start: str, end: str) -> str | None:
        return None

    def change(self, uri: str, start: str, end: str) -> Change:
        return self.pending

    def volume(self, uri: str, frontier: str) -> Volume:
        return LARGE

    def repeats_keys(self, uri: str, frontier: str) -> bool:
        return False

    def last_write(self, uri: str) -> Written | None:
        return None

    def exceeds(self, uri: str, commits: int) -> bool:
        return False

    def pending_commits(self, uri: str, start: str, end: str) -> int:
        return 1


def planned(
    change: Change | None, refresh: Refresh = "auto", print_: str | None = None, sql: str = ROWS
) -> PlannedModel:
    """The plan of a model that was built, after its input changed so; None: it has not."""
    model = with_refresh(compiled(sql, COLUMNS), refresh)
    ids = [ref.unique_id for ref in model.facts.inputs]
    record = TableRecord(
        "model.shop.m", print_ or fingerprint(model), dict.fromkeys(ids, "1_1"), NOW.isoformat(), "row_based"
    )
    target = TableState("m", "cow", "5_5", record)
    states = {unique_id: TableState(unique_id, "cow", "2_2" if change else "1_1") for unique_id in (T, U)}
    return plan_model(model, target, states, _History(change or Change()), NOW)


def with_refresh(model: CompiledModel, refresh: Refresh) -> CompiledModel:
    changed = replace(model.facts.model, config=replace(model.facts.model.config, refresh=refresh))
    return replace(model, facts=replace(model.facts, model=changed))


def test_auto_takes_the_full_refresh_where_it_is_clearly_cheaper_and_says_so_with_numbers() -> None:
    plan = planned(ALL)
    assert plan.strategy == "full_refresh"
    (reason,) = plan.reasons
    assert reason.rule == "CST001"
    assert "1,000,000 changed rows, 100% of an input" in reason.message
    assert planned(FEW).strategy == "row_based"


@pytest.mark.parametrize("refresh", ["incremental", "strict"])
def test_incremental_and_strict_never_rebuild_for_cost(refresh: Refresh) -> None:
    plan = planned(ALL, refresh)
    assert plan.strategy == "row_based"
    plan.require_allowed()


def test_incremental_rebuilds_where_nothing_else_is_sound() -> None:
    plan = planned(FEW, "incremental", print_="another query")
    assert (plan.strategy, [reason.rule for reason in plan.reasons]) == ("full_refresh", ["HIS002"])
    plan.require_allowed()


@pytest.mark.parametrize(
    ("sql", "print_", "rule"), [(ROWS, "another query", "HIS002"), (ROWS + " limit 1", None, "QRY003")]
)
def test_strict_fails_with_the_reasons_where_only_a_rebuild_is_sound(sql: str, print_: str | None, rule: str) -> None:
    plan = planned(FEW, "strict", print_, sql)
    with pytest.raises(NodeError, match=rule) as refused:
        plan.require_allowed()
    assert "--full-refresh" in (refused.value.hint or "")


def test_full_rebuilds_whatever_changed_and_only_then() -> None:
    assert [reason.rule for reason in planned(FEW, "full").reasons] == ["CFG001"]
    assert planned(None, "full").strategy == "no_op"


def test_explain_tells_the_estimate_of_what_was_chosen() -> None:
    told = explained(planned(FEW))["estimate"]
    assert isinstance(told, dict)
    assert (told["changed_rows"], told["changed_files"], told["chosen"]) == (10, 5, "row_based")
    assert told["full_refresh"] == {"read_bytes": LARGE.bytes, "rewritten_bytes": LARGE.bytes}
    assert told["read_bytes"] == told["incremental"]["read_bytes"] == 2 * FEW.bytes
    rebuilt = explained(planned(ALL))["estimate"]
    assert isinstance(rebuilt, dict)
    assert (rebuilt["chosen"], rebuilt["read_bytes"]) == ("full_refresh", LARGE.bytes)
    idle = explained(planned(None))["estimate"]
    assert isinstance(idle, dict)
    assert (idle["chosen"], idle["read_bytes"], idle["rewritten_bytes"]) == ("no_op", 0, 0)
