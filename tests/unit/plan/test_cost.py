"""When a plan prefers a full refresh to following the change, from commit metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.compile import goes_on_from_its_rows
from sqlmesh_like.errors import NodeError
from sqlmesh_like.plan.cost import CLEARLY, WORTH_IT, WORTH_SWITCHING, Estimate, InputCost, WorkEstimate, estimate
from sqlmesh_like.plan.explain import explain_model
from sqlmesh_like.plan.fingerprint import fingerprint
from sqlmesh_like.plan.history import ChangeVolume, CommitSummary, StoredLayout, TableRecord, TableState, Volume
from sqlmesh_like.plan.model_plan import PlannedModel, plan_model
from sqlmesh_like.project.nodes import Refresh, TableType
from tests.properties.lake import T, U, compiled, schema

NOW = datetime(2024, 1, 1, tzinfo=UTC)
LARGE = Volume(bytes=100_000_000, rows=1_000_000, files=10, partitions=10)
ALL = ChangeVolume(rows=1_000_000, files=10, bytes=100_000_000, partitions=10)
FEW = ChangeVolume(rows=10, files=5, bytes=50_000_000, partitions=5)
COLUMNS = schema(a="int", s="string", dt="date")
ROWS = "select a, s from ods.t where a > 0"


def estimate_of(strategy: str, change: ChangeVolume, target: Volume = LARGE, volume: Volume = LARGE) -> Estimate:
    return estimate(strategy, [InputCost(volume, change)], target)  # type: ignore[arg-type]


def test_a_burst_over_all_rows_is_dearer_to_follow_than_to_rebuild() -> None:
    for strategy in ("row_based", "group_recompute"):
        assert estimate_of(strategy, ALL).is_full_clearly_cheaper
    assert estimate_of("aggregate_merge", ALL).is_full_clearly_cheaper


def test_a_table_that_goes_on_from_its_own_rows_reads_no_input_whole() -> None:
    huge, small = replace(LARGE, bytes=10**10, rows=10**8), replace(LARGE, bytes=10**6)
    few = replace(FEW, bytes=10**6)
    read = [
        estimate("group_recompute", [InputCost(huge, few)], small, has_own_rows=has).incremental.read
        for has in (True, False)
    ]
    assert read[0] * 1000 < read[1]
    top = "select a from ods.t qualify row_number() over (partition by s order by dt) <= 2"
    own = {
        top: True,
        "select a, s from ods.t order by a limit 3": True,
        "select a, rank() over (order by s) as r from ods.t": True,
        "select a, rank() over (partition by s order by dt) as r from ods.t": False,
        top.replace("ods.t", "(select distinct a, s, dt from ods.t) as q"): False,
    }
    assert {sql: goes_on_from_its_rows(compiled(sql, COLUMNS).facts) for sql in own} == own
    assert not goes_on_from_its_rows(compiled(top, COLUMNS, ["s"]).facts)


def test_a_change_that_touches_every_file_by_few_rows_is_followed() -> None:
    spread = replace(ALL, rows=2 * WORTH_IT)
    assert not estimate_of("row_based", spread).is_full_clearly_cheaper


def test_few_rows_of_a_small_table_are_followed_however_many_they_are_of_it() -> None:
    small = Volume(bytes=5000, rows=10, files=1, partitions=1)
    every = ChangeVolume(rows=10, files=1, bytes=5000, partitions=1)
    assert not estimate_of("row_based", every, small, small).is_full_clearly_cheaper


def weighed(change: ChangeVolume, target: Volume = LARGE, *, is_split: bool = True, has_logs: bool = False) -> Estimate:
    """The choice between whole partitions and groups."""
    sides = [InputCost(LARGE, change, is_split)]
    return estimate("partition_rescan", sides, target, alternatives=["group_recompute"], has_logs=has_logs)


def test_a_rescan_of_partitions_never_costs_much_more_than_all_of_them() -> None:
    assert not weighed(ALL).is_full_clearly_cheaper
    assert not weighed(ALL, is_split=False).is_full_clearly_cheaper


def test_a_rescan_reads_and_writes_the_partitions_that_changed() -> None:
    half = estimate("partition_rescan", [InputCost(LARGE, FEW, is_split=True)], LARGE).incremental
    assert (half.read, half.rewritten) == (2 * 50_000_000 + 50_000_000, 50_000_000)


def test_a_rescan_reads_all_of_an_input_with_other_partitions_and_writes_as_many_as_its_rows_can_reach() -> None:
    one = estimate("partition_rescan", [InputCost(LARGE, replace(FEW, rows=1))], LARGE).incremental
    assert (one.read, one.rewritten) == (2 * FEW.bytes + LARGE.bytes, LARGE.bytes // LARGE.partitions)
    many = estimate("partition_rescan", [InputCost(LARGE, replace(FEW, rows=1000))], LARGE).incremental
    assert many.rewritten == LARGE.bytes


def test_few_rows_in_many_large_partitions_are_followed_by_group() -> None:
    buckets = replace(LARGE, bytes=1_000_000_000, files=1000)
    few = weighed(replace(FEW, rows=5), buckets)
    assert few.strategy == "group_recompute"
    assert few.other is not None
    assert few.other[0] == "partition_rescan"
    assert few.other[1].rewritten == buckets.bytes // 2  # five partitions of ten
    assert few.incremental.rewritten < 6 * buckets.bytes // buckets.files  # five file groups


def test_many_rows_of_a_partition_are_followed_by_rescanning_it() -> None:
    buckets = replace(LARGE, bytes=1_000_000_000, files=1000)
    day = ChangeVolume(rows=100_000, files=1, bytes=10_000_000, partitions=1)
    whole = weighed(day, buckets)
    assert whole.strategy == "partition_rescan"
    assert whole.other is not None
    assert whole.incremental.seconds < whole.other[1].seconds


def test_one_file_a_partition_is_quicker_replaced_than_merged_into() -> None:
    assert weighed(FEW).strategy == "partition_rescan"
    assert weighed(replace(FEW, rows=1)).strategy == "partition_rescan"


def test_rows_are_appended_to_the_logs_of_a_large_merge_on_read_table() -> None:
    large = replace(LARGE, bytes=1_000_000_000)
    assert (weighed(FEW, large).strategy, weighed(FEW, large, has_logs=True).strategy) == (
        "partition_rescan", "group_recompute",
    )  # fmt: skip


def test_another_strategy_must_save_more_than_the_time_of_a_job_and_a_clear_share() -> None:
    small = Volume(bytes=22_000_000, rows=1000, files=1000, partitions=10)
    one = ChangeVolume(rows=1, files=1, bytes=5000, partitions=10)
    choice = estimate(
        "partition_rescan", [InputCost(small, one, is_split=True)], small, alternatives=["group_recompute"]
    )
    assert choice.strategy == "partition_rescan"
    assert choice.other is not None
    assert choice.incremental.seconds >= CLEARLY * choice.other[1].seconds
    assert choice.incremental.seconds - choice.other[1].seconds < WORTH_SWITCHING


def test_the_work_told_is_that_of_the_chosen_strategy() -> None:
    choice = weighed(replace(FEW, rows=5), replace(LARGE, bytes=1_000_000_000, files=1000))
    assert [name for name, _ in choice.ways] == ["group_recompute", "partition_rescan"]
    assert choice.work("group_recompute") == choice.incremental != choice.full
    assert choice.work("no_op") == WorkEstimate(0, 0, 0)


def test_a_few_rows_rewrite_the_files_that_they_fall_into() -> None:
    one = estimate_of("row_based", replace(FEW, rows=1)).incremental
    assert one.rewritten == LARGE.bytes // LARGE.files
    assert estimate_of("row_based", ALL).incremental.rewritten == LARGE.bytes


def test_a_merge_on_read_target_takes_changed_rows_alone() -> None:
    few = estimate("row_based", [InputCost(LARGE, FEW)], LARGE, has_logs=True).incremental
    assert few.rewritten == FEW.rows * LARGE.bytes // LARGE.rows
    assert not estimate("row_based", [InputCost(LARGE, ALL)], LARGE, has_logs=True).is_full_clearly_cheaper


def test_rows_without_known_bytes_decide_nothing() -> None:
    blank = Volume(bytes=0, rows=1_000_000, files=10, partitions=1)
    assert not estimate_of("row_based", replace(ALL, bytes=0), blank, blank).is_full_clearly_cheaper


def test_changed_rows_of_a_join_meet_the_whole_other_side() -> None:
    sides = [InputCost(LARGE, FEW), InputCost(replace(LARGE, bytes=7), ChangeVolume())]
    assert estimate("row_based", sides, LARGE).incremental.read == 2 * FEW.bytes + 7


def test_nothing_is_assumed_of_an_input_without_metadata() -> None:
    blank = estimate("row_based", [InputCost(Volume(), ChangeVolume())], Volume())
    assert (blank.incremental.seconds, blank.full.seconds, blank.is_full_clearly_cheaper) == (0, 0, False)


@dataclass
class _History:
    """A lake whose inputs all hold `LARGE` and changed by `pending`; the model's table holds `held`."""

    pending: ChangeVolume
    held: Volume = LARGE

    def state(self, uri: str, format: str = "hudi") -> TableState:
        raise AssertionError("states are given")

    def missing(self, uri: str) -> str | None:
        return None

    def unreadable_reason(self, uri: str, start: str, end: str) -> str | None:
        return None

    def change(self, uri: str, start: str, end: str) -> ChangeVolume:
        return self.pending

    def volume(self, uri: str, frontier: str) -> Volume:
        return self.held if uri == "m" else LARGE

    def repeats_keys(self, uri: str, frontier: str) -> bool:
        return False

    def last_write(self, uri: str) -> CommitSummary | None:
        return None

    def exceeds(self, uri: str, commits: int) -> bool:
        return False

    def uncompacted_commits(self, uri: str) -> int:
        return 0

    def keep(self, uris: Iterable[str]) -> AbstractContextManager[None]:
        return nullcontext()

    def renew(self, uri: str | None = None) -> None:
        pass

    def unread_commits(self, uri: str, start: str, since: str) -> int:
        return 0

    def pending_commits(self, uri: str, start: str, end: str) -> int:
        return 1


