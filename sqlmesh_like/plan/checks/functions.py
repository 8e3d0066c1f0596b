"""Functions of the project before any query is planned: their names and what their expressions compute.

A function is analyzed as a query over a table of its arguments, so that the errors in it are those of a model.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.expressions.clock import is_clock_call
from sqlmesh_like.analyze.expressions.functions import classify_function
from sqlmesh_like.analyze.expressions.types import normalize
from sqlmesh_like.analyze.functions.aggregates import aggregate_of
from sqlmesh_like.analyze.functions.catalogue import all_functions, function_named
from sqlmesh_like.analyze.nesting import nesting_errors
from sqlmesh_like.analyze.query_analysis import analyze, locate, parse
from sqlmesh_like.errors import Location, ProjectError, SqlError
from sqlmesh_like.names import Column, TableName
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import InputRef, RenderedFunction, RenderedModel

_ARGUMENTS = TableName("", "arguments")


def check_functions(functions: Iterable[RenderedFunction]) -> None:
    """Raise ProjectError for the first function that hides one of Spark's, or whose result its arguments do not decide.

    A function that no rule knows is allowed: the models that use it are rebuilt, as if they called it themselves.
    """
    built_in = None
    for function in functions:
        built_in = built_in or {known.name for known in all_functions()}
        declared = function.function
        if declared.name.lower() in built_in:
            message = f"{declared.name!r} is a function of Spark: a query that calls it would mean that one"
            raise ProjectError(message, location=declared.declared_at, hint="rename the function and its file")
        if declared.python is None:
            _check_expression(function)


def _check_expression(function: RenderedFunction) -> None:
    declared = function.function
    arguments = InputRef(declared.unique_id, _ARGUMENTS, "source")
    query = RenderedModel(
        declared.unique_id, declared.name, declared.path, declared.raw_sql, function.query.compiled,
        ModelConfig(materialized="view"), TableName("", declared.name), (arguments,), function.query,
    )  # fmt: skip
    with nesting_errors(declared.path):
        tree = parse(query)
        for node in tree.walk():
            if (fault := _fault(node, function)) is not None:
                start = offset_of(node)
                place = locate(query, start) if start is not None else Location(declared.path, 1, 1)
                raise SqlError(f"function {declared.name!r} {fault[0]}", location=place, hint=fault[1])
        schema = tuple(Column(one.name, normalize(one.type)) for one in declared.arguments)
        analyze(query, {ref.unique_id: schema for ref in query.inputs}, {})


def _fault(node: exp.Expr, function: RenderedFunction) -> tuple[str, str] | None:
    """What a node of an expression does that none may do, and a hint."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    known = function_named(name)
    if aggregate_of(node) is not None or (known is not None and known.decided_by in ("group", "window")):
        return (
            "contains an aggregate or a function of windows",
            "an expression over the arguments of one row is allowed",
        )
    if is_clock_call(node) and function.function.volatility == "deterministic":
        return "reads the clock, but is declared deterministic", "write volatility: stable"
    if not is_clock_call(node) and classify_function(node) == "random":
        return "is not deterministic", "write this part into the model, where the plan says what follows from it"
    return None
