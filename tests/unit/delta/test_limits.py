"""ORDER BY … LIMIT in its rows: when the rest of the query is read, and what a run says of it."""

from __future__ import annotations

from contextlib import closing

import pytest

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.duckdb.exact_sql import exact
from sqlmesh_like.duckdb.programs.memory_lake import MemoryLake
from sqlmesh_like.names import WEIGHT, Column
from tests.properties.lake import T, check, compiled, schema, states

COLUMNS = schema(p="string", v="int")
ROWS = "select p, v from ods.t order by v limit 2"
GROUPS = "select p, sum(v) as total from ods.t group by p order by sum(v) desc, p limit 2"
START: dict[str, object] = {"1": ("a", 1), "2": ("b", 2), "3": ("c", 3), "4": ("d", 4)}


@pytest.mark.parametrize(
    ("batch", "is_recomputed"),
    [
        ({"5": ("e", 0)}, False),  # a row enters in front
        ({"3": ("c", 9), "4": None}, False),  # rows behind the last one change
        ({"1": ("a", 2)}, False),  # a row is updated and stays, tied with the last one
        ({"1": None, "5": ("e", 2)}, True),  # the tied row comes behind the last one by its key: another may be first
        ({"1": None}, True),
        ({"2": ("b", 3)}, True),  # behind the last one: the row that was third is not known
        ({"1": None, "5": ("e", 1)}, False),
    ],
)
def test_the_query_is_recomputed_only_if_too_few_rows_are_known_to_be_first(
    batch: dict[str, object], is_recomputed: bool
) -> None:
    (done,) = check(compiled(ROWS, COLUMNS), COLUMNS, states(START, batch))  # type: ignore[arg-type]
    assert [note.rule for note in done.notes] == (["LIM003"] if is_recomputed else [])


def test_a_table_that_is_not_full_is_never_recomputed() -> None:
    path = states({"1": ("a", 1)}, {"1": None}, {"2": (None, None)}, {"2": ("b", 7)})
    assert not any(done.notes for done in check(compiled(ROWS, COLUMNS), COLUMNS, path))


@pytest.mark.parametrize(
    ("batch", "is_recomputed"),
    [
        ({"4": ("d", 9)}, False),
        ({"5": ("e", 7)}, False),
        ({"1": ("a", 0)}, True),
        ({"4": None, "3": None}, False),
        ({"2": None}, True),
    ],
)
def test_rows_behind_others_are_recomputed_once_anything_but_rows_behind_them_changes(
    batch: dict[str, object], is_recomputed: bool
) -> None:
    model = compiled("select p, v from ods.t order by v limit 1 offset 1", COLUMNS)
    (done,) = check(model, COLUMNS, states(START, batch))  # type: ignore[arg-type]
    assert [note.rule for note in done.notes] == (["LIM003"] if is_recomputed else [])


def test_groups_enter_leave_and_change_places() -> None:
    path = states(START, {"5": ("a", 9)}, {"6": ("c", -9)}, {"5": None}, {"7": ("z", 4)}, {"4": None})  # type: ignore[arg-type]
    done = check(compiled(GROUPS, COLUMNS), COLUMNS, path)
    assert [bool(each.notes) for each in done] == [False, False, True, False, True]


def test_very_many_first_rows_are_not_numbered() -> None:
    model = compiled("select p, v from ods.t order by v desc nulls first, p limit 1001", COLUMNS)
    build = model.table.build
    assert build is not None and "LIMIT 1001" in build.sql("spark") and "ROW_NUMBER" not in build.sql("spark")
    rows = {str(number): ("a", number % 7 or None) for number in range(1003)}
    done = check(model, COLUMNS, states(rows, {"5": None}, {"x": ("b", 9)}))
    assert [len(each.notes) for each in done] == [1, 0]


def test_what_the_order_needs_is_kept_and_not_shown() -> None:
    model = compiled("select p from ods.t order by v desc, upper(p) limit 2", COLUMNS)
    assert [column.name for column in model.facts.schema or ()] == ["p"]
    assert [column.type for column in model.table.state] == ["int", "string"]
    check(model, COLUMNS, states(START, {"4": ("x", None)}, {"2": ("B", 3)}))  # type: ignore[arg-type]


def test_a_limit_of_one_row_at_most_is_none() -> None:
    for sql in ("select sum(v) as total from ods.t limit 5", "select max(v) as m from ods.t order by 1 limit 1"):
        assert compiled(sql, COLUMNS).classification.strategy == "aggregate_merge"


@pytest.mark.parametrize("model", [compiled(ROWS, COLUMNS), compiled(GROUPS, COLUMNS)], ids=["rows", "groups"])
def test_no_spark_is_needed(model: CompiledModel) -> None:
    """Each step is one that DuckDB is proven to compute as Spark does."""
    program, build = model.table.program, model.table.build
    assert program is not None and build is not None
    known = {"current": (*COLUMNS, Column("_sml_key", "string"))}
    known["changes"] = (*known["current"], Column(WEIGHT, "bigint"))
    known["target"] = exact(build.copy(), lambda table: known[table.db]).columns
    for step in program.steps:
        known[step.name] = exact(step.query.copy(), lambda table: known[table.db or table.name]).columns


def test_two_runs_of_one_program_say_what_each_did() -> None:
    model = compiled(ROWS, COLUMNS)
    first, second, third = states(START, {"1": None}, {"5": ("e", 0)})  # type: ignore[arg-type]
    with closing(MemoryLake({T: COLUMNS})) as lake:
        lake.build(model, first)
        assert lake.apply(model, first, second).notes
        assert not lake.apply(model, second, third).notes


@pytest.mark.parametrize(
    "sql",
    [
        "select p, v from ods.t order by v, p offset 2",
        "select p from ods.t order by v desc, p nulls last offset 1",
        "select p, sum(v) as total from ods.t group by p order by total offset 1",
        "select p from ods.t where v in (select v from ods.t order by v offset 2)",
        "select q.p, count(*) as n from (select p from ods.t order by v offset 1) as q group by q.p",
        "(select p from ods.t union all select p from ods.t) order by p offset 3",
    ],
)
def test_all_rows_behind_the_first_ones(sql: str) -> None:
    model = compiled(sql, COLUMNS)
    assert model.classification.strategy in ("group_recompute", "aggregate_merge"), model.classification.reasons
    path = states(
        START,
        {"1": None},
        {"2": ("z", 9)},
        {"5": ("e", None), "4": ("d", 0)},
        {"2": None, "3": None},
        {"5": None, "4": None},
    )  # type: ignore[arg-type]
    check(model, COLUMNS, path)


def test_an_offset_alone_needs_an_order_and_may_be_zero() -> None:
    assert compiled("select p from ods.t offset 0", COLUMNS).classification.strategy == "row_based"
    (reason,) = compiled("select p from ods.t offset 1", COLUMNS).classification.reasons
    assert (reason.rule, reason.message) == (
        "QRY003",
        "OFFSET without ORDER BY: which rows are first is not determined",
    )
