"""Types that operators, casts and functions do not accept. Owns telling what Spark refuses only after it has started.

Reports only what the types of all operands prove. Joins of two kinds of types are checked by `comparison_types`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

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
from sqlmesh_like.analyze.expressions.signatures import Refusal
from sqlmesh_like.analyze.expressions.type_names import normalize
from sqlmesh_like.analyze.query_analysis import QueryFacts, locate, parse
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import SqlError
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.checks.comparison_types import type_family
from sqlmesh_like.plan.checks.lint import with_types
from sqlmesh_like.render.rendered import InputRef

_COMPARED = (exp.EQ, exp.NullSafeEQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)


def refuse_operands(facts: QueryFacts, schemas: Callable[[InputRef], Schema | None]) -> None:
    """Raise SqlError at the first node over types that it does not accept. `schemas`: the columns of an input."""
    refused = _as_written(facts, schemas) if facts.relation is None else _in_algebra(facts.relation)
    for node, types, refusal in refused:
        written = node.sql(SPARK, comments=False).replace("`", "")
        message = f"{refusal.message}: {written}" if refusal.message not in written else refusal.message
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
        outcome = types.outcome(node)
        if isinstance(outcome, Refusal) and not (is_join and isinstance(node, exp.EQ | exp.NullSafeEQ)):
            yield node, types, outcome


def _not_boolean(conditions: list[exp.Expr], types: ExpressionTypes) -> Refused:
    for condition in conditions:
        type_ = types.of(condition)
        if type_ not in (None, "boolean", "void"):
            yield condition, types, Refusal(f"a condition is a boolean, not {type_}")


def _as_written(facts: QueryFacts, schemas: Callable[[InputRef], Schema | None]) -> Refused:
    """Of a query that is not in the algebra."""
    tree = parse(facts.model)
    typed = with_types(tree, facts.model, {ref.unique_id: schemas(ref) for ref in facts.model.inputs})
    if typed is None:
        return
    types = _OfScopes(typed).types
    for node in typed.walk():
        outcome = types.outcome(node)
        in_join = isinstance(node, exp.EQ | exp.NullSafeEQ) and node.find_ancestor(exp.Join) is not None
        if isinstance(outcome, Refusal) and not in_join:
            yield node, types, outcome
    for clause in typed.find_all(exp.Where, exp.Having):
        yield from _not_boolean([clause.this], types)


class _OfScopes:
    """Types in a query with qualified names: a column has that of its table, or of the item of the query below."""

    def __init__(self, typed: exp.Expr) -> None:
        self._scopes = {id(column): scope for scope in traverse_scope(typed) for column in scope.columns}
        self.types = ExpressionTypes(self._column)

    def _column(self, column: exp.Column) -> str | None:
        scope = self._scopes.get(id(column))
        source = scope.sources.get(column.table) if scope is not None else None
        if isinstance(source, exp.Table):
            return _declared(column)
        if not isinstance(source, Scope) or not isinstance(source.expression, exp.Select):
            return None
        items = [item for item in source.expression.selects if item.alias_or_name.lower() == column.name.lower()]
        return self.types.of(items[0].unalias()) if len(items) == 1 else None


def _declared(column: exp.Column) -> str | None:
    """The type that the schema of a table gives its column."""
    type_ = column.type
    return None if type_ is None or type_.is_type(exp.DataType.Type.UNKNOWN) else normalize(type_.sql(SPARK))


def _hint(node: exp.Expr, types: ExpressionTypes) -> str:
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
