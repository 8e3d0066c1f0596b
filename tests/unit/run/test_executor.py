"""A run over a lake in memory: side by side where it can be, one past for all, and the work of each commit told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Barrier, Lock

import pytest

from sqlmesh_like.app.operations.run_results import response
from sqlmesh_like.names import Column, NodeId, TableName
from sqlmesh_like.plan.catalog import Catalog, TablePlace
from sqlmesh_like.plan.graph import Graph, Node
from sqlmesh_like.plan.history import ChangeVolume, CommitSummary, TableRecord, TableState, Volume
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import InputRef, RenderedModel, RenderedProject, SourceMap
from sqlmesh_like.run.executor import Executor, RunPolicy
from sqlmesh_like.run.ports import SparkWork, WriteResult
from sqlmesh_like.run.result import ModelResult, NodeResult, RenderedNode
from sqlmesh_like.run.schedule import Pace

NOW = datetime(2024, 1, 1, tzinfo=UTC)
SOURCE = NodeId("source", "p", "ods", "t")
SCHEMA = (Column("id", "int"),)


@dataclass
class _Lake:
    """Tables in memory: each is the list of its commits' records, None for one of ingestion."""

    tables: dict[str, list[TableRecord | None]] = field(default_factory=lambda: {SOURCE: [None]})

    def state(self, uri: str, format: str = "hudi") -> TableState:
        commits = self.tables.get(uri)
        if not commits:
            return TableState(uri, "missing")
        frontier = f"{len(commits)}_{len(commits)}"
        return TableState(uri, "cow", frontier, commits[-1], SCHEMA, SCHEMA)

    def missing(self, uri: str) -> str | None:
        return None

    def unreadable_reason(self, uri: str, start: str, end: str) -> str | None:
        return None

    def change(self, uri: str, start: str, end: str) -> ChangeVolume:
        return ChangeVolume(rows=1, files=1, bytes=1, partitions=1)

    def volume(self, uri: str, frontier: str) -> Volume:
        return Volume()

    def repeats_keys(self, uri: str, frontier: str) -> bool:
        return False

    def last_write(self, uri: str) -> CommitSummary | None:
        return CommitSummary(self.state(uri).frontier or "", rows=100, files=2, bytes=4096)

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


@dataclass
class _Engine:
    """Commits the record of each plan; `before` is called first, from the node's own thread."""

    lake: _Lake
    before: Callable[[str], object] = lambda _name: None
    plans: dict[str, PlannedModel] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    released: int = 0
    running: int = 0
    most: int = 0
    _lock: Lock = field(default_factory=Lock)

    def apply(self, planned: PlannedModel, shared: Collection[str] = ()) -> WriteResult:
        self.shared |= set(shared)
        name = planned.compiled.model.name
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.before(name)
        self.plans[name] = planned
        self.lake.tables.setdefault(planned.target.uri, []).append(planned.record(planned.strategy, 1, {}))
        with self._lock:
            self.running -= 1
        return WriteResult(planned.strategy, 1, 0, committed=True, spark=SparkWork(4, 5, 600, 70))

    def release(self) -> None:
        self.released += 1


class _Silent:
    def started(self, number: int, total: int, node: RenderedNode) -> None: ...

    def ended(self, number: int, total: int, result: NodeResult) -> None: ...


def _model(name: str, reads: Iterable[str]) -> RenderedModel:
    refs = tuple(
        InputRef(SOURCE, TableName("ods", "t"), "source") if read == "t"
        else InputRef(NodeId("model", "p", read), TableName("dws", read), "model")
        for read in reads
    )  # fmt: skip
    sql = " union all ".join(f"select id from {ref.table.schema}.{ref.table.identifier}" for ref in refs)
    config, table = ModelConfig(), TableName("dws", name)
    return RenderedModel(
        NodeId("model", "p", name), name, f"{name}.sql", sql, sql, config, table, refs, SourceMap(sql, sql)
    )  # fmt: skip


def _executor(lake: _Lake, engine: _Engine, threads: int, **reads: str) -> Executor:
    """A run of models by name and what they read; `t` is the source."""
    models = tuple(_model(name, read.split()) for name, read in reads.items())
    edges = frozenset((str(ref.unique_id), str(model.unique_id)) for model in models for ref in model.inputs)
    nodes = {SOURCE: Node(SOURCE, "t", "source", "", ())}
    nodes |= {model.unique_id: Node(model.unique_id, model.name, "model", "", ()) for model in models}
    places = {
        unique_id: TablePlace(unique_id, TableName("s", node.name), unique_id) for unique_id, node in nodes.items()
    }
    planner = Planner(RenderedProject("p", models), Catalog(places, lake), NOW)
    return Executor(planner, Graph(nodes, edges), engine, _Silent(), RunPolicy(Pace(threads)))  # type: ignore[arg-type]


