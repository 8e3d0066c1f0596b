"""Environments of a lake without a JVM: edited tables beside production, whose files no call with `-e` changes."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sqlmesh_like import Project
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import UsageError
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from tests.faults.shop import CUSTOMERS, DAILY, DETAIL, ORDERS, REGION, Row, Shop, recomputed

Shown = pytest.CaptureFixture[str]
DETAIL_SQL, DAILY_SQL, PROFILE = "models/detail.sql", "models/daily.sql", "profiles.yml"
FILTER = ("o.customer = c.id", "o.customer = c.id where o.amount > 12")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake whose tables are up to date."""
    root = tmp_path_factory.mktemp("built")
    shop = Shop.changed(root, random.Random(1), 5)
    assert main(["run", "--project-dir", str(root)]) == 0
    return shop


def edit(root: Path, before: str, after: str, path: str = DETAIL_SQL) -> None:
    text = (root / path).read_text()
    assert before in text
    (root / path).write_text(text.replace(before, after))


def production(root: Path) -> dict[str, tuple[int, bytes]]:
    """Each file of production's tables."""
    tables = (path for path in (root / "warehouse").glob("[!_]*/**/*") if path.is_file())
    return {str(path): (path.stat().st_ino, path.read_bytes()) for path in tables}


def tables_of(root: Path, name: str = "dev") -> set[str]:
    document = json.loads((root / f"warehouse/_sml/environments/{name}/environment.json").read_bytes())
    return {short_name(each) for each in document["tables"]}


def short_name(unique_id: str) -> str:
    return unique_id.rpartition(".")[2]


def rows_in(root: Path, unique_id: str, name: str = "dev") -> list[Row]:
    """The rows of an environment's own table."""
    place = root / f"warehouse/_sml/environments/{name}/tables/dws/{short_name(unique_id)}"
    rows = read_table_rows(table_state(Timeline(str(place))), -1)
    assert rows is not None
    return sorted(rows.rows)


def expected(shop: Shop, unique_id: str) -> list[Row]:
    """What the models say where `detail` has a filter."""
    detail = [row for row in shop.expected(DETAIL) if row[2] > 12]
    return detail if unique_id == DETAIL else recomputed(REGION, {DETAIL: detail})


def refusal(capsys: Shown, *words: str) -> str:
    capsys.readouterr()
    assert main([*words]) == 2
    return capsys.readouterr().err


def test_an_edit_and_what_reads_it_are_made_beside_production_from_its_files(shop: Shop, capsys: Shown) -> None:
    root = shop.root
    edit(root, *FILTER)
    before = production(root)
    assert main(["run", "-e", "dev"]) == 0
    shown = capsys.readouterr().out
    assert "EDT002 a narrower filter" in shown and "[aggregate_merge" in shown, "neither is built anew"
    assert production(root) == before
    assert tables_of(root) == {"detail", "region"}
    assert rows_in(root, DETAIL) == expected(shop, DETAIL) and rows_in(root, REGION) == expected(shop, REGION)
    assert expected(shop, DETAIL) != shop.expected(DETAIL) == shop.stored(DETAIL)
    history = json.loads((root / "target/run_history.json").read_bytes())
    assert history["targets"].keys() == {"local", "local -e dev"}, "its problems are not those of production"
    query = "select (select sum(n) from region) as own, (select count(*) from daily) as productions"
    assert main(["sql", "-e", "dev", query, "--output", "json"]) == 0
    ((row),) = json.loads(capsys.readouterr().out)
    assert row == {"own": len(expected(shop, DETAIL)), "productions": len(shop.stored(DAILY))}
    assert main(["run", "-e", "dev"]) == 0 and "PASS=0 WARN=0 ERROR=0 SKIP=0 NO-OP=2" in capsys.readouterr().out


def test_what_reads_no_changed_column_shares_all_files_with_production(shop: Shop, capsys: Shown) -> None:
    root = shop.root
    edit(root, "o.amount, c.region", "o.amount, c.region, o.amount * 2 as twice")
    assert main(["run", "-e", "dev"]) == 0
    assert "EDT002 twice computed of stored columns" in (out := capsys.readouterr().out)
    assert "dws.region" in out and "[aggregate_merge 0 rows" in out
    place = root / "warehouse/_sml/environments/dev/tables/dws/region"
    files = {path.stat().st_ino for path in place.glob("**/*.parquet") if ".hoodie" not in path.parts}
    shared = {path.stat().st_ino for path in (root / "warehouse/dws/region").glob("**/*.parquet")}
    assert files and files <= shared
    assert rows_in(root, REGION) == shop.stored(REGION)


