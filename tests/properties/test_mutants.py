"""Naive rules, patched into the shipped compiler: the check of the property tests catches each of them.

Every case first passes on the compiler as it is, so that what is caught is the rule and not the case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from sqlglot import exp

from sqlmesh_like.analyze.relation import Relation
from sqlmesh_like.delta import aggregates, changes, keys, partitions, rows
from sqlmesh_like.delta.keys import column, text
from sqlmesh_like.delta.program import TARGET, DeltaProgram, Step, relation
from sqlmesh_like.delta.states import State
from sqlmesh_like.engine.duck import Rows, Snapshot
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import ROWS
from tests.properties.lake import T, U, check, compiled, schema, states

Patch = Callable[[pytest.MonkeyPatch], None]
COLUMNS = schema(p="string", q="string", v="int")


@dataclass(frozen=True)
class Case:
    """A model and the states of its input that a naive rule gets wrong."""

    rule: str
    patch: Patch
    sql: str
    path: list[Snapshot]
    partition_by: Sequence[str] = ()


def both(left: Rows, right: Rows) -> list[Snapshot]:
    """One state of the two tables."""
    return [{T: left, U: right}]


def _visible_sum_only(patch: pytest.MonkeyPatch) -> None:
    """A group lives while its total is not 0."""
    signed = aggregates._signed

    def naive(aggregate: aggregates.Aggregate) -> exp.Select:
        query = signed(aggregate)
        for where in query.find_all(exp.Where):
            for found in where.find_all(exp.Column):
                if found.name == ROWS:
                    where.set("this", exp.NEQ(this=column("_sml_sum_0"), expression=exp.Literal.number(0)))
                    break
        return query

    patch.setattr(aggregates, "_signed", naive)


def _sum_of_nothing_is_zero(patch: pytest.MonkeyPatch) -> None:
    from sqlmesh_like.delta import states as module

    patch.setattr(module, "_unless_empty", lambda count, expression: expression)


def _after_images_only(patch: pytest.MonkeyPatch) -> None:
    net = rows.net

    def naive(step: str, columns: Sequence[object]) -> exp.Select:
        query = net(step, columns)  # type: ignore[arg-type]
        return query.where(exp.GT(this=column("_sml_weight"), expression=exp.Literal.number(0)))

    patch.setattr(rows, "net", naive)
    patch.setattr(changes, "net", naive)
    patch.setattr(aggregates, "net", naive)


def _partitions_of_after_images_only(patch: pytest.MonkeyPatch) -> None:
    touched = partitions._touched

    def naive(*arguments: object) -> exp.Select:
        query = touched(*arguments)  # type: ignore[arg-type]
        inner = next(s for s in query.find_all(exp.Select) if isinstance(s.args["from_"].this, exp.Table))
        inner.where(exp.GT(this=column("_sml_weight"), expression=exp.Literal.number(0)), copy=False)
        return query

    patch.setattr(partitions, "_touched", naive)


def _partitions_compared_unsafely(patch: pytest.MonkeyPatch) -> None:
    is_affected = partitions._is_affected

    def naive(names: tuple[str, ...]) -> exp.Expr:
        return is_affected(names).transform(
            lambda node: (
                exp.EQ(this=node.this, expression=node.expression) if isinstance(node, exp.NullSafeEQ) else node
            )
        )

    patch.setattr(partitions, "_is_affected", naive)


def _extrema_never_recomputed(patch: pytest.MonkeyPatch) -> None:
    stale = aggregates._stale

    def naive(states_: tuple[State, ...]) -> exp.Select:
        return stale(tuple(state for state in states_ if state.kind not in ("min", "max")))

    patch.setattr(aggregates, "_stale", naive)


def _strictly_beaten_extrema_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exp, "LTE", exp.LT)
    patch.setattr(exp, "GTE", exp.GT)


def _null_keys_as_empty_text(patch: pytest.MonkeyPatch) -> None:
    def naive(value: exp.Expr) -> exp.Expr:
        return exp.Coalesce(this=text(value), expressions=[exp.Literal.string("")])

    patch.setattr(keys, "_encode_one", naive)


def _keys_joined_without_length(patch: pytest.MonkeyPatch) -> None:
    def naive(values: Sequence[exp.Expr]) -> exp.Expr:
        return keys._concat([exp.Coalesce(this=text(v), expressions=[exp.Literal.string("N")]) for v in values])

    patch.setattr(aggregates, "encode", naive)


def _recomputed_without_a_stale_group(patch: pytest.MonkeyPatch) -> None:
    """An aggregate without GROUP BY over no rows is a row: merged twice where nothing was stale."""
    recomputed = aggregates._recomputed

    def naive(aggregate: aggregates.Aggregate) -> exp.Select:
        query = recomputed(aggregate)
        query.set("where", None)
        return query

    patch.setattr(aggregates, "_recomputed", naive)


def _prune_by_another_column(patch: pytest.MonkeyPatch) -> None:
    delta = aggregates.delta

    def naive(aggregate: aggregates.Aggregate) -> DeltaProgram:
        return DeltaProgram(tuple(_with_wrong_prune(step) for step in delta(aggregate).steps))

    from sqlmesh_like.delta import compile as module

    patch.setattr(module.aggregates, "delta", naive)


def _with_wrong_prune(step: Step) -> Step:
    if step.prune is None or step.name != "recomputed":
        return step
    wrong = {name: tuple(("q", key) for _, key in pairs) for name, pairs in step.prune.columns.items()}
    return replace(step, prune=replace(step.prune, columns=wrong))


def _joined_with_the_new_state_of_both(patch: pytest.MonkeyPatch) -> None:
    """Pairs of two changed rows count twice."""
    patch.setattr(rows, "PREVIOUS", rows.CURRENT)


def _affected_keys_of_after_images_only(patch: pytest.MonkeyPatch) -> None:
    affected = changes.Changes._affected

    def naive(self: changes.Changes, source: Relation) -> str:
        first = len(self.steps)
        step = affected(self, source)
        for number, made in enumerate(self.steps[first:], first):
            if made.name.startswith("netted_"):
                positive = made.query.having(exp.GT(this=exp.Sum(this=column("_sml_weight")), expression=_zero()))
                self.steps[number] = replace(made, query=positive)
        return step

    patch.setattr(changes.Changes, "_affected", naive)


def _affected_keys_compared_unsafely(patch: pytest.MonkeyPatch) -> None:
    is_affected = changes.is_affected

    def naive(expressions: Sequence[exp.Expr], affected: str) -> exp.Expr:
        return is_affected(expressions, affected).transform(
            lambda node: (
                exp.EQ(this=node.this, expression=node.expression) if isinstance(node, exp.NullSafeEQ) else node
            )
        )

    patch.setattr(changes, "is_affected", naive)


def _affected_keys_of_one_side(side: int) -> Patch:
    def patch_one(patch: pytest.MonkeyPatch) -> None:
        affected, sides = changes.Changes._affected, changes._sides

        def naive(self: changes.Changes, source: Relation) -> str:
            with pytest.MonkeyPatch.context() as inner:
                inner.setattr(changes, "_sides", lambda node: sides(node)[side : side + 1])
                return affected(self, source)

        patch.setattr(changes.Changes, "_affected", naive)

    return patch_one


def _having_before_affected_keys(patch: pytest.MonkeyPatch) -> None:
    """Only groups that HAVING let through before are known: one that it drops never comes back."""
    affected = changes.Changes._affected

    def naive(self: changes.Changes, source: Relation) -> str:
        known = exp.select(column("_sml_key")).from_(relation("target", TARGET)).subquery()
        every = exp.select("*").from_(affected(self, source))
        passed = every.where(exp.In(this=keys.encode([column("_sml_p0")]), query=known))
        return self.step("passed", passed)

    patch.setattr(changes.Changes, "_affected", naive)


def _zero() -> exp.Expr:
    return exp.Literal.number(0)


_ANTI = "select p, v from ods.t where not exists (select 1 from ods.u where u.p = t.p)"
_FULL = "select t.v as x, u.v as y from ods.t full join ods.u on t.p = u.p"
_MATCH = both({"1": ("x", "", 1)}, {"1": ("x", "", 2)})
_SUM = "select p, sum(v) as total from ods.t group by p"
_DISTINCT = "select p, count(distinct v) as total from ods.t group by p"
_WINDOW = "select p, v, rank() over (partition by p order by v) as place from ods.t"
_MIN = "select p, min(v) as low, max(v) as high from ods.t group by p"
CASES = (
    Case("a group of total 0 is dead", _visible_sum_only, _SUM, states({"1": ("x", "", 1)}, {"2": ("x", "", -1)})),
    Case("the sum of nothing is 0", _sum_of_nothing_is_zero, _SUM, states({"1": ("x", "", 1)}, {"1": ("x", "", None)})),
    Case("after-images only", _after_images_only, _SUM, states({"1": ("x", "", 1)}, {"1": ("x", "", 2)})),
    Case("after-images only, rows", _after_images_only, "select p, v from ods.t where v > 0",
         states({"1": ("x", "", 1)}, {"1": ("x", "", 0)})),
    Case("partitions of after-images only", _partitions_of_after_images_only, _DISTINCT,
         states({"1": ("x", "", 1), "2": ("x", "", 2)}, {"1": ("y", "", 1)}), ["p"]),
    Case("window keys of after-images only", _partitions_of_after_images_only, _WINDOW,
         states({"1": ("x", "", 1), "2": ("x", "", 2)}, {"1": ("y", "", 1)}), ["p"]),
    Case("NULL-unsafe partitions", _partitions_compared_unsafely, _DISTINCT,
         states({"1": (None, "", 1)}, {"2": (None, "", 2)}), ["p"]),
    Case("extrema never recomputed", _extrema_never_recomputed, _MIN,
         states({"1": ("x", "", 1), "2": ("x", "", 2)}, {"1": None})),
    Case("an equal retracted extremum is no loss", _strictly_beaten_extrema_only, _MIN,
         states({"1": ("x", "", 1), "2": ("x", "", 2)}, {"2": None})),
    Case("NULL and empty text are one key", _null_keys_as_empty_text, _SUM,
         states({"1": (None, "", 1), "2": ("", "", 2)}, {"3": ("", "", 1)})),
    Case("keys joined without length", _keys_joined_without_length,
         "select p, q, count(*) as total from ods.t group by p, q",
         states({"1": ("a", "b", 1), "2": ("ab", "", 2)}, {"1": None})),
    Case("a scalar aggregate is merged twice", _recomputed_without_a_stale_group, "select sum(v) as total from ods.t",
         states({"1": ("x", "", 1)}, {"2": ("x", "", 1)})),
    Case("the new state in both terms of a join", _joined_with_the_new_state_of_both,
         "select t.v as x, u.v as y from ods.t join ods.u on t.p = u.p", [*both({}, {}), *_MATCH]),
    Case("a join's aggregate counts twice", _joined_with_the_new_state_of_both,
         "select t.p, sum(u.v) as total from ods.t join ods.u on t.p = u.p group by t.p", [*both({}, {}), *_MATCH]),
    Case("affected keys of after-images only", _affected_keys_of_after_images_only, _DISTINCT,
         states({"1": ("x", "", 1), "2": ("x", "", 2)}, {"1": ("y", "", 1)})),
    Case("affected join keys of after-images only", _affected_keys_of_after_images_only, _ANTI,
         [*_MATCH, *both({"1": ("x", "", 1)}, {"1": ("y", "", 2)})]),
    Case("NULL-unsafe affected keys", _affected_keys_compared_unsafely, _DISTINCT,
         states({"1": (None, "", 1)}, {"2": (None, "", 2)})),
    Case("an anti join affected from the left only", _affected_keys_of_one_side(0), _ANTI,
         [*_MATCH, *both({"1": ("x", "", 1)}, {})]),
    Case("a full join affected from the left only", _affected_keys_of_one_side(0), _FULL,
         [*_MATCH, *both({"1": ("x", "", 1)}, {})]),
    Case("a full join affected from the right only", _affected_keys_of_one_side(1), _FULL,
         [*_MATCH, *both({}, {"1": ("x", "", 2)})]),
    Case("HAVING before affected keys", _having_before_affected_keys,
         "select p, sum(v) as total from ods.t group by p having sum(v) > 0",
         states({"1": ("x", "", -1)}, {"2": ("x", "", 2)})),
    Case("a prune by another column", _prune_by_another_column, _MIN,
         states({"1": ("x", "y", 1), "2": ("x", "z", 2)}, {"1": None})),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_the_compiler_passes_what_a_naive_rule_fails(case: Case) -> None:
    assert check(compiled(case.sql, COLUMNS, case.partition_by), COLUMNS, case.path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_naive_rule_is_caught(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.patch(monkeypatch)
    with pytest.raises((AssertionError, NodeError), match=r"^(rows|state) after|repeats"):
        check(compiled(case.sql, COLUMNS, case.partition_by), COLUMNS, case.path)
