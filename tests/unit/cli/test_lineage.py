"""`sml lineage`: columns up to the sources, through views and tables, with no lake and no JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, schema: dws}}}\n",
    "models/s.yml": "sources:\n  - name: shop\n    schema: ods\n    ingest: {format: debezium, files: {path: x}}\n"
    "    tables:\n      - name: orders\n"
    "        ingest: {primary_key: id, partition_by: {column: at, format: yyyyMM, as: month}}\n"
    "        columns: [{name: id, data_type: int}, {name: amount, data_type: 'decimal(10,2)'},"
    " {name: at, data_type: date}]\n      - name: raw\n",
    "models/paid.sql": "{{ config(materialized='view') }}\n"
    "select id, amount * 2 as doubled, month from {{ source('shop', 'orders') }} where at is not null",
    "models/monthly.sql": "select month, sum(doubled) as total, count(*) as n from {{ ref('paid') }} group by month",
    "models/top.sql": "select total from {{ ref('monthly') }} limit 10",
    "models/raw.sql": "select * from {{ source('shop', 'raw') }}",
}
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_project(tmp_path, monkeypatch, FILES)


@pytest.mark.checklist(70)
def test_a_column_is_traced_through_a_table_a_view_and_a_query_outside_the_algebra(capsys: Shown) -> None:
    assert main(["lineage", "top.total"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "dws.top.total",
        "└─ copied  dws.monthly.total  decimal(22,2)",
        "   ├─ aggregated  dws.paid.doubled  decimal(12,2)",
        "   │  ├─ computed  ods.orders.amount",
        "   │  └─ filtered by ods.orders.at",
        "   └─ grouped by dws.paid.month",
        "",
    ]


def test_json_has_the_steps_and_the_columns_at_their_ends(capsys: Shown) -> None:
    assert main(["lineage", "dws.monthly", "--output", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["unique_id"] == "model.shop.monthly"
    month, total, n = shown["columns"]
    assert month["sources"] == [{"unique_id": "source.shop.shop.orders", "column": "month", "how": "copied"}]
    assert total["sources"] == [{"unique_id": "source.shop.shop.orders", "column": "amount", "how": "aggregated"}]
    assert total["origins"][0]["unique_id"] == "model.shop.paid"
    assert total["influences"] == [{"unique_id": "model.shop.paid", "column": "month", "how": "groups"}]
    assert (n["column"], n["origins"], n["is_complete"]) == ("n", [], True)


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("montly", "no model 'montly'", "did you mean 'monthly'?"),
        ("montly.total", "no model 'montly'", "did you mean 'monthly'?"),
        ("monthly.totl", "has no column 'totl'", "did you mean 'total'?"),
        ("dws.monthly.x", "has no column 'x'", "its columns: month, total, n"),
        ("raw", "the columns of ods.raw are not known yet", "run `sml ingest` first"),
    ],
)
def test_what_cannot_be_traced_exits_2_and_says_what_to_do(capsys: Shown, name: str, message: str, hint: str) -> None:
    assert main(["lineage", name]) == 2
    error = capsys.readouterr().err
    assert message in error and hint in error
    assert "Traceback" not in error
