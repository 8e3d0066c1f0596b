"""Generators, which are used again: each one costs memory for good. Owns their life, and which nodes they write anew.

sqlglot makes a generator for each text. As compiled (`sqlglotc`, 30.30) each one whose class has its own SELECT_KINDS
loses 56 bytes, the tuple that its base class had put there: megabytes a day in a process that runs each minute. So
trees are written by `tree.sql(SPARK)`; the dialect's name instead of it is for tests and examples. Also owns what
sqlglot's parser of Spark's SQL would lose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.generator import Generator
from sqlglot.helper import name_sequence

Write = Callable[[Generator, Any], str]


@dataclass(frozen=True)
class _Generators:
    """Generators with the same options. `idle`: as many as were at once at work, in threads or for parts of a tree."""

    dialect: Dialect
    options: Mapping[str, Any]
    writes: Mapping[type[exp.Expr], Write]
    nests_ctes: bool
    idle: list[Generator] = field(default_factory=list)

    def text(self, expression: exp.Expr, copy: bool) -> str:
        generator = self._take_generator()
        if self.nests_ctes and expression.find(exp.With) is not None:
            text = _below(expression, generator)
        else:
            text = generator.generate(expression, copy=copy)
        generator._next_name = name_sequence("_t")  # what a text leaves behind; after an error it may be more
        self.idle.append(generator)
        return text

    def _take_generator(self) -> Generator:
        try:
            return self.idle.pop()
        except IndexError:
            generator = self.dialect.generator(**self.options)
            # The compiled classes cannot be subclassed, but each generator has its own table of what writes a node.
            generator._dispatch = {**generator._dispatch, **self.writes}
            return generator


def _below(expression: exp.Expr, generator: Generator) -> str:
    """The text of a query as part of a statement: at the top of a tree all of its CTEs would be moved into one WITH.

    Those further in may refer to columns around them, and have names of their own.
    """
    statement = exp.Semicolon(this=expression.copy())
    return generator.generate(statement.this, copy=False)


@cache
def _generators(dialect: type[Dialect], options: frozenset[tuple[str, Any]]) -> _Generators:
    return _Generators(dialect(), dict(options), getattr(dialect, "writes", {}), getattr(dialect, "nests_ctes", False))


def generate_again(self: Dialect, expression: exp.Expr, copy: bool = True, **options: Any) -> str:
    """`Dialect.generate` with a generator that was used before. Safe in threads. Raises what sqlglot raises.

    Of the dialect's class, if it has them: `writes`, what writes a node in another form than sqlglot's, by class;
    `nests_ctes`, whether each WITH stays where it is in the tree.
    """
    return _generators(type(self), frozenset(options.items())).text(expression, copy)
