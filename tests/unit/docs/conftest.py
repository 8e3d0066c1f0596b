"""A project with all kinds of nodes, a lake made by hand, and the site of both."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.artifacts.run_history import HISTORY, extend_history
from sqlmesh_like.artifacts.run_results import NodeRow, write_run_results
from sqlmesh_like.cli.app import main
from sqlmesh_like.plan.history import TableRecord
from tests.unit.hudi.test_timeline import Lake

HOSTILE = "</script><script>document.title='hacked'</script>"
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}, t: {type: duckdb}}}\n",
    "models/docs.md": "{% docs __overview__ %}\nSales of the *whole* shop.\n{% enddocs %}\n"
    f"{{% docs amount %}}Money {HOSTILE} ![x](http://example.com/x.png) [y](javascript:alert(1)){{% enddocs %}}",
    "models/s.yml": """
sources:
  - name: shop
    schema: ods
    ingest: {format: debezium, files: {path: x}}
    tables:
      - name: orders
        description: Orders of the shop.
        ingest: {primary_key: id}
        columns:
          - {name: id, data_type: int}
          - {name: amount, data_type: 'decimal(10,2)', description: "{{ doc('amount') }}"}
          - {name: day, data_type: date}
models:
  - name: daily
    group: finance
    docs: {node_color: "#123456"}
    description: "Sales by day <img src=x onerror=alert(1)>."
    columns: [{name: day, description: The day of sale, data_tests: [not_null]}, {name: total, tags: [money]}]
groups: [{name: finance, owner: {name: Fay}}]
snapshots:
  - name: hist
    relation: source('shop', 'orders')
    config: {unique_key: id, strategy: check, check_cols: all}
macros:
  - {name: cents, description: Euros, arguments: [{name: x, type: column, description: "an *amount* of cents"}]}
exposures:
  - {name: board, type: dashboard, url: "javascript:alert(1)", owner: {name: Bo}, depends_on: [ref('daily')]}
""",
    "models/paid.sql": f"-- {HOSTILE}\n{{{{ config(materialized='view') }}}}\n"
    "select id, amount * 2 as doubled, day from {{ source('shop', 'orders') }} where day is not null",
    "models/marts/daily.sql": "select day, sum(doubled) as total, count(distinct id) as buyers\n"
    "from {{ ref('paid') }}\ngroup by day",
    "models/marts/top.sql": "select total from {{ ref('daily') }} limit 10",
    "macros/cents.sql": "{% macro cents(x) %}{{ x }} / 100{% endmacro %}",
    "seeds/rates.csv": "code,rate\neur,1\n",
}
_SCHEMA = json.dumps({
    "type": "record", "name": "t",
    "fields": [{"name": "_sml_key", "type": "string"},
               {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
               {"name": "total", "type": ["null", "double"]}],
})  # fmt: skip


def make_project(root: Path) -> Path:
    """The project, with a table of two commits and what a last call left behind."""
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    made = TableRecord("model.shop.daily", "print", {}, "2024-01-01T00:00:00+00:00", "full_refresh")
    lake = Lake(root / "w/dws/daily")
    for second in (1, 3):
        lake.commit(second, ["a"], extra={"sml.record": made.to_json(), "schema": _SCHEMA})
    stale = {
        "unique_id": "source.shop.shop.orders", "max_loaded_at": "2024-01-01T00:00:00.000000Z", "status": "warn",
        "snapshotted_at": "2024-01-03T00:00:00.000000Z", "criteria": {"warn_after": {"count": 1, "period": "day"}},
    }  # fmt: skip
    (root / "target").mkdir()
    (root / "target/sources.json").write_text(json.dumps({"metadata": {}, "results": [stale]}))
    history = None
    for day, read in ((1, 1_000_000), (2, 12_000)):
        history = extend_history(history, "a", _call(root, day, read))
    (root / f"target/{HISTORY}").write_text(json.dumps(history))
    return root


def failing_test(root: Path) -> str:
    """The unique id of the test of `daily` that fails in both calls."""
    nodes = load(Invocation(project_dir=root, profiles_dir=root)).graph.nodes
    return next(each for each in nodes if each.startswith("test.shop.not_null_daily_day"))


def _call(root: Path, day: int, read: int) -> dict[str, object]:
    """A call of the second or third of January: `daily` is built, its test and `top` fail."""
    estimate = {
        "strategies": {"group_recompute": {"read_bytes": read}}, "full_refresh": {"read_bytes": 1_000_000},
    }  # fmt: skip
    built = {"strategy": "group_recompute", "rows_affected": 7, "estimate": estimate}
    failing = {"failing_rows": {"columns": ["day", "total"], "rows": [[None, "7.50"]]}}
    results = [
        NodeRow("model.shop.daily", "success", "ok", 1.5, built),
        NodeRow(failing_test(root), "fail", "2 rows without a day", 0.2, failing, failures=2),
        NodeRow("model.shop.top", "error", "no <b>such</b> table", 0.1),
    ]
    ended = datetime(2024, 1, 1 + day, tzinfo=UTC)
    return write_run_results(root / "target/run_results.json", results, 2.0, {"which": "build"}, now=ended)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The HTML file of the project."""
    root = make_project(tmp_path_factory.mktemp("site"))
    assert main(["docs", "generate", "--project-dir", str(root), "--profiles-dir", str(root)]) == 0
    return root / "target" / "index.html"
