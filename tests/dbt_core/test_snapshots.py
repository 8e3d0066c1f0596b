"""Versions of rows over several runs, by the shipped program, are those of dbt-core 1.11.16 on DuckDB."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlmesh_like.errors import Location
from sqlmesh_like.names import Column
from sqlmesh_like.project.snapshots import snapshot_config
from tests.dbt_core.program import asked, python_of_dbt
from tests.snapshot_table import COLUMNS, Kept, Row, day

TIME = {"strategy": "timestamp", "updated_at": "ts"}
CHECK = {"strategy": "check", "check_cols": "all"}
SNAPSHOTS: Mapping[str, Mapping[str, object]] = {
    "time_ignore": TIME,
    "time_invalidate": {**TIME, "hard_deletes": "invalidate"},
    "time_new_record": {**TIME, "hard_deletes": "new_record"},
    "check_ignore": CHECK,
    "check_invalidate": {**CHECK, "hard_deletes": "invalidate"},
    "check_new_record": {**CHECK, "hard_deletes": "new_record"},
    "check_by_column": {**CHECK, "check_cols": ["v"], "updated_at": "seen"},
    "check_one": {**CHECK, "check_cols": ["v"], "hard_deletes": "invalidate"},
    "time_dated": {**TIME, "hard_deletes": "invalidate", "dbt_valid_to_current": "timestamp '9999-12-31'"},
    "check_two_keys": {**CHECK, "unique_key": ["id", "ts"], "hard_deletes": "invalidate"},
}
HISTORY: tuple[tuple[tuple[object, ...], ...], ...] = (
    ((1, "a", day(1)), (2, "b", day(1)), (3, None, day(1)), (4, "d", day(1))),
    ((1, "a", day(1)), (2, "B", day(2)), (3, "c", day(2)), (5, "e", day(2))),  # two changed, one is gone, one came
    ((1, "a", day(3)), (2, "B", day(2)), (3, None, day(3))),  # a time alone, a value becomes NULL, one more is gone
    ((1, "z", day(3)), (2, "late", day(1)), (3, None, day(3)), (4, "back", day(9))),  # no newer time; late; it is back
    ((2, "last", day(10)), (4, "back", day(9))),
    ((2, "last", day(10), 7), (4, "back", day(9), None)),  # with a column more
)
DELETED = "dbt_is_deleted"
SHOWN = ("id", "v", "dbt_valid_from", "dbt_valid_to", "dbt_updated_at")
FILES = {
    "dbt_project.yml": "name: kept\nversion: '1.0'\nprofile: lake\nvars: {rows: [], now: '2024-01-01'}\n",
    "profiles.yml": "lake: {target: d, outputs: {d: {type: duckdb, path: kept.duckdb, schema: main}}}\n",
    "macros/now.sql": "{% macro duckdb__snapshot_get_time() %}timestamp '{{ var('now') }}'{% endmacro %}",
    "models/rows.sql": """{{ config(materialized='table') }}
{% for row in var('rows') %}{{ 'union all' if not loop.first }}
select {{ row[0] }} as id, {{ "'" ~ row[1] ~ "'" if row[1] else 'cast(null as varchar)' }} as v,
  timestamp '{{ row[2] }}' as ts
  {% if row | length > 3 %}, {{ 'cast(null as int)' if row[3] is none else row[3] }} as w{% endif %}
{% endfor %}""",
    "models/rows_seen.sql": "select id, v, ts, timestamp '{{ var('now') }}' - interval 1 hour as seen "
    "from {{ ref('rows') }}",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    python_of_dbt()
    entries = [
        {"name": name, "relation": f"ref('{relation(name)}')", "config": {"unique_key": "id", **config}}
        for name, config in SNAPSHOTS.items()
    ]
    for path, text in {**FILES, "snapshots/s.yml": json.dumps({"snapshots": entries})}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def relation(name: str) -> str:
    return "rows_seen" if SNAPSHOTS[name].get("updated_at") == "seen" else "rows"


def columns(name: str) -> tuple[str, ...]:
    return (*SHOWN, DELETED) if name.endswith("new_record") else SHOWN


def theirs(project: Path) -> dict[str, list[list[str | None]]]:
    calls = [
        [command, "--vars", json.dumps({"rows": rows, "now": day(number)})]
        for number, rows in enumerate(HISTORY, 3)
        for command in ("run", "snapshot")
    ]
    shown = [
        ["show", "--limit", "-1", "--inline", f"select {', '.join(columns(name))} from {{{{ ref('{name}') }}}}"]
        for name in SNAPSHOTS
    ]
    answers = asked(project, [*calls, *shown])
    assert all(answer["success"] for answer in answers), [answer for answer in answers if not answer["success"]]
    return {name: answer["rows"] for name, answer in zip(SNAPSHOTS, answers[len(calls) :], strict=True)}  # type: ignore[misc]


def ours(name: str) -> list[Row]:
    kept = Kept(snapshot_config({"unique_key": "id", **SNAPSHOTS[name]}, Location("s.yml"), name))
    for number, rows in enumerate(HISTORY, 3):
        if relation(name) == "rows_seen":
            seen = f"{day(number - 1)[:10]} 23:00:00"
            kept.take(number, *((*row[:3], seen) for row in rows), columns=(*COLUMNS, Column("seen", "timestamp")))
        else:
            kept.take(number, *rows, columns=(*COLUMNS, Column("w", "int")) if len(rows[0]) > len(COLUMNS) else None)
    kept.db.execute("set TimeZone = 'UTC'")
    shown = [f"cast({one} as timestamp)" if one.startswith("dbt_") and one != DELETED else one for one in columns(name)]
    return kept.db.execute(f"select {', '.join(shown)} from kept").fetchall()


def spelt(rows: list[Row] | list[list[str | None]]) -> list[tuple[str, ...]]:
    return sorted(tuple("-" if value is None else str(value).replace("T", " ") for value in row) for row in rows)


@pytest.mark.release
def test_the_rows_after_six_runs_are_dbts(project: Path) -> None:
    by_snapshot = theirs(project)
    differing = {}
    for name, rows in by_snapshot.items():
        mine, dbts = spelt(ours(name)), spelt(rows)
        if mine != dbts:
            differing[name] = (sorted(set(mine) - set(dbts)), sorted(set(dbts) - set(mine)))
    assert not differing, "\n".join(f"{name}:\n  only here {a}\n  only dbt {b}" for name, (a, b) in differing.items())
