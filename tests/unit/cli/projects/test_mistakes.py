"""What users get wrong, each with all that is then said: `mistakes.yml`. A change of a text is seen there.

`says` is an error, `warns` a warning of what dbt ignores too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "dbt_project.yml": """name: shop
version: '1.0'
profile: lake
vars:
  least: 0
models:
  shop:
    +materialized: incremental
""",
    "profiles.yml": "lake:\n  target: t\n  outputs:\n    t:\n      type: duckdb\n      threads: 1\n",
    "models/schema.yml": """version: 2
sources:
  - name: ods
    tables:
      - name: orders
        columns:
          - name: id
            data_type: int
          - name: product
            data_type: string
          - name: amount
            data_type: decimal(10,2)
          - name: at
            data_type: timestamp
models:
  - name: stg_orders
    description: one row an order
    columns:
      - name: id
        data_tests:
          - unique
          - not_null
      - name: product
        data_tests:
          - accepted_values:
              values: [tea, milk]
          - relationships:
              to: ref('products')
              field: product
              config:
                severity: warn
  - name: daily
    columns:
      - name: total
        data_tests:
          - not_null
seeds:
  - name: products
    config:
      column_types:
        price: decimal(5,2)
""",
    "models/stg_orders.sql": """{{ config(table_type='cow', tags=['daily']) }}
select id, product, amount, cast(at as date) as day
from {{ source('ods', 'orders') }}
where amount > 0
""",
    "models/daily.sql": """with priced as (
  select o.day, o.product, o.amount, p.price
  from {{ ref('stg_orders') }} as o
  left join {{ ref('products') }} as p on o.product = p.product
)
select day, sum(amount) as total, count(*) as n, max({{ rounded('price') }}) as dearest
from priced
group by day
""",
    "models/top.sql": """select day, total
from {{ ref('daily') }}
where total > 10
union all
select day, amount as total
from {{ ref('stg_orders') }}
""",
    "macros/m.sql": "{% macro rounded(column) %}\n  round({{ column }}, 1)\n{% endmacro %}\n",
    "seeds/products.csv": "product,price\ntea,1.50\nmilk,0.90\n",
    "tests/totals.sql": "select day, total\nfrom {{ ref('daily') }}\nwhere total < 0\n",
}
MISTAKES: list[dict[str, str]] = yaml.safe_load(Path(__file__).with_name("mistakes.yml").read_text(encoding="utf-8"))
PLACE = re.compile(r"[\w/]+\.(sql|yml|csv):\d+:\d+: ")


@pytest.mark.parametrize("case", MISTAKES, ids=[case["mistake"] for case in MISTAKES])
def test_a_mistake_is_told_at_its_place(
    case: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    enter_project(tmp_path, monkeypatch, {**FILES, **broken(case)})
    ended = main(["compile", *case.get("flags", "").split()])
    shown = re.sub(r"(?m)^\d\d:\d\d:\d\d  ", "", capsys.readouterr().err)
    warned = f"warning: {case['warns']}" if "warns" in case else ""
    refused = f"error: {case['says']}" if "says" in case else ""
    assert shown == warned + refused
    assert ended == (2 if refused else 0)
    assert (tmp_path / "target").exists() != bool(refused)


def broken(case: dict[str, str]) -> dict[str, str]:
    """The file that the mistake is in."""
    if "text" in case:
        return {case["file"]: case["text"]}
    before = FILES[case["file"]]
    assert before.count(case["from"]) >= 1, case["mistake"]
    return {case["file"]: before.replace(case["from"], case["to"], 1)}


def test_there_are_120_mistakes_and_the_project_itself_is_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    assert main(["compile"]) == 0, capsys.readouterr().err
    assert len({case["mistake"] for case in MISTAKES}) == len(MISTAKES)
    assert sum(bool(PLACE.match(case.get("says") or case["warns"])) for case in MISTAKES) >= 120


@pytest.mark.parametrize("case", [case for case in MISTAKES if "says" in case], ids=lambda case: str(case["mistake"]))
def test_a_source_line_stands_once_and_its_caret_below(case: dict[str, str]) -> None:
    lines = case["says"].splitlines()
    shown = [number for number, line in enumerate(lines) if re.match(r"  \d+ \|", line)]
    carets = [number for number, line in enumerate(lines) if re.match(r"   +\| +\^$", line)]
    assert len(shown) <= 1 and carets in ([], [number + 1 for number in shown])
