"""The text of a Python model → its calls of `dbt`. Owns reading Python by its syntax tree; none of its code is run.

As in dbt only calls that are spelt `dbt.ref(…)`, `dbt.source(…)`, `dbt.config(…)` and `dbt.config.get(…)` count, and
only with literal arguments: what a model reads is known before anything runs.
Source: https://docs.getdbt.com/docs/build/python-models
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from sqlmesh_like.errors import Location, ProjectError

DbtFunction = Literal["ref", "source", "config", "config.get", "config.meta_get"]
_FUNCTIONS: Mapping[str, DbtFunction] = {
    "dbt.ref": "ref",
    "dbt.source": "source",
    "dbt.config": "config",
    "dbt.config.get": "config.get",
    "dbt.config.meta_get": "config.meta_get",
}
_SIGNATURE = "def model(dbt, session):"
_TOO_DEEP = (RecursionError, MemoryError)
_NO_LITERAL = (ValueError, TypeError, SyntaxError, *_TOO_DEEP)
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


@dataclass(frozen=True)
class PythonCall:
    """One call with literal arguments. `places`: the location of each keyword."""

    asked: DbtFunction
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    location: Location
    places: Mapping[str, Location]


@dataclass(frozen=True)
class PythonText:
    """The calls of `dbt` in a Python model, in order, and where its function starts."""

    calls: tuple[PythonCall, ...]
    function: Location

    def of(self, *asked: DbtFunction) -> tuple[PythonCall, ...]:
        return tuple(call for call in self.calls if call.asked in asked)


def read_python(path: str, text: str) -> PythonText:
    """Read a Python model.

    Raises ProjectError with line and column if it is not Python, does not have exactly one `model(dbt, session)` that
    returns one value, or calls one of these functions with anything but literals.

    >>> [call.args for call in read_python("m.py", "def model(dbt, session):\\n    return dbt.ref('a')\\n").calls]
    [('a',)]
    """
    places = _Places(path, text.split("\n"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about escapes are given when the model runs
            tree = ast.parse(text, path)
    except SyntaxError as error:
        place = Location(path, error.lineno or 1, max(1, error.offset or 1))
        raise ProjectError(f"invalid Python: {error.msg}", location=place) from None
    except (ValueError, *_TOO_DEEP) as error:
        raise ProjectError(f"invalid Python: {error or 'nested too deep'}", location=Location(path, 1, 1)) from None
    function = _function(tree, places)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    asked = [(name, call) for call in calls if (name := _FUNCTIONS.get(_dotted_name(call.func)))]
    asked.sort(key=lambda pair: (pair[1].lineno, pair[1].col_offset))
    return PythonText(tuple(_call(name, call, places) for name, call in asked), places.of(function))


@dataclass(frozen=True)
class _Places:
    path: str
    lines: list[str]

    def of(self, node: ast.stmt | ast.expr | ast.keyword) -> Location:
        """The location of a node; Python counts its column in bytes of UTF-8."""
        line = self.lines[node.lineno - 1] if node.lineno <= len(self.lines) else ""
        return Location(self.path, node.lineno, len(line.encode()[: node.col_offset].decode(errors="replace")) + 1)


def _function(tree: ast.Module, places: _Places) -> ast.FunctionDef:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "model"]
    if not functions:
        message = "there is no function model(dbt, session) at the top level of this file"
        raise ProjectError(message, location=Location(places.path, 1, 1), hint=f"write {_SIGNATURE} … return df")
    if len(functions) > 1:
        hint = f"the first is in line {functions[0].lineno}"
        raise ProjectError("a second function model: a file has one", location=places.of(functions[1]), hint=hint)
    function = functions[0]
    given, named = [*function.args.posonlyargs, *function.args.args], function.args.kwonlyargs
    if len(given) != 2 or given[0].arg != "dbt" or named:
        shown = ast.unparse(function.args)
        message = f"the function takes dbt and a session, not ({shown})"
        raise ProjectError(message, location=places.of(function), hint=f"write {_SIGNATURE}")
    returns = [node for node in _own(function) if isinstance(node, ast.Return) and node.value is not None]
    if not returns:
        raise ProjectError("the function returns nothing", location=places.of(function), hint="end it with: return df")
    if several := next((node for node in returns if isinstance(node.value, ast.Tuple)), None):
        raise ProjectError("the function returns more than one value", location=places.of(several), hint="return df")
    return function


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions and classes nested in it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, _Scope):
            waiting += ast.iter_child_nodes(node)


def _dotted_name(node: ast.expr) -> str:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _call(asked: DbtFunction, call: ast.Call, places: _Places) -> PythonCall:
    for part in call.keywords:
        if part.arg is None:
            raise _not_literal(asked, places.of(part), "** hides what is given")
    args = tuple(_literal(asked, part, places) for part in call.args)
    kwargs = {str(part.arg): _literal(asked, part.value, places) for part in call.keywords}
    made = PythonCall(asked, args, kwargs, places.of(call), {str(part.arg): places.of(part) for part in call.keywords})
    _check(made)
    return made


def _literal(asked: DbtFunction, node: ast.expr, places: _Places) -> object:
    try:
        value: object = ast.literal_eval(node)
    except _NO_LITERAL:
        raise _not_literal(asked, places.of(node), "it is not a literal") from None
    return value


def _not_literal(asked: DbtFunction, place: Location, why: str) -> ProjectError:
    hint = "write the value itself: what a model reads and how it is set must be known before it runs"
    return ProjectError(f"this argument of dbt.{asked}() cannot be read: {why}", location=place, hint=hint)


def _check(call: PythonCall) -> None:
    """Raise ProjectError if the function does not accept these arguments."""
    words = [value for value in call.args if isinstance(value, str)]
    is_all_words = len(words) == len(call.args)
    match call.asked:
        case "ref":
            is_right = is_all_words and len(words) in (1, 2) and call.kwargs.keys() <= {"v", "version"}
            usage = "dbt.ref('model'), dbt.ref('package', 'model') or dbt.ref('model', v=1)"
        case "source":
            is_right = is_all_words and len(words) == 2 and not call.kwargs
            usage = "dbt.source('source', 'table')"
        case "config":
            is_mapping = len(call.args) == 1 and isinstance(call.args[0], dict) and not call.kwargs
            is_right = not call.args or is_mapping
            usage = "dbt.config(key=value)"
        case "config.get" | "config.meta_get":
            is_right = len(call.args) in (1, 2) and isinstance(call.args[0], str) and call.kwargs.keys() <= {"default"}
            usage = f"dbt.{call.asked}('key') or dbt.{call.asked}('key', 'default')"
    if not is_right:
        raise ProjectError(f"wrong arguments of dbt.{call.asked}()", location=call.location, hint=f"write {usage}")
