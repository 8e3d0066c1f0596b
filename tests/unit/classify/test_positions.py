"""Where a reason points: at the construct's start in the model's own file, whatever templates write before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.profile import load_target
from sqlmesh_like.render.renderer import render_project

SOURCES = """
version: 2
sources:
  - name: shop
    schema: ods
    tables:
      - name: t
        columns: &all
          - {name: a, data_type: int}
          - {name: s, data_type: string}
          - {name: f, data_type: double}
          - {name: dt, data_type: date}
      - {name: u, columns: *all}
"""
MACROS = """
{% macro shown() %}a,
  s, f,


  dt{% endmacro %}
{% macro keep(column) -%}
  {{ column }} is not null
  and {{ column }} <> '{{ 'long text ' * 9 }}'
{%- endmacro %}
"""
BEFORE = """{{ config(tags=['daily']) }}
{% set limit = 3 %}
/* sum(f), limit 3 and rand() in a comment are no constructs */
with base as (
  select {{ shown() }} from {{ source('shop', 't') }} where {{ keep('s') }}
)
"""
U = "{{ source('shop', 'u') }}"
CASES = {
    "select s, sum(f) as x from base group by s": ("AGG003", "sum(f)"),
    "select s, count(distinct a) as x from base group by s": ("AGG002", "count(distinct"),
    "select s, {{ 'max(a)' }} as m, stddev(f) as x from base group by s": ("AGG005", "stddev(f)"),
    "select f, count(*) as n from base group by f": ("KEY001", "f"),
    "select distinct a, s from base": ("DST001", "a, s"),
    "select a, rank() over (partition by s order by a) as r from base": ("WIN001", "rank()"),
    "select a, row_number() over (partition by s order by a) as r from base": ("WIN002", "row_number()"),
    "select a, rank() over (order by a) as r from base": ("WIN003", "rank()"),
    f"select b.a, u.dt from base b\n  left join {U} u\n  on b.a = u.a": ("JOI002", "left join"),
    f"select b.a from base b where {{{{ keep('b.s') }}}}\n  and exists (select 1 from {U} u where u.a = b.a)": (
        "JOI002", "exists (",
    ),
    f"select b.a from base b where b.dt is null and b.a in (select a from {U})": ("JOI002", "b.a in"),
    f"select b.a from base b, {U} u where b.a = u.a": ("JOI001", "{{ source('shop', 'u')"),
    f"select b.a from base b\ninner join {U} u on b.a = u.a": ("JOI001", "inner join"),
    f"select b.a from base b full join {U} u on b.a > u.a": ("JOI003", "full join"),
    f"select b.a from base b where {{{{ keep('s') }}}} and a not in (select a from {U})": ("JOI002", "a not in"),
    "select a from base order by a\nlimit {{ limit }}": ("LIM001", "limit"),
    "select a from base\nlimit {{ limit }}": ("QRY003", "limit"),
    "select a, my_udf(a) as x from base": ("FUN001", "my_udf("),
    "select a, rand() as x from base": ("FUN002", "rand()"),
    "select a, dt < current_date as x from base": ("CLK001", "current_date"),
    "select a from base where {{ keep('s') }} and dt < current_date": ("CLK002", "current_date"),
    "select n, count(*) as k from (\n  select s, count(*) as n from base group by s\n) as q group by n": (
        "NST001", "count(*) as k",
    ),
    f"select a from base b where a = (select u.b from {U} u where u.b < b.a)": ("QRY012", "select u.b"),
    "select s, a from base tablesample (10 percent)": ("QRY009", "base tablesample"),
}  # fmt: skip


@pytest.mark.parametrize("query", CASES)
def test_a_reason_points_at_its_construct(tmp_path: Path, query: str) -> None:
    text = BEFORE + query
    rule, construct = CASES[query]
    finding = next(reason for reason in _reasons(tmp_path, text) if reason.rule == rule)
    assert _text_at(text, finding).startswith(construct)


def _reasons(root: Path, text: str) -> tuple[Reason, ...]:
    for folder, name, content in (("models", "m.sql", text), ("models", "s.yml", SOURCES), ("macros", "m.sql", MACROS)):
        (root / folder).mkdir(exist_ok=True)
        (root / folder / name).write_text(content, encoding="utf-8")
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    (root / "profiles.yml").write_text("lake: {target: a, outputs: {a: {type: spark, schema: dws}}}\n")
    project = load_project(root, {})
    models = render_project(project, load_target(project, root, None, None, {})).models
    compiler = Compiler()
    compiled = {model.name: compiler.compile(model) for model in sorted(models, key=lambda model: model.name != "v")}
    return compiled["m"].classification.reasons


def test_what_a_template_wrote_points_at_the_template(tmp_path: Path) -> None:
    text = BEFORE + "select s, {{ 'sum' ~ '(f)' }} as x from base group by s"
    (finding,) = [reason for reason in _reasons(tmp_path, text) if reason.rule == "AGG003"]
    assert _text_at(text, finding).startswith("{{ 'sum'")


def test_what_a_view_does_points_at_where_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    view = "{{ config(materialized='view') }}\n\n\nselect s, sum(f) as x from {{ source('shop', 'u') }} group by s"
    (tmp_path / "models" / "v.sql").write_text(view, encoding="utf-8")
    text = BEFORE + "select base.a, v.x\nfrom base\nleft join {{ ref('v') }} as v on base.s = v.s"
    by_rule = {reason.rule: reason for reason in _reasons(tmp_path, text)}
    assert {rule: _text_at(text, by_rule[rule]) for rule in ("AGG003", "JOI002")} == {
        "AGG003": "{{ ref('v') }} as v on base.s = v.s", "JOI002": "left join {{ ref('v') }} as v on base.s = v.s",
    }  # fmt: skip


def _text_at(text: str, reason: Reason) -> str:
    assert reason.line and reason.column
    return text.split("\n")[reason.line - 1][reason.column - 1 :]
