"""Which of Spark's functions a node calls. Owns what sqlglot's classes hide: names, and the order of arguments."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze.functions.aggregates import aggregate_of
from sqlmesh_like.analyze.functions.table import FUNCTIONS


@dataclass(frozen=True)
class FunctionCall:
    """A function of Spark by its name (lower case) and its arguments in Spark's order."""

    name: str
    arguments: tuple[exp.Expr, ...]


_BY_CLASS = {function.kind: function for function in FUNCTIONS.values() if function.kind is not None}
_OF_A_DATE = (exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear)
"""Classes whose argument sqlglot puts into TO_DATE."""


def call_of(node: exp.Expr) -> FunctionCall | None:
    """The function that a node calls; None for operators, casts and what has a rule of its own.

    >>> import sqlglot
    >>> call = call_of(sqlglot.parse_one("instr(a, 'x')", dialect="spark"))
    >>> call.name, [argument.sql() for argument in call.arguments]
    ('instr', ['a', "'x'"])
    """
    if isinstance(node, exp.Anonymous):
        return FunctionCall(node.name.lower(), tuple(node.expressions))
    if isinstance(node, exp.ConvertTimezone) and node.args.get("source_tz") is None:
        zone = node.args["target_tz"]  # from the session's zone
        return FunctionCall("convert_timezone", (zone, zone, node.args["timestamp"]))
    aggregate = aggregate_of(node)
    function = _BY_CLASS.get(type(node)) if aggregate is None else aggregate.functions[0]
    if function is None:
        return None
    arguments: list[exp.Expr] = []
    for part in function.parts:
        value = node.args.get(part)
        arguments += value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
    return FunctionCall(function.name, tuple(_author_argument(node, argument) for argument in arguments))


def _author_argument(node: exp.Expr, argument: exp.Expr) -> exp.Expr:
    """An argument without the conversion that sqlglot puts around it, which Spark may refuse where it is implicit."""
    is_added = isinstance(node, _OF_A_DATE) and isinstance(argument, exp.TsOrDsToDate)
    return argument.this if is_added and not argument.args.get("format") else argument
