"""Functions of elements: TRANSFORM, FILTER, EXISTS, FORALL and AGGREGATE of an array, which take a lambda.

Spark calls it for NULL elements as well, and so does DuckDB. EXISTS and FORALL have three values: they are NULL where
the lambda is NULL of an element and no other one decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlmesh_like.duckdb.exact.arrays import element_of_array
from sqlmesh_like.duckdb.exact.form import Form
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only
from sqlmesh_like.duckdb.exact.values import NULL, Types, cast_of, replace_by_cast


def _mapped(node: exp.Transform, types: Types) -> str:
    function, element = _function(node, types)
    result = types.within(function.expressions[0].name, element).of(function.this)
    if result == NULL:
        raise Unproven("TRANSFORM to NULL")
    return replace_by_cast(node, f"array<{result}>")


def _filtered(node: exp.ArrayFilter, types: Types) -> str:
    function, element = _function(node, types)
    types.within(function.expressions[0].name, element).require_condition(function.this)
    return f"array<{element}>"


def any_element(node: exp.Exists, types: Types) -> str:
    """EXISTS of an array."""
    require_only(node, "this", "expression")
    return _decided(node, node.this, node.expression, types, is_any=True)


def every_element(node: exp.Anonymous, types: Types) -> str:
    """FORALL."""
    if len(node.expressions) != 2:
        raise Unproven("FORALL of other than an array and a lambda")
    array, function = node.expressions
    return _decided(node, array, function, types, is_any=False)


def _decided(node: exp.Expr, array: exp.Expr, function: exp.Expr, types: Types, *, is_any: bool) -> str:
    (variable,) = _variables(function, 1)
    types.within(variable.name, element_of_array(array, types)).require_condition(function.this)
    array, holds = _argument(node, 0), _argument(node, 1).this

    def has(condition: exp.Expr) -> exp.Expr:
        found = exp.ArrayFilter(this=array.copy(), expression=exp.Lambda(this=condition, expressions=[variable.copy()]))
        count = exp.Anonymous(this="len", expressions=[found])
        return exp.GT(this=count, expression=exp.Literal.number(0))

    decisive = exp.Paren(this=holds.copy()) if is_any else exp.Not(this=exp.Paren(this=holds.copy()))
    unknown = exp.Is(this=exp.Paren(this=holds.copy()), expression=exp.null())
    of_array = (
        exp.Case()
        .when(exp.Is(this=array.copy(), expression=exp.null()), exp.null())
        .when(has(decisive), exp.Boolean(this=is_any))
        .when(has(unknown), exp.null())
        .else_(exp.Boolean(this=not is_any))
    )
    node.replace(exp.Paren(this=cast_of(of_array, "boolean")))
    return "boolean"


def _argument(node: exp.Expr, number: int) -> exp.Expr:
    """An argument as it is after its proof, which may have replaced it."""
    own: Sequence[exp.Expr] = node.expressions or (node.this, node.expression)
    return own[number]


def _reduced(node: exp.Reduce, types: Types) -> str:
    """AGGREGATE, whose lambda returns the type of its start."""
    require_only(node, "this", "initial", "merge", "finish")
    result = types.of(node.args["initial"])
    if result == NULL:
        raise Unproven("AGGREGATE from NULL")
    merge, finish = node.args["merge"], node.args.get("finish")
    total, element = _variables(merge, 2)
    inner = types.within(total.name, result).within(element.name, element_of_array(node.this, types))
    if (merged := inner.of(merge.this)) != result:
        raise Unproven(f"AGGREGATE from {result} to {merged}")
    arguments = [node.this.copy(), merge.copy(), cast_of(node.args["initial"].copy(), result)]
    made: exp.Expr = cast_of(exp.Anonymous(this="list_reduce", expressions=arguments), result)
    if finish is not None:
        (last,) = _variables(finish, 1)
        result = types.within(last.name, result).of(finish.this)
        if result == NULL:
            raise Unproven("AGGREGATE to NULL")
        mapped = exp.Transform(this=exp.Array(expressions=[made]), expression=finish.copy())
        made = cast_of(exp.Anonymous(this="list_extract", expressions=[mapped, exp.Literal.number(1)]), result)
    node.replace(made)
    return result


def _function(node: exp.Expr, types: Types) -> tuple[exp.Lambda, str]:
    """The function of one argument, and the type of the elements."""
    require_only(node, "this", "expression")
    _variables(node.expression, 1)
    return node.expression, element_of_array(node.this, types)


def _variables(function: exp.Expr, count: int) -> Sequence[exp.Expr]:
    """The names of a lambda's arguments."""
    if not isinstance(function, exp.Lambda) or len(function.expressions) != count:
        raise Unproven(f"a lambda of other than {count} {'value' if count == 1 else 'values'}")
    names = {variable.name.lower() for variable in function.expressions}
    if len(names) < count:
        raise Unproven("a lambda with two values of one name")
    for column in function.this.find_all(exp.Column):
        if column.name.lower() in names:
            raise Unproven(f"the name {column.name.lower()}, of a column or of an element")
    return function.expressions


def _variable(node: exp.Identifier, types: Types) -> str:
    return types.of_variable(node.name)


_OF_TYPES = "of other types it is another value, which only types tell"

FORMS: dict[type[exp.Expr], Form] = {
    exp.Transform: Form(_mapped),
    exp.ArrayFilter: Form(_filtered, is_listed=False, why=_OF_TYPES),
    exp.Reduce: Form(_reduced, is_listed=False, why=_OF_TYPES),
    exp.Identifier: Form(_variable, is_listed=False, why="it is a variable of a function"),
}
