"""Naive rules, patched into the shipped compiler: the check of the property tests catches each of them.

Every case written here first passes on the compiler as it is, so that what is caught is the rule and not the case. The
generator has to find the rules of `MUTANTS` by itself, within a bounded number of cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import pytest
from hypothesis import given, seed

from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, SimulatedRows
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import Schema
from tests.levels import IS_DEEP, parametrize, sample
from tests.properties import mutants
from tests.properties.cases import Drawn, cases, examples
from tests.properties.lake import T, U, check, compiled, schema, states
from tests.properties.mutants import Patch

COLUMNS = schema(p="string", q="string", v="int")
DATES = schema(p="string", q="string", v="date")
DOUBLES = schema(p="string", q="string", v="double")


@dataclass(frozen=True)
class Case:
    """A model and the states of its input that a naive rule gets wrong."""

    rule: str
    patch: Patch
    sql: str
    path: list[LakeSnapshot]
    partition_by: Sequence[str] = ()
    columns: Schema = COLUMNS


def both(left: SimulatedRows, right: SimulatedRows) -> list[LakeSnapshot]:
    """One state of the two tables."""
    return [{T: left, U: right}]


_ANTI = "select p, v from ods.t where not exists (select 1 from ods.u where u.p = t.p)"
_FULL = "select t.v as x, u.v as y from ods.t full join ods.u on t.p = u.p"
_MATCH = both({"1": ("x", "", 1)}, {"1": ("x", "", 2)})
_OUTER = "select t.p, count(*) as n, count(u.v) as met from ods.t left join ods.u on t.p = u.p group by t.p"
_FIRST = "select p, v from ods.t order by v limit 2"
_RANKED = "select v, q from ods.t qualify rank() over (partition by p order by v) <= 2"
_TOP = "select v, q from ods.t qualify row_number() over (partition by p order by v) <= 2"
_SUM = "select p, sum(v) as total from ods.t group by p"
_DISTINCT = "select p, count(distinct v) as total from ods.t group by p"
_WINDOW = "select p, v, rank() over (partition by p order by v) as place from ods.t"
_LATEST = "select q, max_by(p, v) as r from ods.t group by q"
_MIN = "select p, min(v) as low, max(v) as high from ods.t group by p"
CASES = (
    Case("a group of total 0 is dead", mutants.visible_sum_only, _SUM,
         states({"1": ("x", "", 1)}, {"2": ("x", "", -1)})),
    Case("the sum of nothing is 0", mutants.sum_of_nothing_is_zero, _SUM,
         states({"1": ("x", "", 1)}, {"1": ("x", "", None)})),
    Case("rows without a time are in a window", mutants.rows_without_a_time_in_a_window,
         "select window(v, '1 day').start as b, count(*) as n from ods.t group by 1",
         states({"1": ("x", "", date(2024, 1, 1))}, {"2": ("x", "", None)}), columns=DATES),
    Case("NOT IN, shown, is NOT EXISTS", mutants.not_in_is_not_exists,
         "select v, v not in (select u.v from ods.u) as f from ods.t",
         both({"1": ("x", "", 1)}, {"1": ("x", "", 2)}) + both({"1": ("x", "", 1)}, {"1": ("x", "", None)})),
    Case("pairs with one value count", mutants.pairs_with_one_value_count,
         "select p, regr_count(v, length(q)) as n from ods.t group by p",
         states({"1": ("x", "", 1)}, {"2": ("x", None, 1)})),
    Case("unequal rows change alone", mutants.unequal_rows_change_alone,
         "select t.v, u.v as w from ods.t left join ods.u on t.v > u.v",
         both({"1": ("x", "", 3)}, {"1": ("x", "", 5)}) + both({"1": ("x", "", 3)}, {"1": ("x", "", 2)})),
    Case("after-images only", mutants.after_images_only, _SUM, states({"1": ("x", "", 1)}, {"1": ("x", "", 2)})),
    Case("after-images only, rows", mutants.after_images_only, "select p, v from ods.t where v > 0",
         states({"1": ("x", "", 1)}, {"1": ("x", "", 0)})),
    Case("partitions of after-images only", mutants.partitions_of_after_images_only, _DISTINCT,
         states({"1": ("x", "", 1), "2": ("x", "", 2)}, {"1": ("y", "", 1)}), ["p"]),
    Case("window keys of after-images only", mutants.partitions_of_after_images_only, _WINDOW,
         states({"1": ("x", "", 1), "2": ("x", "", 2)}, {"1": ("y", "", 1)}), ["p"]),
    Case("NULL-unsafe partitions", mutants.partitions_compared_unsafely, _DISTINCT,
         states({"1": (None, "", 1)}, {"2": (None, "", 2)}), ["p"]),
    Case("extrema never recomputed", mutants.extrema_never_recomputed, _MIN,
         states({"1": ("x", "", 1), "2": ("x", "", 2)}, {"1": None})),
    Case("an equal retracted extremum is no loss", mutants.strictly_beaten_extrema_only, _MIN,
         states({"1": ("x", "", 1), "2": ("x", "", 2)}, {"2": None})),
    Case("the row that is chosen stays", mutants.chosen_rows_never_recomputed, _LATEST,
         states({"1": ("x", "", 1), "2": ("y", "", 2)}, {"2": None})),
    Case("an equal row that is chosen is no loss", mutants.strictly_beaten_extrema_only, _LATEST,
         states({"1": ("x", "", 1), "2": ("y", "", 2)}, {"2": None})),
    Case("a row that ties beats the chosen one", mutants.rows_that_tie_beat_the_kept_one, _LATEST,
         states({"2": ("x", "", 1), "3": ("y", "", 1)}, {"3": None, "1": ("z", "", 1)})),
    Case("a chosen value is not NULL", mutants.values_that_are_null_are_not_chosen, _LATEST,
         states({"1": ("x", "", 1), "2": (None, "", 2)}, {"3": ("y", "", 0)})),
    Case("NULL and empty text are one key", mutants.null_keys_as_empty_text, _SUM,
         states({"1": (None, "", 1), "2": ("", "", 2)}, {"3": ("", "", 1)})),
    Case("keys joined without length", mutants.keys_joined_without_length,
         "select p, q, count(*) as total from ods.t group by p, q",
         states({"1": ("a", "b", 1), "2": ("ab", "", 2)}, {"1": None})),
    Case("a scalar aggregate is merged twice", mutants.recomputed_without_a_stale_group,
         "select sum(v) as total from ods.t", states({"1": ("x", "", 1)}, {"2": ("x", "", 1)})),
    Case("the new state in both terms of a join", mutants.joined_with_the_new_state_of_both,
         "select t.v as x, u.v as y from ods.t join ods.u on t.p = u.p", [*both({}, {}), *_MATCH]),
    Case("a join's aggregate counts twice", mutants.joined_with_the_new_state_of_both,
         "select t.p, sum(u.v) as total from ods.t join ods.u on t.p = u.p group by t.p", [*both({}, {}), *_MATCH]),
    Case("a changed row stays too", mutants.changed_rows_stay_too,
         "select t.p, sum(u.v * t.v) as total from ods.t join ods.u on t.p = u.p group by t.p",
         [*_MATCH, *both({"1": ("x", "", 3)}, {"1": ("x", "", 7)})]),
    Case("a row that left meets one that came", mutants.changes_of_both_directions_together,
         "select t.p, sum(u.v * t.v) as total from ods.t join ods.u on t.p = u.p group by t.p",
         [*_MATCH, *both({"1": ("x", "", 3)}, {"1": ("x", "", 7)})]),
    Case("what a row met before is not looked up", mutants.looked_up_by_after_images_only,
         "select t.v as x, u.v as y from ods.t join ods.u on t.p = u.p",
         [*_MATCH, *both({"1": ("z", "", 1)}, {"1": ("x", "", 2)})]),
    Case("a merged group keeps what an outer join no longer returns", mutants.recomputed_rows_only_added, _OUTER,
         [*both({"1": ("x", "", 1)}, {}), *_MATCH]),
    Case("a merged group keeps what EXISTS no longer lets through", mutants.recomputed_rows_only_added,
         "select p, sum(v) as total from ods.t where exists (select 1 from ods.u where u.p = t.p) group by p",
         [*_MATCH, *both({"1": ("x", "", 1)}, {})]),
    Case("a merged group of an outer join as it is now, twice", mutants.recomputed_from_the_new_rows_twice, _OUTER,
         [*both({"1": ("x", "", 1)}, {}), *_MATCH]),
    Case("affected keys of after-images only", mutants.affected_keys_of_after_images_only, _DISTINCT,
         states({"1": ("x", "", 1), "2": ("x", "", 2)}, {"1": ("y", "", 1)})),
    Case("affected join keys of after-images only", mutants.affected_keys_of_after_images_only, _ANTI,
         [*_MATCH, *both({"1": ("x", "", 1)}, {"1": ("y", "", 2)})]),
    Case("NULL-unsafe affected keys", mutants.affected_keys_compared_unsafely, _DISTINCT,
         states({"1": (None, "", 1)}, {"2": (None, "", 2)})),
    Case("an anti join affected from the left only", mutants.affected_keys_of_one_side(0), _ANTI,
         [*_MATCH, *both({"1": ("x", "", 1)}, {})]),
    Case("a full join affected from the left only", mutants.affected_keys_of_one_side(0), _FULL,
         [*_MATCH, *both({"1": ("x", "", 1)}, {})]),
    Case("a full join affected from the right only", mutants.affected_keys_of_one_side(1), _FULL,
         [*_MATCH, *both({}, {"1": ("x", "", 2)})]),
    Case("HAVING before affected keys", mutants.having_before_affected_keys,
         "select p, sum(v) as total from ods.t group by p having sum(v) > 0",
         states({"1": ("x", "", -1)}, {"2": ("x", "", 2)})),
    Case("a prune by another column", mutants.prune_by_another_column, _MIN,
         states({"1": ("x", "y", 1), "2": ("x", "z", 2)}, {"1": None})),
    Case("NOT IN by key", mutants.not_in_by_key, "select p, v from ods.t where v not in (select v from ods.u)",
         [*both({"1": ("x", "", 1)}, {}), *both({"1": ("x", "", 1)}, {"1": ("y", "", None)})]),
    Case("NOT IN of nothing is not known", mutants.not_in_of_nothing,
         "select p, v from ods.t where v not in (select v from ods.u)",
         [*both({"1": ("x", "", None)}, {"1": ("y", "", 1)}), *both({"1": ("x", "", None)}, {})]),
    Case("too few first rows are not noticed", mutants.too_few_first_rows_not_noticed, _FIRST,
         states({"1": ("x", "", 1), "2": ("y", "", 2), "3": ("z", "", 3)}, {"1": None})),
    Case("a last row that left is no boundary", mutants.last_row_left_is_no_boundary, _FIRST,
         states({"1": ("x", "", 1), "2": ("y", "", 2), "3": ("z", "", 3)}, {"2": ("y", "", 4)})),
    Case("too few rows of a group are not noticed", mutants.too_few_rows_of_a_group_not_noticed, _TOP,
         states({"1": ("x", "", 1), "2": ("x", "", 2), "3": ("x", "", 3)}, {"1": None})),
    Case("a row that ties with the last of a group", mutants.last_row_of_a_group_is_before_its_equal, _TOP,
         states({"1": ("x", "", 1), "2": ("x", "", 2), "3": ("x", "", 2)}, {"1": None, "4": ("x", "", 2)})),
    Case("a rank of k ends a group", mutants.a_rank_of_k_ends_a_group, _RANKED,
         states({"1": ("x", "", 1), "2": ("x", "", 1), "3": ("x", "", 2)}, {"1": None})),
    Case("rows that tie have places of their own", mutants.last_rows_by_row_key, _RANKED,
         states({"1": ("x", "", 1), "2": ("x", "", 1), "3": ("x", "", 2)}, {"4": ("x", "", 1)})),
    Case("rows of a group that a change replaces stay", mutants.replaced_rows_of_a_group_stay, _TOP,
         states({"1": ("x", "", 1), "2": ("x", "", 2)}, {"1": ("y", "", 3)})),
    Case("NULL is last in every order", mutants.first_rows_with_nulls_elsewhere,
         "select p, count(*) as n from ods.t group by p order by p limit 1",
         states({"1": ("x", "", 1)}, {"2": (None, "", 2)})),
    Case("rows that match nothing by less are gone", mutants.only_the_half_that_matches,
         "select v from ods.t where p = 'x' or exists (select 1 from ods.u where u.v > t.v)",
         [*both({"1": ("x", "", 1)}, {"1": ("y", "", 2)}), *both({"1": ("x", "", 1)}, {"1": ("y", "", 0)})]),
    Case("a correlated query with GROUP BY has all rows", mutants.correlated_groups_of_all_rows,
         "select v from ods.t where v in (select max(v) from ods.u where u.p = t.p and u.v < 5 group by q)",
         [*both({"1": ("x", "", 1)}, {"1": ("x", "", 1)}),
          *both({"1": ("x", "", 1)}, {"1": ("x", "", 1), "2": ("x", "", 7)})]),
    Case("a value below, once for each row around", mutants.outer_values_of_each_row,
         "select v, (select count(*) from ods.u where u.v < t.v) as n from ods.t",
         [*both({"1": ("x", "", 2)}, {"1": ("x", "", 1)}),
          *both({"1": ("x", "", 2), "2": ("y", "", 2)}, {"1": ("x", "", 1)})]),
    Case("a NULL around a query meets nothing", mutants.outer_values_met_unsafely,
         "select p, (select count(*) from ods.u where u.v <=> t.v or u.v > t.v) as n from ods.t",
         [*both({"1": ("x", "", 2)}, {}), *both({"1": ("x", "", None)}, {"1": ("y", "", None)})]),
    Case("the two zeros are two groups", mutants.two_zeros, "select v, count(*) as n from ods.t group by v",
         states({"1": ("x", "", 5.0), "2": ("y", "", -0.0)}, {"1": ("x", "", 0.0)}), columns=DOUBLES),
    Case("an average of counts has all rows", mutants.averages_without_empty_groups,
         "select v, p from ods.t where v > (select avg(cast(v as bigint)) from ods.u)",
         [*both({"1": ("x", "", 3)}, {"1": ("y", "", 2)}),
          *both({"1": ("x", "", 3)}, {"1": ("y", "", 4), "2": ("z", "", None)})]),
    Case("UNPIVOT keeps NULL", mutants.nulls_stay_in_unpivot,
         "select * from (select p, q, v from ods.t) unpivot (x for place in (p, q))",
         states({"1": ("x", "", 1)}, {"1": (None, "", 1)})),
    Case("all rows of a group are of each value", mutants.values_of_a_pivot_share_their_rows,
         "select * from (select p, q, v from ods.t) pivot (sum(v) for q in ('a', 'b'))",
         states({"1": ("x", "a", 1)}, {"2": ("x", "b", 2)})),
    Case("the row key ends the order another way", mutants.first_rows_tied, _FIRST,
         states({"1": ("x", "", 1), "2": ("y", "", 2), "4": ("y", "", 2)}, {"3": ("z", "", 2)})),
)  # fmt: skip


@sample("case", [pytest.param(case, id=case.rule) for case in CASES], every=2)
def test_the_compiler_passes_what_a_naive_rule_fails(case: Case) -> None:
    assert check(compiled(case.sql, case.columns, case.partition_by), case.columns, case.path)


@sample("case", [pytest.param(case, id=case.rule) for case in CASES], every=2)
def test_a_naive_rule_is_caught(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.patch(monkeypatch)
    with pytest.raises((AssertionError, NodeError), match=r"^(rows|state) after|repeats"):
        check(compiled(case.sql, case.columns, case.partition_by), case.columns, case.path)


@dataclass(frozen=True)
class Mutant:
    """A naive rule and the construct over which the generator is to find it.

    `seed`: of the cases of a suite, where those of 0 come to it late.
    """

    rule: str
    patch: Patch
    construct: str
    partitioned: bool = False
    seed: int = 0


NAMED = {"visible SUM only", "after-images only", "window keys from after-images only", "NULL-unsafe IN",
         "A_new⋈ΔB with B_new", "NOT IN by key"}  # fmt: skip
"""The naive rules that design names."""
MUTANTS = (
    Mutant("visible SUM only", mutants.visible_sum_only, "group by", seed=13),
    Mutant("after-images only", mutants.after_images_only, "filter"),
    Mutant("window keys from after-images only", mutants.affected_keys_of_after_images_only, "window"),
    Mutant("NULL-unsafe IN", mutants.affected_keys_compared_unsafely, "distinct"),
    Mutant("A_new⋈ΔB with B_new", mutants.joined_with_the_new_state_of_both, "join", seed=1),
    Mutant("a changed row stays too", mutants.changed_rows_stay_too, "join", seed=1),
    Mutant("a row that left meets one that came", mutants.changes_of_both_directions_together, "join", seed=1),
    Mutant("what a row met before is not looked up", mutants.looked_up_by_after_images_only, "join", seed=1),
    Mutant("NOT IN by key", mutants.not_in_by_key, "not in", seed=4),
    Mutant("a correlated NOT IN by key", mutants.correlated_not_in_by_key, "not in"),
    Mutant("NOT IN of nothing is not known", mutants.not_in_of_nothing, "not in", seed=4),
    Mutant("an OR asks for what its branches share", mutants.common_parts_of_an_or_only, "correlated in where"),
    Mutant("values around a query for each row", mutants.outer_values_of_each_row, "correlated by less"),
    Mutant("only the half of rows that matches", mutants.only_the_half_that_matches, "tested"),
    Mutant("the sum of nothing is 0", mutants.sum_of_nothing_is_zero, "group by"),
    Mutant("a variance is over one value more", mutants.variance_of_one_more, "group by", seed=17),
    Mutant("extrema never recomputed", mutants.extrema_never_recomputed, "group by", seed=2),
    Mutant("the row that is chosen stays", mutants.chosen_rows_never_recomputed, "tied aggregate"),
    Mutant("a row that ties beats the chosen one", mutants.rows_that_tie_beat_the_kept_one, "tied aggregate"),
    Mutant("a chosen value is not NULL", mutants.values_that_are_null_are_not_chosen, "tied aggregate"),
    Mutant("partitions of after-images only", mutants.partitions_of_after_images_only, "rescan aggregate", True),
    Mutant("NULL-unsafe partitions", mutants.partitions_compared_unsafely, "rescan aggregate", True, seed=2),
    Mutant("NULL and empty text are one key", mutants.null_keys_as_empty_text, "group by"),
    Mutant("a scalar aggregate is merged twice", mutants.recomputed_without_a_stale_group, "scalar aggregate", seed=1),
    Mutant("an anti join affected from the left only", mutants.affected_keys_of_one_side(0), "left anti join", seed=3),
    Mutant("a full join affected from the right only", mutants.affected_keys_of_one_side(1), "full join"),
    Mutant("recomputed rows are only added", mutants.recomputed_rows_only_added, "full join"),
    Mutant("recomputed from the new rows twice", mutants.recomputed_from_the_new_rows_twice, "full join"),
    Mutant("a LIMIT below from the new rows twice", mutants.recomputed_from_the_new_rows_twice, "limit below"),
    Mutant("replaced rows stay below windows over all", mutants.rows_below_windows_stay, "window over all", seed=1),
    Mutant("groups without rows are kept", mutants.dead_groups_kept, "group by", seed=3),
    Mutant("too few first rows are not noticed", mutants.too_few_first_rows_not_noticed, "limit", seed=12),
    Mutant("a last row that left is no boundary", mutants.last_row_left_is_no_boundary, "limit", seed=15),
    Mutant("too few rows of a group are not noticed", mutants.too_few_rows_of_a_group_not_noticed, "qualify"),
    Mutant("a row that ties with the last of a group", mutants.last_row_of_a_group_is_before_its_equal, "qualify"),
    Mutant("rows of a group that a change replaces stay", mutants.replaced_rows_of_a_group_stay, "top-n"),
    Mutant("only rows that enter move an OFFSET", mutants.rows_that_enter_move_an_offset, "limit", seed=1),
    Mutant("UNPIVOT keeps NULL", mutants.nulls_stay_in_unpivot, "unpivot"),
    Mutant("all rows of a group are of each value", mutants.values_of_a_pivot_share_their_rows, "pivot"),
    Mutant("NULL is last in every order", mutants.first_rows_with_nulls_elsewhere, "limit", seed=2),
)
BOUND = 100
"""Cases within which a rule must be found; most are found in less than ten."""


def test_every_naive_rule_of_the_design_is_tried_and_six_more() -> None:
    assert {mutant.rule for mutant in MUTANTS} >= NAMED
    assert len(MUTANTS) >= len(NAMED) + 6


@parametrize(
    "mutant",
    suite=[pytest.param(mutant, id=mutant.rule) for mutant in MUTANTS if mutant.rule in NAMED],
    release=[pytest.param(mutant, id=mutant.rule) for mutant in MUTANTS if mutant.rule not in NAMED],
)
def test_the_generator_finds_a_naive_rule(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.patch(monkeypatch)

    @examples(BOUND, shrink=False)
    @given(drawn=cases(mutant.construct, largest=1, partitioned=mutant.partitioned))
    def every_case(drawn: Drawn) -> None:
        if drawn.case.plan.classification.strategy != "full_refresh":
            drawn.case.follow()

    with pytest.raises((AssertionError, NodeError), match=r"^(rows|state) after|repeats"):
        (every_case if IS_DEEP else seed(mutant.seed)(every_case))()
