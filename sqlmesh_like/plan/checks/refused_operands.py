"""Types that operators, casts and functions do not accept. Owns telling what Spark refuses only after it has started.

Reports only what the types of all operands prove. Joins of two kinds of types are checked by `comparison_types`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Filter,
    Join,
    Relation,
    children,
    columns,
    expressions,
    walk,
)
from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.expressions.expression_types import ExpressionTypes
from sqlmesh_like.analyze.expressions.frames import refused_frame
from sqlmesh_like.analyze.query_analysis import QueryFacts, locate
from sqlmesh_like.analyze.spark_types.refusal import Refusal
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import SqlError
from sqlmesh_like.plan.checks.comparison_types import type_family
from sqlmesh_like.plan.checks.written_types import WrittenTypes

_COMPARED = (exp.EQ, exp.NullSafeEQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)


def refuse_operands(facts: QueryFacts, written: WrittenTypes | None) -> None:
    """Raise SqlError at the first node over types that it does not accept.

    `written` are the types of a query that is not in the algebra, if they are known.
    """
    if facts.relation is not None:
        refused = _in_algebra(facts.relation)
    else:
        refused = _as_written(written) if written is not None else iter(())
    for node, types, refusal in refused:
        message = f"{refusal.message}: {node.sql(SPARK, comments=False).replace('`', '')}"
        raise SqlError(message, location=locate(facts.model, offset_of(node)), hint=_hint(node, types))


Refused = Iterator[tuple[exp.Expr, ExpressionTypes, Refusal]]


def _in_algebra(relation: Relation) -> Refused:
    for node in walk(relation):
        known = {column.name.lower(): column.type for child in children(node) for column in columns(child)}
        if isinstance(node, Aggregate):
            known |= {named.name: named.type for named in node.keys} | {c.name: c.type for c in node.calls}
        types = _types_of(known)
        for expression in expressions(node):
            yield from _refusals(expression, types, is_join=isinstance(node, Join))
        if isinstance(node, Filter | Join):
            yield from _not_boolean(expressions(node), types)


def _types_of(known: Mapping[str, str | None]) -> ExpressionTypes:
    return ExpressionTypes(lambda column: known.get(column.name.lower()))


def _refusals(expression: exp.Expr, types: ExpressionTypes, *, is_join: bool) -> Refused:
    for node in expression.walk():
        outcome = refused_frame(node, types) if isinstance(node, exp.Window) else types.outcome(node)
        if isinstance(outcome, Refusal) and not (is_join and isinstance(node, exp.EQ | exp.NullSafeEQ)):
            yield node, types, outcome


def _not_boolean(conditions: list[exp.Expr], types: ExpressionTypes) -> Refused:
    for condition in conditions:
        type_ = types.of(condition)
        if type_ not in (None, "boolean", "void"):
            yield condition, types, Refusal(f"a condition is a boolean, not {type_}")


def _as_written(written: WrittenTypes) -> Refused:
    """Of a query that is not in the algebra."""
    types = written.types
    for node in written.tree.walk():
        outcome = refused_frame(node, types) if isinstance(node, exp.Window) else types.outcome(node)
        in_join = isinstance(node, exp.EQ | exp.NullSafeEQ) and node.find_ancestor(exp.Join) is not None
        if isinstance(outcome, Refusal) and not in_join:
            yield node, types, outcome
    for clause in written.tree.find_all(exp.Where, exp.Having):
        yield from _not_boolean([clause.this], types)
    yield from ((node, types, refusal) for node, refusal in written.incompatible_set_columns())


def _hint(node: exp.Expr, types: ExpressionTypes) -> str:
    if isinstance(node, exp.Window):
        return "dates take whole days, timestamps intervals, numbers numbers; or count rows: ROWS BETWEEN …"
    if isinstance(node, _COMPARED):
        return next(filter(None, map(_as_date, node.iter_expressions())), _NO_COMMON_TYPE)
    if isinstance(node, exp.Add | exp.Sub):
        sides = {types.of(node.this), types.of(node.expression)}
        if "timestamp" in sides and any(type_family(side) == "a number" for side in sides):
            return "add an interval: … + interval 1 hour"
        if sides <= {"date", "timestamp"}:
            return "of two times there is a difference only"
        if "date" in sides:
            return "a date takes whole days as int: cast(… as int)"
    if isinstance(node, exp.Cast):
        return "Spark has no such cast: convert it by a function, or through another type"
    return "cast it to a type that is accepted"


_NO_COMMON_TYPE = "cast one side: Spark has no common type for them"


def _as_date(operand: exp.Expr) -> str | None:
    """
    >>> _as_date(exp.Literal.number(20240101))
    "write it as date '2024-01-01'"
    """
    day = re.fullmatch(r"((?:19|20)\d\d)([01]\d)([0-3]\d)", operand.name) if isinstance(operand, exp.Literal) else None
    return None if day is None else f"write it as date '{day[1]}-{day[2]}-{day[3]}'"
