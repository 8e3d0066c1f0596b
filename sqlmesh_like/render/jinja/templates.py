"""The templates of one project. Owns compiling and rendering them, and the positions of errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import CodeType
from typing import TypeVar

from jinja2 import Template, TemplateSyntaxError, nodes

from sqlmesh_like.errors import JinjaError, Location, SmlError, nearest
from sqlmesh_like.limits.record import note_place, note_template
from sqlmesh_like.project.reading.bounds import TemplateLimit, enforce_limits
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.render.jinja.environment import environment, refuse_undefined
from sqlmesh_like.render.jinja.fast_render import render_plain
from sqlmesh_like.render.jinja.source_map import CLOSE, OPEN, mark, read_marks
from sqlmesh_like.render.jinja.syntax_errors import template_syntax_fault
from sqlmesh_like.render.jinja.template_errors import (
    MACRO_PREFIX,
    MacroReturn,
    explain_error,
    explain_undefined,
    frames_of,
    line_start,
    rendering_frames,
)
from sqlmesh_like.render.rendered import SourceMap

_TOO_DEEP = (RecursionError, MemoryError, SyntaxError, OverflowError, ValueError)
"""Errors from parsing and compiling a template that nests expressions or blocks too deeply."""
_NESTED = "the template is nested too deep"
_NEST_LESS = "split it into macros"
_Kind = TypeVar("_Kind", bound=nodes.Node)
BUILTIN = "<built in>/"


class Templates:
    """Compiles and renders the templates of one project, and locates their errors in files.

    As in dbt, undefined names print as empty text, with a warning; `strict_undefined` makes that an error.
    """

    def __init__(self, *, strict_undefined: bool = False) -> None:
        self._assigned: set[str] = set()
        report = refuse_undefined if strict_undefined else self._warn_undefined
        self._environment = environment(self._assigned, report)
        self._path = ""  # of the template that is being rendered
        self._scope: Mapping[str, object] = {}
        self._is_silent = self._is_compiling = False
        self._raw: dict[str, str] = {}
        self._compiled: dict[tuple[str, str], Template] = {}

    def globals(self) -> dict[str, object]:
        """The names that Jinja itself gives to templates: range, dict, namespace …"""
        return dict(self._environment.globals)

    def macros_of(self, path: str, raw: str) -> tuple[Callable[[], Template], dict[str, int]]:
        """A function that compiles a macro file, and its macros' names with their lines. Raises JinjaError if the file
        cannot be parsed.

        The file is compiled at the first call of the function, since few macros of a package are used. Macros are
        renamed inside it, so that calls between them go through the scope and `return` works in each. A file of ours is
        not parsed before, either: that took two thirds of the time of a small project.
        """
        if path.startswith(BUILTIN):
            return cache(lambda: self._builtin(path, raw)), _builtin_lines(raw)
        try:
            with enforce_limits():
                return self._macros_of(path, raw)
        except TemplateLimit as error:
            raise JinjaError(explain_error(error, {})[0], location=Location(path, 1, 1)) from None
        except RecursionError as error:
            raise JinjaError(_NESTED, location=Location(path, 1, 1), hint=_NEST_LESS) from error

    def _builtin(self, path: str, raw: str) -> Template:
        self._raw[path] = raw
        return Template.from_code(self._environment, _builtin_code(path, raw), self._environment.globals)

    def _macros_of(self, path: str, raw: str) -> tuple[Callable[[], Template], dict[str, int]]:
        tree, lines = self._renamed_macros(path, raw)
        compiled = cache(lambda: self._compile(tree, path))
        filters, tests = self._environment.filters, self._environment.tests
        if any(
            (isinstance(node, nodes.Filter) and node.name not in filters)
            or (isinstance(node, nodes.Test) and node.name not in tests)
            for node in _descendants(tree, nodes.Node)
        ):
            compiled()  # raises, unless a condition checks whether the filter or test exists
        return compiled, lines

    def _renamed_macros(self, path: str, raw: str) -> tuple[nodes.Template, dict[str, int]]:
        tree = self._parse(path, raw)
        macros = sorted(_descendants(tree, nodes.Macro), key=lambda macro: macro.lineno)
        seen: dict[str, int] = {}
        for macro in macros:
            if macro.name in seen:
                hint = f"the first is in line {seen[macro.name]}"
                raise JinjaError(
                    f"macro {macro.name!r} is defined twice", location=Location(path, macro.lineno, 1), hint=hint
                )
            seen[macro.name] = macro.lineno
        lines = {macro.name: macro.lineno for macro in macros}
        for macro in macros:
            macro.name = MACRO_PREFIX + macro.name
        return tree, lines

    def render(self, path: str, raw: str, scope: Mapping[str, object], *, is_silent: bool = False) -> SourceMap:
        """The rendered text of a template with its source map. Raises JinjaError with file, line and column.

        `is_silent`: without warnings, since the template is rendered again if its text is needed.
        """
        try:
            with enforce_limits(), self._rendering(path, scope, is_silent=is_silent):
                return self._render(path, raw, scope)
        except TemplateLimit as error:  # while it was parsed
            raise JinjaError(explain_error(error, scope)[0], location=Location(path, 1, 1)) from None
        except RecursionError as error:
            raise JinjaError(_NESTED, location=Location(path, 1, 1), hint=_NEST_LESS) from error

    @contextmanager
    def _rendering(self, path: str, scope: Mapping[str, object], *, is_silent: bool = False) -> Iterator[None]:
        """A context in which warnings are about this template. One that a silent one renders is silent too."""
        outer = self._path, self._scope, self._is_silent
        self._path, self._scope, self._is_silent = path, scope, is_silent or self._is_silent
        note_place(Location(path))
        try:
            yield
        finally:
            self._path, self._scope, self._is_silent = outer

    def _render(self, path: str, raw: str, scope: Mapping[str, object]) -> SourceMap:
        self._raw[path] = raw
        try:
            plain = None if (path, raw) in self._compiled else render_plain(raw, scope)
        except (Exception, MacroReturn):  # noqa: BLE001 (Jinja meets it again, and knows the place)
            plain = None
        if plain is not None:
            return plain
        template = self._template(path, raw)
        return read_marks(self.run(lambda: template.render(scope), path, scope), raw)

    def _template(self, path: str, raw: str) -> Template:
        if (path, raw) not in self._compiled:
            strange = re.search(f"[{OPEN}{CLOSE}]", raw)
            if strange:
                message = f"character U+{ord(strange[0]):04X} is not allowed: Unicode gives it no meaning"
                raise JinjaError(message, location=Location.at(path, raw, strange.start()))
            tree = mark(self._parse(path, raw), raw, self._environment)
            self._compiled[path, raw] = self._compile(tree, path)
        return self._compiled[path, raw]

    def run(self, call: Callable[[], str], path: str, scope: Mapping[str, object]) -> str:
        """The result of a call that runs template code; its errors become JinjaErrors with their location."""
        try:
            with enforce_limits(), self._rendering(path, scope):
                return call()
        except MacroReturn as error:
            raise JinjaError("return() outside of a macro", location=Location(path)) from error
        except (Exception, TemplateLimit) as error:  # whatever a template's code raises is the template's error
            raise self._locate_error(error, path, scope) from error

    def _parse(self, path: str, raw: str) -> nodes.Template:
        self._raw[path] = raw
        note_place(Location(path))
        try:
            tree = self._environment.parse(raw, path, path)
        except TemplateSyntaxError as error:
            raise self._syntax_error(error, path) from error
        except _TOO_DEEP as error:
            raise JinjaError(_NESTED, location=Location(path, 1, 1), hint=_NEST_LESS) from error
        if not path.startswith(BUILTIN):  # names that built-in macros set are not the project's
            self._assigned.update(name.name for name in _descendants(tree, nodes.Name) if name.ctx == "store")
        return tree

    def _compile(self, tree: nodes.Template, path: str) -> Template:
        template = Template.from_code(self._environment, self._code(tree, path), self._environment.globals)
        note_template(path, template._debug_info)
        return template

    def _code(self, tree: nodes.Template, path: str) -> CodeType:
        self._is_compiling = True
        try:
            return self._environment.compile(tree, path, path)
        except TemplateSyntaxError as error:  # an unknown filter or test
            names = [*self._environment.filters, *self._environment.tests]
            named = re.search(r"named '(\w+)'", error.message or "")
            raise self._syntax_error(error, path, nearest(named[1], names) if named else None) from error
        except _TOO_DEEP as error:  # Python's own compiler has limits too
            raise JinjaError(_NESTED, location=Location(path, 1, 1), hint=_NEST_LESS) from error
        finally:
            self._is_compiling = False

    def _syntax_error(self, error: TemplateSyntaxError, path: str, hint: str | None = None) -> JinjaError:
        raw, said = self._raw.get(path, ""), error.message or "cannot be read"
        fault = template_syntax_fault(raw, error.lineno, said)
        if fault.offset is not None:
            place = Location.at(path, raw, fault.offset)
        else:
            named = re.search(r"'([^']+)'", said)
            pattern = rf"(?<!\w){re.escape(named[1])}(?!\w)" if named else r"\{[{%#]"
            place = self._find(path, error.lineno, (pattern, r"\{[{%#]"))
        return JinjaError(fault.message, location=place, hint=hint or fault.hint)

    def _locate_error(self, error: BaseException, path: str, scope: Mapping[str, object]) -> SmlError:
        if isinstance(error, SmlError) and error.location is not None:
            return error
        frames = [frame for frame in frames_of(error.__traceback__) if frame[0] in self._raw] or [(path, 1)]
        own = [frame for frame in frames if not frame[0].startswith(BUILTIN)] or [(path, 1)]
        (file, line), called_from = own[-1], own[0]
        message, patterns, hint = explain_error(error, scope)
        place = self._find(file, line, patterns)
        if called_from[0] != file:
            caller = f"called from {called_from[0]}:{called_from[1]}"
            hint = f"{hint}; {caller}" if hint else caller
        return JinjaError(message, location=place, hint=hint)

    def _warn_undefined(self, undefined: str) -> None:
        if self._is_compiling:  # Jinja tries to fold a constant: if that is refused, it is left to rendering
            refuse_undefined(undefined)
        message, patterns, hint = explain_undefined(undefined, self._scope)
        self._warn(f"{message}; it is an empty text here", patterns, hint)

    def warn(self, message: str, pattern: str, hint: str | None = None, once: bool = False) -> None:
        """Warn about the template that is being rendered; `pattern` finds the position in its text."""
        self._warn(message, (pattern, r"\{[{%]"), hint, once)

    def _warn(self, message: str, patterns: Iterable[str], hint: str | None, once: bool = False) -> None:
        if self._is_silent:
            return
        frames = [frame for frame in rendering_frames() if frame[0] in self._raw]
        own = [frame for frame in frames if not frame[0].startswith(BUILTIN)]
        warn(self._find(*(own or frames or [(self._path, 1)])[0], patterns), message, hint, once=once)

    def _find(self, path: str, line: int, patterns: Iterable[str]) -> Location:
        """Where the first matching pattern occurs from this line on: Jinja knows only the first line of a tag."""
        raw = self._raw.get(path, "")
        start = line_start(raw, line)
        for pattern in patterns:
            match = re.compile(pattern).search(raw, start)
            if match:
                return Location.at(path, raw, match.start())
        return Location(path, line, 1)


_MACRO = re.compile(r"\{%-?\s*(macro|test)\s+(\w+)")


@cache
def _builtin_code(path: str, raw: str) -> CodeType:
    """A macro file of ours, compiled once a process: no project changes what it compiles to."""
    templates = Templates()
    return templates._code(templates._renamed_macros(path, raw)[0], path)


@cache
def _builtin_lines(raw: str) -> dict[str, int]:
    """The macros of a file of ours with their lines: what parsing it finds."""
    prefixes = {"macro": "", "test": "test_"}
    return {prefixes[each[1]] + each[2]: raw.count("\n", 0, each.start()) + 1 for each in _MACRO.finditer(raw)}


def _descendants(tree: nodes.Node, kind: type[_Kind]) -> Iterator[_Kind]:
    """All nodes of a kind below a node, in no order; `find_all` takes three times as long."""
    waiting: list[object] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list | tuple):
            waiting += node
        elif isinstance(node, nodes.Node):
            waiting += [node.__dict__.get(name) for name in node.fields]
            if isinstance(node, kind):
                yield node
