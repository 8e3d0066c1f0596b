"""Arguments that a function's expression has several times: each must have one value, however often it is computed."""

from __future__ import annotations

from collections.abc import Iterable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.analyze.expressions.functions import classify_function
from sqlmesh_like.analyze.functions.aggregates import aggregate_of
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import Location, SqlError
from sqlmesh_like.render.rendered import RepeatedArgument


def refuse_uncertain(arguments: Iterable[RepeatedArgument], path: str) -> None:
    """Raise SqlError for an argument that may have another value each time: of chance, of a subquery, of other code.

    >>> refuse_uncertain([RepeatedArgument("double", "a + 1", 1, 8)], "models/m.sql")
    >>> refuse_uncertain([RepeatedArgument("double", "rand()", 1, 8)], "models/m.sql")
    Traceback (most recent call last):
    sqlmesh_like.errors.SqlError: models/m.sql:1:8: rand() may have several values here: 'double' uses it several times
      compute it in a CTE or a model, and give the function its column
    """
    for argument in arguments:
        try:
            tree = sqlglot.parse_one(argument.sql, dialect=SPARK)
        except (SqlglotError, RecursionError):
            continue  # the query cannot be parsed either
        if (cause := next((node for node in tree.walk() if _is_uncertain(node)), None)) is not None:
            what = "a subquery" if isinstance(cause, exp.Query | exp.Subquery) else cause.sql(SPARK).lower()
            message = f"{what} may have several values here: {argument.function!r} uses it several times"
            hint = "compute it in a CTE or a model, and give the function its column"
            raise SqlError(message, location=Location(path, argument.line, argument.column), hint=hint)


def _is_uncertain(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query | exp.Subquery):
        return True
    verdict = classify_function(node, in_window=True)
    if verdict == "random":
        return True
    is_call = isinstance(node, exp.Func) and aggregate_of(node) is None
    return verdict == "unknown" and is_call
