"""`sml explain` over timelines made by hand: the numbers a user sees before spending, with no JVM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake import clock, open_lake
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.operations.planning import plan_models
from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.timeline import _table_commits
from sqlmesh_like.plan import router
from sqlmesh_like.plan.history import TableRecord
from tests.unit.hudi.test_timeline import Lake, at

MEGABYTE = 1_000_000
UNTIMED = " (by size alone: no run of this table has been timed)"
SCHEMA = json.dumps({
    "type": "record", "name": "t",
    "fields": [{"name": "id", "type": ["null", "int"]}, {"name": "city", "type": ["null", "string"]}],
})  # fmt: skip
Shown = pytest.CaptureFixture[str]


class _Sized(Lake):
    """Every file holds 500,000 rows in 50 MB (`size`); `updates` of them are new."""

    updates = 0
    size = 50 * MEGABYTE

    def file(self, file_id: str, instant: int, merged_from: int | None = None) -> Mapping[str, object]:
        sizes = {"fileSizeInBytes": self.size, "numWrites": 500_000, "numDeletes": 0}
        changed = "numUpdateWrites" if merged_from is not None else "numInserts"
        return {**super().file(file_id, instant, merged_from), **sizes, changed: self.updates or 500_000}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Sized:
    """A source of two files and a model that has read them."""
    return built(tmp_path, monkeypatch, "select id, city from {{ source('shop', 'users') }} where id > 0")


def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, *others: str) -> _Sized:
    """The source `users` of a model that has read it, as it has these other sources, each of two files."""
    (tmp_path / "models").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    (tmp_path / "profiles.yml").write_text(
        "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}\n"
    )
    names = ("users", *others)
    listed = ", ".join(f"{{name: {name}}}" for name in names)
    (tmp_path / "models/s.yml").write_text(f"sources:\n  - {{name: shop, schema: ods, tables: [{listed}]}}\n")
    (tmp_path / "models/m.sql").write_text(sql)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    sources = {name: _Sized(tmp_path / "w/ods" / name) for name in names}
    known = {"schema": SCHEMA, "sml.batch": "1"}
    read = {f"source.shop.shop.{name}": each.commit(1, ["a", "b"], extra=known) for name, each in sources.items()}
    planned = open_lake(load(Invocation())).planner(clock(None))
    plan = planned.plan(planned.rendered.model("model.shop.m"), {})
    record = TableRecord("model.shop.m", plan.fingerprint, read, "2024-01-01T00:00:00+00:00", "full_refresh")
    _Sized(tmp_path / "w/dws/m").commit(2, ["c", "d"], extra={"schema": SCHEMA, "sml.record": record.to_json()})
    return sources["users"]


def changed(source: _Sized, rows: int, *files: str) -> None:
    source.updates = rows
    extra = {"schema": SCHEMA, "sml.batch": "2"}
    source.commit(5, files, merged_from=dict.fromkeys(files, 1), extra=extra)


def message(capsys: Shown) -> list[str]:
    assert main(["explain", "m"]) == 0
    return [line for line in capsys.readouterr().out.splitlines() if "estimate" in line or "next run" in line]


def test_a_small_change_is_followed_and_its_cost_stands_beside_that_of_a_rebuild(source: _Sized, capsys: Shown) -> None:
    changed(source, 1, "a")
    assert message(capsys) == [
        "├─ estimate   1 changed rows in 1 file groups: reads 100.0 MB, rewrites 50.0 MB in about 7 s; "
        "recompute_merge reads 200.0 MB, rewrites 50.0 MB in about 11 s; "
        f"a full refresh reads 100.0 MB, rewrites 100.0 MB in about 7 s{UNTIMED}",
        "└─ next run   row_based",
    ]


def test_a_target_that_leaves_the_work_to_spark_says_why(source: _Sized, capsys: Shown) -> None:
    changed(source, 1, "a")

    assert engine(capsys) == ([], ("duckdb", "duckdb", "duckdb", ""))
    set_target("delta_engine: spark")
    reason = "the target's delta_engine is spark"
    assert engine(capsys) == ([f"Spark scans, computes and commits: {reason}"], ("spark", "spark", "spark", reason))
    set_target("catalog: hive")
    assert engine(capsys) == ([], ("duckdb", "duckdb", "duckdb", "")), "the model has no partitions that it could add"


def test_settings_that_may_change_values_reach_plan_and_engine(source: _Sized, capsys: Shown) -> None:
    changed(source, 1, "a")
    set_target("spark: {spark.sql.shuffle.partitions: 8}")
    assert engine(capsys)[1] == ("duckdb", "duckdb", "duckdb", "")
    set_target("spark: {spark.sql.legacy.timeParserPolicy: LEGACY}")
    assert main(["explain", "m"]) == 0
    shown = capsys.readouterr().out
    assert "full_refresh: HIS002" in shown and "CFG007" not in shown, "other values than those that are stored"
    set_target("spark: {spark.sql.caseSensitive: true}")
    why = "the target sets spark.sql.caseSensitive, which may change values"
    assert engine(capsys)[1] == ("spark", "spark", "spark", why)
    assert main(["explain", "m"]) == 0 and "CFG007  spark.sql.caseSensitive" in capsys.readouterr().out


def test_a_cluster_leaves_to_its_driver_what_is_small(source: _Sized, capsys: Shown) -> None:
    changed(source, 1, "a")  # 100 MB are read, 50 MB rewritten
    driver, executors = ("duckdb", "duckdb", "duckdb"), ("spark", "spark", "spark")
    for setting, who, reason in (
        (
            "master: yarn",
            driver,
            "on the driver, as 150,000,000 bytes are read and rewritten (`driver_max_bytes`: 2,000,000,000)",
        ),
        (
            "master: yarn, driver_max_bytes: 149999999",
            executors,
            "150,000,000 bytes are read and rewritten; on the driver, 149,999,999 (`driver_max_bytes`)",
        ),
        ("master: yarn, delta_engine: spark", executors, "the target's delta_engine is spark"),
    ):
        set_target(setting)
        name = "DuckDB" if who == driver else "Spark"
        assert engine(capsys) == ([f"{name} scans, computes and commits: {reason}"], (*who, reason))


def test_executors_look_rows_up_for_the_driver_in_what_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    sql = (
        "select u.id, c.city from {{ source('shop', 'users') }} u join {{ source('shop', 'cities') }} c on u.id = c.id"
    )
    changed(built(tmp_path, monkeypatch, sql, "cities"), 1, "a")  # two slices of 50 MB are compared, one is rewritten
    set_target("master: yarn, driver_max_bytes: 150000000")
    because = "executors read what is needed of 100,000,000 bytes; on the driver, 150,000,000 are read and rewritten "
    because += "(`driver_max_bytes`: 150,000,000)"
    expected = [f"Spark scans, DuckDB computes and commits: {because}"]
    assert engine(capsys) == (expected, ("spark", "duckdb", "duckdb", because))
    set_target("master: yarn, driver_max_bytes: 149999999")
    assert engine(capsys)[1][:3] == ("spark", "spark", "spark"), "the change alone is too large"


def test_without_keys_to_look_up_executors_compute_steps_for_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    sql = (
        "select u.id, c.city from {{ source('shop', 'users') }} u join {{ source('shop', 'cities') }} c on u.id < c.id"
    )
    changed(built(tmp_path, monkeypatch, sql, "cities"), 1, "a")
    set_target("master: yarn, driver_max_bytes: 249999999")
    because = "executors read what is needed of 100,000,000 bytes; on the driver, 150,000,000 are read and rewritten "
    because += "(`driver_max_bytes`: 249,999,999)"
    assert engine(capsys)[1] == ("spark", "duckdb", "duckdb", because)
    assert main(["explain", "m"]) == 0 and "next run   row_based" in capsys.readouterr().out


@pytest.mark.parametrize(("largest", "with_help"), [(100 * MEGABYTE, 130 * MEGABYTE), (100 * MEGABYTE - 1, None)])
def test_a_recompute_is_compared_on_the_driver_if_the_table_is_small(
    source: _Sized, monkeypatch: pytest.MonkeyPatch, largest: int, with_help: int | None
) -> None:
    """Its 100 MB are read, 30 MB rewritten; executors return the rows of the query over an input of 700 MB."""
    changed(source, 1, "a")
    monkeypatch.setattr(router, "_LARGEST_RECOMPUTE", largest)
    (followed,) = plan_models(load(Invocation())).models
    planned = followed.planned
    assert planned.estimate is not None
    way = replace(planned.estimate.incremental, read=800 * MEGABYTE, rewritten=30 * MEGABYTE)
    estimate = replace(planned.estimate, ways=(("recompute_merge", way),))
    load_ = router.driver_load(replace(planned, strategy="recompute_merge", estimate=estimate))
    assert load_ == router.DriverLoad(830 * MEGABYTE, with_help or 830 * MEGABYTE)


def test_a_cluster_builds_tables_of_large_inputs_on_its_executors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    joined = "select u.id from {{ source('shop', 'users') }} u join {{ source('shop', 'cities') }} c using (id)"
    for sql, setting, why in (
        ("select id from {{ source('shop', 'users') }}", "master: yarn", None),
        (
            "select id from {{ source('shop', 'users') }}",
            "master: yarn, driver_max_bytes: 99999999",
            "the inputs have 100,000,000 bytes; of more than 99,999,999, executors of yarn build tables",
        ),
        (
            joined,
            "master: yarn",
            "the inputs have 200,000,000 bytes; of more than 128,000,000, executors of yarn build tables",
        ),
    ):
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        root.mkdir()
        built(root, monkeypatch, sql, *(("cities",) if "cities" in sql else ()))
        Path("models/m.sql").write_text(f"{{{{ config(partition_by=['id']) }}}} {sql}")
        set_target(setting)
        who, because = ("duckdb", "on the driver") if why is None else ("spark", why)
        name = "DuckDB" if why is None else "Spark"
        assert engine(capsys) == ([f"{name} scans, computes and commits: {because}"], (who, who, who, because))


def set_target(settings: str) -> None:
    """Give the target these settings, beside its own."""
    profile = Path("profiles.yml")
    text = "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}\n"
    profile.write_text(text.replace("type: spark", f"type: spark, {settings}"))


def engine(capsys: Shown) -> tuple[list[str], tuple[str, str, str, str]]:
    """What `explain` says of who does the next run of the model, as text and as JSON."""
    assert main(["explain", "m", "--output", "json"]) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert main(["explain", "m"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if "─ engine" in line]
    assert model["engine"] == model["computes"]
    doers = (model["scans"], model["computes"], model["commits"], model["engine_because"])
    return [line.partition("engine")[2].strip() for line in shown], doers


def test_an_estimate_says_whether_earlier_runs_were_timed(source: _Sized, capsys: Shown) -> None:
    timeline = Path("w/dws/m/.hoodie/timeline")
    (path,) = timeline.glob("*.commit")
    commit = json.loads(path.read_text())
    record = TableRecord.from_json(commit["extraMetadata"]["sml.record"])
    changed(source, 1, "a")
    cases: Sequence[Mapping[str, float]] = ({}, {"row_based": 2.0})
    for paces in cases:
        commit["extraMetadata"]["sml.record"] = replace(record, paces=paces).to_json()
        path.write_text(json.dumps(commit))
        _table_commits.cache_clear()
        assert (UNTIMED in message(capsys)[0]) != bool(paces)
        assert main(["explain", "m", "--output", "json"]) == 0
        (model,) = json.loads(capsys.readouterr().out)["models"]
        assert (model["estimate"]["is_timed"], model["next_run"]) == (bool(paces), "row_based")


def test_a_burst_is_rebuilt_and_says_why(source: _Sized, capsys: Shown) -> None:
    changed(source, 450_000, "a", "b")
    assert message(capsys) == [
        "├─ estimate   900,000 changed rows in 2 file groups: reads 100.0 MB, rewrites 100.0 MB in about 7 s; "
        f"following them reads 200.0 MB, rewrites 100.0 MB in about 15 s{UNTIMED}",
        "└─ next run   full_refresh: CST001 900,000 changed rows, 90% of an input: "
        "following them would cost 2.1 times as much",
    ]
    assert main(["explain", "m", "--output", "json"]) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert (model["strategy"], model["next_run"], model["inputs"][0]["pending_rows"]) == (
        "row_based", "full_refresh", 900_000,
    )  # fmt: skip
    assert model["estimate"]["incremental"] == {
        "read_bytes": 200 * MEGABYTE, "rewritten_bytes": 100 * MEGABYTE, "seconds": 14.8,
    }  # fmt: skip
    assert model["estimate"]["full_refresh"] == {
        "read_bytes": 100 * MEGABYTE, "rewritten_bytes": 100 * MEGABYTE, "seconds": 7.0,
    }  # fmt: skip


def test_nothing_to_do_costs_nothing(source: _Sized, capsys: Shown) -> None:
    assert message(capsys) == ["└─ next run   no_op"]
    assert source.timeline.frontier == f"{at(1)}_{at(2)}"


def test_refresh_incremental_follows_even_a_burst(source: _Sized, capsys: Shown) -> None:
    changed(source, 450_000, "a", "b")
    settings = Path("pyproject.toml")
    settings.write_text(settings.read_text() + "[tool.sqlmesh_like.models]\n'+refresh' = 'incremental'\n")
    assert message(capsys)[-1] == "└─ next run   row_based"


@pytest.mark.parametrize(
    ("size", "files", "advice"),
    [
        (50, ["a", "b"], None),
        (280, ["a", "b"], "table_type: mor"),
        (5, list("abcdefg"), "sml maintain --rebucket"),
        (1, ["a", "b"], None),
    ],
)
def test_what_commits_rewrite_for_what_they_change_is_told_with_what_would_help(
    source: _Sized, capsys: Shown, size: int, files: list[str], advice: str | None
) -> None:
    known = {"schema": SCHEMA, "sml.buckets": "1"}
    source.size, source.updates = size * MEGABYTE, 0
    source.commit(3, files, extra=known)
    source.updates = 100
    for second in (5, 7, 9, 11, 13):
        source.commit(second, files[:1], merged_from={files[0]: 3}, extra=known)
    main(["explain", "--output", "json"])
    plan = next(
        each for each in json.loads(capsys.readouterr().out)["writes"] if each["unique_id"].startswith("source.")
    )
    assert (plan["commits"], plan["changed_rows"], plan["rewritten_rows"]) == (5, 500, 2_500_000)
    assert (plan["write_amplification"], plan["files"], plan["advice"]) == (5000.0, len(files), advice)
    main(["explain"])
    message = capsys.readouterr().out
    assert "ods.users  5,000 rows written for one that changed" in message and (
        advice is None or f"→ {advice}" in message
    )
