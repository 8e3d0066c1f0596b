"""Types that operators do not accept. Owns what Spark refuses after it has started; reports only if both are known.

Joins of two kinds of types are checked by `comparison_types`. Source: Spark 3.5, `ResolveBinaryArithmetic`, the input
types of `DateAdd`, and `TypeCoercion` without ANSI.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Aggregate, Join, Relation, children, columns, expressions, walk
from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.expressions.types import infer, normalize
from sqlmesh_like.analyze.query_analysis import QueryFacts, locate, parse
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import SqlError
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.checks.comparison_types import NEVER_EQUAL, type_family
from sqlmesh_like.plan.checks.lint import with_types
from sqlmesh_like.render.rendered import InputRef

TypeOf = Callable[[exp.Expr], str | None]
_COMPARED = (exp.EQ, exp.NullSafeEQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_JUDGED = (*_COMPARED, exp.Between, exp.In, exp.Add, exp.Sub)
_PLAIN = (exp.Column, exp.Literal, exp.Cast)
_DAYS = ("tinyint", "smallint", "int")
"""Types that can be added to a date, unlike bigint: https://spark.apache.org/docs/3.5.0/sql-migration-guide.html."""


def refuse_operands(facts: QueryFacts, schemas: Callable[[InputRef], Schema | None]) -> None:
    """Raise SqlError at the first operator over types that it does not accept. `schemas`: the columns of an input."""
    operators = _as_written(facts, schemas) if facts.relation is None else _in_algebra(facts.relation)
    for node, type_of in operators:
        if fault := _fault(node, type_of):
            message, hint = fault
            written = f"{message}: {node.sql(SPARK, comments=False).replace('`', '')}"
            raise SqlError(written, location=locate(facts.model, offset_of(node)), hint=hint)


def _in_algebra(relation: Relation) -> Iterator[tuple[exp.Expr, TypeOf]]:
    for node in walk(relation):
        known = {column.name.lower(): column.type for child in children(node) for column in columns(child)}
        if isinstance(node, Aggregate):
            known |= {named.name: named.type for named in node.keys} | {c.name: c.type for c in node.calls}
        judged = _JUDGED if not isinstance(node, Join) else tuple(set(_JUDGED) - {exp.EQ, exp.NullSafeEQ})
        for expression in expressions(node):
            for operator in expression.find_all(*judged):
                yield operator, _inferred(known)


def _inferred(known: Mapping[str, str | None]) -> TypeOf:
    return lambda node: infer(node, known)


def _as_written(facts: QueryFacts, schemas: Callable[[InputRef], Schema | None]) -> Iterator[tuple[exp.Expr, TypeOf]]:
    """Operators of a query that is not in the algebra: only columns, literals and casts have types that are certain."""
    tree = parse(facts.model)
    if tree.find(*_JUDGED) is None:
        return
    typed = with_types(tree, facts.model, {ref.unique_id: schemas(ref) for ref in facts.model.inputs})
    for operator in typed.find_all(*_JUDGED) if typed is not None else ():
        if operator.find_ancestor(exp.Join) is None:
            yield operator, _annotated


def _annotated(node: exp.Expr) -> str | None:
    type_ = node.type if isinstance(node, _PLAIN) else None
    return None if type_ is None or type_.is_type(exp.DataType.Type.UNKNOWN) else normalize(type_.sql(SPARK))


def _fault(operator: exp.Expr, type_of: TypeOf) -> tuple[str, str] | None:
    """Message and hint."""
    left = type_of(operator.this)
    for operand in _operands(operator):
        right = type_of(operand)
        if left is None or right is None:
            continue
        if isinstance(operator, exp.Add | exp.Sub):
            if fault := _arithmetic_fault(operator, left, right):
                return fault
        elif {type_family(left), type_family(right)} in NEVER_EQUAL:
            return f"{left} is compared with {right}", _comparison_hint(operand)
    return None


def _operands(operator: exp.Expr) -> list[exp.Expr]:
    """All operands but the first."""
    match operator:
        case exp.Between():
            return [operator.args["low"], operator.args["high"]]
        case exp.In():
            return list(operator.expressions)
        case _:
            return [operator.expression]


def _arithmetic_fault(operator: exp.Expr, left: str, right: str) -> tuple[str, str] | None:
    sides = {left, right}
    message = f"{left} {'+' if isinstance(operator, exp.Add) else '-'} {right} is not possible"
    if "timestamp" in sides and any(type_family(side) == "a number" for side in sides):
        return message, "add an interval: … + interval 1 hour"
    if isinstance(operator, exp.Sub):
        is_wrong = left == "date" and type_family(right) in ("a number", "a boolean") and right not in _DAYS
    else:
        other = right if left == "date" else left
        is_wrong = "date" in sides and type_family(other) not in (None, "text") and other not in _DAYS
    is_of_times = sides <= {"date", "timestamp"}
    hint = (
        "of two times there is a difference only" if is_of_times else "a date takes whole days as int: cast(… as int)"
    )
    return (message, hint) if is_wrong else None


def _comparison_hint(operand: exp.Expr) -> str:
    """
    >>> _comparison_hint(exp.Literal.number(20240101))
    "write it as date '2024-01-01'"
    """
    day = re.fullmatch(r"((?:19|20)\d\d)([01]\d)([0-3]\d)", operand.name) if isinstance(operand, exp.Literal) else None
    if day is not None:
        return f"write it as date '{day[1]}-{day[2]}-{day[3]}'"
    return "cast one side: Spark has no common type for them"
