"""A query that an earlier call has analyzed is analyzed again where anything that it depends on is other."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import get_type_hints

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake import clock, open_lake
from sqlmesh_like.app.lakes.lake_lock import HeldLocks
from sqlmesh_like.app.loading import query_record
from sqlmesh_like.app.loading.loaded import Loaded, load
from sqlmesh_like.app.log_listener import LogListener
from sqlmesh_like.app.operations.watch_loop import WatchLoop
from sqlmesh_like.cdc.report import IngestReport, TableReport
from sqlmesh_like.cli.app import main
from sqlmesh_like.names import Column, NodeId, TableName
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.queries.known_queries import KnownQueries
from sqlmesh_like.render.rendered import RenderedModel
from tests.faults.shop import Shop
from tests.levels import count

MODEL, SEED = NodeId.parse("model.p.m"), NodeId.parse("seed.p.orders")
FILES = {
    "dbt_project.yml": "name: p\nprofile: lake\nvars: {least: 1}\nmodels: {+materialized: incremental}\n",
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: warehouse}}}\n",
    "seeds/orders.csv": "id,amount,day\n1,2,2024-01-01\n2,3,2024-01-02\n",
    "macros/doubled.sql": "{% macro doubled(x) %}{{ x }} * 2{% endmacro %}",
    "functions/raised.sql": "x + 1",
    "functions/f.yml": "functions: [{name: raised, arguments: [{name: x, data_type: int}], returns: {data_type: int}}]",
    "models/v.sql": "{{ config(materialized='view') }} select id, amount from {{ ref('orders') }}",
    "models/m.sql": "select id, {{ doubled('amount') }} as a, {{ function('raised') }}(id) as b from {{ ref('v') }}"
    " where amount > {{ var('least') }}",
    "models/m.yml": "models: [{name: m, config: {unique_key: id}}]",
    "models/today.sql": "select id from {{ ref('orders') }} where day < current_date()",
}


def put(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lake whose tables are up to date, and what a run has recorded of its queries."""
    root = tmp_path_factory.mktemp("known")
    put(root / "p", FILES)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SML_CACHE_DIR", str(root / "cache"))
        patched.setenv("DBT_PARTIAL_PARSE", "true")
        assert main(["build", "-q", "--project-dir", str(root / "p")]) == 0
        yield root / "p"


@pytest.fixture
def project(built: Path) -> Iterator[Path]:
    before = {path: path.read_bytes() for path in record_of(built).parent.glob("*")}
    yield built
    put(built, FILES)
    for path, data in before.items():
        path.write_bytes(data)
        path.chmod(0o600)


def loaded(root: Path, **asked: object) -> Loaded:
    return load(replace(Invocation(project_dir=root, partial_parse=True), **asked))  # type: ignore[arg-type]


def record_of(root: Path) -> Path:
    entry = loaded(root).entry_path
    assert entry is not None
    return entry.with_suffix(".queries")


def plan(
    opened: Loaded, name: NodeId = MODEL, alter: Callable[[Column], Column] = lambda column: column
) -> tuple[PlannedModel, bool]:
    """The plan of a model, its input with altered columns, and whether its query was analyzed for it and is known."""
    lake = open_lake(opened)
    planner = lake.planner(clock(None))
    state = lake.catalog.state(SEED)
    pinned: dict[str, TableState] = {SEED: replace(state, schema=tuple(map(alter, state.schema or ())))}
    planned = planner.plan(opened.rendered.model(name), pinned)
    assert planner.queries is not None
    return planned, planner.queries.is_changed


