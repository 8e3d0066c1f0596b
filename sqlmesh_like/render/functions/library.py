"""The functions of a project, and queries with their expressions in the place of calls. Owns what a call means.

A call `f(x)` becomes `cast((expression) as returns)`, where the name of an argument is `cast((x) as its type)`: what
Spark computes for a function of SQL. All that reads the query after that knows nothing of functions.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot.errors import SqlglotError

from sqlmesh_like.errors import Location, ProjectError, SqlError
from sqlmesh_like.project.functions.declarations import FunctionFile
from sqlmesh_like.render.functions.calls import check_call, check_function_name
from sqlmesh_like.render.functions.expression import (
    ArgumentName,
    Place,
    read_expression,
    require_constant,
    require_name,
    require_type,
)
from sqlmesh_like.render.functions.pieces import Hole, Piece, join_pieces
from sqlmesh_like.render.functions.syntax import Call, Sql, read_sql, words_of
from sqlmesh_like.render.rendered import RenderedFunction, RepeatedArgument, SourceMap

MAX_DEPTH = 50
"""Functions that call each other in a chain."""
MAX_CHARACTERS = 1_000_000
"""Of a query in which calls have been replaced: functions that call others twice double its length each time."""
_LESS = "split the function, or the model, into several"


@dataclass(frozen=True)
class FunctionBody:
    """A function and its expression after Jinja."""

    function: FunctionFile
    text: SourceMap

    def place(self, offset: int) -> Location:
        """Where an offset of the rendered expression is in the function's file."""
        return Location(self.function.path, *self.text.locate(offset))


class FunctionLibrary:
    """The functions that queries of one project can call."""

    def __init__(self, bodies: Sequence[FunctionBody] = ()) -> None:
        self._bodies = {body.function.name.lower(): body for body in bodies}
        self._expressions: dict[str, tuple[Piece | Hole, ...]] = {}
        self._calls: dict[str, tuple[str, ...]] = {}
        self._open: list[str] = []

    @cached_property
    def _mentions(self) -> re.Pattern[str]:
        return re.compile(rf"\b(?:{'|'.join(map(re.escape, self._bodies))})\b", re.IGNORECASE)

    def find(self, name: str) -> FunctionFile | None:
        body = self._bodies.get(name.lower())
        return None if body is None else body.function

    @property
    def names(self) -> list[str]:
        return [body.function.name for body in self._bodies.values()]

    def require_sound(self) -> None:
        """Raise ProjectError for the first function whose expression cannot be used."""
        for name, body in self._bodies.items():
            if body.function.unsupported is None:
                self._expression(name)

    def with_expressions(self, text: SourceMap, path: str) -> tuple[SourceMap, tuple[str, ...]]:
        """A text in which calls are replaced, and the unique ids of the functions that it calls.

        A text that cannot be read stays as it is: its analysis says why. Raises ProjectError for a wrong call.
        """
        if not self._bodies or not self._mentions.search(text.compiled):
            return text, ()
        try:
            sql = read_sql(text.compiled, self._bodies)
        except (SqlglotError, RecursionError):
            return text, ()
        writer = _Writer(self, sql, lambda offset: Location(path, *text.locate(offset)))
        if not writer.calls:
            return text, ()
        pieces = [piece for piece in writer.pieces(0, len(text.compiled)) if isinstance(piece, Piece)]
        used = sorted(self._bodies[call.name].function.unique_id for call in writer.calls.values())
        return join_pieces(text, pieces, writer.repeated), tuple(dict.fromkeys(used))

    def rendered_functions(self) -> Iterator[RenderedFunction]:
        """The functions as the project has them after rendering."""
        known = ((name, body.function) for name, body in self._bodies.items() if body.function.unsupported is None)
        return (RenderedFunction(function, self._query_of(name), self._calls[name]) for name, function in known)

    def _query_of(self, name: str) -> SourceMap:
        """`SELECT expression AS result FROM arguments`: what a function computes, over a table of its arguments."""
        body = self._bodies[name]
        function, before = body.function, "select cast((\n"
        parameters = [argument.name for argument in function.arguments]
        pieces = [
            piece if isinstance(piece, Piece) else Piece(f"`{parameters[piece.parameter]}`", piece.at)
            for piece in self._expression(name)
        ]
        after = f"\n) as {function.returns}) as result from arguments"
        return join_pieces(body.text, [Piece(before, 0), *pieces, Piece(after, 0)])

    def _expression(self, name: str) -> tuple[Piece | Hole, ...]:
        """A function's expression without calls of others, and with holes for its arguments."""
        if name not in self._expressions:
            body = self._bodies[name]
            if name in self._open:
                ring = [*self._open[self._open.index(name) :], name]
                shown = " → ".join(self._bodies[one].function.name for one in ring)
                hint = "a function is written into its callers: none can call itself"
                raise ProjectError(f"functions call each other in a cycle: {shown}", location=body.place(0), hint=hint)
            if len(self._open) >= MAX_DEPTH:
                message = f"more than {MAX_DEPTH} functions call each other in a chain"
                raise ProjectError(message, location=body.place(0), hint="write the innermost ones out")
            self._open.append(name)
            try:
                self._expressions[name] = self._compile_body(body)
            finally:
                self._open.pop()
        return self._expressions[name]

    def _compile_body(self, body: FunctionBody) -> tuple[Piece | Hole, ...]:
        function = body.function
        check_function_name(function)
        require_type(function.returns, function.returns_at)
        for argument in function.arguments:
            require_type(argument.type, argument.type_at)
            require_name(argument.name, argument.declared_at)
            if argument.default is not None:
                require_constant(argument.default, argument.default_at or argument.declared_at)
        if function.python is not None:
            self._calls[function.name.lower()] = ()
            # The call of a function in Python, by the name that Spark knows it by.
            parts: list[Piece | Hole] = [Piece(f"{function.call_name}(", 0)]
            for position in range(len(function.arguments)):
                parts += [*([Piece(", ", 0)] if position else []), Hole(position, 0)]
            return (*parts, Piece(")", 0))
        expression = read_expression(body.text.compiled, self._bodies, body.place, function)
        writer = _Writer(self, expression.sql, body.place, expression.names)
        called = {self._bodies[call.name].function.unique_id for call in writer.calls.values()}
        self._calls[function.name.lower()] = tuple(sorted(called))
        return tuple(writer.pieces(expression.start, expression.end))

    def call(self, call: Call, arguments: Sequence[Sequence[Piece | Hole]], place: Location) -> list[Piece | Hole]:
        """The expression of a call, given the texts of its arguments. Raises ProjectError."""
        function = self._bodies[call.name].function
        size = sum(len(part.text) for given in arguments for part in given if isinstance(part, Piece))
        pieces: list[Piece | Hole] = [Piece("cast((", call.start)]
        length = 0
        for part in self._expression(call.name):
            if isinstance(part, Piece):
                pieces.append(Piece(part.text, call.start))
                length += len(part.text)
            else:
                given, argument = arguments[part.parameter], function.arguments[part.parameter]
                pieces += [Piece("cast((", call.start), *_bind_argument(given, part.bound, function.name, place)]
                pieces.append(Piece(f") as {argument.type})", call.start))
                length += size + len(f"cast(() as {argument.type})")
            if length > MAX_CHARACTERS:
                raise ProjectError("the expressions of functions make this too long", location=place, hint=_LESS)
        return [*pieces, Piece(f") as {function.returns})", call.start)]

    def uses(self, name: str) -> Mapping[int, int]:
        """How often a function's expression has each of its arguments, by position."""
        return Counter(part.parameter for part in self._expression(name) if isinstance(part, Hole))


