"""Row-wise models: projections, filters, CTEs, derived tables and UNION ALL follow their inputs exactly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.generate import examples, paths, row_queries, schemas
from tests.properties.lake import check, compiled, final_rows


@examples(0.25)
@given(data=st.data())
def test_row_wise_models_equal_a_recompute_after_every_batch(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    query = data.draw(row_queries(schema))
    plan = compiled(query.sql, schema)
    assert plan.classification.strategy == "row_based", (query.sql, plan.classification.reasons)
    check(plan, schema, data.draw(paths(schema)))


@examples(0.05)
@given(data=st.data())
def test_split_and_merged_batches_of_rows_agree(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    plan = compiled(data.draw(row_queries(schema)).sql, schema)
    path = data.draw(paths(schema, 3))
    assert final_rows(plan, schema, path) == final_rows(plan, schema, [path[0], path[-1]])


@examples(0.05)
@given(data=st.data())
def test_rows_written_again_unchanged_are_no_action(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    plan = compiled(data.draw(row_queries(schema)).sql, schema)
    before = data.draw(paths(schema, 1))[-1]
    after = {table: {key: (*row[:1], *row[1:]) for key, row in rows.items()} for table, rows in before.items()}
    (actions,) = check(plan, schema, [before, after])
    assert (actions.upserts, actions.deletes) == (0, 0)
