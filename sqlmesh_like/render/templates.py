"""The sandboxed Jinja environment, and errors with their place. Owns compiling templates; not what they may call."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import FrameType, TracebackType
from typing import ClassVar, TypeVar

from jinja2 import Environment, Template, TemplateError, TemplateSyntaxError, Undefined, UndefinedError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context

from sqlmesh_like.errors import JinjaError, Location, SmlError, nearest
from sqlmesh_like.project.reading.bounds import BoundedSandbox, TemplateLimit, bounded
from sqlmesh_like.project.reading.file_dependencies import record_clock
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.reading.values import MissingValue, repeatable_random
from sqlmesh_like.render.fast_render import render_plain
from sqlmesh_like.render.rendered import SourceMap
from sqlmesh_like.render.source_map import CLOSE, OPEN, mark, read_marks

_TOO_DEEP = (RecursionError, MemoryError, SyntaxError, OverflowError, ValueError)
"""What parsing and compiling of a template raises that nests expressions or blocks without end."""
_NESTED = "the template is nested too deep"
_NEST_LESS = "split it into macros"
_Kind = TypeVar("_Kind", bound=nodes.Node)
_OF_CALL = frozenset({"run_started_at", "invocation_id"})
MACRO_PREFIX = "sml_macro__"
BUILTIN = "<built in>/"


class TemplateFault(JinjaError):
    """An error raised by a function that a template called; `pattern` finds the call in the template's text."""

    def __init__(self, message: str, pattern: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.pattern = pattern


class MacroReturn(BaseException):
    """`return(value)` on its way out of a macro; no error, so no `except Exception` may catch it."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


class TestTag(Extension):
    """`{% test name(model, column_name) %} … {% endtest %}` defines the macro `test_name`, as dbt does."""

    __test__ = False
    tags = {"test", "data_test"}  # noqa: RUF012 (an instance variable of the base class)

    def parse(self, parser: Parser) -> nodes.Node:
        node = nodes.Macro(lineno=next(parser.stream).lineno)
        node.name = f"test_{parser.parse_assign_target(name_only=True).name}"
        parser.parse_signature(node)
        node.body = parser.parse_statements(("name:endtest", "name:enddata_test"), drop_needle=True)
        return node


class MaterializationTag(Extension):
    """`{% materialization … %} … {% endmaterialization %}` is passed over: what it does is for dbt's adapters.

    A model that asks for one is refused where it does.
    """

    tags = {"materialization"}  # noqa: RUF012 (an instance variable of the base class)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        while not parser.stream.current.test("block_end"):
            next(parser.stream)
        parser.parse_statements(("name:endmaterialization",), drop_needle=True)
        return []


def refuse_undefined(message: str) -> None:
    """Raises UndefinedError, for who wants no empty text in place of a value."""
    raise UndefinedError(message)


class LoudUndefined(Undefined):
    """Undefined as Jinja has it (false, empty), but never silently part of the SQL: where it is printed it is reported.

    Names that some template sets, maybe in a branch that was not taken, are not: packages rely on it.
    """

    _assigned: ClassVar[set[str]] = set()

    @staticmethod
    def _report(message: str) -> None:
        refuse_undefined(message)

    @property
    def _undefined_message(self) -> str:
        package = getattr(self._undefined_obj, "_package_name", None)
        return f"package {package!r} has no macro {self._undefined_name!r}" if package else super()._undefined_message

    def __str__(self) -> str:
        if self._undefined_name not in self._assigned:
            self._report(self._undefined_message)
        return ""


class NotingContext(Context):
    """Notes when a template asks for what has another value in each call; the sandbox notes `now()` and the like."""

    def resolve_or_missing(self, key: str) -> object:
        if key in _OF_CALL:
            record_clock()
        return super().resolve_or_missing(key)


def _same(value: object) -> object:
    return value


def environment(assigned: set[str], report: Callable[[str], None] = refuse_undefined) -> Environment:
    """A new sandboxed environment; templates reach nothing but what their scope holds.

    `report` is told of what is printed and undefined, unless it is one of the `assigned` names.

    As in dbt they may change lists and mappings of their own (`do names.append(…)`): a scope shares none with another.
    """
    made = BoundedSandbox(
        undefined=type("LoudUndefined", (LoudUndefined,), {"_assigned": assigned, "_report": staticmethod(report)}),
        extensions=[TestTag, MaterializationTag, "jinja2.ext.do", "jinja2.ext.loopcontrols"],
    )
    made.context_class = NotingContext
    made.globals.pop("lipsum")  # other words in each rendering
    made.filters["random"] = repeatable_random
    # In YAML these give native values; in SQL, as in dbt, the text is what it is.
    made.filters.update(dict.fromkeys(("as_text", "as_native", "as_number", "as_bool"), _same))
    made.filters["is_list"] = lambda value: isinstance(value, list)
    return made


class Templates:
    """Compiles the templates of one project and gives errors the place in their file.

    As in dbt what is undefined prints as empty text, with a warning; `strict_undefined` makes that an error.
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
        """What Jinja itself gives to templates: range, dict, namespace …"""
        return dict(self._environment.globals)

    def macros_of(self, path: str, raw: str) -> tuple[Callable[[], Template], dict[str, int]]:
        """A macro file, and its macros' names with their lines. Raises JinjaError where it cannot be parsed.

        It is compiled at the first call of what is returned: of a package few macros are used. Macros are renamed
        inside, so that one calling another goes through the scope and `return` works in each.
        """
        try:
            with bounded():
                return self._macros_of(path, raw)
        except TemplateLimit as error:
            raise JinjaError(_explained(error, {})[0], location=Location(path, 1, 1)) from None
        except RecursionError as error:
            raise JinjaError(_NESTED, location=Location(path, 1, 1), hint=_NEST_LESS) from error

    def _macros_of(self, path: str, raw: str) -> tuple[Callable[[], Template], dict[str, int]]:
        tree = self._parse(path, raw)
        below = list(_descendants(tree, nodes.Node))
        macros = sorted((node for node in below if isinstance(node, nodes.Macro)), key=lambda macro: macro.lineno)
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
        compiled = cache(lambda: self._compile(tree, path))
        filters, tests = self._environment.filters, self._environment.tests
        if any(
            (isinstance(node, nodes.Filter) and node.name not in filters)
            or (isinstance(node, nodes.Test) and node.name not in tests)
            for node in below
        ):
            compiled()  # raises, unless a condition asks whether there is such a one
        return compiled, lines

    def render(self, path: str, raw: str, scope: Mapping[str, object], *, is_silent: bool = False) -> SourceMap:
        """The rendered text of a template with its source map. Raises JinjaError with file, line and column.

        `is_silent`: without warnings, for it is only looked at, and rendered again if it is wanted.
        """
        try:
            with bounded(), self._rendering(path, scope, is_silent=is_silent):
                return self._render(path, raw, scope)
        except TemplateLimit as error:  # while it was parsed
            raise JinjaError(_explained(error, scope)[0], location=Location(path, 1, 1)) from None
        except RecursionError as error:
            raise JinjaError(_NESTED, location=Location(path, 1, 1), hint=_NEST_LESS) from error

    @contextmanager
    def _rendering(self, path: str, scope: Mapping[str, object], *, is_silent: bool = False) -> Iterator[None]:
        """Within, warnings are about this template. One that a silent one renders is silent too."""
        outer = self._path, self._scope, self._is_silent
        self._path, self._scope, self._is_silent = path, scope, is_silent or self._is_silent
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
                raise JinjaError(message, location=_place(path, raw, strange.start()))
            tree = mark(self._parse(path, raw), raw, self._environment)
            self._compiled[path, raw] = self._compile(tree, path)
        return self._compiled[path, raw]

    def run(self, call: Callable[[], str], path: str, scope: Mapping[str, object]) -> str:
        """The result of a call that runs template code; its errors become JinjaErrors with their place."""
        try:
            with bounded(), self._rendering(path, scope):
                return call()
        except MacroReturn as error:
            raise JinjaError("return() outside of a macro", location=Location(path)) from error
        except (Exception, TemplateLimit) as error:  # whatever a template's code raises is the template's error
            raise self._located(error, path, scope) from error

    def _parse(self, path: str, raw: str) -> nodes.Template:
        self._raw[path] = raw
        try:
            tree = self._environment.parse(raw, path, path)
        except TemplateSyntaxError as error:
            raise JinjaError(f"invalid Jinja: {error.message}", location=self._syntax_place(error, path)) from error
        except _TOO_DEEP as error:
            raise JinjaError(_NESTED, location=Location(path, 1, 1), hint=_NEST_LESS) from error
        if not path.startswith(BUILTIN):  # what built-in macros set is no name of a project's
            self._assigned.update(name.name for name in _descendants(tree, nodes.Name) if name.ctx == "store")
        return tree

    def _compile(self, tree: nodes.Template, path: str) -> Template:
        self._is_compiling = True
        try:
            code = self._environment.compile(tree, path, path)
        except TemplateSyntaxError as error:  # an unknown filter or test
            names = [*self._environment.filters, *self._environment.tests]
            named = re.search(r"named '(\w+)'", error.message or "")
            hint = nearest(named[1], names) if named else None
            place = self._syntax_place(error, path)
            raise JinjaError(f"invalid Jinja: {error.message}", location=place, hint=hint) from error
        except _TOO_DEEP as error:  # Python's own compiler has limits too
            raise JinjaError(_NESTED, location=Location(path, 1, 1), hint=_NEST_LESS) from error
        finally:
            self._is_compiling = False
        return Template.from_code(self._environment, code, self._environment.globals)

    def _syntax_place(self, error: TemplateSyntaxError, path: str) -> Location:
        named = re.search(r"'([^']+)'", error.message or "")
        pattern = rf"(?<!\w){re.escape(named[1])}(?!\w)" if named else r"\{[{%#]"
        return self._find(path, error.lineno, (pattern, r"\{[{%#]"))

    def _located(self, error: BaseException, path: str, scope: Mapping[str, object]) -> SmlError:
        if isinstance(error, SmlError) and error.location is not None:
            return error
        frames = [frame for frame in _frames(error.__traceback__) if frame[0] in self._raw] or [(path, 1)]
        own = [frame for frame in frames if not frame[0].startswith(BUILTIN)] or [(path, 1)]
        (file, line), called_from = own[-1], own[0]
        message, patterns, hint = _explained(error, scope)
        place = self._find(file, line, patterns)
        if called_from[0] != file:
            caller = f"called from {called_from[0]}:{called_from[1]}"
            hint = f"{hint}; {caller}" if hint else caller
        return JinjaError(message, location=place, hint=hint)

    def _warn_undefined(self, undefined: str) -> None:
        if self._is_compiling:  # Jinja's attempt at a constant: what is refused is left to the rendering
            refuse_undefined(undefined)
        message, patterns, hint = _explained_undefined(undefined, self._scope)
        self._warn(f"{message}; it is an empty text here", patterns, hint)

    def warn(self, message: str, pattern: str, hint: str | None = None) -> None:
        """Tell of something in the template that is being rendered; `pattern` finds it in the text."""
        self._warn(message, (pattern, r"\{[{%]"), hint)

    def _warn(self, message: str, patterns: Iterable[str], hint: str | None) -> None:
        if self._is_silent:
            return
        frames = [frame for frame in _rendering_frames() if frame[0] in self._raw]
        own = [frame for frame in frames if not frame[0].startswith(BUILTIN)]
        warn(self._find(*(own or frames or [(self._path, 1)])[0], patterns), message, hint)

    def _find(self, path: str, line: int, patterns: Iterable[str]) -> Location:
        """The first pattern that occurs from this line on; a tag of several lines is known by its first line only."""
        raw = self._raw.get(path, "")
        start = _line_start(raw, line)
        for pattern in patterns:
            match = re.compile(pattern).search(raw, start)
            if match:
                return _place(path, raw, match.start())
        return Location(path, line, 1)


def _descendants(tree: nodes.Node, kind: type[_Kind]) -> Iterator[_Kind]:
    """All nodes of a kind below a node, in no order; `find_all` takes thrice as long."""
    waiting: list[object] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list | tuple):
            waiting += node
        elif isinstance(node, nodes.Node):
            waiting += [node.__dict__.get(name) for name in node.fields]
            if isinstance(node, kind):
                yield node