def _run(executor: Executor) -> Mapping[str, ModelResult]:
    results = executor.run([m.unique_id for m in executor.planner.rendered.models]).results
    return {result.model.name: result for result in results if isinstance(result, ModelResult)}


def test_independent_models_run_side_by_side() -> None:
    both = Barrier(2, timeout=300)
    engine = _Engine(_Lake(), before=lambda _name: both.wait())
    outcome = _run(_executor(engine.lake, engine, 2, a="t", b="t"))
    assert [result.status for result in outcome.values()] == ["success", "success"]
    assert engine.most == 2


def test_one_thread_runs_one_model_at_a_time() -> None:
    engine = _Engine(_Lake())
    _run(_executor(engine.lake, engine, 1, a="t", b="t", c="t"))
    assert engine.most == 1


def test_a_change_that_several_models_read_is_shared_and_forgotten_after_the_run() -> None:
    engine = _Engine(_Lake())
    _run(_executor(engine.lake, engine, 1, a="t", b="t", c="a"))
    assert (engine.shared, engine.released) == ({SOURCE}, 1)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_diamond_sees_one_past_while_its_source_moves_on(threads: int) -> None:
    lake = _Lake()
    engine = _Engine(lake, before=lambda name: lake.tables[SOURCE].append(None) if name in "ab" else None)
    outcome = _run(_executor(lake, engine, threads, a="t", b="t", c="a b t"))
    assert {result.status for result in outcome.values()} == {"success"}
    assert lake.state(SOURCE).frontier == "3_3"
    read = {name: {item.ref.unique_id: item.end for item in plan.inputs} for name, plan in engine.plans.items()}
    assert read == {
        "a": {SOURCE: "1_1"},
        "b": {SOURCE: "1_1"},
        "c": {"model.p.a": "1_1", "model.p.b": "1_1", SOURCE: "1_1"},
    }
    again = _run(_executor(lake, engine, threads, a="t", b="t", c="a b t"))
    assert {result.status for result in again.values()} == {"success"}
    assert engine.plans["c"].inputs[0].start == "1_1"


def test_a_second_run_of_what_is_up_to_date_asks_nothing_of_the_engine() -> None:
    lake = _Lake()
    _run(_executor(lake, _Engine(lake), 2, a="t", b="a"))
    engine = _Engine(lake)
    executor = _executor(lake, engine, 2, a="t", b="a")
    assert {result.status for result in _run(executor).values()} == {"no-op"}
    assert engine.plans == {}
    assert not executor.run(["model.p.a"]).has_written


def test_a_result_tells_the_work_of_its_commit() -> None:
    lake = _Lake()
    executor = _executor(lake, _Engine(lake), 1, a="t")
    (result,) = executor.run(["model.p.a"]).results
    message = response(result)
    assert (message["rows_affected"], message["rows_written"], message["files_written"], message["bytes_written"]) == (
        1,
        100,
        2,
        4096,
    )
    assert message["commit"] == "1_1"
    assert (message["spark_jobs"], message["spark_stages"]) == (4, 5)
    assert (message["spark_bytes_read"], message["spark_bytes_shuffled"]) == (600, 70)
    assert isinstance(message["estimate"], dict)
    assert message["estimate"]["chosen"] == message["strategy"] == "full_refresh"
    (idle,) = executor.run(["model.p.a"]).results
    assert (response(idle)["bytes_written"], response(idle)["strategy"]) == (0, "no_op")
    assert "spark_jobs" not in response(idle)


def test_a_model_with_something_to_write_is_planned_again_once_its_table_is_claimed() -> None:
    """Until then others may write it: here another call does what this one was about to."""
    lake, engine = _Lake(), _Engine(_Lake())
    executor = _executor(lake, engine, 1, a="t", b="t")
    _run(executor)
    lake.tables[SOURCE].append(None)
    claimed: list[str] = []

    def claim(uri: str) -> bool:
        if uri in claimed:
            return False
        claimed.append(uri)
        if uri == "model.p.a":
            other = _executor(lake, _Engine(lake), 1, a="t")
            _run(other)
        return True

    engine.lake = lake
    executor = _executor(lake, engine, 1, a="t", b="t")
    executor.claim = claim
    engine.plans.clear()
    outcome = _run(executor)
    assert {name: result.status for name, result in outcome.items()} == {"a": "no-op", "b": "success"}
    assert (claimed, list(engine.plans)) == (["model.p.a", "model.p.b"], ["b"])
    assert _run(executor) and claimed == ["model.p.a", "model.p.b"], "what has not changed is not claimed"
