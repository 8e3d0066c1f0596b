"""Steps that executors compute for a program on the driver: each kind of scan yields what reading the files yields."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from sqlglot import exp

from sqlmesh_like import Project
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.duckdb.programs import local_steps, read_limit
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan import frontier_advance, model_plan, router
from sqlmesh_like.project.nodes import DEFAULT_DRIVER_MAX_BYTES
from sqlmesh_like.run.remote_reader import KeyedRows, RemoteQuery
from tests.remote_steps import BY_KEYS, FACTS, MODELS, OTHERS, SHARING, fact
from tests.unit.app.executors import Executors
from tests.written_table import WrittenTable, fetched

pytestmark = pytest.mark.usefixtures("no_spark")


class Lake:
    """The project below `root`, with two tables that change, and its models' rows as they are stored."""

    def __init__(self, root: Path, output: str) -> None:
        self.root = root
        sources = "{name: shop, schema: ods, tables: [{name: facts}, {name: dims}]}"
        files = {
            "pyproject.toml": '[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n',
            "profiles.yml": "lake: {target: t, outputs: {t: {type: spark, schema: dws, warehouse: w, " + output + "}}}",
            "models/sources.yml": f"version: 2\nsources: [{sources}]\n",
            **{f"models/{name}.sql": sql for name, sql in MODELS.items()},
        }
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        self.facts = WrittenTable(root / "w/ods/facts", FACTS, buckets=2).create()
        self.dims = WrittenTable(root / "w/ods/dims", {"id": "int", "name": "string"}).create()

    def run(self, select: Sequence[str] = ()) -> dict[str, tuple[str, str]]:
        """Strategy and engine of each model."""
        with Project.load(self.root) as project:
            results = project.run(select=list(select)).results
        assert {each.status for each in results} <= {"success", "no-op"}, [each.status for each in results]
        return {
            each.node.unique_id.rpartition(".")[2]: (
                str(getattr(each, "strategy", "")),
                str(getattr(each, "engine", "")),
            )
            for each in results
        }

    def stored(self, model: str) -> list[str]:
        """All of a table, keys and hidden state too; NaN and negative zero can be told apart."""
        state = table_state(Timeline(str(self.root / "w/dws" / model)))
        table = local_table(state, MergedSlices(), hidden=True)
        assert table is not None and state.frontier is not None
        return sorted(map(repr, fetched(table.rows(state.frontier))))


@pytest.fixture
def lakes(tmp_path: Path) -> tuple[Lake, Lake]:
    """The same tables on one machine, and on a cluster's driver."""
    return Lake(tmp_path / "here", ""), Lake(tmp_path / "there", "master: 'spark://127.0.0.1:1'")