class _Writer:
    """Writes a text with expressions in the place of calls; `names` are those of arguments, by offset."""

    def __init__(
        self, library: FunctionLibrary, sql: Sql, place: Place, names: Mapping[int, ArgumentName] | None = None
    ) -> None:
        self._library, self._sql, self._place = library, sql, place
        self.calls = {call.start: call for call in sql.calls()}
        self._names = names or {}
        self._starts = sorted({*self.calls, *self._names})
        self._length = 0
        self.repeated: list[RepeatedArgument] = []

    def pieces(self, start: int, end: int) -> Iterator[Piece | Hole]:
        """The parts of the new text for a range of the old one."""
        at = start
        for offset in self._starts[bisect_left(self._starts, start) :]:
            if offset >= end:
                break
            if offset < at:  # within the call before it
                continue
            yield self._source_piece(at, offset)
            if offset in self.calls:
                call = self.calls[offset]
                yield from self._call(call)
                at = call.end
            else:
                name = self._names[offset]
                yield Hole(name.parameter, offset, name.bound)
                at = name.end
        yield self._source_piece(at, end)

    def _source_piece(self, start: int, end: int) -> Piece:
        return Piece(self._sql.text[start:end], start, is_copied=True)

    def _call(self, call: Call) -> list[Piece | Hole]:
        place = self._place(call.start)
        function = self._library.find(call.name)
        assert function is not None
        check_call(call, function, place)
        arguments: list[list[Piece | Hole]] = [list(self.pieces(*span)) for span in call.arguments]
        for argument in function.arguments[len(arguments) :]:
            arguments.append([Piece(argument.default or "null", call.start)])
        for position, uses in self._library.uses(call.name).items():
            if uses > 1:
                self._note_repeated(function, arguments[position], place)
        pieces = self._library.call(call, arguments, place)
        self._length += sum(len(piece.text) for piece in pieces if isinstance(piece, Piece))
        if self._length > MAX_CHARACTERS:
            raise ProjectError("the expressions of functions make this too long", location=place, hint=_LESS)
        return pieces

    def _note_repeated(self, function: FunctionFile, argument: Sequence[Piece | Hole], place: Location) -> None:
        """Note an argument whose values may differ from one evaluation to the next: only calls can be such."""
        sql = "".join(part.text if isinstance(part, Piece) else "null" for part in argument)
        if not re.fullmatch(r"[\w.`\s]*", sql):
            self.repeated.append(RepeatedArgument(function.name, sql, place.line or 1, place.column or 1))


def _bind_argument(
    argument: Sequence[Piece | Hole], bound: frozenset[str], function: str, place: Location
) -> Iterator[Piece | Hole]:
    """An argument below lambdas. Raises SqlError if it has a name that would mean one of their variables there."""
    for part in argument:
        if isinstance(part, Hole):
            yield Hole(part.parameter, part.at, part.bound | bound)
            continue
        if bound and (taken := words_of(part.text) & bound):
            hint = f"rename the variable {min(taken)!r} in the function"
            message = f"this argument of {function!r} has the name of a variable of a lambda in it: {min(taken)}"
            raise SqlError(message, location=place, hint=hint)
        yield part
