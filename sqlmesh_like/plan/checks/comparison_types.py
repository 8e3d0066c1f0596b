"""Types that are combined in joins and unions. Owns which Spark refuses (an error) and which it converts (a warning).

Source: `TypeCoercion` of Spark 3.5 without ANSI. Reports only if both types are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Join, columns, walk
from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.expressions.types import INTEGERS, infer
from sqlmesh_like.analyze.query_analysis import QueryFacts, locate, parse
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.checks.lint import join_type_mismatches, set_operation_type_mismatches, with_types
from sqlmesh_like.plan.checks.type_warning import TypeWarning
from sqlmesh_like.render.rendered import InputRef, RenderedModel


def type_warnings(facts: QueryFacts, schemas: Callable[[InputRef], Schema | None]) -> Iterator[TypeWarning]:
    """Yield the type warnings of a query.

    `schemas` returns the columns of an input. A query in the algebra is typed already, and the sides of its unions have
    the same types.
    """
    if facts.relation is None or not facts.inputs:  # what is written out has types without a schema
        yield from _as_written(facts.model, schemas)
        return
    for node in walk(facts.relation):
        if isinstance(node, Join):
            yield from _of_join(node, facts)


def _as_written(model: RenderedModel, schemas: Callable[[InputRef], Schema | None]) -> Iterator[TypeWarning]:
    tree = parse(model)
    if tree.find(exp.Join, exp.SetOperation) is None:
        return
    typed = with_types(tree, model, {ref.unique_id: schemas(ref) for ref in model.inputs})
    for rule, find, never in (
        ("LNT001", join_type_mismatches, NEVER_EQUAL),
        ("LNT002", set_operation_type_mismatches, _NEVER_ONE),
    ):
        for met in find(typed) if typed is not None else ():
            yield TypeWarning(rule, met.message, locate(model, offset_of(met.node)), met.kinds in never)


def _of_join(join: Join, facts: QueryFacts) -> Iterator[TypeWarning]:
    known = {c.name.lower(): c.type for side in (join.left, join.right) for c in columns(side)}
    for equal in join.condition.find_all(exp.EQ, exp.NullSafeEQ) if join.condition is not None else ():
        left, right = type_family(infer(equal.this, known)), type_family(infer(equal.expression, known))
        if left and right and left != right:
            offset = offset_of(equal)
            place = locate(facts.model, offset if offset is not None else join.offset)
            sides = (
                f"{one.sql(SPARK, comments=False)} is {infer(one, known)}" for one in (equal.this, equal.expression)
            )
            message = f"this join compares {left} with {right}: {', '.join(sides)}"
            yield TypeWarning("LNT001", message, place, {left, right} in NEVER_EQUAL)


def type_family(type_: str | None) -> str | None:
    """Return the group of types within which Spark converts silently; None for other types.

    >>> type_family("bigint"), type_family("decimal(3,1)"), type_family("date"), type_family("array<int>")
    ('a number', 'a number', 'a time', None)
    """
    if type_ is None:
        return None
    if type_ in (*INTEGERS, "float", "double") or type_.startswith("decimal"):
        return "a number"
    return {"string": "text", "date": "a time", "timestamp": "a time", "boolean": "a boolean"}.get(type_)


NEVER_EQUAL = (frozenset({"a number", "a time"}), frozenset({"a boolean", "a time"}))
_NEVER_ONE = (*NEVER_EQUAL, frozenset({"a number", "a boolean"}), frozenset({"text", "a boolean"}))