def planned(
    change: ChangeVolume | None,
    refresh: Refresh = "auto",
    print_: str | None = None,
    sql: str = ROWS,
    paces: Mapping[str, float] | None = None,
    held: Volume = LARGE,
) -> PlannedModel:
    """The plan of a model that was built, after its input changed so; None: it has not."""
    model = with_refresh(compiled(sql, COLUMNS), refresh)
    ids = [ref.unique_id for ref in model.facts.inputs]
    record = TableRecord(
        "model.shop.m", print_ or fingerprint(model), dict.fromkeys(ids, "1_1"), NOW.isoformat(), "row_based",
        paces=paces or {},
    )  # fmt: skip
    target = TableState("m", "cow", "5_5", record)
    states = {unique_id: TableState(unique_id, "cow", "2_2" if change else "1_1") for unique_id in (T, U)}
    return plan_model(model, target, states, _History(change or ChangeVolume(), held), NOW)


def with_refresh(model: CompiledModel, refresh: Refresh) -> CompiledModel:
    changed = replace(model.facts.model, config=replace(model.facts.model.config, refresh=refresh))
    return CompiledModel.of(replace(model.facts, model=changed))


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
    estimate = explain_model(planned(FEW))["estimate"]
    assert isinstance(estimate, dict)
    assert (estimate["changed_rows"], estimate["changed_files"], estimate["chosen"]) == (10, 5, "row_based")
    assert estimate["full_refresh"] == {"read_bytes": LARGE.bytes, "rewritten_bytes": LARGE.bytes, "seconds": 7.0}
    assert estimate["read_bytes"] == estimate["incremental"]["read_bytes"] == 2 * FEW.bytes
    rebuilt = explain_model(planned(ALL))["estimate"]
    assert isinstance(rebuilt, dict)
    assert (rebuilt["chosen"], rebuilt["read_bytes"]) == ("full_refresh", LARGE.bytes)
    idle = explain_model(planned(None))["estimate"]
    assert isinstance(idle, dict)
    assert (idle["chosen"], idle["read_bytes"], idle["rewritten_bytes"]) == ("no_op", 0, 0)


