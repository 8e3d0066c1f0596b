"""The first rows of each group, kept in the table: when a group is read again, and what of it."""

from __future__ import annotations

from contextlib import closing

import pytest

from sqlmesh_like.duckdb.exact_sql import exact
from sqlmesh_like.duckdb.programs.memory_lake import MemoryLake
from sqlmesh_like.names import WEIGHT, Column
from tests.properties.lake import T, check, compiled, schema, states

COLUMNS = schema(p="string", v="int", f="double")
ROWS = "select p, v from ods.t qualify row_number() over (partition by p order by v) <= 2"
START: dict[str, object] = {
    "1": ("a", 1, None), "2": ("a", 2, None), "3": ("a", 3, 1.5), "4": ("b", 4, None), "5": (None, None, 0.5)
}  # fmt: skip


@pytest.mark.parametrize(
    ("batch", "is_read_again"),
    [
        ({"6": ("a", 0, None)}, False),  # a row enters in front
        ({"3": ("a", 9, None)}, False),  # a row behind the last one changes
        ({"1": ("a", 2, None)}, False),  # a row is updated and stays, tied with the last one
        ({"1": None, "6": ("a", 2, None)}, True),  # the tied row comes behind the last one by its key
        ({"1": None}, True),
        ({"2": ("b", 2, None)}, True),  # a row goes to another group, which is not full
        ({"4": None, "5": ("b", 7, None), "6": (None, 1, None)}, False),  # groups that are not full
        ({"3": ("b", 1, None), "6": ("b", 0, None)}, False),
    ],
)
def test_a_group_is_read_again_only_if_too_few_of_its_rows_are_known_to_be_first(
    batch: dict[str, object], is_read_again: bool
) -> None:
    (done,) = check(compiled(ROWS, COLUMNS), COLUMNS, states(START, batch))  # type: ignore[arg-type]
    assert [note.rule for note in done.notes] == (["LIM006"] if is_read_again else [])


RANKED = "select p, v, {0}() over (partition by p order by v) as nr from ods.t qualify nr <= 3"
PLACES = {str(n): ("a", v, None) for n, v in enumerate((1, 1, 2, 2, 3, 4))}
"""By RANK 1, 1, 3, 3 are first, by DENSE_RANK 1, 1, 2, 2, 3."""


@pytest.mark.parametrize(
    ("batch", "by_rank", "by_dense_rank"),
    [
        ({"2": None}, False, False),  # a row that ties with the last one goes: three are left, of three places
        ({"2": None, "3": None}, True, True),
        ({"0": None}, False, False),
        ({"0": None, "1": None}, True, True),
        ({"0": None, "1": None, "7": ("a", 0, None)}, False, False),
        ({"0": ("a", 3, None), "1": ("a", 3, None), "7": ("a", 1, None)}, False, False),
        ({"5": ("a", 1, None)}, False, False),  # from behind to the front
        ({"4": None}, False, True),  # behind the ranked rows, the last place of others
        ({"7": ("a", 2, None), "8": ("a", 3, None), "9": ("b", 1, None)}, False, False),
        ({"7": ("b", 5, None)}, False, False),
        ({"0": ("b", 1, None), "1": ("b", 1, None), "2": ("b", 2, None)}, True, True),
    ],
)
def test_rows_that_tie_are_first_together(batch: dict[str, object], by_rank: bool, by_dense_rank: bool) -> None:
    for name, is_read_again in (("rank", by_rank), ("dense_rank", by_dense_rank)):
        model = compiled(RANKED.format(name), COLUMNS)
        assert "LIM005" in {reason.rule for reason in model.classification.reasons}
        (done,) = check(model, COLUMNS, states(PLACES, batch))  # type: ignore[arg-type]
        assert [note.rule for note in done.notes] == (["LIM006"] if is_read_again else []), name