def test_a_later_run_follows_production_and_the_text(shop: Shop) -> None:
    root, dice = shop.root, random.Random(9)
    edit(root, *FILTER)
    assert main(["run", "-e", "dev"]) == 0
    shop.commit(ORDERS, dice)  # an input moves: the environment's tables follow it by themselves
    assert main(["run", "-e", "dev"]) == 0
    assert rows_in(root, REGION) == expected(shop, REGION)
    edit(root, FILTER[1], FILTER[0])
    shop.commit(CUSTOMERS, dice)
    assert main(["run"]) == 0  # production's tables move: they are cloned again
    edit(root, *FILTER)
    assert main(["run", "-e", "dev"]) == 0
    assert rows_in(root, DETAIL) == expected(shop, DETAIL) and rows_in(root, REGION) == expected(shop, REGION)
    edit(root, FILTER[1], FILTER[0])
    assert main(["run", "-e", "dev"]) == 0 and tables_of(root) == set()


def test_a_table_of_other_types_and_a_new_one_are_built_beside_production(shop: Shop) -> None:
    root = shop.root
    edit(root, "select day, id, amount", "select day, id, cast(amount as string) as amount", DAILY_SQL)
    (root / "models/top.sql").write_text("select id, amount from {{ ref('daily') }}")
    before = production(root)
    assert main(["run", "-e", "dev"]) == 0
    assert production(root) == before and tables_of(root) == {"daily", "top"}
    assert rows_in(root, "top") == sorted((key, str(amount)) for _, key, amount in shop.expected(DAILY))