BUCKETS = replace(LARGE, bytes=1_000_000_000, files=1000)
BY_DATE = "select distinct dt, s, a from ods.t"


def planned_by_date(
    change: ChangeVolume, held: Volume = BUCKETS, refresh: Refresh = "auto", kind: TableType = "cow"
) -> PlannedModel:
    """The plan of a model whose partitions are those of its input."""
    model = with_refresh(compiled(BY_DATE, COLUMNS, ["dt"]), refresh)
    record = TableRecord("model.shop.m", fingerprint(model), {T: "1_1"}, NOW.isoformat(), "partition_rescan", ("dt",))
    target = TableState("m", kind, "5_5", record)
    states = {T: TableState(T, "cow", "2_2", layout=StoredLayout(("dt",), encoded=False))}
    return plan_model(model, target, states, _History(change, held), NOW)


def test_a_plan_takes_groups_where_that_is_clearly_cheaper_and_says_so_with_numbers() -> None:
    plan = planned_by_date(replace(FEW, rows=5))
    assert plan.strategy == "group_recompute"
    (reason,) = plan.reasons
    assert reason.rule == "CST002"
    assert "5 changed rows in 5 file groups: partition_rescan would cost" in reason.message
    usual = planned_by_date(ChangeVolume(rows=100_000, files=1, bytes=10_000_000, partitions=1))
    assert (usual.strategy, usual.reasons) == ("partition_rescan", usual.compiled.classification.reasons)


