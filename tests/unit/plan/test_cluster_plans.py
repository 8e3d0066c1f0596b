"""Plans for executors on other machines: the jobs that each strategy would start, and the choice with their price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.plan.cluster.job_price import QUESTION_SECONDS, STEP_SECONDS, JobPrice, JobsDone
from sqlmesh_like.plan.cluster.weighing import Cluster, cluster_of
from sqlmesh_like.plan.cost import WorkEstimate
from sqlmesh_like.plan.explain import explain_model
from sqlmesh_like.plan.fingerprint import fingerprint
from sqlmesh_like.plan.history import NO_CHANGE, ChangeVolume, TableRecord, TableState, Volume
from sqlmesh_like.plan.model_plan import PlannedModel, plan_model
from sqlmesh_like.plan.router import Router
from sqlmesh_like.project.nodes import Refresh, Target
from tests.properties.lake import T, U, compiled, schema
from tests.unit.plan.test_cost import NOW, _History, with_refresh

MEGABYTE = 1_000_000
COLUMNS = schema(a="int", s="string", dt="date")
STORED = (*COLUMNS, *schema(_sml_key="string"))
JOINED = "select t.a, count(distinct u.s) as n from ods.t join ods.u on t.a = u.a group by t.a"
TARGET = Target("lake", "there", "spark", warehouse="w", master="spark://host:7077")
RECORD = TableRecord("model.shop.m", "", {}, NOW.isoformat(), "row_based")


class Lake(_History):
    """Each input holds 60 MB; of one of them 10 rows changed in 20 MB of files, which are read before and after."""

    def volume(self, uri: str, frontier: str) -> Volume:
        return Volume(MEGABYTE if uri == "m" else 60 * MEGABYTE, 1_000_000, 10, 1)


def plan(
    most: int, sql: str = JOINED, refresh: Refresh = "auto", paces: Mapping[str, float] | None = None, **target: str
) -> PlannedModel:
    """The plan of a model that was built, on a cluster whose driver may read so many megabytes."""
    model = with_refresh(compiled(sql, COLUMNS), refresh)
    ids = [ref.unique_id for ref in model.facts.inputs]
    record = replace(RECORD, fingerprint=fingerprint(model), frontier=dict.fromkeys(ids, "1_1"), paces=paces or {})
    states: dict[str, TableState] = {
        each: TableState(each, "cow", end, schema=COLUMNS, stored=STORED) for each, end in ((T, "2_2"), (U, "1_1"))
    }
    change = ChangeVolume(rows=10, files=2, bytes=20 * MEGABYTE, partitions=1)
    planned = plan_model(model, TableState("m", "cow", "5_5", record), states, Lake(change), NOW)
    settings = replace(TARGET, driver_max_bytes=most * MEGABYTE, **target)  # type: ignore[arg-type]
    cluster = cluster_of(Router(settings))
    assert cluster is not None
    price = cluster.price.known_from([record])
    return replace(cluster, price=price).weigh(planned)


def work(planned: PlannedModel, strategy: Strategy) -> WorkEstimate:
    assert planned.estimate is not None
    ways = dict(planned.estimate.ways) | {"full_refresh": planned.estimate.full}
    return ways[strategy]


def jobs(planned: PlannedModel) -> dict[str, int]:
    assert planned.estimate is not None
    return {name: each.cluster.jobs for name, each in planned.estimate.ways if each.cluster is not None}


def test_what_the_driver_may_read_starts_no_job_and_is_planned_as_on_one_machine() -> None:
    planned = plan(1000)
    assert planned.strategy == "group_recompute"
    assert jobs(planned) == {"group_recompute": 0, "recompute_merge": 0}
    assert planned.reasons == planned.compiled.classification.reasons


def test_a_recompute_on_the_driver_is_preferred_to_a_lookup_by_a_job_of_executors() -> None:
    """The inputs are within the bound, the inputs and the change above it."""
    planned = plan(130)
    assert planned.strategy == "recompute_merge"
    assert jobs(planned) == {"recompute_merge": 0, "group_recompute": 2}
    (reason,) = planned.reasons
    assert reason.rule == "CST003" and reason.message.endswith("times as much, with 2 jobs of executors")


def test_jobs_are_followed_where_they_cost_less_than_the_whole_query() -> None:
    assert plan(130, paces={"job of spark://host:7077": 0.05}).strategy == "group_recompute"
    assert plan(130, paces={"job of yarn": 0.05}).strategy == "recompute_merge", "that is another master's price"


def test_the_whole_query_is_not_preferred_if_executors_compute_that_too() -> None:
    planned = plan(110)
    assert planned.strategy == "group_recompute"
    assert 0 < jobs(planned)["group_recompute"] <= jobs(planned)["recompute_merge"]


@pytest.mark.parametrize("refresh", ["incremental", "strict"])
def test_incremental_and_strict_ask_executors_whatever_their_jobs_cost(refresh: Refresh) -> None:
    assert plan(130, refresh=refresh, paces={"job of spark://host:7077": 20.0}).strategy == "group_recompute"


def test_what_history_decides_is_not_weighed_again() -> None:
    rebuilt = replace(plan(130), strategy="full_refresh", reasons=())
    cluster = Cluster(Router(replace(TARGET, driver_max_bytes=130 * MEGABYTE)), JobPrice(TARGET.master))
    assert cluster.weigh(rebuilt).strategy == "full_refresh"


def test_steps_that_seldom_have_rows_start_no_job() -> None:
    """A table of first rows asks for more of them only where too few are left."""
    top = "select a, s from ods.t qualify row_number() over (partition by s order by a) <= 2"
    assert jobs(plan(70, top))["group_recompute"] == 0
    later = "select a, s from ods.t order by a limit 2 offset 1"
    assert jobs(plan(70, later))["group_recompute"] == 0


def test_each_table_and_choice_of_keys_is_asked_for_once() -> None:
    once = "select t.a, u.s from ods.t join ods.u on t.a = u.a"
    twice = "select t.a, u.s, v.s as other from ods.t join ods.u on t.a = u.a join ods.u as v on t.a = v.a"
    other = "select t.a, u.s, v.s as other from ods.t join ods.u on t.a = u.a join ods.u as v on t.s = v.s"
    assert [jobs(plan(60, sql))["row_based"] for sql in (once, twice, other)] == [2, 2, 4]


def test_lookups_in_the_table_that_has_changed_are_jobs_too_and_the_plan_says_who_scans() -> None:
    """Bytes of the change and of the other table are within the bound; rows of the changed one are looked up, too."""
    sql = "select sum(t.a) as n from ods.t join ods.u on u.a = t.a"
    sql += " where t.a < (select avg(o.a) from ods.t as o where o.s = t.s)"
    planned = plan(105, sql, refresh="incremental")
    assert jobs(planned)[planned.strategy] > 0
    route = Router(replace(TARGET, driver_max_bytes=105 * MEGABYTE)).route(planned)
    assert (route.scans, route.engine, route.commits) == ("spark", "duckdb", "duckdb")
    assert route.because.startswith("executors look rows up"), (planned.strategy, route.because)


def test_a_model_that_executors_compute_as_a_whole_has_a_job_for_each_awaited_step_and_some_for_its_commit() -> None:
    small, large = plan(1, "select a, s from ods.t where a > 0"), plan(1, JOINED)
    assert jobs(small)["row_based"] < jobs(large)["group_recompute"]
    assert {each.cluster.computes for _, each in small.estimate.ways if each.cluster} == {"spark"}  # type: ignore[union-attr]


def test_explain_says_of_each_strategy_who_does_its_work_and_what_it_takes() -> None:
    estimate = explain_model(plan(130))["estimate"]
    assert isinstance(estimate, dict)
    names = ("scans", "computes", "commits", "jobs", "job_seconds")
    said = {way: tuple(each[name] for name in names) for way, each in estimate["strategies"].items()}
    assert said == {
        "recompute_merge": ("duckdb", "duckdb", "duckdb", 0, QUESTION_SECONDS),
        "group_recompute": ("spark", "duckdb", "duckdb", 2, QUESTION_SECONDS),
    }
    assert estimate["full_refresh"]["computes"] == "duckdb"
    planned = plan(130)
    asked = work(planned, "group_recompute")
    assert asked.seconds == asked.pace * asked.seconds_expected + 2 * QUESTION_SECONDS


def test_on_one_machine_there_is_no_cluster() -> None:
    for master in ("local[*]", "local[2]", "local-cluster[2,1,1024]"):
        assert cluster_of(Router(replace(TARGET, master=master))) is None


def test_a_commit_records_what_a_job_took_and_later_plans_know_it() -> None:
    planned = plan(130, paces={"group_recompute": 2.0})
    paces = planned.record("group_recompute", 1, {}, NOW, JobsDone(4, 2.0, 0)).paces
    assert paces == {"group_recompute": 2.0, "job of spark://host:7077": 0.5}
    again = plan(130, paces=paces)
    assert again.price == JobPrice(TARGET.master, 0.5)
    assert work(again, "recompute_merge").pace == 2.0, "the price of a job is no pace of a strategy"
    assert again.record("group_recompute", 1, {}, NOW, JobsDone(1, 1.5)).paces["job of spark://host:7077"] == 1.0
    assert again.record("recompute_merge", 1, {}, NOW).paces == paces, "a run without jobs keeps it"


def test_the_price_is_that_of_the_newest_tables_on_this_master() -> None:
    price, name = JobPrice("yarn"), "job of yarn"
    old = replace(RECORD, now="2023-01-01T00:00:00+00:00", paces={name: 20.0})
    new = [replace(RECORD, now=f"2024-01-0{day}T00:00:00+00:00", paces={name: 0.5}) for day in range(1, 6)]
    assert price.known_from([old, *new, RECORD]).seconds(is_question=True) == pytest.approx(0.5)
    assert price.known_from([RECORD]) == price
    assert (price.seconds(is_question=True), price.seconds(is_question=False)) == (QUESTION_SECONDS, STEP_SECONDS)


def test_time_that_is_not_a_jobs_does_not_make_one_dear_for_ever() -> None:
    assert JobsDone(1, 3600.0).seconds_each == 20.0
    assert JobsDone(2, 10.0, 1_000_000_000_000).seconds_each == 0.05, "bytes are counted by themselves"


def test_no_change_is_no_jobs() -> None:
    idle = plan_model(
        compiled(JOINED, COLUMNS),
        TableState("m", "cow", "5_5", replace(RECORD, fingerprint=fingerprint(compiled(JOINED, COLUMNS)),
                                              frontier={T: "1_1", U: "1_1"})),
        {each: TableState(each, "cow", "1_1", schema=COLUMNS) for each in (T, U)}, Lake(NO_CHANGE), NOW,
    )  # fmt: skip
    cluster = cluster_of(Router(TARGET))
    assert cluster is not None and cluster.weigh(idle).strategy == "no_op"