def test_what_is_the_same_is_not_analyzed_and_gives_the_same(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("sqlmesh_like.compiler.analyze", lambda *_: pytest.fail("a query was analyzed"))
        again, is_learned = plan(loaded(project))
    assert (again.strategy, is_learned) == ("no_op", False)
    record_of(project).unlink()
    anew, is_learned = plan(loaded(project))
    assert (anew.fingerprint, anew.strategy, is_learned) == (again.fingerprint, "no_op", True)
    assert anew.compiled.inputs == again.compiled.inputs == again.compiled.facts.inputs
    assert anew.compiled.facts.tree == again.compiled.facts.tree


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        pytest.param("models/m.sql", "as a", "as a0", id="text"),
        pytest.param("models/v.sql", "select id", "select id + 1 as id", id="text-of-a-view"),
        pytest.param("models/m.yml", "unique_key: id", "unique_key: a", id="config"),
        pytest.param("models/m.yml", "unique_key: id", "unique_key: id, partition_by: a", id="partitions"),
        pytest.param("models/m.yml", "unique_key: id", "unique_key: id, table_type: mor", id="table-type"),
        pytest.param("models/m.yml", "unique_key: id", "unique_key: id, refresh: full", id="refresh"),
        pytest.param("models/v.sql", "'view'", "'ephemeral'", id="config-of-a-view"),
        pytest.param("macros/doubled.sql", "* 2", "* 3", id="macro"),
        pytest.param("functions/raised.sql", "+ 1", "+ 2", id="function"),
        pytest.param("dbt_project.yml", "least: 1", "least: 2", id="variable"),
        pytest.param(
            "profiles.yml",
            "warehouse: warehouse",
            "warehouse: warehouse, spark: {spark.sql.legacy.timeParserPolicy: LEGACY}",
            id="session",
        ),
        pytest.param("profiles.yml", "schema: dws", "schema: dev", id="names-of-tables"),
    ],
)
def test_a_change_of_the_project_is_seen(project: Path, path: str, before: str, after: str) -> None:
    assert before in FILES[path]
    put(project, {path: FILES[path].replace(before, after)})
    assert plan(loaded(project))[1]


def test_a_change_of_an_input_is_seen(project: Path) -> None:
    def widen(column: Column) -> Column:
        return replace(column, type="bigint") if column.name == "amount" else column

    assert plan(loaded(project), alter=widen)[1]
    assert plan(loaded(project), alter=lambda column: replace(column, name=column.name.upper()))[1]


