"""Models that are rescanned by partition: only touched partitions are read, and the table equals a recompute."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sqlmesh_like.names import Schema
from tests.properties.generate import VALUES, Draw, examples, expression, paths, quoted, schemas
from tests.properties.lake import check, compiled, final_rows

_GROUPED = (
    "select {p}, count(distinct {any}) as total, sum({number}) as added from {source}{where} group by {p}",
    "select {p}, {any} as other, count(distinct {any}) as total from {source}{where} group by 1, 2",
    "select distinct {p}, {any} as other from {source}{where}",
    "select {p}, max(total) as most from (select {p}, {any} as other, count(*) as total from {source}{where}"
    " group by 1, 2) as s group by {p}",
    "select {p}, total from (select {p}, count(*) as total from {source}{where} group by {p}) as s where total > 1",
    "select {p}, sum(distinct cast({number} as decimal(10,2))) as total from {source}{where} group by {p} union all"
    " select {p}, sum(distinct cast({number} as decimal(10,2))) as total from ods.t group by {p}",
)
_WINDOWED = (
    "select {p}, {any} as other, rank() over (partition by {p} order by {any}) as place from {source}{where}",
    "select {p}, row_number() over (partition by {p} order by {any} desc) as place from {source}{where}",
    "select {p}, sum({number}) over (partition by {p} order by {any}) as running from {source}{where}",
    "select {p}, other from (select {p}, {any} as other, row_number() over (partition by {p}, {any} order by {any})"
    " as place from {source}{where}) as s where place = 1",
    "select {p}, lag({any}) over (partition by {p} order by {any}) as earlier, count(*) over (partition by {p}) as size"
    " from {source}{where}",
)


@st.composite
def rescanned(draw: Draw, schema: Schema) -> tuple[str, str]:
    """A query that splits by one column which it copies, and the name of that column."""
    partition = draw(st.sampled_from([column.name for column in schema if column.type != "decimal(10,2)"]))
    query = str(draw(st.sampled_from([*_GROUPED, *_WINDOWED])))
    source, columns = "ods.t", schema
    if "union all" not in query and draw(st.booleans()):
        condition = expression(draw, schema, "boolean", 1)
        source = f"(select * from ods.t where {condition} union all select * from ods.u) as s0"
    while hole := next((hole for hole in ("any", "number", "where", "source", "p") if "{" + hole + "}" in query), None):
        query = query.replace("{" + hole + "}", _filled(draw, hole, columns, partition, source), 1)
    return query, partition


def _filled(draw: Draw, hole: str, columns: Schema, partition: str, source: str) -> str:
    match hole:
        case "p":
            return quoted(partition)
        case "source":
            return source
        case "where":
            return f" where {expression(draw, columns, 'boolean', 1)}" if draw(st.booleans()) else ""
        case "number":
            return expression(draw, columns, draw(st.sampled_from(["int", "decimal(10,2)"])), 1)
    # An integer standing alone in GROUP BY or ORDER BY would be a position.
    return f"coalesce({expression(draw, columns, draw(st.sampled_from(sorted(VALUES))), 1)}, null)"


@examples(0.25)
@given(data=st.data())
def test_rescanned_models_equal_a_recompute_after_every_batch(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    sql, partition = data.draw(rescanned(schema))
    plan = compiled(sql, schema, [partition])
    assert plan.classification.strategy == "partition_rescan", (sql, plan.classification.reasons)
    check(plan, schema, data.draw(paths(schema)))


@examples(0.04)
@given(data=st.data())
def test_split_and_merged_batches_of_rescans_agree(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    sql, partition = data.draw(rescanned(schema))
    plan = compiled(sql, schema, [partition])
    path = data.draw(paths(schema, 3))
    assert final_rows(plan, schema, path) == final_rows(plan, schema, [path[0], path[-1]])


@examples(0.02)
@given(data=st.data())
def test_rescans_of_rows_written_again_unchanged_touch_no_partition(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    sql, partition = data.draw(rescanned(schema))
    plan = compiled(sql, schema, [partition])
    before = data.draw(paths(schema, 1))[-1]
    after = {table: {key: (*row[:1], *row[1:]) for key, row in rows.items()} for table, rows in before.items()}
    (actions,) = check(plan, schema, [before, after])
    assert (actions.upserts, actions.deletes) == (0, 0)
