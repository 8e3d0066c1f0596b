"""dbt's cross-database macros: the values that dbt-spark's have on Spark, and DuckDB's check has the same.

The expected values are those of dbt-spark 1.11's own macros, rendered and run on Spark 3.5.
"""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import duckdb
import pytest
import sqlglot
from pyspark.sql import SparkSession

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.duckdb.allow_list import first_unproven
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_types import cast_item, without_zone
from sqlmesh_like.render.renderer import render_inline
from tests.projects import enter_project

FILES = {
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "dbt_project.yml": "name: shop\n",
}
MOMENTS = [
    ("2024-01-31 00:00:00", "2024-02-29 23:59:59"), ("2024-02-29 23:59:59", "2023-02-28 12:30:15"),
    ("2024-01-06 10:00:00", "2024-01-07 00:00:00"), ("1969-12-31 23:59:58", "2024-03-31 01:30:00"),
    ("2024-12-31 00:30:00", "2024-04-01 00:00:00"), (None, "2024-01-01 00:00:00"),
]  # fmt: skip
DIFFERENCES: dict[str, list[int | None]] = {
    "second": [2591999, -31663784, 50400, 1711848602, -23675400, None],
    "minute": [43200, -527730, 840, 28530811, -394590, None],
    "hour": [720, -8796, 14, 475514, -6577, None],
    "day": [29, -366, 1, 19814, -274, None],
    "week": [4, -52, 1, 2831, -39, None],
    "month": [2, -12, 0, 651, -8, None],
    "quarter": [0, -4, 0, 218, -2, None],
    "year": [0, -1, 0, 55, 0, None],
}
THIRTEEN_EARLIER = {
    "second": ["2024-01-30 23:59:47", "2024-02-29 23:59:46", "2024-01-06 09:59:47", "1969-12-31 23:59:45"],
    "minute": ["2024-01-30 23:47:00", "2024-02-29 23:46:59", "2024-01-06 09:47:00", "1969-12-31 23:46:58"],
    "hour": ["2024-01-30 11:00:00", "2024-02-29 10:59:59", "2024-01-05 21:00:00", "1969-12-31 10:59:58"],
    "day": ["2024-01-18 00:00:00", "2024-02-16 23:59:59", "2023-12-24 10:00:00", "1969-12-18 23:59:58"],
    "week": ["2023-11-01 00:00:00", "2023-11-30 23:59:59", "2023-10-07 10:00:00", "1969-10-01 23:59:58"],
    "month": ["2022-12-31 00:00:00", "2023-01-29 23:59:59", "2022-12-06 10:00:00", "1968-11-30 23:59:58"],
    "quarter": ["2020-10-31 00:00:00", "2020-11-29 23:59:59", "2020-10-06 10:00:00", "1966-09-30 23:59:58"],
    "year": ["2011-01-31 00:00:00", "2011-02-28 23:59:59", "2011-01-06 10:00:00", "1956-12-31 23:59:58"],
}
LAST_DAYS = {
    "week": ["2024-02-04", "2024-03-03", "2024-01-07", "1970-01-04", "2025-01-05", None],
    "month": ["2024-01-31", "2024-02-29", "2024-01-31", "1969-12-31", "2024-12-31", None],
    "quarter": ["2024-03-31", "2024-03-31", "2024-03-31", "1969-12-31", "2024-12-31", None],
    "year": ["2024-12-31", "2024-12-31", "2024-12-31", "1969-12-31", "2024-12-31", None],
}
TEXTS = ["a-b-c", "a", "", "-a", "a-", "a--b", None]
PARTS = {
    1: ["a", "a", "", "", "a", "a", None], 2: ["b", None, None, "a", "", "", None],
    -1: ["c", "a", "", "a", "", "b", None], -2: ["b", None, None, "", "a", "", None],
    0: ["a", "a", "", "", "a", "a", None],
}  # fmt: skip
NOT_ON_DUCKDB = ("dbt.datediff('a', 'b', 'quarter')",)


def _cases() -> dict[str, tuple[str, list[object]]]:
    cases: dict[str, tuple[str, list[object]]] = {}
    for part, days in DIFFERENCES.items():
        cases[f"dbt.datediff('a', 'b', '{part}')"] = ("m", list(days))
    for part, moments in THIRTEEN_EARLIER.items():
        cases[f"dbt.dateadd('{part}', -13, 'a')"] = ("m", [datetime.fromisoformat(moment) for moment in moments])
    for part, last in LAST_DAYS.items():
        cases[f"dbt.last_day('a', '{part}')"] = (
            "m",
            [None if day is None else date.fromisoformat(day) for day in last],
        )
    for number, texts in PARTS.items():
        cases[f"dbt.split_part('x', \"'-'\", {number})"] = ("u", list(texts))
    cases["dbt.dateadd('day', 'n', 'cast(a as date)')"] = ("m", [datetime(2024, 2, 1), datetime(2024, 3, 2)])
    return cases


def test_values_are_those_of_dbt_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    loaded = load(Invocation())
    moments = ", ".join(f"({n}, {_text(a)}, {_text(b)})" for n, (a, b) in enumerate(MOMENTS, 1))
    texts = ", ".join(f"({n}, {_text(x)})" for n, x in enumerate(TEXTS, 1))
    rows = {
        "m": f"(select n, timestamp(a) as a, timestamp(b) as b from values {moments} as v(n, a, b)) as t",
        "u": f"(select n, x from values {texts} as v(n, x)) as t",
    }
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for call, (table, expected) in _cases().items():
            sql = render_inline(loaded.project, loaded.target, "select {{ " + call + " }} as y").sql
            query = f"{sql} from {rows[table]} order by n"
            frame = spark.sql(query)
            assert [row[0] for row in frame.collect()][: len(expected)] == expected, call
            tree = sqlglot.parse_one(query, dialect="spark")
            assert (first_unproven(tree) is not None) == (call in NOT_ON_DUCKDB), call
            if call not in NOT_ON_DUCKDB:
                item = cast_item("y", frame.dtypes[0][1])
                found = db.execute(f"SELECT {item} FROM ({duck_text(tree.transform(without_zone))})").fetchall()
                assert [row[0] for row in found][: len(expected)] == expected, call


def _text(value: str | None) -> str:
    return "null" if value is None else f"'{value}'"