def test_flags_and_versions_are_seen(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan(loaded(project, vars='{"least": 2}'))[1]
    with monkeypatch.context() as patched:
        patched.setattr(query_record, "program_version", lambda: "another")
        assert plan(loaded(project))[1]
    with monkeypatch.context() as patched:
        patched.setattr(sys, "version", "4.0.0")
        assert plan(loaded(project))[1]
    assert not plan(loaded(project))[1]


def test_a_run_with_nothing_to_do_imports_nothing_that_reads_sql(project: Path) -> None:
    call = ["run", "-q", "--project-dir", str(project), "--select", "m"]
    assert main(call) == 0
    code = (
        "import sys; from sqlmesh_like.cli.app import main; assert main(sys.argv[1:]) == 0;"
        "unwanted = {'sqlglot', 'duckdb', 'pyarrow', 'sqlmesh_like.compiler', 'sqlmesh_like.render.macros'};"
        "print(sorted(unwanted & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *call], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_rounds_of_a_watch_add_to_the_record_what_is_true_of_their_queries(project: Path) -> None:
    record_of(project).unlink()
    opened = loaded(project)
    lake = open_lake(opened, [MODEL])
    watched = WatchLoop(lake, HeldLocks(opened.target.warehouse), [MODEL], LogListener(), ExitStack)
    watched()
    own = record_of(project).read_text()
    assert not plan(loaded(project))[1]
    put(project, {"models/m.sql": FILES["models/m.sql"].replace("as a", "as a0")})
    assert plan(loaded(project))[1], "the files were edited: the record is of another query"
    assert main(["parse", "-q", "--project-dir", str(project)]) == 0
    record_of(project).write_text('{"layout":1,"queries":{}}')
    watched.on_batch(IngestReport("shop", (TableReport(TableName("dws", "orders"), upserts=1),)))
    watched()
    assert record_of(project).read_text() != own, "a round that learned nothing stores nothing"


def test_a_query_that_reads_the_clock_is_analyzed_by_each_run(project: Path) -> None:
    planned, is_learned = plan(loaded(project), NodeId.parse("model.p.today"))
    assert (planned.compiled.known, is_learned) == (None, False)
    assert "today" not in record_of(project).read_text()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda stored: stored[: len(stored) // 2],
        lambda stored: "",
        lambda stored: "[1]",
        lambda stored: stored.replace('"layout":1', '"layout":0'),
        lambda stored: '{"layout":1,"queries":[]}',
        lambda stored: json.dumps({"layout": 1, "queries": {MODEL: ["", "0" * 32]}}),
        lambda stored: json.dumps({"layout": 1, "queries": {MODEL: [*json.loads(stored)["queries"][MODEL], "more"]}}),
        lambda stored: "[" * 100_000,
    ],
)
def test_a_record_of_another_form_is_ignored(project: Path, spoil: Callable[[str], str]) -> None:
    record = record_of(project)
    record.write_text(spoil(record.read_text()))
    planned, is_learned = plan(loaded(project))
    assert (planned.strategy, is_learned) == ("no_op", True)


def test_a_record_that_others_could_have_written_is_ignored(project: Path) -> None:
    record = record_of(project)
    record.chmod(0o666)
    assert plan(loaded(project))[1]
    record.rename(record.with_name("elsewhere"))
    record.symlink_to(record.with_name("elsewhere"))
    record.with_name("elsewhere").chmod(0o600)
    assert plan(loaded(project))[1]
    record.unlink()


def test_the_record_holds_models_of_the_project_alone(project: Path) -> None:
    put(project, {"models/other.sql": "select id from {{ ref('orders') }}"})
    assert main(["run", "-q", "--project-dir", str(project), "--select", "other"]) == 0
    assert set(json.loads(record_of(project).read_text())["queries"]) == {MODEL, "model.p.other"}
    (project / "models/other.sql").unlink()
    record_of(project).write_text(record_of(project).read_text().replace("a", "b"))
    assert main(["run", "-q", "--project-dir", str(project)]) == 0
    assert set(json.loads(record_of(project).read_text())["queries"]) == {MODEL}


def test_no_record_where_projects_are_not_cached(project: Path) -> None:
    lake = open_lake(load(Invocation(project_dir=project, partial_parse=False)))
    assert lake.planner(clock(None)).queries is None


def test_a_value_that_does_not_say_what_it_holds_has_no_key(project: Path) -> None:
    model = loaded(project).rendered.model(MODEL)
    assert KnownQueries("").key(model, (), {}) is not None
    assert KnownQueries("").key(replace(model, settings={"x": object()}), (), {}) is None


def test_the_key_shows_every_field_of_a_model() -> None:
    """What `repr` leaves out could change without another key."""
    seen: set[type] = set()

    def visit(type_: object) -> None:
        for part in getattr(type_, "__args__", ()):
            visit(part)
        if not isinstance(type_, type) or not is_dataclass(type_) or type_ in seen:
            return
        seen.add(type_)
        assert all(field.repr for field in fields(type_)), type_
        assert type_.__repr__.__qualname__ == f"{type_.__qualname__}.__repr__", type_
        for part in get_type_hints(type_).values():
            visit(part)

    visit(RenderedModel)
    assert len(seen) > 5


def _edits(dice: random.Random) -> tuple[str, str, str]:
    return dice.choice(
        [
            ("models/detail.sql", "o.amount,", "o.amount, o.amount * 2 as twice,"),
            ("models/detail.sql", "o.customer = c.id", "c.id = o.customer and o.amount > 11"),
            ("models/detail.sql", "join {{", "left join {{"),
            ("models/region.sql", "max(amount)", "min(amount)"),
            ("models/region.sql", "count(*)", "count(distinct id)"),
            ("models/customer.sql", "count(distinct day)", "count(day)"),
            ("models/daily.sql", "amount > 10", "amount >= 10"),
            ("models/daily.sql", "(partition_by='day')", "(partition_by='day', refresh='full')"),
            ("models/daily.sql", "select day", "select current_date() as at, day"),
        ]
    )


@pytest.mark.parametrize("seed", range(count(1, 10, 200)))
def test_a_plan_is_that_of_queries_that_are_analyzed_anew(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(seed)
    shop = Shop.changed(tmp_path, dice, 2)
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("DBT_PARTIAL_PARSE", "true")
    monkeypatch.chdir(tmp_path)
    for _ in range(3):
        assert main(["run", "-q"]) == 0
        if dice.random() < 0.5:
            shop.change(dice)
        if dice.random() < 0.7:
            path, before, after = _edits(dice)
            text = (tmp_path / path).read_text()
            (tmp_path / path).write_text(text.replace(before, after))
        capsys.readouterr()
        shown = []
        for is_kept in ("true", "false"):
            monkeypatch.setenv("DBT_PARTIAL_PARSE", is_kept)
            assert main(["explain", "--output", "json"]) == 0
            shown.append(capsys.readouterr().out)
        monkeypatch.setenv("DBT_PARTIAL_PARSE", "true")
        assert shown[0] == shown[1]
