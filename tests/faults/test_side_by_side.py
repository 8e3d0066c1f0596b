"""Calls on one lake at the same time: those with nothing in common run side by side, others wait or are refused.

A call is stopped in the middle of a commit, so that what runs to its end meanwhile has certainly run beside it.
"""

from __future__ import annotations

import os
import random
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.clean_tables import clean, cleanings_due
from sqlmesh_like.app.lakes.lake import open_lake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.table_locks import ingestion_locks
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.cli.app import main
from sqlmesh_like.run.retention import AT_LEAST
from tests.faults.calls import Call, finished, kill_group, start, wait_until_stopped
from tests.faults.first_tables import make_tables
from tests.faults.shop import CUSTOMER, CUSTOMERS, DAILY, DETAIL, FILES, MODELS, ORDERS, REGION, Shop
from tests.faults.tally import Tally, assert_next_run_is_right

SOURCE = """
sources:
  - name: till
    schema: dws
    ingest: {format: debezium, files: {path: landing/*}}
    tables: [{name: orders, ingest: {database: db, primary_key: [id]}}]
  - name: office
    schema: dws
    ingest: {format: debezium, files: {path: elsewhere/*}}
    tables: [{name: customers, ingest: {database: db, primary_key: [id]}}]
"""
IN_A_COMMIT = "hudi.commit.staged:1:stop"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.made(tmp_path_factory.mktemp("side_by_side"))


@pytest.fixture
def shop(made: Shop) -> Shop:
    """The tables, with changes that no model has read."""
    made.reset()
    dice = random.Random(5)
    for _ in range(2):
        made.commit(CUSTOMERS, dice)
        made.commit(ORDERS, dice)
    return made


@pytest.fixture
def building_detail(shop: Shop) -> Iterator[Call]:
    """A run of one model, which reads both inputs, stopped in the middle of its commit."""
    call = start(shop.root, "run", "-s", "detail", fault=IN_A_COMMIT)
    assert wait_until_stopped(call)
    yield call
    if not call.ended():
        kill_group(call)
        finished(call)


def ended(shop: Shop, *words: str) -> str:
    code, output = finished(start(shop.root, *words))
    assert code == 0, output
    return output


