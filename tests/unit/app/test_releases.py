"""Releases of a lake of three tables without a JVM: what readers see while runs come, fail and are undone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest

from sqlmesh_like import Project
from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.operations.docs_content import lake_tables
from sqlmesh_like.cli.app import main
from tests.levels import parametrize
from tests.projects import enter_project

SUMS = "select (select sum(amount) from dwd.orders_d) as below, (select sum(total) from dws.daily) as above"
ROWS = "id,customer,amount\n1,1,20\n2,1,5\n3,2,30\n"
MORE, TWICE = f"{ROWS}4,2,7\n", f"{ROWS}3,2,7\n"
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nrelease = "tested"\n',
    "profiles.yml": "lake: {target: local, outputs: {local: {type: spark, warehouse: warehouse, schema: dws, "
    "publish: {bi: {duckdb: bi.duckdb}}}, "
    "memory: {type: duckdb, schema: dws}}}\n",
    "seeds/orders.csv": ROWS,
    "models/orders_d.sql": "{{ config(schema='dwd') }}select id, customer, amount from {{ ref('orders') }}",
    "models/daily.sql": "{{ config(publish='bi') }}select customer, sum(amount) as total from {{ ref('orders_d') }} "
    "group by customer",
    "seeds/rates.csv": "rate\n3\n",
    "models/rates_v.sql": "{{ config(materialized='view') }}select rate from {{ ref('rates') }}",
    "models/m.yml": "models: [{name: orders_d, columns: [{name: id, data_tests: [unique]}]}]\n",
}
Shown = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with its first release."""
    root = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        enter_project(root, patch, FILES)
        assert main(["build"]) == 0
    return root