def test_what_is_known_of_a_group_does_not_come_from_the_inputs() -> None:
    """All rows of the input but the changed ones are gone, and the table follows as if they were there."""
    model = compiled(ROWS, COLUMNS)
    first, second = states(START, {"6": ("a", 0, None), "4": ("b", 5, None)})  # type: ignore[arg-type]
    with closing(MemoryLake({T: COLUMNS})) as lake:
        lake.build(model, first)
        wiped = {T: {key: row for key, row in second[T].items() if first[T].get(key) != row}}
        lake.apply(model, {T: {key: row for key, row in first[T].items() if key in wiped[T]}}, wiped)
        assert sorted(lake.rows(), key=repr) == [("a", 0), ("a", 1), ("b", 5), (None, None)]


@pytest.mark.parametrize(
    "sql",
    [
        "select v, nr from (select *, row_number() over (partition by p order by v desc) as nr from ods.t) as x"
        " where nr < 3",
        "with a as (select p, v + 1 as w, row_number() over (partition by p order by v) as nr from ods.t where v > 0)"
        " select w * 2 as w, upper(p) as p from a where 1 = nr",
        "select p, n, nr from (select p, v, count(*) as n, row_number() over (partition by p order by count(*)) as nr"
        " from ods.t group by p, v) as x where nr <= 2",
    ],
)
def test_forms_that_are_kept(sql: str) -> None:
    model = compiled(sql, COLUMNS)
    assert "LIM005" in {reason.rule for reason in model.classification.reasons}
    path = states(START, {"1": None}, {"6": ("b", 1, None), "7": (None, 1, None)}, {"4": ("a", 3, None)}, {"3": None})  # type: ignore[arg-type]
    check(model, COLUMNS, path)


@pytest.mark.parametrize(
    "sql",
    [
        "select v from ods.t qualify row_number() over (partition by p order by v) = 2",
        "select v from ods.t qualify percent_rank() over (partition by p order by v) <= 2",
        "select v from ods.t qualify row_number() over (partition by p order by v) > 2",
        "select v from ods.t qualify row_number() over (partition by p order by v) <= 2 and v > 1",
        "select sum(v) over (partition by p) s from ods.t qualify row_number() over (partition by p order by v) <= 2",
        "select v from ods.t qualify row_number() over (order by v) <= 2",
        "select v from ods.t qualify row_number() over (partition by p order by v) <= v",
    ],
)
def test_other_forms_are_recomputed_by_group(sql: str) -> None:
    model = compiled(sql, COLUMNS)
    assert "LIM005" not in {reason.rule for reason in model.classification.reasons}
    check(model, COLUMNS, states(START, {"1": None}, {"6": ("b", 1, None)}))  # type: ignore[arg-type]


def test_the_rows_below_are_kept_where_they_are_not_shown() -> None:
    model = compiled("select v from ods.t qualify row_number() over (partition by p order by f desc, v) <= 2", COLUMNS)
    assert [(column.name, column.type) for column in model.table.state] == [
        ("_sml_below_0", "string"), ("_sml_below_1", "double"),
    ]  # fmt: skip
    check(model, COLUMNS, states(START, {"1": ("a", 1, 7.0)}, {"2": None}, {"5": (None, 1, -0.0)}))  # type: ignore[arg-type]


@pytest.mark.parametrize("sql", [ROWS, RANKED.format("rank"), RANKED.format("dense_rank")])
def test_no_spark_is_needed(sql: str) -> None:
    """Each step is one that DuckDB is proven to compute as Spark does."""
    model = compiled(sql, COLUMNS)
    program, build = model.table.program, model.table.build
    assert program is not None and build is not None
    known = {"current": (*COLUMNS, Column("_sml_key", "string"))}
    known["changes"] = (*known["current"], Column(WEIGHT, "bigint"))
    known["target"] = exact(build.copy(), lambda table: known[table.db]).columns
    for step in program.steps:
        known[step.name] = exact(step.query.copy(), lambda table: known[table.db or table.name]).columns
