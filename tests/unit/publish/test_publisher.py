"""When a change is sent and when the whole table, and what a run says of it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import sleep

import pyarrow as pa
import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.destinations import destinations
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.operations.run_results import detail, response
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.names import Column, NodeId
from sqlmesh_like.plan.catalog import Catalog, TablePlace
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.project.publishing import Destination, Publish
from sqlmesh_like.publish.publisher import LakePublisher
from sqlmesh_like.publish.store import Published
from sqlmesh_like.run.ports import Export, PublishResult
from sqlmesh_like.run.result import ModelResult
from tests.published import Table, row
from tests.unit.run.test_executor import _Engine, _executor, _Lake, _model, _run

BI = Destination("bi", "url", "x")


@dataclass
class Lake:
    """A table whose commits are numbered from 1; those up to `gone` are no longer there."""

    table: Table = field(default_factory=Table)
    gone: int = 0
    exports: list[str | None] = field(default_factory=list)

    def state(self, uri: str, format: str = "hudi") -> TableState:
        columns = tuple(Column(f.name, "map<int,int>" if f.name == "m" else "x") for f in self.table.schema)
        commits = len(self.table.commits)
        return TableState(
            self.table.uri, "cow" if commits else "missing", str(commits) if commits else None, schema=columns
        )

    def missing(self, uri: str) -> str | None:
        return None

    def unreadable_reason(self, uri: str, start: str, end: str) -> str | None:
        return "gone" if int(start) <= self.gone else None

    @contextmanager
    def export(self, state: TableState, since: str | None, staging: str) -> Iterator[Export]:
        self.exports.append(since)
        yield self.table.whole() if since is None else self.table.since(int(since))


@dataclass
class Store:
    """Remembers what it was given; `failing` are errors of the next calls."""

    shown: Published | None = None
    failing: list[Exception] = field(default_factory=list)
    written: list[tuple[bool, int]] = field(default_factory=list)

    def read_published(self, table: str) -> Published | None:
        return self.shown

    def write(self, table: str, export: Export, old: Published | None, new: Published) -> None:
        if self.failing:
            raise self.failing.pop()
        self.written.append((export.whole, sum(batch.num_rows for batch in export.batches())))
        self.shown = new

    def close(self) -> None: ...


MODEL = replace(_model("t", ["t"]), unique_id=NodeId("model", "shop", "t"))
MODEL = replace(MODEL, config=replace(MODEL.config, publish=Publish(("bi",))))


def publisher(lake: Lake, store: Store, afresh: bool = False, to: tuple[Destination, ...] = (BI,)) -> LakePublisher:
    places = {MODEL.unique_id: TablePlace(MODEL.unique_id, MODEL.table, lake.table.uri)}
    catalog = Catalog(places, lake)  # type: ignore[arg-type]
    chosen = {MODEL.unique_id: to}
    return LakePublisher(catalog, lake, chosen, lambda _: store, "staging", afresh)  # type: ignore[arg-type]


def test_the_change_is_sent_where_the_last_commit_is_known_and_else_everything() -> None:
    lake, store = Lake(), Store()
    lake.table.commit({"a": row(1), "b": row(2)})
    assert publisher(lake, store).publish(MODEL) == (PublishResult("bi", "t", 2, whole=True),)
    assert publisher(lake, store).publish(MODEL) == (PublishResult("bi", "t", None),)
    lake.table.commit({"a": None})
    assert publisher(lake, store).publish(MODEL) == (PublishResult("bi", "t", 1, whole=False),)
    assert publisher(lake, store, afresh=True).publish(MODEL) == (PublishResult("bi", "t", 1, whole=True),)
    lake.table.commit({"c": row(3)})
    lake.gone = 2
    assert publisher(lake, store).publish(MODEL) == (PublishResult("bi", "t", 2, whole=True),)
    lake.table.uri = "/elsewhere"
    assert publisher(lake, store).publish(MODEL) == (PublishResult("bi", "t", 2, whole=True),)
    assert store.shown == lake.table.shown
    assert lake.exports == [None, "1", None, None, None]


def test_places_that_show_one_commit_share_the_change() -> None:
    lake, stores = Lake(), {"bi": Store(), "file": Store()}
    sender = publisher(lake, stores["bi"], to=(BI, replace(BI, name="file")))
    sender.open_store = lambda to: stores[to.name]  # type: ignore[assignment]
    for number in (1, 2):
        lake.table.commit({"a": row(number)})
        sender.publish(MODEL)
    assert lake.exports == [None, "1"]
    assert stores["bi"].written == stores["file"].written == [(True, 1), (False, 1)]


def test_one_table_at_a_time_is_sent_to_a_place() -> None:
    at_once = most = 0

    class Slow(Store):
        def write(self, table: str, export: Export, old: Published | None, new: Published) -> None:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            for _ in range(100):
                sleep(0)  # another thread's turn
            at_once -= 1

    lake = Lake()
    lake.table.commit({"a": row(1)})
    sender = publisher(lake, Slow())
    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(lambda _: sender.publish(MODEL), range(8)))) == 8
    assert most == 1


def test_a_place_that_fails_keeps_no_other_one_from_its_rows() -> None:
    lake, stores = Lake(), {"bi": Store(failing=[NodeError("down"), NodeError("away")]), "file": Store()}
    sender = publisher(lake, stores["bi"], to=(BI, replace(BI, name="file")))
    sender.open_store = lambda to: stores[to.name]  # type: ignore[assignment]
    lake.table.commit({"a": row(1)})
    with pytest.raises(NodeError, match="away"):
        sender.publish(MODEL)
    assert stores["file"].written == [(True, 1)]
    sender = publisher(lake, stores["bi"], to=(BI, BI))
    stores["bi"].failing.append(NodeError("again"))
    with pytest.raises(NodeError, match="again\ndown"):
        sender.publish(MODEL)


def test_other_columns_are_sent_whole() -> None:
    lake, store = Lake(), Store()
    lake.table.commit({"a": row(1)})
    publisher(lake, store).publish(MODEL)
    lake.table.schema = pa.schema([("id", pa.int64())])
    lake.table.rows = {}
    lake.table.commit({"a": (1,)})
    publisher(lake, store).publish(MODEL)
    assert store.written == [(True, 1), (True, 1)] and store.shown == lake.table.shown


def test_a_table_with_maps_is_sent_whole() -> None:
    lake, store = Lake(Table(pa.schema([("m", pa.map_(pa.int32(), pa.int32()))]))), Store()
    for number in (1, 2):
        lake.table.commit({"a": ([(number, 1)],)})
        publisher(lake, store).publish(MODEL)
    assert lake.exports == [None, None]


def test_what_vanished_or_was_overtaken_is_tried_once_more() -> None:
    lake, store = Lake(), Store(failing=[RetryableError("overtaken")])
    lake.table.commit({"a": row(1)})
    assert publisher(lake, store).publish(MODEL) == (PublishResult("bi", "t", 1, whole=True),)
    store = Store(failing=[RetryableError("again"), RetryableError("overtaken")])
    with pytest.raises(RetryableError, match="again"):
        publisher(lake, store).publish(MODEL)


def test_a_table_of_another_model_and_one_that_is_not_built_are_errors() -> None:
    lake, store = Lake(), Store(Published("model.shop.other", "", "1"))
    with pytest.raises(NodeError, match=r"dws\.t does not exist yet"):
        publisher(lake, store).publish(MODEL)
    lake.table.commit({})
    with pytest.raises(NodeError, match=r"bi: the table t is that of model\.shop\.other"):
        publisher(lake, store).publish(MODEL)


class _Publisher:
    def __init__(self, error: NodeError | None) -> None:
        self.error = error

    def publish(self, model: object) -> tuple[PublishResult, ...]:
        if self.error:
            raise self.error
        return (PublishResult("bi", "a", 3),)


def _published_run(error: NodeError | None) -> dict[str, ModelResult]:
    executor = _executor(_Lake(), _Engine(_Lake()), 1, a="t", b="a")
    executor.engine.lake = executor.planner.catalog.history  # type: ignore[attr-defined]
    for model in executor.planner.rendered.models:
        object.__setattr__(model, "config", replace(model.config, publish=Publish() if model.name == "a" else None))
    executor.publisher = _Publisher(error)
    return dict(_run(executor))


def test_a_run_publishes_after_the_model_and_says_so() -> None:
    outcome = _published_run(None)
    assert outcome["a"].status == "success" and outcome["b"].sent == ()
    assert detail(outcome["a"]).endswith("rows, published to bi")
    assert response(outcome["a"])["published"] == [{"destination": "bi", "table": "a", "rows": 3, "whole": False}]


def test_a_publication_that_fails_is_an_error_of_its_node_alone() -> None:
    outcome = _published_run(NodeError("bi: no route to host"))
    assert outcome["a"].status == "error"
    assert outcome["a"].message == "the table is up to date, publishing it failed: bi: no route to host"
    assert outcome["b"].status == "success"


CONFIGS = {
    "publish='fil'": "models/m.sql: m is published to 'fil', which target 'a' does not have\n  did you mean 'file'?",
    "publish=true": "models/m.sql: m does not say where it is published\n  config(publish=…) one of: bi, file",
    "publish='bi', materialized='view'": "models/m.sql: m is published but is not a table",
    "publish={'too': 'bi'}": "models/m.sql:1:11: unknown key 'too' in config 'publish'",
    "publish=7": "models/m.sql:1:11: config 'publish' must be a text or a list of texts, not 7",
    "publish=false": "no selected model is published",
}


def project(
    root: Path, config: str, publish: str = "{bi: {url: 'sqlite:///x'}, file: {duckdb: x.duckdb}}"
) -> list[str]:
    (root / "models").mkdir(exist_ok=True)
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    output = f"{{type: spark, schema: dws, warehouse: w, publish: {publish}}}"
    (root / "profiles.yml").write_text(f"lake: {{target: a, outputs: {{a: {output}}}}}\n")
    (root / "models/m.sql").write_text(f"{{{{ config({config}) }}}} select 1 as id")
    return ["--project-dir", str(root), "--profiles-dir", str(root)]


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("sqlite:///serving/db.sqlite", "sqlite:///{root}/serving/db.sqlite"),
        ("sqlite+pysqlite:///db.sqlite?timeout=5", "sqlite+pysqlite:///{root}/db.sqlite?timeout=5"),
        ("sqlite:////srv/db.sqlite", "sqlite:////srv/db.sqlite"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("sqlite://", "sqlite://"),
        ("postgresql+psycopg://bi@db/bi", "postgresql+psycopg://bi@db/bi"),
    ],
)
def test_an_sqlite_file_is_relative_to_the_project(url: str, place: str, tmp_path: Path) -> None:
    project(tmp_path, "publish='bi'", f"{{bi: {{url: '{url}'}}}}")
    target = load(Invocation(project_dir=tmp_path, profiles_dir=tmp_path)).target
    assert target.publish["bi"].place == place.format(root=tmp_path)


@pytest.mark.parametrize("config", CONFIGS)
def test_a_wrong_config_is_told_at_its_place(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = project(tmp_path, config)
    assert main(["publish", *words]) == 2
    assert CONFIGS[config] in capsys.readouterr().err
    is_fault = config != "publish=false"
    assert main(["compile", *words]) == (2 if is_fault else 0)
    assert not is_fault or CONFIGS[config] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("{bi: {urll: x}}", "unknown key 'urll' in publish destination 'bi'"),
        ("{bi: {url: x, duckdb: y}}", "publish destination 'bi' must have one of url, duckdb, parquet"),
        ("{bi: {url: 'nosuch://secret@h/d'}}", "SQLAlchemy knows no such database"),
        ("{bi: {url: 'secret'}}", "publish destination 'bi': its url is none"),
        ("{bi: {url: 'mssql+nodriver://secret@h/d'}}", "publish destination 'bi'"),
    ],
)
def test_a_wrong_destination_is_told_without_its_url(
    block: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sqlmesh_like.app.operations.publishing import open_store
    from sqlmesh_like.errors import UsageError
    from sqlmesh_like.project.loader import load_project
    from sqlmesh_like.project.profile import load_target

    project(tmp_path, "publish='bi'", block)
    with pytest.raises(UsageError) as caught:
        open_store(load_target(load_project(tmp_path, {}), tmp_path, None, None, {}).publish["bi"])
    assert said in str(caught.value) and "secret" not in str(caught.value)


def test_a_model_that_is_not_built_is_an_error_of_publish(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["publish", *project(tmp_path, "publish=true", "{file: {duckdb: x.duckdb}}")]) == 1
    out = capsys.readouterr().out
    assert "dws.m does not exist yet" in out and "ERROR=1" in out


def test_files_of_properties_and_settings_say_it_too(tmp_path: Path) -> None:
    project(tmp_path, "tags='x'")
    (tmp_path / "models/other.sql").write_text("{{ config(publish=false) }} select 1 as id")
    (tmp_path / "models/third.sql").write_text("select 1 as id")
    properties = "models: [{name: third, config: {publish: {to: [bi, file], table: shown}}}]"
    (tmp_path / "models/p.yml").write_text(properties)
    settings = '[tool.sqlmesh_like]\nname = "shop"\n[tool.sqlmesh_like.models.shop]\n"+publish" = "file"\n'
    (tmp_path / "pyproject.toml").write_text(settings)
    loaded = load(Invocation(project_dir=tmp_path, profiles_dir=tmp_path))
    destinations = {model.name: model.config.publish for model in loaded.rendered.models}
    assert destinations == {"m": Publish(("file",)), "other": None, "third": Publish(("bi", "file"), "shown")}


def test_a_target_that_declares_nothing_has_a_file_in_its_warehouse(tmp_path: Path) -> None:
    project(tmp_path, "publish=true", "{}")
    loaded = load(Invocation(project_dir=tmp_path, profiles_dir=tmp_path))
    wanted = Destination("serving", "duckdb", str(tmp_path / "w/serving.duckdb"))
    assert destinations(loaded.rendered.models[0], loaded) == (wanted,)