@pytest.fixture(autouse=True)
def root(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it."""
    shutil.copytree(built, tmp_path / "shop")
    enter_project(tmp_path / "shop", monkeypatch, {})
    return tmp_path / "shop"


def change(root: Path, rows: str, *words: str) -> int:
    (root / "seeds/orders.csv").write_text(rows)
    return main([*words])


def seen(capsys: Shown, *words: str) -> tuple[int, int]:
    """The sums of the two models that a reader gets."""
    capsys.readouterr()
    assert main(["sql", SUMS, "--output", "json", *words]) == 0
    ((row),) = json.loads(capsys.readouterr().out)
    return int(row["below"]), int(row["above"])


def at_first(root: Path) -> str:
    """The first commit of the sums."""
    document = json.loads((root / "warehouse/_sml/releases/shop.dws.json").read_bytes())
    return str(document["releases"][0]["tables"]["model.shop.daily"]["commit"])


def newest(root: Path, name: str) -> str:
    """The requested time of a table's commit in the current release."""
    document = json.loads((root / "warehouse/_sml/releases/shop.dws.json").read_bytes())
    (current,) = (each for each in document["releases"] if each["id"] == document["current"])
    return str(current["tables"][f"model.shop.{name}"]["commit"]).split("_")[0]


def published(root: Path) -> list[tuple[int, int]]:
    with duckdb.connect(str(root / "bi.duckdb"), read_only=True) as db:
        return db.execute("select customer, total from daily order by customer").fetchall()


def listed(capsys: Shown) -> list[tuple[int, bool, bool]]:
    capsys.readouterr()
    assert main(["release", "list", "--output", "json"]) == 0
    return [(each["id"], each["current"], each["held"]) for each in json.loads(capsys.readouterr().out)]


def refusal(capsys: Shown, *words: str) -> str:
    capsys.readouterr()
    assert main([*words]) == 2
    return capsys.readouterr().err


def test_rows_whose_tests_have_not_passed_are_not_seen(root: Path, capsys: Shown) -> None:
    assert change(root, TWICE, "build") == 1
    assert seen(capsys) == (55, 55)
    assert seen(capsys, "--at", "latest-commit") == (62, 55)
    assert change(root, MORE, "seed") == 0 and main(["run"]) == 0
    assert "no release was made: 1 data test of its tables did not run" in capsys.readouterr().err
    assert seen(capsys) == (55, 55) and listed(capsys) == [(1, True, False)]
    assert published(root) == [(1, 25), (2, 30)]
    (root / "seeds/rates.csv").write_text("rate\n4\n")
    assert main(["build", "-s", "rates"]) == 0  # a release of another table: what waits goes on waiting
    assert seen(capsys) == (55, 55) and listed(capsys)[-1] == (2, True, False)
    assert main(["release", "create"]) == 0  # on one's own word
    assert seen(capsys) == (62, 62) == seen(capsys, "--at", "3") and seen(capsys, "--at", "1") == (55, 55)
    assert main(["show", "rates_v", "--output", "csv"]) == 0 and capsys.readouterr().out.split()[-1] == "4"


def test_a_table_that_cannot_be_sent_keeps_all_of_its_destination_back(root: Path, capsys: Shown) -> None:
    text = (root / "models/orders_d.sql").read_text().replace("schema='dwd'", "schema='dwd', publish='bi'")
    (root / "models/orders_d.sql").write_text(text)
    with duckdb.connect(str(root / "bi.duckdb")) as db:
        db.execute("create table orders_d (own int)")
    before = published(root)
    assert change(root, MORE, "build") == 1 and published(root) == before
    assert (
        "nothing was sent to bi: dwd.orders_d: bi has a table orders_d that no publication" in capsys.readouterr().out
    )
    with duckdb.connect(str(root / "bi.duckdb")) as db:
        db.execute("drop table orders_d")
    assert main(["publish"]) == 0 and published(root) == [(1, 25), (2, 37)]


def test_the_site_shows_tables_as_the_current_release_has_them(root: Path) -> None:
    assert change(root, MORE, "build") == 0 and change(root, TWICE, "build") == 1
    for name, released in (("2", "2"), ("1", "1")):
        assert main(["release", "rollback", name]) == 0
        document = json.loads((root / "warehouse/_sml/releases/shop.dws.json").read_bytes())
        [tables] = [each["tables"] for each in document["releases"] if str(each["id"]) == released]
        _, facts = lake_tables(load(Invocation(project_dir=root)))
        for unique_id in ("model.shop.orders_d", "model.shop.daily"):
            commit = tables[unique_id]["commit"]
            assert (facts[unique_id].state.frontier, facts[unique_id].commits[-1].instant) == (commit, commit)
    assert main(["docs", "generate"]) == 0
    (root / "warehouse/_sml/releases/shop.dws.json").unlink()
    _, facts = lake_tables(load(Invocation(project_dir=root)))
    assert facts["model.shop.orders_d"].commits[-1].instant not in {each["commit"] for each in tables.values()}


@parametrize(("mode", "total"), suite=[("manual", 55)], release=[("always", 62)])
def test_without_tests_a_run_is_released_where_the_project_says_so(
    mode: str, total: int, root: Path, capsys: Shown
) -> None:
    (root / "pyproject.toml").write_text(f'[tool.sqlmesh_like]\nname = "shop"\nrelease = "{mode}"\n')
    assert change(root, MORE, "seed") == 0 and main(["run"]) == 0
    assert ("released by `sml release create`" in capsys.readouterr().err) == (mode == "manual")
    assert seen(capsys) == (total, total)
    assert mode == "always" or main(["release", "create"]) == 0
    assert seen(capsys) == (62, 62)


def test_a_return_to_a_release_lasts_until_the_next_one(root: Path, capsys: Shown) -> None:
    assert change(root, MORE, "build") == 0 and seen(capsys) == (62, 62)
    assert published(root) == [(1, 25), (2, 37)]
    assert main(["release", "show", "1"]) == 0 and "dwd.orders_d" in capsys.readouterr().out
    assert main(["release", "diff", "1", "2", "--output", "json"]) == 0
    assert {each["change"] for each in json.loads(capsys.readouterr().out)} == {"moved"}
    assert main(["release", "hold", "1"]) == 0 and main(["release", "rollback", "1"]) == 0
    assert listed(capsys) == [(1, True, True), (2, False, False)] and seen(capsys) == (55, 55)
    assert main(["show", "daily", "--output", "csv"]) == 0
    assert sorted(capsys.readouterr().out.split()) == ["1,25", "2,30", "customer,total"]
    assert main(["changes", "daily", "--since", at_first(root), "--at", "2", "--output", "csv"]) == 0
    assert "2,37" in capsys.readouterr().out
    assert main(["changes", "daily", "--since", at_first(root), "--output", "csv"]) == 0
    assert "2,37" not in capsys.readouterr().out
    assert main(["publish"]) == 0 and published(root) == [(1, 25), (2, 30)]
    assert main(["publish", "--at", "2"]) == 0 and published(root) == [(1, 25), (2, 37)]
    assert main(["report", "--at", "2"]) == 0 and "37" in (root / "target/report.html").read_text()
    with Project.load() as project:
        assert project.sql("select sum(total) as n from daily").to_pylist() == [{"n": 55}]
        assert sum(project.table("daily").to_arrow(at=2).column("total").to_pylist()) == 62
    assert main(["release", "unhold", "1"]) == 0 and main(["build"]) == 0
    assert listed(capsys) == [(1, False, False), (2, False, False), (3, True, False)]
    assert main(["build"]) == 0 and len(listed(capsys)) == 3, "nothing changed, so that there is no other release"


def test_duckdb_reads_the_tables_of_a_release_by_the_statements_for_it(root: Path, capsys: Shown) -> None:
    assert main(["release", "hold", "1"]) == 0 and change(root, MORE, "build") == 0
    for words, total in (([], 62), (["--at", "1"], 55), (["daily", "--at", "1"], 55)):
        capsys.readouterr()
        assert main(["ddl", "--release", "--dialect", "duckdb", *words]) == 0
        with duckdb.connect() as db:
            db.execute(capsys.readouterr().out)
            assert db.execute("select sum(total) from dws.daily").fetchall() == [(total,)]
            assert db.table("dws.daily").columns == ["customer", "total"]
            assert "daily" in words or db.execute("select sum(amount) from dwd.orders_d").fetchall() == [(total,)]
    assert main(["ddl", "daily", "--release", "--dialect", "hive"]) == 0
    assert f"SET hoodie.dws_daily.consume.commit={newest(root, 'daily')};" in capsys.readouterr().out
    for message, *words in (
        ("there is no release '7'", "--release", "--at", "7"),
        ("no table 'rates_v'", "rates_v", "--release"),
        ("athena reads Hudi tables at their newest commit only", "--release", "--dialect", "athena"),
        ("--at names a release", "daily", "--at", "1"),
        ("no table is named", "--dialect", "hive"),
        ("--dialect spark declares tables as of a commit", "daily", "--dialect", "spark"),
    ):
        assert message in refusal(capsys, "ddl", *words)


def test_a_table_that_has_not_read_what_moved_prevents_a_release(root: Path, capsys: Shown) -> None:
    assert change(root, MORE, "build", "-s", "orders", "orders_d") == 0
    assert "dws.daily has not read dwd.orders_d as this run leaves it" in capsys.readouterr().err
    assert seen(capsys) == (55, 55)
    (root / "seeds/rates.csv").write_text("rate\n4\n")
    assert main(["build", "-s", "rates"]) == 0  # nothing but a view reads it
    assert main(["show", "rates_v", "--output", "csv"]) == 0
    assert capsys.readouterr().out.split()[-1] == "4"
    assert main(["build", "-s", "+daily"]) == 0 and seen(capsys) == (62, 62)


def test_a_test_counts_for_the_commits_that_it_has_read(root: Path, capsys: Shown) -> None:
    model = "{name: orders_d, columns: [{name: customer, data_tests: [{relationships: {arguments: "
    (root / "models/m.yml").write_text(f"models: [{model}{{to: ref('customers'), field: id}}}}}}]}}]}}]\n")
    unit = "{name: u, model: orders_d, given: [{input: ref('orders'), rows: [{id: 1}]}], expect: {rows: [{id: 1}]}}"
    (root / "models/u.yml").write_text(f"unit_tests: [{unit}]\n")
    (root / "seeds/customers.csv").write_text("id\n1\n2\n")
    assert main(["build"]) == 0
    (root / "seeds/customers.csv").write_text("id\n1\n2\n9\n")
    assert change(root, f"{ROWS}4,9,7\n", "seed") == 0
    assert main(["build", "-s", "orders_d+"]) == 0  # no model reads the customers, only the test
    capsys.readouterr()
    left_out = "select id from dwd.orders_d where customer not in (select id from customers)"
    assert main(["sql", left_out, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [] and seen(capsys) == (62, 62)


def test_what_cannot_be_read_is_refused_with_the_reason(root: Path, capsys: Shown) -> None:
    query = ("sql", "select * from daily")
    assert "there is no release '7'" in refusal(capsys, *query, "--at", "7")
    assert "give a time, or --at" in refusal(capsys, "show", "daily", "--at", "1", "--as-of", "2024-05-01")
    assert "has no lake" in refusal(capsys, *query, "--at", "1", "-t", "memory")
    assert "there is nothing that is not released" in refusal(capsys, "release", "create")
    file = root / "warehouse/_sml/releases/shop.dws.json"
    content = file.read_bytes()
    file.write_bytes(content[:-9])
    (root / "seeds/orders.csv").write_text(MORE)
    assert "shop.dws.json does not hold releases" in refusal(capsys, "build")
    file.write_bytes(content)
    assert seen(capsys, "--at", "latest-commit") == (55, 55), "nothing was changed before that was found"
    assert change(root, MORE, "build") == 0
    instant = at_first(root).split("_")[0]
    (file,) = (root / "warehouse/dws/daily").rglob(f"*_{instant}.parquet")
    file.unlink()
    gone = "release 1 can no longer be read: dws.daily as of"
    for words in ((*query, "--at", "1"), ("release", "rollback", "1"), ("release", "hold", "1")):
        assert gone in refusal(capsys, *words)
    assert seen(capsys) == (62, 62)
    shutil.rmtree(root / "warehouse/dws/daily")
    assert "release 2 names dws.daily, which no longer exists" in refusal(capsys, *query)
    shutil.rmtree(root / "warehouse/_sml/releases")
    assert "there is no release yet" in refusal(capsys, *query)
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    assert "the project makes no releases" in refusal(capsys, "sql", "select * from orders", "--at", "1")
    assert main(["run"]) == 0 and not (root / "warehouse/_sml/releases").exists()


def test_an_environment_is_made_of_the_release_and_none_is_made_of_it(root: Path, capsys: Shown) -> None:
    assert change(root, TWICE, "build") == 1  # production's tables are ahead of the release
    (root / "models/daily.sql").write_text(FILES["models/daily.sql"].replace("sum(amount)", "2 * sum(amount)"))
    (root / "seeds/rates.csv").write_text("rate\n4\n")
    assert main(["build", "-e", "dev", "--exclude", "orders"]) == 0
    assert seen(capsys, "-e", "dev") == (55, 110) and seen(capsys) == (55, 55)
    assert main(["show", "rates_v", "--output", "csv", "-e", "dev"]) == 0
    assert capsys.readouterr().out.split() == ["rate", "4"]
    assert listed(capsys) == [(1, True, False)] and published(root) == [(1, 25), (2, 30)]
    assert main(["build", "-e", "dev"]) == 1  # with the seed whose rows repeat a key
    assert main(["test", "-e", "dev", "-s", "orders_d"]) == 1 and main(["test", "-e", "dev", "-s", "daily"]) == 0
    assert seen(capsys) == (55, 55)


def test_tables_of_an_environment_are_released_once_their_tests_have_passed_there(root: Path, capsys: Shown) -> None:
    model = FILES["models/orders_d.sql"].replace("amount from", "2 * amount as amount from")
    (root / "models/orders_d.sql").write_text(model)
    assert main(["run", "-e", "dev"]) == 0
    assert "1 data test of its tables did not run: unique_orders_d_id" in refusal(capsys, "promote", "dev")
    assert main(["build", "-e", "dev"]) == 0
    assert seen(capsys) == (55, 55)
    assert main(["promote", "dev"]) == 0 and "readers see release 2 now" in capsys.readouterr().out
    assert seen(capsys) == (110, 110) == seen(capsys, "--at", "latest-commit") and seen(capsys, "--at", "1") == (55, 55)
    assert main(["build"]) == 0 and listed(capsys) == [(1, False, False), (2, True, False)]
    assert published(root) == [(1, 50), (2, 60)]
