"""Functions that are NULL where one of their arguments is. Owns that rule of Spark's."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from sqlmesh_like.cdc.in_process.values import Value

Function = Callable[..., Value]


def strict(function: Function) -> Function:
    """NULL where an argument is."""

    @wraps(function)
    def called(*arguments: Value) -> Value:
        return None if None in arguments else function(*arguments)

    return called
