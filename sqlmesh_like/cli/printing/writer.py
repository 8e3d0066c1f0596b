"""The one writer of everything that is printed. Owns that no text does more than to be read.

Names, rows, comments and messages come from other people: control characters, marks of direction and, in the logs of
CI, the commands that its runner takes from lines are shown, not sent. `make lint` refuses other ways to print.

Commands print by `echo`. Whatever reaches the streams in another way, such as a traceback or a message of a library,
passes `PlainStream`, which leaves only the colours of `style_text`; what draws on a terminal asks for `drawing_stream`.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

import click

from sqlmesh_like.control_characters import escape_json, escape_line, escape_lines

_COLOURS = re.compile(r"(\x1b\[(?:[01]|3[1-6]|9[03])m)")
_COMMAND = re.compile(r"(?m)^(\s*):(?=:)|#(?=#(?:\[|vso\[|teamcity\[))")
"""How lines begin that GitHub's, Azure's and TeamCity's runners obey; `##[` is obeyed anywhere in a line."""
_RUNNERS = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a text and a line end, its control characters escaped."""
    click.echo(escape_lines(str(text)), err=err)


def echo_styled(text: str, *, color: bool | None = None, err: bool = False) -> None:
    """Print a text with colours of `style_text`, which are removed where there is no terminal, or `color` is False."""
    click.echo(plain(text), color=color, err=err)


def echo_json(data: object, indent: int | None = None) -> None:
    """Print a value as JSON in which every control character is escaped."""
    click.echo(escape_json(json.dumps(data, indent=indent, ensure_ascii=False, default=str)))


def echo_sql(sql: str) -> None:
    """Print SQL; a control character is written as Spark reads it in a text: `\\u001b`."""
    click.echo(escape_json(sql))


def echo_commands(text: str) -> None:
    """Print lines that are commands to the runner of CI, which the caller has made."""
    _write_through(escape_lines(text))


def echo_rows(text: str) -> None:
    """Print rows for a program: unchanged into a file or a pipe, shown on a terminal."""
    if sys.stdout.isatty():
        echo(text)
    else:
        _write_through(text)


def style_text(text: str, fg: str | None = None, *, bold: bool | None = None) -> str:
    """Return a text with a colour, its control characters escaped."""
    return click.style(escape_line(text), fg=fg, bold=bold)


def plain(text: str) -> str:
    """Return a text in which nothing but colours is sent to a terminal.

    >>> print(plain("a\\x1b[2Jb\\x1b[31mc\\x1b[0m")
    ... .replace("\\x1b", "ESC"))
    a\\x1b[2JbESC[31mcESC[0m
    """
    return "".join(part if _COLOURS.fullmatch(part) else escape_lines(part) for part in _COLOURS.split(text))


def without_commands(text: str) -> str:
    """Return a text without lines that a runner of CI obeys, spelt so that JSON, and Spark in a text, read the same.

    >>> print(without_commands("::set-env name=a::b\\n ##[group]\\na::int"))
    \\u003a:set-env name=a::b
     \\u0023#[group]
    a::int
    """
    return _COMMAND.sub(lambda sign: f"{sign[1]}\\u003a" if sign[1] is not None else "\\u0023", text)


class PlainStream:
    """A text stream on which nothing but text and colours is written; other methods are those of the stream."""

    def __init__(self, stream: TextIO) -> None:
        self.drawn_on = stream

    def write(self, text: str) -> int:
        line = plain(text)
        if ("::" in line or "##" in line) and _is_obeyed(self.drawn_on):
            line = without_commands(line)
        self.drawn_on.write(line)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.drawn_on, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.drawn_on)


def _is_obeyed(stream: TextIO) -> bool:
    """Whether a runner of CI reads the stream: not if it is a file."""
    if not any(os.environ.get(name) for name in _RUNNERS):
        return False
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return True


def drawing_stream(stream: TextIO) -> TextIO:
    """Return the stream for what draws, such as a bar: the caller escapes all texts."""
    return stream.drawn_on if isinstance(stream, PlainStream) else stream


def plain_stream(stream: TextIO) -> TextIO:
    return cast(TextIO, PlainStream(drawing_stream(stream)))


def _write_through(text: str) -> None:
    """Print a text as it is, and a line end."""
    stream = drawing_stream(sys.stdout)
    stream.write(f"{text}\n")
    stream.flush()


@contextmanager
def plain_streams() -> Iterator[None]:
    """Make both streams of the process plain while the context is open."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (plain_stream(stream) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
