"""Naive rules that can be patched into the shipped compiler. Each is a defect that the tests must find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Filter, Relation, TopK
from sqlmesh_like.analyze.binding import grouping, joining, pivots, time_windows
from sqlmesh_like.analyze.binding.scope import Scope
from sqlmesh_like.analyze.binding.subqueries import correlated_groups, match_flags, outer_values
from sqlmesh_like.analyze.binding.subqueries import predicate_subqueries as subqueries
from sqlmesh_like.analyze.functions.aggregates import AGGREGATES, SameCall
from sqlmesh_like.analyze.functions.merging import KeptState
from sqlmesh_like.classify.group_tops import GroupTop
from sqlmesh_like.delta import (
    affected_keys,
    aggregates,
    changes,
    group_tops,
    keys,
    limits,
    lookups,
    partitions,
    rows,
    whole_window,
)
from sqlmesh_like.delta.keys import as_text, column
from sqlmesh_like.delta.program import TARGET, DeltaProgram, Moves, ProgramStep, relation
from sqlmesh_like.delta.states import AggregateState, states_of
from sqlmesh_like.names import ROWS, Column

Patch = Callable[[pytest.MonkeyPatch], None]


def visible_sum_only(patch: pytest.MonkeyPatch) -> None:
    """A group lives while its total is not 0."""
    signed = aggregates._signed_rows

    def naive(aggregate: aggregates.Aggregate, *steps: str) -> exp.Select:
        query = signed(aggregate, *steps)
        sums = [state.name for state in states_of(aggregate) if state.kind == "sum"]
        for where in list(query.find_all(exp.Where)) if sums else []:
            if any(each.name == ROWS for each in where.find_all(exp.Column)):
                where.set("this", exp.NEQ(this=column(sums[0]), expression=exp.Literal.number(0)))
        return query

    patch.setattr(aggregates, "_signed_rows", naive)


def sum_of_nothing_is_zero(patch: pytest.MonkeyPatch) -> None:
    from sqlmesh_like.analyze.functions import merging as module

    patch.setattr(module, "unless_empty", lambda count, expression: expression)


def variance_of_one_more(patch: pytest.MonkeyPatch) -> None:
    """A variance is over one value more than there are."""
    from sqlmesh_like.analyze.functions import merging as module

    variance = module._variance

    def naive(type_: str | None, count: exp.Expr, *sums: exp.Expr, is_sample: bool) -> exp.Expr:
        every = exp.Add(this=count.copy(), expression=exp.Literal.number(1))
        return variance(type_, exp.Paren(this=every), *sums, is_sample=is_sample)

    patch.setattr(module, "_variance", naive)


def rows_without_a_time_in_a_window(patch: pytest.MonkeyPatch) -> None:
    """A row whose time is NULL is in a window of its own."""
    patch.setattr(time_windows, "filter_rows", lambda relation, _: relation)


def not_in_is_not_exists(patch: pytest.MonkeyPatch) -> None:
    """NOT IN of a query is true where the value equals none of its rows, NULL among them or not."""
    patch.setattr(subqueries, "is_negated", lambda node, root: False)


def pairs_with_one_value_count(patch: pytest.MonkeyPatch) -> None:
    """REGR_COUNT is of the pairs whose first value is known."""
    record = replace(AGGREGATES[exp.RegrCount], same_as=SameCall(exp.Count, lambda call: call.this.copy()))
    patch.setitem(AGGREGATES, exp.RegrCount, record)


def unequal_rows_change_alone(patch: pytest.MonkeyPatch) -> None:
    """Rows of a join without an equality change only where they themselves do."""
    patch.setattr(changes.Changes, "_decides_alone", lambda self, source: source.left)


def after_images_only(patch: pytest.MonkeyPatch) -> None:
    for module in (rows, changes, aggregates):
        patch.setattr(module, "net", _net_of_after_images)


def recomputed_rows_only_added(patch: pytest.MonkeyPatch) -> None:
    """The change of what is recomputed has its new rows, and does not take back the old ones."""
    signed = changes.signed_rows

    def naive(shown: Sequence[exp.Expr], old: str, new: str) -> exp.Select:
        return signed(shown, old, new).where(exp.GT(this=column("_sml_weight"), expression=_zero()))

    patch.setattr(changes, "signed_rows", naive)


def recomputed_from_the_new_rows_twice(patch: pytest.MonkeyPatch) -> None:
    """What was there before the change is computed from the rows after it."""
    patch.setattr(changes.Changes, "_previous", lambda self, source, current: exp.select("*").from_(current))


def partitions_of_after_images_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(partitions, "net", _net_of_after_images)


_net = rows.net


def _net_of_after_images(source: exp.Expr, columns: Sequence[Column], *, has_zero_signs: bool = False) -> exp.Select:
    return _net(source, columns, has_zero_signs=has_zero_signs).where(
        exp.GT(this=column("_sml_weight"), expression=_zero())
    )


def partitions_compared_unsafely(patch: pytest.MonkeyPatch) -> None:
    is_affected = partitions._is_affected

    def naive(names: tuple[str, ...]) -> exp.Expr:
        return is_affected(names).transform(
            lambda node: (
                exp.EQ(this=node.this, expression=node.expression) if isinstance(node, exp.NullSafeEQ) else node
            )
        )

    patch.setattr(partitions, "_is_affected", naive)


def extrema_never_recomputed(patch: pytest.MonkeyPatch) -> None:
    stale = aggregates._stale

    def naive(states_: tuple[AggregateState, ...], *steps: str) -> exp.Select:
        return stale(tuple(state for state in states_ if state.kind not in ("min", "max")), *steps)

    patch.setattr(aggregates, "_stale", naive)


def strictly_beaten_extrema_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exp, "LTE", exp.LT)
    patch.setattr(exp, "GTE", exp.GT)


def rows_that_tie_beat_the_kept_one(patch: pytest.MonkeyPatch) -> None:
    """A row that enters and is ordered as the kept one beats it, whatever their keys are."""
    reaches = aggregates._reaches

    def naive(values: Sequence[exp.Expr], stored: Sequence[exp.Expr], compare: type[exp.Predicate]) -> exp.Expr:
        if len(values) > 1 and compare in (exp.LT, exp.GT):
            return reaches(values[:1], stored[:1], exp.LTE if compare is exp.LT else exp.GTE)
        return reaches(values, stored, compare)

    patch.setattr(aggregates, "_reaches", naive)


def values_that_are_null_are_not_chosen(patch: pytest.MonkeyPatch) -> None:
    """MAX_BY is of the rows that have a value."""
    extremum = aggregates._extremum

    def naive(state: AggregateState, columns: Mapping[str, exp.Column], condition: exp.Expr | None = None) -> exp.Expr:
        known = exp.Not(this=exp.Is(this=columns[state.name].copy(), expression=exp.Null()))
        return extremum(state, columns, exp.and_(condition, known) if condition is not None else known)

    patch.setattr(aggregates, "_extremum", naive)


def chosen_rows_never_recomputed(patch: pytest.MonkeyPatch) -> None:
    """The row whose value is kept stays."""
    stale = aggregates._stale

    def naive(states_: tuple[AggregateState, ...], *steps: str) -> exp.Select:
        return stale(tuple(state for state in states_ if not state.order and state.kind != "max"), *steps)

    patch.setattr(aggregates, "_stale", naive)


def null_keys_as_empty_text(patch: pytest.MonkeyPatch) -> None:
    def naive(value: exp.Expr) -> exp.Expr:
        return exp.Coalesce(this=as_text(value), expressions=[exp.Literal.string("")])

    patch.setattr(keys, "_encode_one", naive)


def keys_joined_without_length(patch: pytest.MonkeyPatch) -> None:
    def naive(values: Sequence[exp.Expr]) -> exp.Expr:
        return keys._concat([exp.Coalesce(this=as_text(v), expressions=[exp.Literal.string("N")]) for v in values])

    patch.setattr(aggregates, "encode", naive)


def recomputed_without_a_stale_group(patch: pytest.MonkeyPatch) -> None:
    """An aggregate without GROUP BY over no rows is a row: merged twice where nothing was stale."""
    recomputed = aggregates._stale_group_states

    def naive(aggregate: aggregates.Aggregate, *steps: object) -> exp.Select:
        query = recomputed(aggregate, *steps)  # type: ignore[arg-type]
        query.set("where", None)
        return query

    add = lookups.Lookups.add

    def always(self: lookups.Lookups, kind: str, query: exp.Query, *_: object, **others: object) -> str:
        return add(self, kind, query, prunes=others.get("prunes", ()))  # type: ignore[arg-type]

    patch.setattr(aggregates, "_stale_group_states", naive)
    patch.setattr(lookups.Lookups, "add", always)


def prune_by_another_column(patch: pytest.MonkeyPatch) -> None:
    delta = aggregates.aggregate_delta

    def naive(aggregate: aggregates.Aggregate, moves: Moves) -> DeltaProgram:
        return DeltaProgram(tuple(_with_wrong_prune(step) for step in delta(aggregate, moves).steps))

    from sqlmesh_like.delta import compile as module

    patch.setattr(module.aggregates, "aggregate_delta", naive)


def _with_wrong_prune(step: ProgramStep) -> ProgramStep:
    if step.name != "lookup":
        return step
    wrong = [{name: tuple(("q", key) for _, key in pairs) for name, pairs in p.columns.items()} for p in step.prunes]
    return replace(step, prunes=tuple(replace(p, columns=w) for p, w in zip(step.prunes, wrong, strict=True)))


def joined_with_the_new_state_of_both(patch: pytest.MonkeyPatch) -> None:
    """ΔA⋈B_new and A_new⋈ΔB: pairs of two changed rows count twice."""
    changed_rows_stay_too(patch)

    def naive(self: changes.Changes, leaf: Relation, condition: exp.Expr, change: str) -> exp.Query:
        zero = exp.alias_(exp.Literal.number(0), changes._TAG, quoted=True)
        return self._staying(leaf, condition, change).select(zero)

    patch.setattr(changes.Changes, "_tag_rows", naive)


def changed_rows_stay_too(patch: pytest.MonkeyPatch) -> None:
    """A row that is there now is joined with what left, though it came later."""
    staying = changes.Changes._staying

    def naive(self: changes.Changes, leaf: Relation, condition: exp.Expr, change: str) -> exp.Select:
        query = staying(self, leaf, condition, change)
        query.set("where", None)
        return query

    patch.setattr(changes.Changes, "_staying", naive)


def changes_of_both_directions_together(patch: pytest.MonkeyPatch) -> None:
    """A row that left is joined with one that came in its place."""
    patch.setattr(changes, "_is_together", lambda tag, direction: exp.true())


def looked_up_by_after_images_only(patch: pytest.MonkeyPatch) -> None:
    """What a row met before it changed is not looked for."""
    keys_of = lookups.keys_of

    def naive(expressions: Sequence[exp.Expr], steps: Sequence[str]) -> exp.Query:
        query = keys_of(expressions, steps)
        for select in list(query.find_all(exp.Select)):
            if select.args["from_"].this.name.startswith(("delta", "netted", "joined_change")):
                select.where(exp.GT(this=column("_sml_weight"), expression=_zero()), copy=False)
        return query

    patch.setattr(lookups, "keys_of", naive)


def affected_keys_of_after_images_only(patch: pytest.MonkeyPatch) -> None:
    def naive(sides: Sequence[tuple[Sequence[exp.Expr], str]]) -> exp.Query:
        query = affected_keys.affected_keys(sides)
        for select in list(query.find_all(exp.Select)):
            select.where(exp.GT(this=column("_sml_weight"), expression=_zero()), copy=False)
        return query

    patch.setattr(changes, "affected_keys", naive)


def affected_keys_compared_unsafely(patch: pytest.MonkeyPatch) -> None:
    by = lookups.Match.by

    def naive(expressions: Sequence[exp.Expr], step: str, null_safe: Sequence[bool] | None = None) -> lookups.Match:
        return by(expressions, step, null_safe or [False] * len(expressions))

    patch.setattr(lookups.Match, "by", staticmethod(naive))


def affected_keys_of_one_side(side: int) -> Patch:
    def patch_one(patch: pytest.MonkeyPatch) -> None:
        affected = changes.Changes._affected_keys

        def naive(self: changes.Changes, source: Relation) -> str:
            known = affected(self, source)
            child, expressions = affected_keys.sides_of(source)[side]
            if self.moves.can_change(child):
                return self.steps.add("affected", affected_keys.keys_of(expressions, [self.net_change(child)]))
            return self.steps.add("affected", exp.select("*").from_(known).where(exp.false()))

        patch.setattr(changes.Changes, "_affected_keys", naive)

    return patch_one


def having_before_affected_keys(patch: pytest.MonkeyPatch) -> None:
    """Only groups that HAVING let through before are known: one that it drops never comes back."""
    affected = changes.Changes._affected_keys

    def naive(self: changes.Changes, source: Relation) -> str:
        known = exp.select(column("_sml_key")).from_(relation("target", TARGET)).subquery()
        every = exp.select("*").from_(affected(self, source))
        passed = every.where(exp.In(this=keys.encode([column("_sml_p0")]), query=known))
        return self.steps.add("passed", passed)

    patch.setattr(changes.Changes, "_affected_keys", naive)


def dead_groups_kept(patch: pytest.MonkeyPatch) -> None:
    """A group without rows stays."""
    signed = aggregates._signed_rows

    def naive(aggregate: aggregates.Aggregate, *steps: str) -> exp.Select:
        query = signed(aggregate, *steps)
        for where in list(query.find_all(exp.Where)):
            where.pop()
        return query

    patch.setattr(aggregates, "_signed_rows", naive)


def not_in_by_key(patch: pytest.MonkeyPatch) -> None:
    """NOT IN is an anti join: a NULL on either side changes nothing."""
    with_membership = match_flags.with_membership
    patch.setattr(subqueries, "with_membership", lambda *given, **_: with_membership(*given, is_negated=False))


def correlated_not_in_by_key(patch: pytest.MonkeyPatch) -> None:
    """NOT IN of a correlated query is an anti join by equalities: a NULL on either side changes nothing."""
    correlated = subqueries.Subqueries._correlated_in
    patch.setattr(subqueries.Subqueries, "_correlated_in", lambda *given, **_: correlated(*given))


def not_in_of_nothing(patch: pytest.MonkeyPatch) -> None:
    """A value that is NULL is not known to be in a query without rows."""
    with_membership = match_flags.with_membership

    def naive(*given: object, **named: object) -> tuple[Scope, exp.Expr]:
        scope, value = with_membership(*given, **named)  # type: ignore[arg-type]
        for fact in [node for node in value.find_all(exp.Column) if node.name.endswith(".empty")]:
            fact.replace(exp.false())
        return scope, value

    patch.setattr(subqueries, "with_membership", naive)


def common_parts_of_an_or_only(patch: pytest.MonkeyPatch) -> None:
    """What all branches of an OR ask for is all that it asks for."""
    factored = joining._factor_or
    patch.setattr(
        joining, "_factor_or", lambda predicate: [part for part in factored(predicate) if not part.find(exp.Or)]
    )


def nulls_stay_in_unpivot(patch: pytest.MonkeyPatch) -> None:
    """UNPIVOT gives a row for each column, also where that is NULL."""
    patch.setattr(pivots, "filter_rows", lambda relation, conditions: relation)


def values_of_a_pivot_share_their_rows(patch: pytest.MonkeyPatch) -> None:
    """An aggregate of PIVOT is over all rows of its group."""
    patch.setattr(pivots, "_of_value", lambda aggregate, condition, *, is_plain: aggregate)


def only_the_half_that_matches(patch: pytest.MonkeyPatch) -> None:
    """Rows that match no row of a query by an inequality are not there."""
    with_halves = subqueries.with_match_by_halves

    def naive(*given: object) -> tuple[Scope, exp.Expr]:
        scope, flag = with_halves(*given)  # type: ignore[arg-type]
        return replace(scope, relation=Filter(scope.relation, flag.copy())), flag

    def resolved(*given: object) -> tuple[Scope, exp.Expr]:
        scope, flag = naive(*given)
        assert isinstance(scope.relation, Filter)
        return replace(scope, relation=replace(scope.relation, condition=scope.resolve(flag))), flag

    patch.setattr(subqueries, "with_match_by_halves", resolved)


def correlated_groups_of_all_rows(patch: pytest.MonkeyPatch) -> None:
    """What a correlated query with GROUP BY asks of its own rows is forgotten."""
    patch.setattr(correlated_groups, "filter_rows", lambda relation, parts: relation)


def outer_values_of_each_row(patch: pytest.MonkeyPatch) -> None:
    """What a query yields for the values around it is computed once for each row that has them."""
    distinct = outer_values.distinct_rows
    patch.setattr(outer_values, "distinct_rows", lambda relation, offset: distinct(relation, offset).child)


def outer_values_met_unsafely(patch: pytest.MonkeyPatch) -> None:
    """A row with a NULL around a query meets nothing that was computed for NULL."""
    ties = outer_values.RowsByOuterValues.ties

    def naive(self: outer_values.RowsByOuterValues, names: Sequence[str]) -> list[exp.Expr]:
        return [exp.EQ(this=tie.this, expression=tie.expression) for tie in ties(self, names)]

    patch.setattr(outer_values.RowsByOuterValues, "ties", naive)


def two_zeros(patch: pytest.MonkeyPatch) -> None:
    """Doubles are keys by their bits, also those of the two zeros, which are one group."""
    patch.setattr(grouping, "with_one_zero", lambda expression, type_: expression)


def averages_without_empty_groups(patch: pytest.MonkeyPatch) -> None:
    """An average of huge integers is over the rows of its group, not over its values."""
    from sqlmesh_like.delta import states

    of_all_rows = states._of_all_rows

    def naive(kept: KeptState) -> exp.Expr:
        return exp.Count(this=exp.Star()) if kept.kind == "count" else of_all_rows(kept)

    patch.setattr(states, "_of_all_rows", naive)


def rows_below_windows_stay(patch: pytest.MonkeyPatch) -> None:
    """The rows of the table that a change replaces are still in the windows over all rows."""
    staying = whole_window._staying

    def naive(*given: object) -> exp.Select:
        query = staying(*given)  # type: ignore[arg-type]
        query.set("where", None)
        return query

    patch.setattr(whole_window, "_staying", naive)


def too_few_first_rows_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """What is left of the stored rows, and what came, is the result: rows behind the last stored one are forgotten."""
    last = limits._last
    patch.setattr(limits, "_last", lambda *given: last(*given).where(exp.false()))


def last_row_left_is_no_boundary(patch: pytest.MonkeyPatch) -> None:
    """The last stored row counts as the boundary only if it stays."""
    last, replaced_rows = limits._last, changes.Changes.replaced_rows
    replaced: list[exp.Expr] = []

    def remember(self: changes.Changes, source: Relation) -> tuple[str, exp.Expr, exp.Select]:
        step, is_replaced, enter = replaced_rows(self, source)
        replaced.append(is_replaced)
        return step, is_replaced, enter

    patch.setattr(changes.Changes, "replaced_rows", remember)
    patch.setattr(limits, "_last", lambda *given: last(*given).where(exp.Not(this=replaced[-1].copy())))


def too_few_rows_of_a_group_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """What is left of the stored rows of a group, and what came, is all of it."""
    last = group_tops._last
    patch.setattr(group_tops, "_last", lambda *given: last(*given).where(exp.false()))


def last_row_of_a_group_is_before_its_equal(patch: pytest.MonkeyPatch) -> None:
    """A row that ties with the last stored one of its group is among the first, whatever their keys are."""
    in_place = group_tops._in_place

    def naive(top: GroupTop, *last: exp.Expr) -> exp.Expr:
        place = in_place(top, *last)
        if last:
            terms = place.this.args["order"].expressions
            terms[-2], terms[-1] = terms[-1], terms[-2]
        return place

    patch.setattr(group_tops, "_in_place", naive)


def a_rank_of_k_ends_a_group(patch: pytest.MonkeyPatch) -> None:
    """A group has all of its first rows by RANK only if one has the rank k, which rows that tie may leave out."""
    patch.setattr(group_tops, "_by_rows", lambda rank: rank)


def last_rows_by_row_key(patch: pytest.MonkeyPatch) -> None:
    """Of the rows that tie with the last one of a group those with smaller keys are known to be first."""
    patch.setattr(GroupTop, "has_ties", property(lambda top: False))


def replaced_rows_of_a_group_stay(patch: pytest.MonkeyPatch) -> None:
    """The stored rows that a change replaces are still among the first."""
    patch.setattr(group_tops, "_staying", lambda top, kept, _: group_tops._rows_below(top, kept))


def rows_that_enter_move_an_offset(patch: pytest.MonkeyPatch) -> None:
    """Rows that leave from before an OFFSET, and go nowhere, move nothing."""
    changed = limits._rows_of_change

    def naive(*given: object) -> exp.Select:
        entering = exp.GT(this=column("_sml_weight"), expression=_zero())
        return changed(*given).where(entering)  # type: ignore[arg-type]

    patch.setattr(limits, "_rows_of_change", naive)


def first_rows_with_nulls_elsewhere(patch: pytest.MonkeyPatch) -> None:
    """NULL has the same end in every order."""
    in_place = rows.in_place

    def naive(limit: TopK, *last: exp.Expr) -> exp.Expr:
        return in_place(replace(limit, order=tuple(replace(term, is_null_first=False) for term in limit.order)), *last)

    for module in (rows, limits):
        patch.setattr(module, "in_place", naive)


def first_rows_tied(patch: pytest.MonkeyPatch) -> None:
    """Another order of tied rows where the table goes on than where it is built."""
    first_rows = limits.first_rows

    def naive(limit: TopK, *given: object) -> exp.Select:
        query = first_rows(limit, *given)  # type: ignore[arg-type]
        for order in query.find_all(exp.Order):
            order.expressions[len(limit.order)].set("desc", True)
        return query

    patch.setattr(limits, "first_rows", naive)


def _zero() -> exp.Expr:
    return exp.Literal.number(0)
