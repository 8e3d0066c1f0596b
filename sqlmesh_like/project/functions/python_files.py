"""Files of functions in Python, read and never run. Owns what such a file must have, and which types it may take.

As dbt 1.11 has them: `entry_point` is the function in the file that is called with the arguments of one row; NULL is
None. Source: https://docs.getdbt.com/docs/build/udfs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from sqlmesh_like.errors import Location, ProjectError, nearest
from sqlmesh_like.project.functions.declarations import FunctionArgument

_TYPES = "boolean, tinyint, smallint, int, bigint, double, decimal(p,s), string, binary and date"
_TYPE = re.compile(
    r"boolean|tinyint|byte|smallint|short|int|integer|bigint|long|double|string|binary|date"
    r"|(?:decimal|dec|numeric)(?:\(\d+(?:,\d+)?\))?"
)


def require_python_type(type_: str, what: str, place: Location) -> None:
    """Raise ProjectError for a type whose values are not certainly the same in Python and in Spark."""
    if not _TYPE.fullmatch(re.sub(r"\s", "", type_.lower())):
        hint = f"functions in Python take and return {_TYPES}: cast in the model, a timestamp to a string, say"
        raise ProjectError(f"{what} has type {type_}, which functions in Python do not have", location=place, hint=hint)


def require_entry_point(
    source: str, path: str, entry_point: str, arguments: Sequence[FunctionArgument], place: Location
) -> None:
    """Raise ProjectError unless a file defines the function, with as many arguments as are declared.

    `place` is where the entry point is declared.
    """
    try:
        tree = ast.parse(source, path)
    except (SyntaxError, ValueError, RecursionError) as error:
        line, column = (error.lineno, error.offset) if isinstance(error, SyntaxError) else (1, 1)
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ProjectError(f"this is not Python: {said}", location=Location(path, line, column)) from None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    entry = functions.get(entry_point)
    if entry is None:
        listed = f"it defines {', '.join(functions)}" if functions else "it defines no function"
        hint = nearest(entry_point, list(functions)) or listed
        raise ProjectError(f"{path} has no function {entry_point!r}", location=place, hint=hint)
    given = entry.args
    least = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    most = len(given.posonlyargs) + len(given.args) if given.vararg is None else len(arguments)
    needs_names = any(default is None for default in given.kw_defaults)
    if isinstance(entry, ast.AsyncFunctionDef) or needs_names or not least <= len(arguments) <= most:
        message = f"{entry_point!r} is not a function of {len(arguments)} argument{'s' * (len(arguments) != 1)}"
        names = ", ".join(argument.name for argument in arguments)
        hint = f"write  def {entry_point}({names}):  as `arguments` declares it"
        raise ProjectError(message, location=Location(path, entry.lineno, entry.col_offset + 1), hint=hint)
