"""Trees of expressions as Python functions of a row. Owns names, three-valued logic and what is computed when.

A function gets the row as a list: the columns first, behind them a place for each name that a lambda or an earlier
entry of the SELECT gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlmesh_like.cdc.in_process.casts import cast
from sqlmesh_like.cdc.in_process.json_values import json_reader, json_writer
from sqlmesh_like.cdc.in_process.list_functions import LIST_FUNCTIONS, WITH_LAMBDAS
from sqlmesh_like.cdc.in_process.moments import MOMENT_FUNCTIONS
from sqlmesh_like.cdc.in_process.operators import OPERATORS
from sqlmesh_like.cdc.in_process.strict import Function
from sqlmesh_like.cdc.in_process.syntax import Call, Case, Cast, Expression, Lambda, Literal, Member, Path
from sqlmesh_like.cdc.in_process.text_functions import TEXT_FUNCTIONS
from sqlmesh_like.cdc.in_process.values import (
    NotProvenError,
    Row,
    Value,
    bytes_in_full,
    certain,
    places,
    text_in_full,
)

Compiled = Callable[[list[Value]], Value]
FUNCTIONS: Mapping[str, Function] = {
    **OPERATORS,
    **TEXT_FUNCTIONS,
    **LIST_FUNCTIONS,
    **MOMENT_FUNCTIONS,
    "current_timestamp": lambda: datetime.now(UTC),
}
"""Functions and operators of Spark SQL by name. Each gives Spark's value, or raises NotProvenError."""

_JSON = {"from_json": json_reader, "to_json": json_writer}
_PASS_ON = {"json_object_keys", "item", "ltrim", "left", "contains", "size"}
"""Functions that may be given a text whose digits are not known, because they do not look at these."""


@dataclass
class Scope:
    """The names that an expression may use: columns with the relation before them, then names given meanwhile.

    `given`: places behind the columns.
    """

    columns: list[tuple[str | None, str]]
    given: dict[str, int] = field(default_factory=dict)
    size: int = 0

    def __post_init__(self) -> None:
        self.size = max(self.size, len(self.columns))

    def give(self, name: str) -> int:
        """Make a place for a name, which from now on means this."""
        self.given[name.lower()] = place = self.size
        self.size += 1
        return place

    def place(self, path: Path, inner: Mapping[str, int]) -> tuple[int, tuple[str, ...]]:
        """The place that a path begins at, and the members that follow. `inner`: the parameters of lambdas."""
        first, *rest = path.names
        if first.lower() in inner:
            return inner[first.lower()], tuple(rest)
        if rest:
            places = [
                place
                for place, (relation, name) in enumerate(self.columns)
                if relation is not None and (relation.lower(), name.lower()) == (first.lower(), rest[0].lower())
            ]
            if places:
                return self._only(places, path), tuple(rest[1:])
        places = [place for place, (_, name) in enumerate(self.columns) if name.lower() == first.lower()]
        if places:
            return self._only(places, path), tuple(rest)
        if first.lower() in self.given:
            return self.given[first.lower()], tuple(rest)
        raise NotProvenError(f"the name {'.'.join(path.names)}")

    def _only(self, places: list[int], path: Path) -> int:
        if len(places) > 1:
            raise NotProvenError(f"which of two columns {'.'.join(path.names)} is")
        return places[0]


def compile_expression(tree: Expression, scope: Scope, inner: Mapping[str, int] | None = None) -> Compiled:
    """The expression as a function of a row of the scope. Raises NotProvenError for functions that are not known."""
    inner = inner or {}
    match tree:
        case Literal(value):
            return lambda _: value
        case Path():
            place, members = scope.place(tree, inner)
            result: Compiled = lambda row: row[place]  # noqa: E731
            for name in members:
                result = _member(result, name)
            return result
        case Member(value, name):
            return _member(compile_expression(value, scope, inner), name)
        case Cast(value, type_):
            return cast(compile_expression(value, scope, inner), type_)
        case Case():
            return _case(tree, scope, inner)
        case Call(name, arguments):
            return _call(name, arguments, scope, inner)
        case Lambda():
            raise NotProvenError("a lambda outside of a function")


