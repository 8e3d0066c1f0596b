"""Broken texts of a project: valid ones whose words were dropped, repeated, swapped or replaced by others' words."""

from __future__ import annotations

import re

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

SETTINGS = """version: 2
sources:
  - name: shop
    schema: ods
    freshness: {warn_after: {count: 12, period: hour}}
    tables:
      - name: orders
        columns: [{name: id, data_type: int}, {name: city, data_type: string}, {name: amount, data_type: int}]
models:
  - name: totals
    description: "Amounts of {{ target.name }}"
    config: {materialized: incremental, unique_key: [city], tags: ["daily"], meta: {owner: me}}
    columns:
      - name: city
        data_tests: [unique, not_null, {accepted_values: {values: [x, y]}}]
unit_tests:
  - name: adds
    model: totals
    given: [{input: "ref('detail')", rows: [{id: 1, city: x, amount: 2}]}]
    expect: {rows: [{city: x, total: 2}]}
exposures:
  - {name: page, type: dashboard, owner: {email: a@b.c}, depends_on: ["ref('totals')"]}
"""
TEMPLATE = """{{ config(materialized='incremental', unique_key='city', tags=['a', 'b']) }}
{% set names = ['city', 'id'] -%}
{% macro shown(name, more=1) %}{{ name | upper }}{% endmacro %}
select {% for name in names %}{{ name }}{% if not loop.last %}, {% endif %}{% endfor %},
  {{ shown('amount') }} as {{ var('column', 'amount') }} {# a note #}
from {{ ref('detail') }}
{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% else %} where true {% endif %}
"""
QUERY = """with recent as (
  select id, city, amount, row_number() over (partition by city order by amount desc, id) as place
  from {{ source('shop', 'orders') }} where amount between 1 and 100 and city is not null
)
select r.city, count(*) as n, sum(r.amount) as total, max(case when r.place = 1 then r.id end) as top,
  collect_set(d.amount) filter (where d.amount > 5) as amounts
from recent as r left join {{ ref('detail') }} as d on d.id = r.id and d.city <=> r.city
where r.city like 'x%' or r.id in (1, 2, 3) group by r.city having count(*) > 1
"""
SELECTION = (
    "+totals,tag:daily 2+detail+1 @totals source:shop.orders config.materialized:view path:models/*.sql state:new"
)
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_STRANGE = (
    "", "{{", "}}", "{%", "%}", "{#", "'", '"', "`", ";", "--", "/*", "\\", "\t", "\x00", "\u202e", "😀", "ü", "null",
    "-1", "9" * 40, "1e999", "[[[[", "&a", "*a", "<<:", "!!python/object:os.system", "? ", "|", ": ", "{}", "()", "+",
    "@", ",", ":", "select", "ref('totals')", "ref()", "source('a')", "config(", "loop", "self", "caller()", "none.x",
    "1/0", "{% raw %}", "lateral view explode", "over ()", "grouping sets", "interval", "::", "$1", "<=>", "**", "..",
    "state:", "result:error",
)  # fmt: skip


@st.composite
def broken(draw: DrawFn, *texts: str) -> str:
    """One of the texts after one to four changes."""
    words = _WORDS.findall(draw(st.sampled_from(texts)))
    others = [word for text in texts for word in _WORDS.findall(text)]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(words) - 1)) if words else 0
        match draw(st.sampled_from(("drop", "repeat", "swap", "strange", "other", "cut"))):
            case "drop":
                del words[at : at + draw(st.integers(1, 6))]
            case "repeat":
                words[at:at] = words[at : at + draw(st.integers(1, 8))]
            case "swap":
                end = draw(st.integers(0, len(words) - 1)) if words else 0
                words[at : at + 1], words[end : end + 1] = words[end : end + 1], words[at : at + 1]
            case "strange":
                words[at : at + 1] = [draw(st.sampled_from(_STRANGE) | st.text(max_size=5))]
            case "other":
                words[at : at + 1] = [draw(st.sampled_from(others))]
            case _:
                words = words[:at]
    return "".join(words)