def refused(shop: Shop, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a call of this process says when it is refused."""
    capsys.readouterr()
    code = main([*words, "--project-dir", str(shop.root)])
    printed = capsys.readouterr()
    assert code == 1, printed
    return " ".join(f"{printed.out} {printed.err}".split())


def go_on(call: Call) -> None:
    os.kill(call.pid, signal.SIGCONT)
    code, output = finished(call)
    assert code == 0, output


@pytest.mark.fault("two calls that need different tables", ends="recovers")
def test_runs_with_nothing_in_common_run_side_by_side(shop: Shop, building_detail: Call) -> None:
    ended(shop, "run", "-s", "customer", "daily")
    assert not building_detail.ended()
    for name in (CUSTOMER, DAILY):
        assert shop.stored(name) == shop.expected(name)
    assert shop.stored(DETAIL) == shop.recorded(DETAIL) != shop.expected(DETAIL)
    go_on(building_detail)
    assert shop.stored(DETAIL) == shop.expected(DETAIL)


@pytest.mark.fault("two calls that need the same table", ends="refuses")
def test_what_a_run_uses_is_refused_to_others(
    shop: Shop, building_detail: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _timelines(shop)
    newest = shop.timeline(ORDERS).commit_instants[-1].requested
    holder = f"process {building_detail.pid} on {socket.gethostname()}, since 20"
    for words, doing in (
        (("run", "-s", "customer", "detail"), "writing dws.detail"),
        (("run", "-s", "region"), "writing dws.detail"),
        (("run",), "writing dws.detail"),
        (("maintain", "-s", "detail"), "writing dws.detail"),
        (("maintain", "-s", "orders"), "reading dws.orders"),
        (("savepoint", "create", "detail"), "writing dws.detail"),
        (("rollback", "orders", "--to", newest, "--yes"), "reading dws.orders"),
        (("run-operation", "anything"), "writing to"),
    ):
        said = refused(shop, capsys, *words)
        place = shop.root / "warehouse"
        where = f"{doing} {place}" if doing == "writing to" else f"{doing} of {place}"
        assert f"another `sml run` is {where}: {holder}" in said
    assert _timelines(shop) == before


def _timelines(shop: Shop) -> dict[str, frozenset[str]]:
    return {name: shop.timeline(name).names for name in (ORDERS, CUSTOMERS, *MODELS)}


@pytest.mark.fault("two calls that need different tables", ends="recovers")
def test_other_tables_are_maintained_and_published_beside_a_run(shop: Shop, building_detail: Call) -> None:
    ended(shop, "maintain", "-s", "customer", "daily")
    ended(shop, "savepoint", "create", "customer")
    ended(shop, "publish", "-s", "region")
    for place in ("bi", "files", "db"):
        assert shop.published(place)[0] == shop.timeline(REGION).frontier
    go_on(building_detail)
    assert shop.stored(DETAIL) == shop.expected(DETAIL)


@pytest.mark.fault("two calls that need the same table", ends="refuses")
def test_what_is_being_published_is_not_built_or_published_elsewhere(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(shop, "run")
    publishing = start(shop.root, "publish", "-s", "region", "--full-refresh", fault="publish.written:1:stop")
    assert wait_until_stopped(publishing)
    assert "another `sml publish` is reading dws.region" in refused(shop, capsys, "maintain", "-s", "region")
    for command in ("run", "publish"):
        assert "another `sml publish` is writing destination bi" in refused(shop, capsys, command, "-s", "region")
    shop.commit(ORDERS, random.Random(6))
    ended(shop, "run", "-s", "detail", "daily")
    go_on(publishing)
    assert_next_run_is_right(shop, "published")


def test_the_next_call_needs_no_help_after_a_kill(shop: Shop, building_detail: Call) -> None:
    kill_group(building_detail)
    finished(building_detail)
    assert_next_run_is_right(shop, "killed")


def test_a_call_waits_for_all_of_its_tables(shop: Shop, building_detail: Call) -> None:
    waiting = start(shop.root, "run", "--lock-timeout", "300")
    ended(shop, "run", "-s", "customer")
    assert not waiting.ended()
    go_on(building_detail)
    tally = Tally("run", where="waited")
    tally.look_after_call(shop, *finished(waiting))
    assert not tally.wrong


def test_runs_that_may_use_any_table_run_alone(
    shop: Shop, building_detail: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    hooked = shop.root / "models" / "hooked.sql"
    hooked.write_text("{{ config(pre_hook='select 1') }}\nselect 1 as id")
    try:
        said = refused(shop, capsys, "run", "-s", "hooked")
    finally:
        hooked.unlink()
    assert f"another `sml run` is writing to {shop.root / 'warehouse'}: process {building_detail.pid}" in said


@pytest.fixture(scope="module")
def till(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """The shop, its inputs being tables of two sources."""
    root = tmp_path_factory.mktemp("till")
    files = {path: text for path, text in FILES.items() if not path.startswith("seeds/")}
    for path, text in {**files, "models/sources.yml": SOURCE}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        for name, source in (("orders", "till"), ("customers", "office")):
            text = text.replace(f"ref('{name}')", f"source('{source}', '{name}')")
        (root / path).write_text(text)
    (root / "landing").mkdir()
    (root / "elsewhere").mkdir()
    make_tables(root)
    return Shop(root)._kept()


@pytest.fixture
def ingesting(till: Shop) -> Iterator[Shop]:
    """The shop while one of its sources is ingested."""
    loaded = load(Invocation(project_dir=till.root))
    sources = [source for source in loaded.project.sources if source.name == "till"]
    with lake_lock(loaded, "ingest", ingestion_locks(loaded, sources)):
        yield till


@pytest.mark.fault("two calls that need different tables", ends="recovers")
def test_a_run_reads_what_an_ingestion_writes_as_one_of_its_commits(ingesting: Shop) -> None:
    dice = random.Random(7)
    ingesting.commit(CUSTOMERS, dice)
    ingesting.commit(ORDERS, dice)
    run = start(ingesting.root, "run", fault=IN_A_COMMIT)
    assert wait_until_stopped(run)
    for _ in range(5):
        ingesting.commit(ORDERS, dice)
    go_on(run)
    for name in MODELS:
        assert ingesting.stored(name) == ingesting.recorded(name)
    assert ingesting.stored(DAILY) != ingesting.expected(DAILY)
    tally = Tally("run", where="ingesting")
    tally.look_after_call(ingesting, *finished(start(ingesting.root, "run")))
    assert not tally.wrong


@pytest.mark.fault("two calls that need the same table", ends="refuses")
def test_a_source_is_ingested_once_at_a_time(ingesting: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    before = _timelines(ingesting)
    for words, doing in (
        (("ingest", "-s", "source:till"), "writing dws.orders"),
        (("ingest",), "writing dws.orders"),
        (("maintain", "-s", "source:till"), "writing dws.orders"),
        (("watch", "-s", "daily"), "writing dws.orders"),
        (("savepoint", "create", "till.orders"), "writing dws.orders"),
        (("forget", "till.orders", "1", "--yes"), "writing dws.orders"),
    ):
        said = refused(ingesting, capsys, *words)
        assert f"another `sml ingest` is {doing}" in said
        assert f"process {os.getpid()} on {socket.gethostname()}, since 20" in said
    assert _timelines(ingesting) == before


def test_other_sources_and_models_are_maintained_beside_an_ingestion(ingesting: Shop) -> None:
    output = ended(ingesting, "maintain", "-s", "source:office", "daily")
    assert "dws.customers" in output and "dws.daily" in output


@pytest.mark.fault("two calls that need different tables", ends="recovers")
def test_two_sources_are_ingested_side_by_side(till: Shop) -> None:
    loaded = load(Invocation(project_dir=till.root))
    first, second = loaded.project.sources
    one, other = (lake_lock(loaded, "ingest", ingestion_locks(loaded, [each])) for each in (first, second))
    with one, other:
        assert len(list((till.root / "warehouse" / "_sml" / "locks").glob("*.json"))) == 2


def test_history_that_another_call_may_read_is_kept(till: Shop) -> None:
    """Cleaning is Spark's, so nothing but the refusal keeps it from starting here."""
    dice, said = random.Random(8), list[str]()
    till.reset()
    for _ in range(2 * AT_LEAST + 2):
        till.commit(ORDERS, dice)
    loaded = load(Invocation(project_dir=till.root))
    with lake_lock(loaded, "run", {"dws.orders": "read"}):
        ended(till, "run", "-s", "customer", "daily", "detail")
        lake = open_lake(loaded)
        [cleaning] = cleanings_due(lake, loaded.project.ingested)
        assert (cleaning.uri, cleaning.retain) == (till.timeline(ORDERS).uri, AT_LEAST)
        with lake_lock(loaded, "run", {"dws.daily": "replace"}) as held:
            clean(lake, held, lambda text, level="info": said.append(text))
    assert [text.partition(": another `sml run` is reading dws.orders of ")[0] for text in said] == [
        "the history of dws.orders is left to a later run"
    ]
    assert len(till.timeline(ORDERS).commit_instants) > 2 * AT_LEAST


def test_no_lock_is_left_behind(shop: Shop) -> None:
    for _ in range(3):
        ended(shop, "run")
    locks = sorted(path.name for path in Path(shop.root, "warehouse", "_sml", "locks").iterdir())
    assert locks == ["0.lock", "step.lock"]