def _member(value: Compiled, name: str) -> Compiled:
    name = name.lower()

    def member(row: list[Value]) -> Value:
        struct = value(row)
        if struct is None:
            return None
        if not isinstance(struct, Row):
            raise NotProvenError(f"a member of a {type(struct).__name__}")
        return tuple.__getitem__(struct, places(struct.names)[name])

    return member


def _case(tree: Case, scope: Scope, inner: Mapping[str, int]) -> Compiled:
    whens = [
        (compile_expression(when, scope, inner), compile_expression(then, scope, inner)) for when, then in tree.whens
    ]
    otherwise = compile_expression(tree.otherwise, scope, inner)
    if tree.subject is None:

        def chosen(row: list[Value]) -> Value:
            return next((then for when, then in whens if when(row)), otherwise)(row)

        return chosen
    subject, equal = compile_expression(tree.subject, scope, inner), FUNCTIONS["="]

    def of_subject(row: list[Value]) -> Value:
        value = certain(subject(row))
        return next((then for when, then in whens if equal(value, when(row))), otherwise)(row)

    return of_subject


def _call(name: str, trees: tuple[Expression, ...], scope: Scope, inner: Mapping[str, int]) -> Compiled:
    if name in WITH_LAMBDAS:
        return _with_lambda(name, trees, scope, inner)
    if name in _JSON:
        return _JSON[name](compile_expression(trees[0], scope, inner), trees[1:])
    arguments = [compile_expression(tree, scope, inner) for tree in trees]
    if name == "named_struct":
        names = tuple(str(tree.value) if isinstance(tree, Literal) else "" for tree in trees[::2])
        values = arguments[1::2]
        return lambda row: Row.of(names, [value(row) for value in values])
    if name in _LAZY:
        return _LAZY[name](*arguments)
    function = FUNCTIONS.get(name)
    if function is None:
        raise NotProvenError(f"the function {name}")
    known = text_in_full if name in _PASS_ON else bytes_in_full if name == "octet_length" else certain
    return lambda row: function(*[known(each(row)) for each in arguments])


def _three_valued(decisive: bool) -> Callable[[Compiled, Compiled], Compiled]:
    """AND, which False decides whatever the other side is, or OR, which True decides."""

    def connective(left: Compiled, right: Compiled) -> Compiled:
        def value(row: list[Value]) -> Value:
            first = left(row)
            if first is decisive:
                return decisive
            second = right(row)
            return decisive if second is decisive else None if first is None or second is None else not decisive

        return value

    return connective


def _first_known(*values: Compiled) -> Compiled:
    return lambda row: next((value for each in values if (value := each(row)) is not None), None)


_LAZY: Mapping[str, Callable[..., Compiled]] = {
    "and": _three_valued(decisive=False),
    "or": _three_valued(decisive=True),
    "if": lambda condition, then, otherwise: lambda row: then(row) if condition(row) else otherwise(row),
    "coalesce": _first_known,
    "isnull": lambda value: lambda row: value(row) is None,
    "array": lambda *values: lambda row: [each(row) for each in values],
}
"""Functions that do not compute all of their arguments, or any number of them."""


def _with_lambda(name: str, trees: tuple[Expression, ...], scope: Scope, inner: Mapping[str, int]) -> Compiled:
    """A higher-order function: its lambdas become functions of their parameters, its other arguments are values."""
    function = WITH_LAMBDAS[name]
    parts: list[tuple[Compiled, tuple[int, ...] | None]] = []
    for tree in trees:
        if isinstance(tree, Lambda):
            slots = tuple(range(scope.size, scope.size + len(tree.parameters)))
            scope.size += len(slots)
            names = {parameter.lower(): slot for parameter, slot in zip(tree.parameters, slots, strict=True)}
            parts.append((compile_expression(tree.body, scope, {**inner, **names}), slots))
        else:
            parts.append((compile_expression(tree, scope, inner), None))

    def called(row: list[Value]) -> Value:
        arguments = [part(row) if slots is None else _bound(part, slots, row) for part, slots in parts]
        return function(*arguments)

    return called


def _bound(body: Compiled, slots: tuple[int, ...], row: list[Value]) -> Callable[..., Value]:
    def function(*values: Value) -> Value:
        for slot, value in zip(slots, values, strict=False):
            row[slot] = value
        return body(row)

    return function