def _explained(error: BaseException, scope: Mapping[str, object]) -> tuple[str, tuple[str, ...], str | None]:
    """Message, patterns of the culprit's place, hint."""
    tag = r"\{[{%]"
    match error:
        case TemplateFault() | MissingValue():
            return error.message, (error.pattern, tag), error.hint
        case SmlError():
            return error.message, (tag,), error.hint
        case UndefinedError():
            return _explained_undefined(error.message or "something is undefined", scope)
        case TemplateLimit():
            return f"this template is not rendered: {error.reason}", (tag,), None
        case MemoryError():
            return "this template is not rendered: it takes too much memory", (tag,), None
        case SecurityError():
            return f"not allowed in a template: {error.message}", (tag,), None
        case RecursionError():
            return "macros call each other without end", (tag,), None
        case TemplateError():
            return str(error.message), (tag,), None
        case _:
            return f"{type(error).__name__}: {error}", (tag,), None


def _explained_undefined(message: str, scope: Mapping[str, object]) -> tuple[str, tuple[str, ...], str | None]:
    missing = re.fullmatch(r"'(\w+)' is undefined", message)
    if missing:
        name = missing[1].removeprefix(MACRO_PREFIX)
        known = [key for key in scope if not key.startswith("_")]
        return f"{name!r} is not defined: no such macro, function or variable", (rf"\b{name}\b",), nearest(name, known)
    attribute = re.search(r"has no attribute '(\w+)'", message)
    package = re.fullmatch(r"package '(\w+)' has no macro '(\w+)'", message)
    if package:
        macros = scope.get(package[1])
        hint = nearest(package[2], list(macros) if isinstance(macros, Mapping) else [])
        pattern = rf"\b{package[1]}\s*\.\s*{package[2]}\b"
        return message, (pattern, r"\{[{%]"), hint or "another version of the package may have it"
    pattern = rf"\b{attribute[1]}\b" if attribute else r"\{[{%]"
    return message, (pattern, r"\{[{%]"), None


def _frames(trace: TracebackType | None) -> list[tuple[str, int]]:
    """File and line of each template on the stack, outermost first, whether or not Jinja rewrote the traceback."""
    frames: list[tuple[str, int]] = []
    while trace is not None:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if isinstance(template, Template):
            frames.append((str(template.filename), template.get_corresponding_lineno(trace.tb_lineno)))
        elif "__jinja_exception__" in trace.tb_frame.f_globals:
            frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return frames


def _rendering_frames() -> Iterator[tuple[str, int]]:
    """File and line of each template that is being rendered, innermost first."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        template = frame.f_globals.get("__jinja_template__")
        if isinstance(template, Template):
            yield str(template.filename), template.get_corresponding_lineno(frame.f_lineno)
        frame = frame.f_back


def _line_start(raw: str, line: int) -> int:
    offset = 0
    for _ in range(line - 1):
        offset = raw.find("\n", offset) + 1
    return offset


def _place(path: str, raw: str, offset: int) -> Location:
    return Location(path, raw.count("\n", 0, offset) + 1, offset - raw.rfind("\n", 0, offset))
