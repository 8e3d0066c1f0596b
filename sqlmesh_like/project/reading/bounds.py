"""How much a template may use: size of a value, CPU seconds, memory. Owns the limits and their enforcement.

A single operation that could create a huge value is refused before it begins (`BoundedSandbox`). The total of many
small ones is watched from a separate thread, which ends the rendering (`enforce_limits`): a loop in a loop, a macro
that calls itself twice, a regular expression that backtracks.
"""

from __future__ import annotations

import _thread
import ctypes
import datetime
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import BuiltinMethodType, FrameType

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, optimizeconst
from jinja2.environment import TemplateExpression
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context, str_join
from jinja2.sandbox import SandboxedEnvironment

from sqlmesh_like.project.reading.file_dependencies import record_clock

MAX_SIZE = 10_000_000
"""Characters of a text, items of a list or bits of a number that a template may create in one step."""
MAX_SECONDS = 2.0
"""CPU seconds; waiting for a lake does not count."""
MAX_GROWTH = 400_000_000
"""Bytes that a process may grow by while it renders one template."""
_POLL_SECONDS = 0.02
_HAS_TIMER = hasattr(signal, "setitimer")
_SIGNAL = getattr(signal, "SIGVTALRM", signal.SIGINT)
_LONG_NUMBER = re.compile(r"\d{8,}")
TOO_LARGE = "a value of it would be too large"


class TemplateLimit(BaseException):
    """A template uses too much time or memory. Not an `Exception`, so that no handler for those catches it."""

    reason = "it takes too long, or too much memory"


# -- single steps --------------------------------------------------------------------------------------------------


def _require(size: int) -> None:
    if size > MAX_SIZE:
        raise SecurityError(TOO_LARGE)


def _size(value: object) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple) else 0


def _text_size(values: Iterable[object]) -> int:
    return sum(len(value) if isinstance(value, str | bytes) else 1 for value in values)


def _check_format(text: str, values: Iterable[object]) -> None:
    if _LONG_NUMBER.search(text):
        raise SecurityError(TOO_LARGE)
    _check_numbers(values)


def _check_numbers(values: Iterable[object]) -> None:
    """Refuse a large number as a width, a count or a number of digits."""
    for value in values:
        if isinstance(value, int) and abs(value) > MAX_SIZE and not isinstance(value, bool):
            raise SecurityError(TOO_LARGE)


def _check_replace(text: object, old: object, new: object) -> None:
    if isinstance(text, str) and isinstance(old, str) and isinstance(new, str):
        _require(len(text) + (text.count(old) if old else len(text) + 1) * len(new))


def _check_join(values: object, between: object) -> None:
    if isinstance(values, list | tuple):
        _require(_text_size(values) + len(values) * _size(between))


_CLOCKS = frozenset({"now", "utcnow", "today"})
_SIZED_METHODS = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs", "to_bytes"})
_SIZED_FILTERS = ("center", "indent", "wordwrap", "batch", "slice", "round", "filesizeformat")


def _check_method(function: object, args: tuple[object, ...]) -> None:
    if not isinstance(function, BuiltinMethodType):
        return
    owner, name = function.__self__, function.__name__
    if name in _CLOCKS and isinstance(owner, type) and issubclass(owner, datetime.date):
        record_clock()
    if isinstance(owner, str | bytes):
        if name == "replace" and len(args) >= 2:
            _check_replace(owner, args[0], args[1])
        elif name == "join" and args:
            _check_join(args[0], owner)
        elif name in ("format", "format_map") and isinstance(owner, str):
            _check_format(owner, args)
        elif name == "translate" and args and isinstance(args[0], Mapping):
            _require(len(owner) * max((_size(value) for value in args[0].values()), default=1))
    if name in _SIZED_METHODS:
        _check_numbers(args)
    elif name == "extend" and isinstance(owner, list) and args:
        _require(len(owner) + _size(args[0]))