@pytest.fixture
def executors(monkeypatch: pytest.MonkeyPatch) -> Executors:
    made = Executors()
    monkeypatch.setattr("sqlmesh_like.app.lakes.lake.spark_engine", lambda *_: made)
    return made


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Folders whose tables are too large for the driver."""
    folders: list[str] = []
    for module in (model_plan, frontier_advance, local_steps, router):
        monkeypatch.setattr(module, "SMALL_INPUT", 0)
    size, bound = read_limit._bytes_of, DEFAULT_DRIVER_MAX_BYTES + 1
    monkeypatch.setattr(
        read_limit, "_bytes_of", lambda t, at: bound if any(f"/w/{f}/" in t.uri for f in folders) else size(t, at)
    )
    return folders


def change(lakes: Sequence[Lake], dice: random.Random, there: set[int]) -> None:
    """The same commit of facts to each lake, which had these; now and then one of dimensions, too."""
    chosen = dice.sample(range(30), 6 if there else 20)
    leaving = sorted(there - set(chosen))
    gone = dice.sample(leaving, min(3, len(leaving)))
    there |= set(chosen)
    there -= set(gone)
    rows = [fact(number, dice) for number in chosen]
    dims = [(str(n), n, dice.choice("xyz")) for n in (1, 2, 3)] if dice.random() < 0.7 else []
    for lake in lakes:
        lake.facts.upsert(rows, [fact(number, random.Random(0)) for number in gone])
        if dims:
            lake.dims.upsert(dims)


def assert_same(lakes: Sequence[Lake], models: Iterable[str] = MODELS) -> None:
    for name in models:
        assert lakes[0].stored(name) == lakes[1].stored(name), name


def test_steps_on_executors_bring_tables_to_the_rows_that_reading_files_does(
    lakes: tuple[Lake, Lake], executors: Executors, large: list[str]
) -> None:
    large += ["ods", "dws"]
    dice, there = random.Random(1), set[int]()
    followed, names = set[str](), set[str]()
    for _ in range(4):
        executors.asked.clear()
        change(lakes, dice, there)
        lakes[0].run()
        runs = lakes[1].run()
        assert {engine for strategy, engine in runs.values() if strategy != "no_op"} == {"duckdb"}
        assert_same(lakes)
        followed |= {name for name, (strategy, _) in runs.items() if strategy not in ("full_refresh", "no_op")}
        names |= {each.planned.compiled.model.name for each in executors.queries}
        assert_groups_are_read_once(executors)
    assert followed == set(MODELS)
    assert names >= set(BY_KEYS | OTHERS), "each model has a step that executors compute"
    assert any(each.steps for each in executors.queries) and executors.lookups


def assert_groups_are_read_once(executors: Executors) -> None:
    """The sums by group, which four steps of a model compare, are one query without other steps."""
    of_best = [each for each in executors.queries if each.planned.compiled.model.name == "best"]
    groups = [each for each in of_best if each.query.args.get("group")]
    assert len(groups) <= 1 and not any(each.steps for each in groups)
    others = [table.name for each in of_best if each not in groups for table in each.query.find_all(exp.Table)]
    assert "source.p.shop.facts" not in others


def test_a_recompute_on_executors_is_compared_with_the_table_here(
    lakes: tuple[Lake, Lake], executors: Executors, large: list[str]
) -> None:
    dice, there = random.Random(3), set[int]()
    change(lakes, dice, there)
    for lake in lakes:
        lake.run(["of_texts"])
        (lake.root / "models/of_texts.sql").write_text(f"{BY_KEYS['of_texts']} having count(*) > 1")
    change(lakes, dice, there)
    large.append("ods")
    lakes[0].run(["of_texts"])
    assert lakes[1].run(["of_texts"])["of_texts"] == ("recompute_merge", "duckdb")
    assert_same(lakes, ["of_texts"])
    of_texts = [each for each in executors.queries if each.planned.compiled.model.name == "of_texts"]
    assert [each.steps for each in of_texts] == [{}]


def test_rows_that_executors_do_not_look_up_are_those_of_a_step_and_else_they_do_all(
    lakes: tuple[Lake, Lake], executors: Executors, large: list[str]
) -> None:
    large.append("ods")
    dice, there = random.Random(1), set[int]()
    looked_up = [*BY_KEYS, "best", "of_years", "joined_dear"]
    change(lakes, dice, there)
    for lake in lakes:
        lake.run(looked_up)
    change(lakes, dice, there)
    before = lakes[1].stored("of_moments")
    executors.answers = lambda _: False
    with Project.load(lakes[1].root) as project, pytest.raises(AttributeError, match=r"no attribute 'apply'"):
        project.run(select=["of_moments"])
    assert [type(each) for each in executors.asked] == [KeyedRows, RemoteQuery]
    assert lakes[1].stored("of_moments") == before
    executors.answers = lambda wanted: isinstance(wanted, RemoteQuery)
    for lake in lakes:
        lake.run(looked_up)
    assert_same(lakes, looked_up)


@pytest.mark.parametrize("is_answered", [True, False])
def test_keys_that_models_take_from_the_same_change_are_looked_up_together(
    lakes: tuple[Lake, Lake], executors: Executors, large: list[str], is_answered: bool
) -> None:
    dice, there = random.Random(5), set[int]()
    change(lakes, dice, there)
    for lake in lakes:
        lake.run(list(SHARING))
    large.append("ods")
    facts = lakes[1].facts
    start = facts.frontier
    change(lakes, dice, there)
    executors.answers = lambda _: is_answered or len(executors.asked) > 1
    lakes[0].run(list(SHARING))
    lakes[1].run(list(SHARING))
    assert_same(lakes, SHARING)
    asked = [
        {row["id"] for row in each.keys.to_pylist()} for each in executors.lookups if "id" in each.keys.column_names
    ]
    assert asked[0] == {row[2] for row in facts.change(start, facts.frontier)}
    if is_answered:
        assert len(asked) == 1
    else:  # as these were too many, each model asks for those that it needs
        assert len(asked) > 2 and all(each < asked[0] for each in asked[1:])
