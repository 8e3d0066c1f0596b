"""GROUP BY with mergeable aggregates: what is merged equals what is recomputed, hidden state too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sqlmesh_like.names import Schema
from tests.properties.generate import (
    VALUES,
    Draw,
    Query,
    examples,
    expression,
    paths,
    row_queries,
    schemas,
)
from tests.properties.lake import check, compiled, final_rows

_CALLS = (
    "count(*)", "count(1)", "count(null)", "count({any})", "sum({number})", "avg({number})", "min({any})", "max({any})",
    "count(*) filter (where {boolean})", "sum({number}) filter (where {boolean})",
    "max({any}) filter (where {boolean})",
    "sum(case when {boolean} then 1 else 0 end)", "sum(case when {boolean} then {decimal} else 0 end)",
    "count(case when {boolean} then 1 end)",
)  # fmt: skip
# DuckDB averages decimals as doubles: nothing here looks at the digits or the type of an average.
_OVER = (
    "{call}", "{call}", "{call}", "coalesce({total}, 0)", "{total} + count(*)", "{sum} / nullif(count(*), 0)",
    "case when count(*) > 1 then {total} end", "{total} > 0", "abs({total})", "cast({sum} as string)",
)  # fmt: skip


@st.composite
def aggregate_queries(draw: Draw, schema: Schema) -> str:
    """GROUP BY nothing, columns or expressions, by name, alias or position; keys may stay unshown."""
    source, columns = draw(_sources(schema))
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=2))
    keys = [expression(draw, columns, type_, 1) for type_ in types]
    shown = [f"{key} as key{number}" for number, key in enumerate(keys) if draw(st.integers(0, 3))]
    items = [f"{_item(draw, columns)} as total{number}" for number in range(draw(st.integers(0 if shown else 1, 4)))]
    where = f" where {expression(draw, columns, 'boolean', 1)}" if draw(st.integers(0, 3)) == 0 else ""
    group = f" group by {', '.join(_group_item(draw, n, key, shown) for n, key in enumerate(keys))}" if keys else ""
    if not keys and not items:
        items = ["count(*) as total0"]
    return f"select {', '.join([*shown, *items])} from {source}{where}{group}"


@st.composite
def _sources(draw: Draw, schema: Schema) -> tuple[str, Schema]:
    if draw(st.booleans()):
        return "ods.t", schema
    inner: Query = draw(row_queries(schema, 1))
    return f"({inner.sql}) as g", inner.columns


def _group_item(draw: Draw, number: int, key: str, shown: list[str]) -> str:
    """The key by alias or position where it is shown, else as an expression (a bare number would be a position)."""
    own = f"{key} as key{number}"
    forms = [f"key{number}", str(shown.index(own) + 1)] if own in shown else []
    if "`" in key or not forms:
        forms.append(key if "`" in key else "'c'")
    return str(draw(st.sampled_from(forms)))


def _item(draw: Draw, columns: Schema) -> str:
    form = str(draw(st.sampled_from(_OVER)))
    while hole := next((hole for hole in ("call", "total", "sum") if "{" + hole + "}" in form), None):
        if hole == "sum":
            call = f"sum({expression(draw, columns, draw(st.sampled_from(['int', 'decimal(10,2)'])), 1)})"
        else:
            call = _call(draw, columns, numeric=hole == "total")
        form = form.replace("{" + hole + "}", call, 1)
    return form


def _call(draw: Draw, columns: Schema, *, numeric: bool) -> str:
    template = draw(st.sampled_from([call for call in _CALLS if not numeric or "m" not in call[:1]]))
    parts = {"any": draw(st.sampled_from(sorted(VALUES))), "number": draw(st.sampled_from(["int", "decimal(10,2)"])),
             "boolean": "boolean", "decimal": "decimal(10,2)"}  # fmt: skip
    for hole, type_ in parts.items():
        while "{" + hole + "}" in template:
            template = template.replace("{" + hole + "}", expression(draw, columns, type_, 1), 1)
    return str(template)


@examples(0.3)
@given(data=st.data())
def test_aggregates_equal_a_recompute_after_every_batch(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    sql = data.draw(aggregate_queries(schema))
    plan = compiled(sql, schema)
    assert plan.classification.strategy == "aggregate_merge", (sql, plan.classification.reasons)
    check(plan, schema, data.draw(paths(schema)))


@examples(0.06)
@given(data=st.data())
def test_split_and_merged_batches_of_aggregates_agree(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    plan = compiled(data.draw(aggregate_queries(schema)), schema)
    path = data.draw(paths(schema, 3))
    assert final_rows(plan, schema, path) == final_rows(plan, schema, [path[0], path[-1]])


@examples(0.04)
@given(data=st.data())
def test_groups_whose_rows_are_written_again_unchanged_are_no_action(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    plan = compiled(data.draw(aggregate_queries(schema)), schema)
    before = data.draw(paths(schema, 1))[-1]
    after = {table: {key: (*row[:1], *row[1:]) for key, row in rows.items()} for table, rows in before.items()}
    (actions,) = check(plan, schema, [before, after])
    assert (actions.upserts, actions.deletes) == (0, 0)