def _guard_filter(filter_: Callable[..., object], check: Callable[..., None]) -> Callable[..., object]:
    @wraps(filter_)  # Jinja marks filters by attributes
    def call(*args: object, **named: object) -> object:
        check(*args, *named.values())
        return filter_(*args, **named)

    return call


def _check_format_filter(text: object, *values: object) -> None:
    _check_format(str(text), values)


def _check_replace_filter(_: object, text: object, old: object = "", new: object = "", *_rest: object) -> None:
    _check_replace(str(text), old, new)


def _check_join_filter(_: object, values: object, between: object = "", *_rest: object) -> None:
    _check_join(values, between)


_CHECKED_FILTERS = {
    **{name: _guard_filter(FILTERS[name], lambda *values: _check_numbers(values)) for name in _SIZED_FILTERS},
    "format": _guard_filter(FILTERS["format"], _check_format_filter),
    "replace": _guard_filter(FILTERS["replace"], _check_replace_filter),
    "join": _guard_filter(FILTERS["join"], _check_join_filter),
}
"""Jinja's filters whose result may be many times as large as what they are given."""


class _Generator(CodeGenerator):
    """`a ~ b` goes through the environment, as other operators do."""

    @optimizeconst
    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.join_operands((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


@contextmanager
def _unread_escapes() -> Iterator[None]:
    """Accept a pattern in a template (`'\\s+'`) as it is, as dbt does: Python would warn about it."""
    with warnings.catch_warnings():
        for category in (DeprecationWarning, SyntaxWarning):
            warnings.filterwarnings("ignore", r".*invalid (octal )?escape sequence", category)
        yield


class BoundedSandbox(SandboxedEnvironment):
    """A sandbox in which no single step takes all memory, or forever."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})
    code_generator_class = _Generator

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.filters.update(_CHECKED_FILTERS)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        with _unread_escapes():
            return super()._parse(source, name, filename)

    def compile_expression(self, source: str, undefined_to_none: bool = True) -> TemplateExpression:
        with _unread_escapes():
            return super().compile_expression(source, undefined_to_none)

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """The output of a template or a macro."""
        texts = list(parts)
        _require(_text_size(texts))
        return "".join(texts)

    @staticmethod
    def join_operands(parts: tuple[object, ...]) -> str:
        """The result of `a ~ b`."""
        _require(_text_size(parts))
        return str_join(parts)

    def wrap_str_format(self, value: object) -> Callable[..., str] | None:
        """Jinja's replacement for `text.format`, which here also refuses large widths."""
        formatted = super().wrap_str_format(value)
        text = value.__self__ if isinstance(value, BuiltinMethodType) else None
        if formatted is None or not isinstance(text, str):
            return formatted

        @wraps(formatted)
        def format_checked(*args: object, **named: object) -> str:
            _check_format(text, (*args, *named.values()))
            return formatted(*args, **named)

        return format_checked

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        """The result. Raises SecurityError if it would be too large."""
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            _require(left.bit_length() * abs(right))
        elif operator == "*":
            for many, times in ((left, right), (right, left)):
                if isinstance(times, int):
                    _require(_size(many) * times)
            if isinstance(left, int) and isinstance(right, int):
                _require(left.bit_length() + right.bit_length())
        elif operator == "+":
            _require(_size(left) + _size(right))
        elif operator == "%" and isinstance(left, str):
            _check_format(left, right if isinstance(right, tuple) else (right,))
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, function: object, /, *args: object, **named: object) -> object:
        """The result. Raises SecurityError if it would be too large."""
        _check_method(function, args)
        return super().call(context, function, *args, **named)


# -- many steps ----------------------------------------------------------------------------------------------------


@dataclass
class _Watch:
    """A thread that renders. `pauses`: the number of nested waits for a lake.

    `memory`: that of the process when the watcher first looked, a moment after the start; most templates end before.
    """

    thread: int
    clock: int | None
    is_main: bool
    started: float = 0.0
    memory: int | None = None
    pauses: int = 0
    is_stopped: bool = False
    reason: str = ""
    previous: object = field(default=None, repr=False)

    def begin(self) -> None:
        self.started, self.memory = self.seconds(), None

    def seconds(self) -> float:
        return time.monotonic() if self.clock is None else time.clock_gettime(self.clock)

    def excess(self) -> str:
        if self.seconds() - self.started > MAX_SECONDS:
            return f"it takes more than {MAX_SECONDS:.0f} seconds"
        memory = _memory()
        if self.memory is None:
            self.memory = memory
        return "it takes too much memory" if memory - self.memory > MAX_GROWTH else ""


_watches: dict[int, _Watch] = {}
_lock = threading.RLock()
_wake = threading.Event()
_watcher: threading.Thread | None = None
_STATE = Path("/proc/self/statm")


def _memory() -> int:
    """Bytes of resident memory; 0 if the system does not report it."""
    try:
        with _STATE.open("rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@contextmanager
def enforce_limits() -> Iterator[None]:
    """A context in which this thread gets TemplateLimit if it uses too much. If nested, the outermost counts."""
    thread = threading.get_ident()
    if thread in _watches:
        yield
        return
    watch = _begin(thread)
    try:
        try:
            yield
        finally:
            _end(watch)
    except TemplateLimit as error:
        _end(watch)  # it may have been raised within the first `_end`
        error.reason = watch.reason or error.reason
        raise


@contextmanager
def pause_limits() -> Iterator[None]:
    """A context within `enforce_limits` that waits for something with limits of its own: it does not count."""
    watch = _watches.get(threading.get_ident())
    if watch is None:
        yield
        return
    used = watch.seconds() - watch.started
    watch.pauses += 1
    try:
        yield
    finally:
        watch.begin()
        watch.started -= used
        watch.pauses -= 1


def _begin(thread: int) -> _Watch:
    global _watcher
    is_main = _HAS_TIMER and threading.current_thread() is threading.main_thread()
    clock = time.pthread_getcpuclockid(thread) if hasattr(time, "pthread_getcpuclockid") else None
    watch = _Watch(thread, clock, is_main)
    if is_main:
        watch.previous = signal.signal(_SIGNAL, _raise)
        # A timer of the system: while a regular expression is matched, no other thread of Python can run.
        signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    watch.begin()
    with _lock:
        _watches[thread] = watch
        if _watcher is None or not _watcher.is_alive():
            _watcher = threading.Thread(target=_watch_all, name="sml-template-limits", daemon=True)
            _watcher.start()
    _wake.set()
    return watch


def _end(watch: _Watch) -> None:
    with _lock:
        if _watches.pop(watch.thread, None) is None:
            return
        if watch.is_stopped and not watch.is_main:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(watch.thread), None)
    if watch.is_main:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(_SIGNAL, watch.previous or signal.SIG_DFL)  # type: ignore[arg-type]


def _begin_anew() -> None:
    """In a child process no other thread goes on, so a lock that one held would stay locked."""
    global _lock, _wake, _watcher
    _lock, _wake, _watcher = threading.RLock(), threading.Event(), None
    _watches.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _raise(_signal: int, _frame: FrameType | None) -> None:
    watch = _watches.get(threading.get_ident())
    if watch is None:
        return
    watch.reason = watch.reason or ("" if watch.pauses else watch.excess())
    if not watch.reason:  # other threads used that time
        signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS / 4)
        return
    error = TemplateLimit()
    error.reason = watch.reason
    raise error


def _watch_all() -> None:
    while True:
        _wake.wait()
        time.sleep(_POLL_SECONDS)
        with _lock:
            if not _watches:
                _wake.clear()
            for watch in _watches.values():
                with suppress(OSError):  # its thread has ended: the others are still watched
                    if not watch.pauses and (reason := watch.reason or watch.excess()):
                        watch.reason, watch.is_stopped = reason, True
                        _stop(watch)


def _stop(watch: _Watch) -> None:
    """Raise TemplateLimit in that thread; in the main one also while it runs C code that checks for signals."""
    if watch.is_main:
        _thread.interrupt_main(_SIGNAL)
    else:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(watch.thread), ctypes.py_object(TemplateLimit))
