"""Tables that Spark builds slice by slice, and ranges that it computes again."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like import Project
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.slices.sliced_build import beside
from sqlmesh_like.run import slices as slice_run
from sqlmesh_like.spark.tables.hudi_table import HudiTable, write
from tests.faults.shop import DAILY, ORDERS, PROFILE, Shop
from tests.planted_rows import Values, plant

QUERIES = {
    "daily": ("day", ", unique_key='id'", "select day, id, amount from {{ ref('orders') }} where amount > 10"),
    "per_day": (
        "day",
        ", table_type='mor'",
        "select day, count(*) as n, sum(amount) as total, max(amount) as top from {{ ref('orders') }} group by day",
    ),
    "by_tens": (
        "tens",
        "",
        "select substr(cast(o.day as string), 1, 9) as tens, o.customer, count(distinct o.id) as n,"
        " max(c.region) as region from {{ ref('orders') }} o left join {{ ref('customers') }} c"
        " on c.id = o.customer group by 1, 2",
    ),
}


class Killed(BaseException):
    """Ends a run as a signal would."""


@pytest.mark.release
@pytest.mark.parametrize("is_newer", [True, False])
def test_hudi_lists_copied_files_only_where_they_are_older_than_the_timeline(
    is_newer: bool, spark: SparkSession, tmp_path: Path
) -> None:
    table, slices = str(tmp_path / "t"), str(tmp_path / "slices")

    def insert(uri: str, *rows: tuple[str, str]) -> None:
        write(spark.createDataFrame(rows, "k string, p string"), HudiTable(uri, "t", ("k",), "p"), "bulk_insert", {})

    for uri in (table, slices) if is_newer else (slices, table):
        insert(uri, *[("1", "x"), ("2", "x")] if uri == table else [("1", "x"), ("3", "x")])
    for path in Timeline(slices).data_files:
        shutil.copy(f"{slices}/{path}", f"{table}/{path}")
    keys = sorted(row.k for row in spark.read.format("hudi").load(table).collect())
    assert keys == (["1", "2"] if is_newer else ["1", "1", "2", "3"]), "`store_move` copies what is not read"


@pytest.mark.release
def test_slices_by_spark_are_the_table_and_go_on_after_a_kill(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(1)
    shop = Shop.changed(tmp_path, dice, 8)
    (tmp_path / "profiles.yml").write_text(
        PROFILE.replace("      schema: dws", "      schema: dws\n      delta_engine: spark")
    )
    for path in (tmp_path / "models").iterdir():
        path.unlink()
    for name, (partition, more, query) in QUERIES.items():
        (tmp_path / f"models/{name}.sql").write_text(f"{{{{ config(partition_by='{partition}'{more}) }}}}\n{query}\n")
        shutil.rmtree(tmp_path / "warehouse/dws" / name, ignore_errors=True)
    with Project.load(tmp_path, spark=spark) as project:

        def run(**options: object) -> set[str]:
            result = project.run(**options)  # type: ignore[arg-type]
            assert result.ok, [each.message for each in result.results]
            return {str(getattr(each, "strategy", "")) for each in result.results}

        def require_equal() -> None:
            compared = project.verify()
            assert [each.status for each in compared] == ["pass"] * 3, compared
            assert shop.stored(DAILY) == shop.expected(DAILY)

        for name in QUERIES:
            left = [2 if name != "by_tens" else 1]

            def end(point: str, left: list[int] = left) -> None:
                left[0] -= point == "slices.committed"
                if point == "slices.committed" and not left[0]:
                    raise Killed

            with monkeypatch.context() as patched:
                patched.setattr(slice_run, "fault_point", end)
                with pytest.raises(Killed):
                    run(select=[name], slices=9)
        uri = shop.timeline(DAILY).uri
        slices = Timeline(beside(uri)).commit_instants
        assert len(slices) == 2 and not Timeline(uri).exists
        shop.commit(ORDERS, dice)
        run(select=["per_day"])
        commits = Timeline(shop.timeline("model.shop.per_day").uri).commits
        assert sum(each.instant.action == "replacecommit" for each in commits) > 2, "slices are log files"
        run()
        require_equal()
        assert Timeline(uri).commit_instants[:2] == slices
        shop.commit(ORDERS, dice)
        assert "full_refresh" not in run()
        require_equal()
        run(full_refresh=True, slices=3)
        require_equal()

        def wrong(rows: list[Values]) -> list[Values]:
            return [{**row, "amount": 999} for row in rows]

        plant(shop.timeline(DAILY), wrong)
        days = [row[0] for row in shop.stored(DAILY)]
        run(select=["daily"], backfill=f"{days[1]}..{days[-2]}")
        assert {row[0] for row in shop.stored(DAILY) if row[2] == 999} == {days[0], days[-1]} - {days[1], days[-2]}
        run(select=["daily"], backfill="..2024-12")
        require_equal()
