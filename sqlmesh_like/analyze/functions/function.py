"""What is known of one function, and how a line of the table states it. Owns the records.

A line is `names {counts}: parameters -> result`. A name is followed by `=Class(parts)` where sqlglot has a class for
it: the parts of a node that hold its arguments, in Spark's order (`this` alone where there are no brackets).
Counts are the least and most arguments, where a line has no signature or the function has more forms than it states.

A parameter is a type or class of types (`coercion.implicit_cast`) and may end with `?` (may be left out) or `*` (any
number of times); `=` before it: nothing is converted. `T` stands for the one type to which all arguments at such
parameters are widened, `U` for the same without texts winning, `A` and `M` for that of arrays and maps. In a result
`$1` is the converted type of the first argument, and `$1.element`, `$1.key` and `$1.value` are parts of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

MANY = 1_000_000
"""More arguments than any call has."""
Decided = Literal["arguments", "group", "window", "chance", "else"]
"""What decides a function's result: its arguments alone, the rows of a group or window, chance or the place of a row in
files, or else: the session, the clock, other code. Generators, and functions whose values cannot be compared (maps,
intervals), count as the last."""
_NAME = re.compile(r"(\w+)(?:=(\w+)(?:\(([\w ]*)\))?)?")
_LINE = re.compile(r"(?P<names>[^:{]+?)\s*(?:\{(?P<counts>[\d-]+)\})?\s*(?::(?P<signature>.*))?")


@dataclass(frozen=True)
class Signature:
    """Parameters of a function, and its result; `is_last_repeated`: the last parameter takes any number of values."""

    parameters: tuple[str, ...]
    required: int
    is_last_repeated: bool
    result: str

    def parameter(self, position: int) -> str | None:
        if position < len(self.parameters):
            return self.parameters[position]
        return self.parameters[-1] if self.is_last_repeated else None


@dataclass(frozen=True)
class Function:
    """A function of Spark by its name (lower case).

    `kind` is its class in a tree and `parts` where its arguments are. Without a signature the type of its result is not
    known, or has a rule of its own. `stated_counts` are those of the line, if it has any.
    """

    name: str
    decided_by: Decided
    kind: type[exp.Expr] | None = None
    parts: tuple[str, ...] = ()
    signature: Signature | None = None
    stated_counts: tuple[int, int] | None = None

    @property
    def counts(self) -> tuple[int, int] | None:
        """Least and most arguments; None if they are not known."""
        if self.stated_counts is not None or self.signature is None:
            return self.stated_counts
        signature = self.signature
        return signature.required, MANY if signature.is_last_repeated else len(signature.parameters)


def functions_of(table: str, decided_by: Decided) -> Iterator[Function]:
    """The functions of the lines of a table; a line goes on where the next one is indented.

    >>> (pi, instr) = functions_of("pi=Pi() {0}\\ninstr=StrPosition(this substr): string, string -> int", "arguments")
    >>> pi.parts, pi.counts, instr.kind.__name__, instr.counts, instr.signature.result
    ((), (0, 0), 'StrPosition', (2, 2), 'int')
    """
    for line in re.sub(r"\n\s+", " ", table.strip()).splitlines():
        match = _LINE.fullmatch(line)
        assert match is not None, line
        signature = None if match["signature"] is None else _signature(match["signature"])
        for name in _NAME.finditer(match["names"]):
            kind: type[exp.Expr] | None = None if name[2] is None else getattr(exp, name[2])
            parts = ("this",) if name[3] is None else tuple(name[3].split())
            yield Function(name[1], decided_by, kind, parts if kind else (), signature, _counts(match["counts"]))


def _signature(text: str) -> Signature:
    listed, _, result = (part.strip() for part in text.partition("->"))
    parts = listed.split(", ") if listed else []
    return Signature(
        tuple(part.rstrip("?*") for part in parts),
        sum(part[-1] not in "?*" for part in parts),
        bool(parts) and parts[-1].endswith("*"),
        result,
    )


def _counts(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    least, dash, most = text.partition("-")
    return int(least), int(most) if most else MANY if dash else int(least)