def test_environments_are_listed_and_dropped(shop: Shop, capsys: Shown) -> None:
    edit(shop.root, *FILTER)
    assert main(["run", "-e", "dev", "-s", "detail"]) == 0 and main(["run", "-e", "other"]) == 0
    shop.commit(ORDERS, random.Random(3))
    edit(shop.root, FILTER[1], FILTER[0])
    assert main(["run"]) == 0
    before, _ = production(shop.root), capsys.readouterr()
    assert main(["env", "list", "--output", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(each["name"], len(each["tables"]), {one["table"] for one in each["moved"]}) for each in listed] == [
        ("dev", 1, {"dws.detail"}), ("other", 2, {"dws.detail", "dws.region"}),
    ]  # fmt: skip
    assert main(["env", "list"]) == 0 and "production has moved on in dws.detail" in capsys.readouterr().out
    assert main(["env", "drop", "dev"]) == 0 and main(["env", "drop", "other"]) == 0
    assert production(shop.root) == before
    assert main(["env", "list"]) == 0 and "There are no environments" in capsys.readouterr().out
    assert "there is no environment 'dev'" in refusal(capsys, "sql", "-e", "dev", "select 1 as a")


@pytest.mark.parametrize(
    ("path", "before", "after", "why"),
    [
        (PROFILE, "warehouse: warehouse", "warehouse: gs://lake/w", "on local disks and S3 only"),
        (PROFILE, "warehouse: warehouse", "warehouse: hdfs://n/w", "on local disks and S3 only"),
        (
            *(PROFILE, "warehouse: warehouse"),
            "warehouse: s3a://lake/w\n      store: {single_writer: true}",
            "environments need its locks",
        ),
        (DETAIL_SQL, "select", "{{ config(table_type='mor') }}select", "dws.detail is merge-on-read"),
        (DETAIL_SQL, "select", "{{ config(post_hook='drop table x') }}select", "hooks cannot run"),
    ],
)
def test_what_an_environment_cannot_have_is_refused_before_anything_is_made(
    path: str, before: str, after: str, why: str, shop: Shop, capsys: Shown
) -> None:
    files = production(shop.root)
    edit(shop.root, *FILTER)
    edit(shop.root, before, after, path)
    assert why in refusal(capsys, "run", "-e", "dev")
    assert production(shop.root) == files and not (shop.root / "warehouse/_sml/environments").exists()


def test_names_and_projects_are_checked(shop: Shop, capsys: Shown) -> None:
    for name in ("../x", "Dev", "", "a b"):
        assert "an environment cannot be named" in refusal(capsys, "run", "-e", name)
    edit(shop.root, *FILTER)
    assert main(["run", "-e", "dev"]) == 0
    edit(shop.root, 'name = "shop"', 'name = "till"', "pyproject.toml")
    calls = (
        "run -e dev",
        "build -e dev",
        "plan -e dev",
        "show -e dev daily",
        "diff -e dev detail",
        "promote dev",
        "env drop dev",
    )
    for words in map(str.split, calls):
        assert "is of project 'shop'" in refusal(capsys, *words)
    assert main(["env", "list"]) == 0 and "There are no environments" in capsys.readouterr().out


def test_a_plan_says_what_a_run_would_make_and_changes_nothing(shop: Shop, capsys: Shown) -> None:
    root = shop.root
    edit(root, *FILTER)
    (root / "models/top.sql").write_text("select customer, days from {{ ref('customer') }}")
    before, _ = production(root), capsys.readouterr()
    assert main(["plan", "-e", "dev", "--output", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    strategies = {short_name(each["unique_id"]): (each["origin"], each["plan"]["next_run"]) for each in plan["tables"]}
    assert strategies == {
        "detail": ("cloned", "recompute_merge"), "region": ("cloned", "aggregate_merge"),
        "top": ("new", "full_refresh"),
    }  # fmt: skip
    detail = plan["tables"][0]
    assert detail["base"] == shop.timeline(DETAIL).frontier and detail["shared_bytes"] > 0
    assert detail["cost"]["is_bound"] and detail["cost"]["read"] == detail["shared_bytes"] < detail["cost"]["rebuild"]
    assert plan["read_from_production"] == ["dws.customer", "dws.daily"]
    assert production(root) == before and not (root / "warehouse/_sml/environments").exists()
    assert main(["run", "-e", "dev"]) == 0
    edit(root, FILTER[1], FILTER[0])
    capsys.readouterr()
    assert main(["plan", "-e", "dev"]) == 0
    shown = capsys.readouterr().out
    assert "dws.top: as the last run of the environment left it" in shown
    assert "production's again, or gone: removed: dws.detail, dws.region" in shown
    assert "name an environment" in refusal(capsys, "plan")


def test_rows_are_compared_with_production_s_by_key(shop: Shop, capsys: Shown) -> None:
    root = shop.root
    edit(root, "o.amount, c.region", "case when o.id = 4 then 0 else o.amount end as amount, o.id + 1 as more")
    edit(root, FILTER[0], "o.customer = c.id where o.id <> 5")
    edit(root, "select o.id", "{{ config(unique_key='id') }} select o.id")
    edit(root, "select region, count(*) as n, sum(amount) as total, max(amount) as top", "select id % 2 as region, "
         "count(*) as n, sum(amount) as total, max(amount) as top", "models/region.sql")  # fmt: skip
    edit(root, "group by region", "group by id % 2", "models/region.sql")
    assert main(["run", "-e", "dev"]) == 0
    capsys.readouterr()
    assert main(["diff", "-e", "dev", "detail", "--output", "json"]) == 0
    diff, rows = json.loads(capsys.readouterr().out), {row[0]: row for row in shop.stored(DETAIL)}
    gone, changed = rows[5], rows[4]
    assert diff["key"] == ["id"] and diff["columns"] == ["−region", "+more"]
    assert diff["rows"] == {
        "before": len(rows), "after": len(rows) - 1, "added": 0, "removed": 1, "changed": 1,
    }  # fmt: skip
    names = ("id", "customer", "amount", "region")
    assert diff["samples"]["removed"] == [dict(zip(names, gone, strict=True))]
    assert diff["changed_cells"] == {"amount": 1}
    assert diff["samples"]["changed"] == [{"key": {"id": 4}, "column": "amount", "before": changed[2], "after": 0}]
    assert main(["diff", "-e", "dev", "region", "--limit", "1"]) == 0
    shown = capsys.readouterr().out
    assert "matched by the hidden key" in shown and "2 added, 3 removed" in shown and "+ … and 1 more" in shown
    assert "dws.daily is read from production" in refusal(capsys, "diff", "-e", "dev", "daily")
    assert "name a model" in refusal(capsys, "diff", "-e", "dev")


def promoted(root: Path, name: str = "dev") -> None:
    """Promote an environment: tables of production are as they were there, and the next run has nothing to do."""
    before = {each: rows_in(root, each, name) for each in tables_of(root, name)}
    assert main(["promote", name]) == 0
    assert not (root / f"warehouse/_sml/environments/{name}").exists()
    for table, rows in before.items():
        state = read_table_rows(table_state(Timeline(str(root / "warehouse/dws" / table))), -1)
        assert state is not None and sorted(state.rows) == rows, table


def test_promotion_gives_production_the_commits_of_the_clones(shop: Shop, capsys: Shown) -> None:
    root = shop.root
    edit(root, *FILTER)
    assert main(["run", "-e", "dev"]) == 0
    shop.commit(ORDERS, random.Random(9))
    assert main(["run", "-e", "dev"]) == 0
    before, commits = production(root), len(shop.timeline(DETAIL).commit_instants)
    promoted(root)
    assert "the environment dev is production, 2 tables" in capsys.readouterr().out
    after = production(root)
    assert {path: after.get(path) for path in before} == before, "no file of production is changed, or moved"
    assert len(shop.timeline(DETAIL).commit_instants) == commits + 2, "the edit, and what followed"
    assert main(["run"]) == 0 and "NO-OP=2" in capsys.readouterr().out  # customer and daily read what has moved
    assert shop.stored(DETAIL) == expected(shop, DETAIL)
    shop.commit(CUSTOMERS, random.Random(5))
    assert main(["run"]) == 0 and "full_refresh" not in capsys.readouterr().out
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)


def test_promotion_of_tables_built_anew_puts_them_in_production_s_place(shop: Shop, capsys: Shown) -> None:
    root = shop.root
    edit(root, "select day, id, amount", "select day, id, cast(amount as string) as amount", DAILY_SQL)
    (root / "models/top.sql").write_text("select id, amount from {{ ref('daily') }}")
    assert main(["run", "-e", "dev"]) == 0
    promoted(root)
    capsys.readouterr()
    assert main(["run"]) == 0 and "NO-OP=5 TOTAL=5" in capsys.readouterr().out
    assert {path.name for path in (root / "warehouse/dws").iterdir()} == {
        "customer", "customers", "daily", "detail", "orders", "region", "top",
    }  # fmt: skip


def test_a_promotion_compiles_no_model_that_its_run_has_compared_and_reads_each_table_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shop.root
    with (root / "pyproject.toml").open("a") as file:
        file.write('release = "always"\n')
    shop.commit(ORDERS, random.Random(9))
    assert main(["run"]) == 0
    edit(root, *FILTER)
    assert main(["run", "-e", "dev"]) == 0
    kept = root.parent / "kept"
    shutil.copytree(root, kept)
    listed: list[str] = []
    folder_names = Timeline.folder_names
    monkeypatch.setattr(Timeline, "folder_names", lambda self: (listed.append(self.uri), folder_names(self))[1])
    assert main(["promote", "dev"]) == 0
    own = [uri for uri in listed if "/environments/" in uri]
    assert len(own) == len(set(own)) == 2
    counts = Counter(uri for uri in listed if uri.endswith(("dws/detail", "dws/region")) and uri not in own)
    assert set(counts.values()) == {3}, "when it is compared, before its commits are linked, and after that"
    # In a process of its own, which shows what is loaded.
    code = (
        "import sys; from sqlmesh_like.cli.app import main;"
        "calls = (['promote', 'dev'], ['release', 'list'], ['release', 'rollback', '1'], ['env', 'list']);"
        "print([main(call) for call in calls]); print('sqlglot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=kept, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip
    assert "readers see release 2 now" in done.stdout and "readers see release 1, of" in done.stdout, done
    assert done.stdout.splitlines()[-2:] == ["[0, 0, 0, 0]", "False"], done


def test_what_is_not_up_to_date_is_not_promoted(shop: Shop, capsys: Shown) -> None:
    root = shop.root
    assert main(["run", "-e", "dev"]) == 0 and "there is nothing to promote" in refusal(capsys, "promote", "dev")
    edit(root, *FILTER)
    assert main(["run", "-e", "dev"]) == 0
    edit(root, "> 12", "> 30")
    assert "dws.detail was edited since" in refusal(capsys, "promote", "dev")
    assert main(["run", "-e", "dev", "-s", "detail"]) == 0
    assert "dws.region has not read dws.detail as it is now" in refusal(capsys, "promote", "dev")
    assert main(["run", "-e", "dev"]) == 0
    edit(root, FILTER[1].replace("12", "30"), FILTER[0])
    shop.commit(ORDERS, random.Random(2))
    at = shop.timeline(DETAIL).frontier
    assert main(["run"]) == 0
    edit(root, *FILTER)
    files, error = production(root), refusal(capsys, "promote", "dev")
    assert f"dws.detail was at {at}, is at {shop.timeline(DETAIL).frontier}" in error and "sml run -e dev" in error
    assert main(["promote", "dev", "--output", "json"]) == 2
    moved = json.loads(capsys.readouterr().out)["moved"]
    assert moved[0] == {
        "unique_id": DETAIL, "table": "dws.detail", "cloned": at, "now": shop.timeline(DETAIL).frontier,
    }  # fmt: skip
    assert production(root) == files
    assert main(["run", "-e", "dev"]) == 0
    promoted(root)
    assert shop.stored(DETAIL) == expected(shop, DETAIL)


def test_its_tables_are_explained_verified_and_their_commits_shown(shop: Shop, capsys: Shown) -> None:
    before = production(shop.root)
    edit(shop.root, *FILTER)
    assert main(["run", "-e", "dev"]) == 0
    capsys.readouterr()
    assert main(["explain", "-e", "dev", "--output", "json"]) == 0
    planned = json.loads(capsys.readouterr().out)["models"]
    assert {each["unique_id"]: each["next_run"] for each in planned} == {DETAIL: "no_op", REGION: "no_op"}
    assert main(["history", "detail", "-e", "dev", "--output", "json"]) == 0
    own = json.loads(capsys.readouterr().out)
    assert main(["history", "detail", "--output", "json"]) == 0
    assert own[:-1] == json.loads(capsys.readouterr().out) and own[-1]["strategy"] == "recompute_merge"
    assert main(["verify", "-e", "dev", "--sample"]) == 0
    assert "2 of 2 PASS" in capsys.readouterr().out
    assert "has no table of the selected models" in refusal(capsys, "verify", "-e", "dev", "daily", "--sample")
    assert "there is no environment 'other'" in refusal(capsys, "explain", "-e", "other")
    with Project.load(shop.root, environment="dev") as project:
        assert {each.next_run for each in project.plan().models} == {"no_op"}
        assert len(project.sql("select * from dws.detail")) == len(expected(shop, DETAIL))
        for call in (project.ingest, project.publish, project.maintain, project.snapshot):
            with pytest.raises(UsageError, match="in an environment"):
                call()
    assert production(shop.root) == before


def test_a_plan_is_made_where_that_is_asked_for(shop: Shop, capsys: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(shop.root, *FILTER)
    assert main(["plan", "-e", "dev"]) == 0  # no terminal
    assert "Nothing was changed; add --yes to make it" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    for answer, count in ((False, 0), (True, 1)):
        monkeypatch.setattr("click.confirm", lambda *_words, answer=answer, **_flags: answer)
        assert main(["plan", "-e", "dev"]) == 0
        assert len(list((shop.root / "warehouse/_sml").glob("environments/dev/environment.json"))) == count
    assert rows_in(shop.root, DETAIL) == expected(shop, DETAIL)
    capsys.readouterr()
    assert main(["plan", "-e", "dev"]) == 0  # nothing to do, nothing to ask
    assert "Nothing was changed" not in capsys.readouterr().out
    assert main(["plan", "-e", "other", "--yes"]) == 0
    assert rows_in(shop.root, DETAIL, "other") == expected(shop, DETAIL)
