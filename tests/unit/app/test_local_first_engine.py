"""What DuckDB computes and this process commits needs no Spark, and imports none of its modules."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from sqlmesh_like import Project
from sqlmesh_like.cli.app import main
from tests.faults.shop import CUSTOMER, CUSTOMERS, DAILY, DETAIL, FILES, MODELS, ORDERS, REGION, Shop

CALL = """
import sys
from sqlmesh_like import Project
from sqlmesh_like.cli.app import main

with Project.load(".") as project:
    for result in project.{call}().results:
        print(result.node.unique_id, result.status, getattr(result, "engine", None), sep="|")
print(*sorted({{"pyspark", "py4j"}} & set(sys.modules)), sep="|")
"""


def called(root: Path, call: str) -> list[list[str]]:
    """Nodes of a call that imported no module of Spark, each with status and engine."""
    text = CALL.format(call=call)
    done = subprocess.run([sys.executable, "-c", text], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *results, modules = done.stdout.splitlines()
    assert modules == ""
    return sorted(line.split("|") for line in results)


def built(root: Path) -> list[list[str]]:
    """Nodes of a build in this process, where Spark's modules refuse to be imported."""
    with Project.load(root) as project:
        results = project.build().results
    return sorted([each.node.unique_id, each.status, str(getattr(each, "engine", None))] for each in results)


@pytest.mark.release
def test_a_local_run_imports_no_module_of_spark(tmp_path: Path) -> None:
    shop = Shop.made(tmp_path)
    dice = random.Random(20240501)
    for _ in range(3):
        shop.change(dice)
    assert called(tmp_path, "run") == sorted([name, "success", "duckdb"] for name in MODELS)
    for name in MODELS:
        assert shop.stored(name) == shop.expected(name), name


def test_a_new_project_is_built_and_followed_without_spark(tmp_path: Path) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "seeds" / "orders.csv").write_text("id,customer,amount,day\n1,1,20,2024-01-01\n2,1,5,2024-01-02\n")
    (tmp_path / "seeds" / "customers.csv").write_text("id,region\n1,north\n")
    everything = sorted(
        [[name, "success", "duckdb"] for name in MODELS] + [[name, "success", "None"] for name in (CUSTOMERS, ORDERS)]
    )
    assert called(tmp_path, "build") == everything
    shop = Shop(tmp_path)
    assert shop.stored(DETAIL) == [(1, 1, 20, "north"), (2, 1, 5, "north")]
    assert shop.stored(REGION) == [("north", 2, 25, 20)]
    assert shop.stored(DAILY) == [("2024-01-01", 1, 20)]
    assert shop.stored(CUSTOMER) == [(1, 2)]
    (tmp_path / "seeds" / "orders.csv").write_text("id,customer,amount,day\n1,1,20,2024-01-01\n3,1,17,2024-01-01\n")
    (tmp_path / "seeds" / "customers.csv").write_text("id,region,since\n1,north,2024-01-01\n")  # another column
    assert built(tmp_path) == everything
    assert shop.stored(DETAIL) == [(1, 1, 20, "north"), (3, 1, 17, "north")]
    assert shop.stored(REGION) == [("north", 2, 37, 20)] and shop.stored(CUSTOMER) == [(1, 1)]
    commits = {name: [each.instant.action for each in shop.timeline(name).commits] for name in (ORDERS, CUSTOMERS)}
    assert commits == {ORDERS: ["commit", "replacecommit"], CUSTOMERS: ["commit"]}
    before = shop.timeline(ORDERS).slices(shop.timeline(ORDERS).commits[0].instant.frontier)
    assert shop.timeline(ORDERS).commits[-1].replaced_groups == set(before)
    assert {status for _, status, _ in built(tmp_path)} == {"no-op"}


def test_models_over_views_and_ephemeral_models_are_built_and_followed_without_spark(tmp_path: Path) -> None:
    models = {
        "models/stg.sql": "{{ config(materialized='view') }}\n"
        "select id, customer, amount as paid from {{ ref('orders') }}",
        "models/large.sql": "{{ config(materialized='ephemeral') }}\n"
        "with w as (select s.id, s.customer, s.paid from {{ ref('stg') }} as s) select * from w where paid > 10",
        "models/customer.sql": "with w as (select customer, count(*) as n, sum(paid) as paid from {{ ref('large') }}"
        " group by customer) select w.customer, w.n, w.paid, v.n as of_all from w"
        " join (select customer, count(*) as n from {{ ref('stg') }} group by customer) as v"
        " on v.customer = w.customer",
        "models/rebuilt.sql": "{{ config(materialized='table') }}\nselect l.customer, l.paid from {{ ref('large') }} l",
    }
    files = {name: text for name, text in FILES.items() if not name.startswith(("models/", "seeds/c"))}
    for path, text in {**files, **models}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    seed, shop = tmp_path / "seeds/orders.csv", Shop(tmp_path)
    seed.write_text("id,customer,amount,day\n1,1,20,2024-01-01\n2,1,5,2024-01-02\n3,2,11,2024-01-02\n")
    engines = {name: engine for name, _, engine in called(tmp_path, "build")}
    assert engines[CUSTOMER] == engines["model.shop.rebuilt"] == "duckdb"
    assert shop.stored(CUSTOMER) == [(1, 1, 20, 2), (2, 1, 11, 1)]
    seed.write_text("id,customer,amount,day\n1,1,20,2024-01-01\n2,1,15,2024-01-02\n4,2,1,2024-01-02\n")
    engines = {name: engine for name, _, engine in called(tmp_path, "build")}
    assert engines[CUSTOMER] == engines["model.shop.rebuilt"] == "duckdb"
    assert shop.stored(CUSTOMER) == [(1, 2, 35, 2)]
    assert shop.stored("model.shop.rebuilt") == [(1, 15), (1, 20)]


