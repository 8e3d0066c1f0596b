"""What a call of a function of the project must be like, and what such a function may be called."""

from __future__ import annotations

from sqlglot import TokenType, exp

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import Location, ProjectError, SqlError
from sqlmesh_like.project.functions.declarations import FunctionFile
from sqlmesh_like.render.functions.syntax import Call

_AROUND: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Table, "it is not a table"),
    (exp.Lateral, "it is not a table"),
    (exp.Window, "OVER is for aggregates and functions of windows"),
    (exp.Filter, "FILTER is for aggregates"),
    (exp.WithinGroup, "WITHIN GROUP is for aggregates"),
    (exp.IgnoreNulls, "IGNORE NULLS is for aggregates and functions of windows"),
    (exp.RespectNulls, "RESPECT NULLS is for aggregates and functions of windows"),
)
_ARGUMENTS: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Distinct, "DISTINCT is for aggregates"),
    (exp.Star, "give one value for each argument"),
    (exp.Lambda, "a lambda is not a value"),
    (exp.Kwarg, "give the arguments by position"),
    (exp.PropertyEQ, "give the arguments by position"),
    (exp.Alias, "leave the alias out"),
    (exp.Select, "put brackets around the query"),
)


def check_call(call: Call, function: FunctionFile, place: Location) -> None:
    """Raise SqlError for a call that is not one of a function of one row with the arguments that it has."""
    if function.unsupported is not None:
        message, hint = function.unsupported
        raise SqlError(message, location=place, hint=f"{hint}; it is declared at {function.declared_at}")
    name, around = function.name, call.node.parent
    for kind, hint in _AROUND:
        if isinstance(around, kind) and around.this is call.node:
            raise SqlError(f"{name!r} is a function of one row", location=place, hint=hint)
    given = call.node.expressions
    for argument in given:
        for kind, hint in _ARGUMENTS:
            if isinstance(argument, kind) or (kind is exp.Star and argument.is_star):
                raise SqlError(f"this is not an argument of {name!r}", location=place, hint=hint)
    least, most = function.required, len(function.arguments)
    if not least <= len(given) <= most:
        count = str(most) if least == most else f"{least} to {most}"
        signature = ", ".join(f"{argument.name} {argument.type}" for argument in function.arguments)
        message = f"{name!r} has {count} argument{'s' * (count != '1')}, not {len(given)}"
        raise SqlError(message, location=place, hint=f"{name}({signature}), declared at {function.declared_at}")
    if len(given) != len(call.arguments):  # a comma in a type, as in `x::map<string, int>`
        raise SqlError(f"the arguments of {name!r} cannot be told apart", location=place, hint="put each in brackets")


def check_function_name(function: FunctionFile) -> None:
    """Raise ProjectError for a name that SQL has a syntax for. `plan` refuses those of Spark's functions."""
    tokens = SPARK.tokenize(function.name)
    if len(tokens) != 1 or tokens[0].token_type != TokenType.VAR:
        hint = "it is a word of SQL: choose another name"
        raise ProjectError(f"{function.name!r} cannot be a function", location=function.declared_at, hint=hint)