def test_the_fingerprint_and_what_the_sql_allows_do_not_depend_on_the_choice() -> None:
    groups, rescan = planned_by_date(replace(FEW, rows=5)), planned_by_date(FEW, LARGE)
    assert (groups.strategy, rescan.strategy) == ("group_recompute", "partition_rescan")
    assert groups.fingerprint == rescan.fingerprint
    assert groups.compiled.classification.strategy == rescan.compiled.classification.strategy == "partition_rescan"


@pytest.mark.parametrize("refresh", ["incremental", "strict"])
def test_incremental_and_strict_choose_among_incremental_strategies_too(refresh: Refresh) -> None:
    plan = planned_by_date(replace(FEW, rows=5), refresh=refresh)
    assert plan.strategy == "group_recompute"
    plan.require_allowed()


def test_explain_tells_both_estimates_and_the_chosen_strategy() -> None:
    plan = planned_by_date(replace(FEW, rows=5))
    estimate = explain_model(plan)["estimate"]
    assert isinstance(estimate, dict)
    assert plan.estimate is not None
    assert estimate["chosen"] == "group_recompute"
    assert estimate["strategies"] == {
        name: {"read_bytes": work.read, "rewritten_bytes": work.rewritten, "seconds": round(work.seconds, 1)}
        for name, work in plan.estimate.ways
    }
    assert set(estimate["strategies"]) == {"group_recompute", "partition_rescan", "recompute_merge"}
    assert estimate["strategies"]["group_recompute"] == estimate["incremental"]


def test_the_whole_query_is_compared_where_following_the_change_took_long_before() -> None:
    slow = {"row_based": 9.0, "recompute_merge": 1.0}
    plan = planned(FEW, paces=slow)
    assert (plan.strategy, [reason.rule for reason in plan.reasons]) == ("recompute_merge", ["CST003"])
    assert "10 changed rows in 5 file groups: row_based would cost" in plan.reasons[0].message
    assert explain_model(plan)["estimate"]["chosen"] == "recompute_merge"  # type: ignore[index]
    plan.require_allowed()
    assert planned(FEW, paces={"row_based": 9.0}).strategy == "row_based"  # a slow machine is slow in either way
    assert planned(FEW, paces={**slow, "recompute_merge": 9.0}).strategy == "row_based"


WHOLE_GROUPS = {
    "select count(distinct a) as n from ods.t": "recompute_merge",
    "select max(a) as n from ods.t": "aggregate_merge",
    "select s, count(distinct a) as n from ods.t group by s": "group_recompute",
}


@pytest.mark.parametrize("sql", WHOLE_GROUPS)
def test_the_only_group_is_not_read_both_as_it_was_and_as_it_is(sql: str) -> None:
    assert planned(FEW, sql=sql, held=Volume(bytes=4000, rows=1, files=1, partitions=1)).strategy == WHOLE_GROUPS[sql]


@pytest.mark.parametrize("refresh", ["incremental", "strict"])
def test_incremental_and_strict_never_take_the_whole_query_for_cost(refresh: Refresh) -> None:
    assert planned(FEW, refresh, paces={"row_based": 9.0, "recompute_merge": 1.0}).strategy == "row_based"


def test_small_inputs_are_followed_however_long_that_took() -> None:
    tiny = Volume(bytes=5000, rows=10, files=1, partitions=1)
    estimated = estimate(
        "row_based", [InputCost(tiny, ChangeVolume(1, 1, 5000, 1))], tiny, alternatives=["recompute_merge"],
        paces={"row_based": 20.0, "recompute_merge": 0.1},
    )  # fmt: skip
    assert estimated.strategy == "row_based"


def test_what_no_rule_follows_is_rebuilt_and_not_compared() -> None:
    assert planned(FEW, sql=ROWS + " limit 1", paces={"full_refresh": 9.0}).strategy == "full_refresh"