@pytest.mark.parametrize("where", ["view", "model"])
def test_spark_is_asked_about_texts_that_are_not_those_of_their_trees(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a view that a model reads as of the model: `::` is written as CAST."""
    texts = {
        "view": "select id, amount as paid from {{ ref('orders') }}",
        "model": "select id, paid from {{ ref('stg') }}",
    }
    texts[where] = texts[where].replace("id,", "id::bigint as id,")
    files = {name: text for name, text in FILES.items() if not name.startswith(("models/", "seeds/c"))}
    view = f"{{{{ config(materialized='view') }}}}\n{texts['view']}"
    for path, text in {**files, "models/stg.sql": view, "models/customer.sql": texts["model"]}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "seeds/orders.csv").write_text("id,customer,amount,day\n1,1,20,2024-01-01\n")
    monkeypatch.chdir(tmp_path)
    assert main(["seed"]) == 0
    capsys.readouterr()
    assert main(["explain", "customer", "--output", "json"]) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert (model["engine"], model["engine_because"]) == (
        "spark", "Spark is asked whether it reads the query as the compiler does",
    )  # fmt: skip


WINDOWS = """
select id, sum(amount) over w as total, count(*) over (partition by customer) as n, lag(amount, 1, 0) over w as before,
  lead(day) ignore nulls over w as next, ntile(2) over w as half, percent_rank() over w as p, cume_dist() over w as c,
  first_value(day) over (partition by customer order by amount rows between 1 preceding and current row) as first
from {{ ref('orders') }} window w as (partition by customer order by amount)
"""


def test_windows_are_built_and_followed_without_spark(tmp_path: Path) -> None:
    files = {name: text for name, text in FILES.items() if not name.startswith(("models/", "seeds/c"))}
    for path, text in {**files, "models/customer.sql": WINDOWS}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    seed, shop = tmp_path / "seeds/orders.csv", Shop(tmp_path)
    seed.write_text("id,customer,amount,day\n1,1,20,2024-01-01\n2,1,5,\n3,1,20,2024-01-03\n4,2,7,2024-01-01\n")
    assert built(tmp_path) == [[CUSTOMER, "success", "duckdb"], [ORDERS, "success", "None"]]
    assert shop.stored(CUSTOMER) == [
        (1, 45, 3, 5, "2024-01-03", 1, 0.5, 1.0, None), (2, 5, 3, 0, "2024-01-01", 1, 0.0, 1 / 3, None),
        (3, 45, 3, 20, None, 2, 0.5, 1.0, "2024-01-01"), (4, 7, 1, 0, None, 1, 0.0, 1.0, "2024-01-01"),
    ]  # fmt: skip
    seed.write_text("id,customer,amount,day\n1,1,20,2024-01-01\n2,1,5,\n4,2,7,2024-01-01\n5,2,8,2024-01-05\n")
    assert built(tmp_path) == [[CUSTOMER, "success", "duckdb"], [ORDERS, "success", "None"]]
    assert shop.stored(CUSTOMER) == [
        (1, 25, 2, 5, None, 2, 1.0, 1.0, None), (2, 5, 2, 0, "2024-01-01", 1, 0.0, 0.5, None),
        (4, 7, 2, 0, "2024-01-05", 1, 0.0, 0.5, "2024-01-01"), (5, 15, 2, 7, None, 2, 1.0, 1.0, "2024-01-01"),
    ]  # fmt: skip


def test_a_declared_key_that_repeats_makes_no_table(tmp_path: Path) -> None:
    sql = "{{ config(unique_key='customer') }} select customer, day from {{ ref('orders') }}\n"
    for path, text in {**FILES, "models/customer.sql": sql}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "seeds" / "orders.csv").write_text("id,customer,amount,day\n1,1,20,2024-01-01\n2,1,5,2024-01-02\n")
    failed = [name for name, status, _ in built(tmp_path) if status == "error"]
    assert failed == [CUSTOMER]
    assert not Path(Shop(tmp_path).timeline(CUSTOMER).uri).exists()


def test_history_that_nothing_needs_is_removed_without_spark(tmp_path: Path) -> None:
    shop = Shop.changed(tmp_path, random.Random(3), 0)
    with Project.load(tmp_path) as project:
        project.run()
    dice = random.Random(5)
    for _ in range(25):
        shop.commit(ORDERS, dice)
    files = len(shop.timeline(ORDERS).data_files)
    with Project.load(tmp_path) as project:
        assert {result.status for result in project.run().results} <= {"success", "no-op"}
    timeline = shop.timeline(ORDERS)
    assert len(timeline.data_commits) == 12 and timeline.is_archived and len(timeline.data_files) < files / 2
    for _ in range(3):
        shop.commit(ORDERS, dice)
        with Project.load(tmp_path) as project:
            strategies = {result.node.unique_id: result.strategy for result in project.run().results}  # type: ignore[union-attr]
        assert strategies[DETAIL] == "row_based", "what was kept is enough to follow changes"
    for name in (DETAIL, REGION, CUSTOMER, DAILY):
        assert shop.stored(name) == shop.expected(name), name


def test_a_change_without_effect_is_read_once(tmp_path: Path) -> None:
    shop, statuses = Shop.made(tmp_path), []
    (tmp_path / "models" / "huge.sql").write_text("select id from {{ ref('orders') }} where amount > 1000000")
    for is_changed in (False, True, False):
        if is_changed:
            shop.change(random.Random(7))
        with Project.load(tmp_path) as project:
            (result,) = project.run(select=["huge"]).results
        statuses.append(result.status)
    assert statuses == ["success", "success", "no-op"] and shop.stored("model.shop.huge") == []
