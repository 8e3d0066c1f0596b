"""`sml forget`: rows of a source leave every file, whatever kills the command in between."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sqlmesh_like import Project
from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.table_locks import ingestion_locks
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.operations.erasure.plan import ErasureRequest, plan_erasure
from sqlmesh_like.cli.app import main
from sqlmesh_like.environments.environment import Environment
from sqlmesh_like.environments.environment_file import environment_at
from sqlmesh_like.fault_points import ERASURE_POINTS
from sqlmesh_like.hudi.recovery.savepoints import savepoints
from sqlmesh_like.hudi.writer.upsert import Upsert, upsert
from tests.faults.calls import KILLED, finished, start, wait_until_stopped
from tests.faults.first_tables import make_tables
from tests.faults.shop import (
    CUSTOMERS,
    DAILY,
    FILES,
    MODELS,
    ORDERS,
    PUBLISHED,
    REGION,
    Row,
    Rows,
    Shop,
    _arrow,
    recomputed,
)
from tests.faults.tally import tallied
from tests.levels import parametrize
from tests.written_table import WrittenTable

CHANGED = ("warehouse", "serving", "target", "models")
JOINED = "left join {{ source('till', 'customers') }} c on o.customer = c.id"
NAME, OTHER = "Ada Lovelace-Byron", "Grace Hopper"
SOURCE = """
sources:
  - name: till
    schema: dws
    ingest: {format: debezium, files: {path: landing/*}}
    tables:
      - {name: orders, ingest: {database: db, primary_key: [id]}}
      - {name: customers, ingest: {database: db, primary_key: [id]}}
"""


class Register(Shop):
    """The shop, its inputs being tables of a source, and names of persons where it has regions."""

    def put(self, unique_id: str, *rows: Row) -> None:
        """One commit of rows, whose last value says whether they are deleted."""
        timeline, frontier = self.timeline(unique_id), self._frontier(unique_id)
        written = upsert(Upsert(timeline, frontier, _arrow(timeline, frontier, list(rows)), 1, {"by": "test"}))
        self.rows_at[unique_id, written.frontier] = self.stored(unique_id)

    def expected_of(self, unique_id: str) -> Rows:
        """The rows that a model must have, by what is in the source's tables."""
        inputs = {name: self.stored(name) for name in (ORDERS, CUSTOMERS)}
        inputs["model.shop.detail"] = recomputed("model.shop.detail", inputs)
        return recomputed(unique_id, inputs)

    def files_with(self, text: str) -> list[Path]:
        """Files of warehouse and destinations with these bytes; what is compressed is left to the command."""
        places = [self.root / "warehouse", self.root / "serving", self.root / "target"]
        files = [path for place in places for path in place.rglob("*") if path.is_file()]
        return [path for path in files if text.encode() in path.read_bytes()]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Register:
    """Three customers with orders, in tables with some history; all models are built and published."""
    root = tmp_path_factory.mktemp("register")
    files = {path: text for path, text in FILES.items() if not path.startswith("seeds/")}
    files["models/sources.yml"] = SOURCE
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        for name in ("orders", "customers"):
            text = text.replace(f"ref('{name}')", f"source('till', '{name}')")
        (root / path).write_text(text)
    make_tables(root)
    shop = Register(root)._kept()
    assert isinstance(shop, Register)
    shop.put(CUSTOMERS, (3, NAME, False), (4, OTHER, False), (5, "Katherine Johnson", False))
    shop.put(ORDERS, *((n, 3 + n % 3, 10 * n, f"2024-01-{n:02d}", False) for n in range(1, 10)))
    sml(shop, "run")
    shop.put(CUSTOMERS, (5, "Katherine G. Johnson", False))
    for name in CHANGED:
        shutil.copytree(root / name, root / "built" / name)
    return shop


@pytest.fixture
def shop(built: Register) -> Register:
    """The same, restored for each test."""
    for name in CHANGED:
        shutil.rmtree(built.root / name, ignore_errors=True)
        shutil.copytree(built.root / "built" / name, built.root / name)
    return replace(built, rows_at=dict(built.rows_at))


def sml(shop: Shop, *words: str) -> None:
    code, output = finished(start(shop.root, *words))
    assert code == 0, output


def forget(shop: Shop, *words: str) -> int:
    return main(["forget", "--project-dir", str(shop.root), *words])


def test_rows_leave_every_file_and_the_rest_stays_right(shop: Register, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(shop.files_with(NAME)) > 3
    assert forget(shop, "till.customers", "3", "--text", NAME, "--yes") == 0
    said = capsys.readouterr().out
    assert "1 row deleted in dws.customers" in said and "Found in none of" in said
    assert "landing/*: its events bring the rows back" in said and "backups" in said
    assert shop.stored(CUSTOMERS) == [(4, OTHER), (5, "Katherine G. Johnson")]
    for model in MODELS:
        assert shop.stored(model) == shop.expected_of(model)
    assert shop.files_with(NAME) == []
    for place in PUBLISHED:
        assert shop.published(place)[1] == shop.expected_of(REGION)
    # Each table has the files of its newest commit and no others.
    for name in (CUSTOMERS, *MODELS):
        timeline = shop.timeline(name)
        slices = timeline.slices(timeline.commit_instants[-1].frontier).values()
        assert timeline.data_files == {each.path for each in slices}


def test_a_model_that_did_not_change_is_not_rebuilt_for_files_that_are_gone(shop: Register) -> None:
    shop.put(ORDERS, (20, 77, 5, "2024-01-20", False))  # of no customer, of too small an amount
    assert forget(shop, "till.orders", "20", "--yes") == 0
    shop.put(ORDERS, (21, 4, 70, "2024-01-21", False))
    code, output = finished(start(shop.root, "run"))
    assert code == 0 and "HIS" not in output, output


def test_afterwards_models_go_on_incrementally(shop: Register) -> None:
    assert forget(shop, "till.customers", "3", "--yes") == 0
    shop.put(CUSTOMERS, (4, "Grace B. Hopper", False))
    code, output = finished(start(shop.root, "run"))
    assert code == 0 and "HIS" not in output, output
    for model in MODELS:
        assert shop.stored(model) == shop.expected_of(model)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--slices", "3"], "slices.committed:2"),
        (["--slices", "3", "--full-refresh"], "slices.committed:1"),
        (["--slices", "3", "--full-refresh"], "create.built:1"),  # the first slice, which is not at its place
        (["--slices", "3", "--full-refresh"], "promotion.moved:1"),  # the table of before is still aside
    ],
)
def test_rows_leave_what_a_build_that_was_cut_short_has_left(words: list[str], fault: str, shop: Register) -> None:
    shop.put(ORDERS, (30, 3, 70, "2024-02-01", False), (31, 4, 70, "2024-03-01", False))
    model, table = shop.root / "models/daily.sql", shop.timeline(DAILY).uri
    query = f"select o.day, o.id, c.region from {{{{ source('till', 'orders') }}}} o {JOINED}"
    model.write_text(f"{{{{ config(partition_by='day') }}}}\n{query}\n")
    sml(shop, "run")
    if "--full-refresh" not in words:
        shutil.rmtree(table)
    code, output = finished(start(shop.root, "run", "-s", "daily", *words, fault=fault))
    assert code == KILLED, output
    assert shop.files_with(NAME)
    assert forget(shop, "till.customers", "3", "--text", NAME, "--yes") == 0
    assert shop.files_with(NAME) == [] and not list(shop.root.glob("warehouse/dws/*__sml_*"))
    with Project.load(shop.root) as project:
        rows = project.sql("select id, region from dws.daily").to_pylist()
    assert {row["id"]: row["region"] for row in rows} == {
        key: dict(shop.stored(CUSTOMERS)).get(customer) for key, customer, *_ in shop.stored(ORDERS)
    }


def test_rows_leave_slices_of_a_query_that_read_their_source(shop: Register) -> None:
    model = shop.root / "models/daily.sql"
    edited = "{{ config(partition_by='day') }}\nselect day, id from {{ source('till', 'orders') }}\n"
    query = f"select o.day, o.id, c.region from {{{{ source('till', 'orders') }}}} o {JOINED}"
    shutil.rmtree(shop.timeline(DAILY).uri)
    model.write_text(f"{{{{ config(partition_by='day') }}}}\n{query}\n")
    code, output = finished(start(shop.root, "run", "-s", "daily", "--slices", "3", fault="slices.committed:2"))
    assert code == KILLED, output
    model.write_text(edited)
    assert forget(shop, "till.customers", "3", "--text", NAME, "--yes") == 0
    assert shop.files_with(NAME) == [] and not list(shop.root.glob("warehouse/dws/*__sml_*"))


@parametrize(
    "step",
    suite=["erasure.rows", "publish.written"],
    release=[*(point for point in ERASURE_POINTS if point != "erasure.rows"), "hudi.commit.staged", "publish.begin"],
)
def test_killed_at_any_step_the_same_command_ends_it(step: str, shop: Register) -> None:
    words = ("till.customers", "3", "--text", NAME, "--yes")
    code, output = finished(start(shop.root, "forget", *words, fault=step))
    assert code == -signal.SIGKILL, output
    with tallied("erasure of a row", step) as tally:
        tally.killed(step)
        code, output = finished(start(shop.root, "forget", *words))
        if code != 0 or shop.files_with(NAME):
            tally.add("stuck", f"exit code {code}: {output}")
        for model in MODELS:
            tally.compare(shop.stored(model), shop.expected_of(model), model)
        for place in PUBLISHED:
            tally.compare(shop.published(place)[1], shop.expected_of(REGION), place)


@parametrize("is_back", suite=[True], release=[False])
def test_what_others_write_while_models_run_does_no_harm(is_back: bool, shop: Register) -> None:
    """Locks are released for the models' run. A row that comes back is found at the end."""
    words = ("till.customers", "3", "--text", NAME, "--yes")
    call = start(shop.root, "forget", *words, fault="erasure.models:1:stop")
    wait_until_stopped(call)
    shop.put(CUSTOMERS, (6, "Mary Jackson", False), *[(3, NAME, False)] * is_back)
    shop.put(ORDERS, (30, 6, 11, "2024-01-30", False))
    sml(shop, "run")
    os.killpg(call.pid, signal.SIGCONT)
    code, output = finished(call)
    assert code == is_back, output
    if is_back:
        assert "dws/customers" in output and NAME in output
        assert forget(shop, *words) == 0
    assert shop.files_with(NAME) == [] and (6, "Mary Jackson") in shop.stored(CUSTOMERS)
    for model in MODELS:
        assert shop.stored(model) == shop.expected_of(model)
    for place in PUBLISHED:
        assert shop.published(place)[1] == shop.expected_of(REGION)


def test_a_row_that_an_event_deleted_is_in_old_files_no_longer(
    shop: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.put(CUSTOMERS, (3, NAME, True))
    assert forget(shop, "till.customers", "3", "--text", NAME, "--yes") == 0
    assert "0 rows deleted in dws.customers" in capsys.readouterr().out
    assert shop.files_with(NAME) == []


def test_a_text_that_is_left_is_named_with_its_file(shop: Register, capsys: pytest.CaptureFixture[str]) -> None:
    export = shop.root / "warehouse" / "export.json.gz"
    export.write_bytes(gzip.compress(json.dumps({"name": NAME}).encode()))
    assert forget(shop, "till.customers", "3", "--text", NAME, "--yes") == 1
    said = capsys.readouterr().out
    assert f"{export}: {NAME}" in said and "Found in 1 of" in said


def test_tables_that_only_texts_can_show_are_named(shop: Register, capsys: pytest.CaptureFixture[str]) -> None:
    WrittenTable(shop.root / "warehouse" / "dws" / "dropped", {"region": "string"}).create()
    assert forget(shop, "till.orders", "1", "--yes") == 0
    said = capsys.readouterr().out.partition("Searched for texts only")[2].partition("Not searched")[0]
    assert "dws.dropped, which no node of the project has" in said
    assert "dws.region" in said and "dws.detail" not in said  # detail has the order's id


def test_artifacts_with_a_text_are_removed(shop: Register) -> None:
    page = shop.root / "target" / "report.html"
    page.parent.mkdir(exist_ok=True)
    page.write_text(f"<td>{NAME}</td>")
    assert forget(shop, "till.customers", "3", "--text", NAME, "--yes") == 0
    assert not page.exists() and (shop.root / "target" / "manifest.json").exists()


def test_keys_of_a_file_are_forgotten_together(shop: Register, tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text("3\n\n5\n")
    assert forget(shop, "till.customers", "--keys-file", str(keys), "--yes") == 0
    assert shop.stored(CUSTOMERS) == [(4, OTHER)]


def test_without_a_terminal_it_needs_yes_and_says_what_it_would_do(
    shop: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    before = shop.stored(CUSTOMERS)
    assert forget(shop, "till.customers", "3") == 2
    printed = capsys.readouterr()
    assert "add --yes" in printed.err and "dws.region" in printed.out
    assert shop.stored(CUSTOMERS) == before


class Terminal(io.StringIO):
    """Standard input at which somebody answers."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\n", 1), ("y\n", 0)])
def test_at_a_terminal_it_asks(answer: str, code: int, shop: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert forget(shop, "till.customers", "3") == code
    assert ((3, NAME) in shop.stored(CUSTOMERS)) == (code == 1)


def in_profile(shop: Register, warehouse: str, *words: str) -> int:
    """Forget with another `warehouse:` in the profile."""
    profiles = shop.root / "profiles.yml"
    text = profiles.read_text()
    profiles.write_text(text.replace("warehouse: warehouse", f"warehouse: {warehouse}"))
    try:
        return forget(shop, *words)
    finally:
        profiles.write_text(text)


def test_a_warehouse_may_be_named_by_a_file_uri(shop: Register, capsys: pytest.CaptureFixture[str]) -> None:
    warehouse = shop.root / "warehouse"
    aside = warehouse / "dws" / "customers__sml_broken_20240101"
    shutil.copytree(warehouse / "dws" / "customers", aside)
    WrittenTable(warehouse / "dws" / "dropped", {"region": "string"}).create()
    assert in_profile(shop, warehouse.as_uri(), "till.customers", "3", "--text", NAME, "--yes") == 0
    said = capsys.readouterr().out.partition("Searched for texts only")[2].partition("Not searched")[0]
    assert "dws.dropped, which no node" in said and "dws.detail, which no node" not in said
    assert shop.files_with(NAME) == [] and not aside.exists()
    for model in MODELS:
        assert shop.stored(model) == shop.expected_of(model)


def test_a_warehouse_elsewhere_is_refused(shop: Register, capsys: pytest.CaptureFixture[str]) -> None:
    assert in_profile(shop, "gs://lake/shop", "till.customers", "3", "--yes") == 2
    assert "gs://lake/shop: rows are forgotten on local disks and S3 only" in capsys.readouterr().err


def test_a_file_of_keys_that_is_not_text_is_refused(shop: Register, capsys: pytest.CaptureFixture[str]) -> None:
    keys = shop.root / "keys.bin"
    keys.write_bytes(b"\xff\xfe3")
    assert forget(shop, "till.customers", "--keys-file", str(keys), "--yes") == 2
    assert "keys.bin is not UTF-8 text" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("till.customers", "--yes"), 2, "no key is given"),
        (("till.customers", "Ada", "--yes"), 2, "'Ada' is not a value of id"),
        (("till.nothing", "3", "--yes"), 2, "no table 'till.nothing'"),
        (("detail", "3", "--yes"), 2, "not a table that `sml ingest` fills"),
        (("till.customers", "3", "--text", "Al", "--yes"), 2, "is in any file"),
        (("till.customers", "3", "--defer", "--state", ".", "--yes"), 2, "--defer has no meaning"),
    ],
)
def test_a_wrong_call_changes_nothing(
    words: tuple[str, ...], code: int, said: str, shop: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {name: shop.timeline(name).names for name in (CUSTOMERS, *MODELS)}
    assert forget(shop, *words) == code
    printed = capsys.readouterr()
    assert said in printed.err and "Traceback" not in printed.err
    assert {name: shop.timeline(name).names for name in (CUSTOMERS, *MODELS)} == before


def test_a_savepoint_downstream_is_refused(shop: Register, capsys: pytest.CaptureFixture[str]) -> None:
    timeline = shop.timeline(REGION)
    newest = timeline.commit_instants[-1].requested
    (Path(timeline.uri) / ".hoodie" / "timeline" / f"{newest}_{newest}.savepoint").touch()
    before = shop.stored(CUSTOMERS)
    assert forget(shop, "till.customers", "3", "--yes") == 1
    assert f"sml savepoint delete TABLE {newest}" in capsys.readouterr().err
    assert shop.stored(CUSTOMERS) == before


def test_while_there_are_environments_nothing_is_erased(shop: Register, capsys: pytest.CaptureFixture[str]) -> None:
    environment_at(str(shop.root / "warehouse"), "dev").write(Environment("dev", "another", "dws", "now"))
    before = shop.timeline(CUSTOMERS).names
    assert forget(shop, "till.customers", "3", "--yes") == 2
    assert "environments hold copies of the lake's rows: dev" in capsys.readouterr().err
    assert shop.timeline(CUSTOMERS).names == before


def test_a_savepoint_that_is_created_meanwhile_is_kept(shop: Register) -> None:
    words = ("forget", "till.customers", "3", "--yes")
    call = start(shop.root, *words, fault="erasure.models:1:stop")
    wait_until_stopped(call)
    sml(shop, "savepoint", "create", "region")
    os.killpg(call.pid, signal.SIGCONT)
    code, output = finished(call)
    assert code == 1 and "sml savepoint delete TABLE" in output, output
    timeline = shop.timeline(REGION)
    [saved] = savepoints(timeline)
    names = [f"{partition}/{name}".strip("/") for partition, files in saved.files.items() for name in files]
    assert names and set(names) <= timeline.data_files
    sml(shop, "savepoint", "delete", "region", saved.instant)
    sml(shop, *words)


def test_a_table_that_is_built_while_somebody_answers_is_not_left_out(
    shop: Register, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table, aside = shop.root / "warehouse" / "dws" / "detail", shop.root / "detail"
    table.rename(aside)

    class Slow(Terminal):
        def readline(self, *_: object) -> str:
            aside.rename(table)
            return "y\n"

    monkeypatch.setattr("sys.stdin", Slow())
    assert forget(shop, "till.customers", "3") == 1
    assert "were built or dropped meanwhile" in capsys.readouterr().err
    assert (3, NAME) in shop.stored(CUSTOMERS)
    assert forget(shop, "till.customers", "3", "--text", NAME, "--yes") == 0


def test_a_table_that_was_built_from_it_by_an_earlier_query_is_run_too(shop: Register) -> None:
    model = shop.root / "models" / "customer.sql"
    text = model.read_text()
    model.write_text("select id, region from {{ source('till', 'customers') }}")
    try:
        planned = plan_erasure(load(Invocation(project_dir=shop.root)), ErasureRequest("till.orders", ("3",)))
    finally:
        model.write_text(text)
    assert "dws.customer" in {str(each.table) for each in planned.models}


@pytest.mark.parametrize("fault", [None, "erasure.models:1"])
def test_rows_leave_old_versions_of_a_table_that_was_built_by_an_earlier_query(
    fault: str | None, shop: Register
) -> None:
    (shop.root / "models/daily.sql").write_text(
        "{{ config(partition_by='day') }}\nselect day, id from {{ source('till', 'orders') }}\n"
    )
    (shop.root / "models/detail.sql").write_text("select id, customer from {{ source('till', 'orders') }}\n")
    (shop.root / "models/region.sql").write_text("select customer, count(*) as n from {{ ref('detail') }} group by 1\n")
    words = ("forget", "till.customers", "3", "--yes")
    if fault:
        assert finished(start(shop.root, *words, fault=fault))[0] == KILLED
    sml(shop, *words)
    assert [path for path in shop.files_with(NAME) if "warehouse" in path.parts] == []


def test_a_writer_at_work_is_not_disturbed(shop: Register, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = load(Invocation(project_dir=shop.root))
    with lake_lock(loaded, "ingest", ingestion_locks(loaded, loaded.project.sources)):
        assert forget(shop, "till.customers", "3", "--yes") == 1
    assert "another `sml ingest` is writing" in capsys.readouterr().err
    assert (3, NAME) in shop.stored(CUSTOMERS)


def test_deleted_rows_do_not_stay_in_free_pages_of_a_database(shop: Register) -> None:
    file = sqlite3.connect(shop.root / "serving" / "db.sqlite")
    assert file.execute("select count(*) from region where region = ?", [NAME]).fetchone() == (1,)
    file.close()
    assert forget(shop, "till.customers", "3", "--text", NAME, "--yes") == 0
    assert NAME.encode() not in (shop.root / "serving" / "db.sqlite").read_bytes()
    assert NAME.encode() not in (shop.root / "serving" / "bi.duckdb").read_bytes()


def test_dead_letters_and_remembered_deletes_of_the_key_go_too(shop: Register) -> None:
    dead_letters, tombstones = side_tables(shop)
    dead_letters.upsert([
        ("a", None, "customers", "3", "{broken", None),
        ("b", "x", None, None, '{"source": {"table": "customers"}, "after": {"id": 3, "region"', None),
        ("c", "x", "customers", "4", '{"id": 4}', None),
        ("d", "x", "orders", "3", '{"id": 3}', None),
        ("e", "x", None, None, f"{NAME} in no JSON", None),
    ])  # fmt: skip
    tombstones.upsert([("3", 7), ("4", 8)])
    assert forget(shop, "till.customers", "3", "--text", NAME, "--yes") == 0
    assert sorted(row[0] for row in dead_letters.rows()) == ["c", "d"]
    assert [row[0] for row in tombstones.rows()] == ["4"]
    assert len(dead_letters.timeline.data_files) == len(tombstones.timeline.data_files) == 1


@pytest.fixture
def keyed_by_name(shop: Register) -> Iterator[Register]:
    """The shop, its customers' names being their keys."""
    sources = shop.root / "models" / "sources.yml"
    text = sources.read_text()
    before, name, after = text.partition("name: customers")
    sources.write_text(before + name + after.replace("primary_key: [id]", "primary_key: [region]"))
    yield shop
    sources.write_text(text)


def test_dead_letters_of_a_key_that_begins_with_this_one_stay(keyed_by_name: Register) -> None:
    shop = keyed_by_name
    shop.put(CUSTOMERS, (7, "CUST-1", False))
    dead_letters, _ = side_tables(shop)
    dead_letters.upsert([
        (row_key, "x", "customers", row_key, json.dumps({"after": {"region": row_key}}), None)
        for row_key in ("CUST-1", "CUST-10", "CUST-1.a", "cust-1", "A CUST-1")
    ])  # fmt: skip
    forget(shop, "till.customers", "CUST-1", "--yes")
    assert sorted(row[0] for row in dead_letters.rows()) == ["CUST-1.a", "CUST-10", "cust-1"]


@pytest.mark.release
def test_a_key_that_begins_with_this_one_is_not_what_is_left(
    keyed_by_name: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = keyed_by_name
    shop.put(CUSTOMERS, (7, "CUST-1", False), (8, "CUST-12", False))
    shop.put(ORDERS, (30, 7, 100, "2024-01-20", False), (31, 8, 100, "2024-01-20", False))
    sml(shop, "run")
    assert forget(shop, "till.customers", "CUST-1", "--yes") == 0
    assert (8, "CUST-12") in shop.stored(CUSTOMERS) and (7, "CUST-1") not in shop.stored(CUSTOMERS)
    assert "built anew" not in capsys.readouterr().out
    for place in PUBLISHED:
        assert any("CUST-12" in row for row in shop.published(place)[1])
    export = shop.root / "warehouse" / "export.json"
    export.write_text('["CUST-12", "CUST-1", "CUST-13"]')
    assert forget(shop, "till.customers", "CUST-1", "--yes") == 1
    assert f"{export}: CUST-1" in capsys.readouterr().out
    export.write_text('["CUST-12"]')
    words = ("forget", "till.customers", "CUST-1", "--text", "CUST-1", "--yes")  # rebuilds models, by Spark
    code, output = finished(start(shop.root, *words))
    assert code == 1 and f"{export}: CUST-1" in output, "a --text must be nowhere"


def side_tables(shop: Register) -> tuple[WrittenTable, WrittenTable]:
    warehouse = shop.root / "warehouse"
    columns = {"reason": "string", "table_name": "string", "row_key": "string", "text": "string", "raw": "bytes"}
    dead_letters = WrittenTable(warehouse / "dws" / "till__dead_letters", columns).create()
    return dead_letters, WrittenTable(warehouse / "_sml/tombstones/dws/customers", {"part": "long"}).create()


def test_stored_failures_and_what_was_set_aside_are_removed(shop: Register, capsys: pytest.CaptureFixture[str]) -> None:
    (shop.root / "models" / "tests.yml").write_text(
        "models:\n  - name: detail\n    columns: [{name: region, tests: [unique]}]\n"
    )
    warehouse = shop.root / "warehouse"
    failures = WrittenTable(warehouse / "dws_dbt_test__audit" / "unique_detail_region", {"region": "string"}).create()
    failures.upsert([("a", NAME)])
    aside = warehouse / "dws" / "customers__sml_broken_20240101"
    shutil.copytree(warehouse / "dws" / "customers", aside)
    try:
        assert forget(shop, "till.customers", "3", "--text", NAME) == 2
        assert "unique_detail_region (stored test failures" in capsys.readouterr().out
        assert forget(shop, "till.customers", "3", "--text", NAME, "--yes") == 0
    finally:
        (shop.root / "models" / "tests.yml").unlink()
    assert not failures.root.exists() and not aside.exists()
