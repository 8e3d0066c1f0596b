"""What went wrong in a template, and where. Owns the texts of errors, and finding their positions in files.

Jinja knows only the first line of a tag of several lines: a pattern of the error finds its position there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from types import FrameType, TracebackType

from jinja2 import Template, TemplateError, UndefinedError
from jinja2.exceptions import SecurityError

from sqlmesh_like.errors import JinjaError, SmlError, nearest
from sqlmesh_like.project.reading.bounds import TemplateLimit
from sqlmesh_like.project.reading.values import MissingValue

MACRO_PREFIX = "sml_macro__"
"""Prefix of macros inside their file; they are called through the scope, under their own names."""


MAY_BE_PACKAGE = "macros of a package are there once packages.yml names it and `sml deps` has run"
"""Hint for a name that resembles none."""


class TemplateFault(JinjaError):
    """An error raised by a function that a template called; `pattern` finds the call in the template's text."""

    def __init__(self, message: str, pattern: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.pattern = pattern


class MacroReturn(BaseException):
    """Carries `return(value)` out of a macro; it is not an error, so no `except Exception` may catch it."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


def explain_error(error: BaseException, scope: Mapping[str, object]) -> tuple[str, tuple[str, ...], str | None]:
    """Message, patterns that find the position of the cause, and hint."""
    tag = r"\{[{%]"
    match error:
        case TemplateFault() | MissingValue():
            return error.message, (error.pattern, tag), error.hint
        case SmlError():
            return error.message, (tag,), error.hint
        case UndefinedError():
            return explain_undefined(error.message or "something is undefined", scope)
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
        case TypeError() if wrong := _wrong_call(str(error)):
            return wrong[0], (rf"\b{wrong[1]}\s*\(", tag), wrong[2]
        case _:
            return f"{type(error).__name__}: {error}", (tag,), None


def _wrong_call(said: str) -> tuple[str, str, str | None] | None:
    """Message, name and hint of a call with wrong arguments, from Python's or Jinja's text; None if it is none."""
    if macro := re.match(r"macro '(\w+)' takes (not more than (\d+) argument|no keyword argument '(\w+)')", said):
        written, most = macro[1].removeprefix(MACRO_PREFIX), macro[3]
        name = written.removeprefix("test_")
        kind = "macro" if name == written else "data test"
        hint = f"its parameters are those of {{% {kind.removeprefix('data ')} {name}(…) %}}"
        if most is None:
            return f"{kind} {name!r} has no parameter {macro[4]!r}", written, hint
        return f"{kind} {name!r} takes at most {most} argument{'' if most == '1' else 's'}", written, hint
    if call := re.match(r"(?:\w+\.|<locals>\.)*(\w+)\(\) (missing|takes|got) (.*)", said):
        return f"{call[1]}() {call[2]} {call[3]}", call[1], None
    return None


def explain_undefined(message: str, scope: Mapping[str, object]) -> tuple[str, tuple[str, ...], str | None]:
    missing = re.fullmatch(r"'(\w+)' is undefined", message)
    if missing:
        name = missing[1].removeprefix(MACRO_PREFIX)
        known = [key for key in scope if not key.startswith("_")]
        hint = nearest(name, known) or MAY_BE_PACKAGE
        return f"{name!r} is not defined: no such macro, function or variable", (rf"\b{name}\b",), hint
    attribute = re.search(r"has no attribute '(\w+)'", message)
    package = re.fullmatch(r"package '(\w+)' has no macro '(\w+)'", message)
    if package:
        macros = scope.get(package[1])
        near = nearest(package[2], list(macros) if isinstance(macros, Mapping) else [])
        pattern = rf"\b{package[1]}\s*\.\s*{package[2]}\b"
        return message, (pattern, r"\{[{%]"), near or "another version of the package may have it"
    pattern = rf"\b{attribute[1]}\b" if attribute else r"\{[{%]"
    message = re.sub(r"'[\w.]*\.Template(\w+) object'", lambda kind: f"a {kind[1].lower()}", message)
    return message, (pattern, r"\{[{%]"), None


def frames_of(trace: TracebackType | None) -> list[tuple[str, int]]:
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


def rendering_frames() -> Iterator[tuple[str, int]]:
    """File and line of each template that is being rendered, innermost first."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        template = frame.f_globals.get("__jinja_template__")
        if isinstance(template, Template):
            yield str(template.filename), template.get_corresponding_lineno(frame.f_lineno)
        frame = frame.f_back


def line_start(raw: str, line: int) -> int:
    offset = 0
    for _ in range(line - 1):
        offset = raw.find("\n", offset) + 1
    return offset
