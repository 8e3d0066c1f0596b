"""The dialect that trees are written in. Owns its generators, which are used again: each one costs memory for good.

sqlglot makes a generator for each text. As compiled (`sqlglotc`, 30.30) each one whose class has its own SELECT_KINDS
loses 56 bytes, the tuple that its base class had put there: megabytes a day in a process that runs each minute. So
trees are written by `tree.sql(SPARK)`; the dialect's name instead of it is for tests and examples.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.spark import Spark
from sqlglot.generator import Generator
from sqlglot.helper import name_sequence

_idle: dict[tuple[type[Generator], frozenset[tuple[str, Any]]], list[Generator]] = {}
"""Generators in no use by class and options: as many as were at work at once, in threads or for trees within trees."""


def generate_again(self: Dialect, expression: exp.Expr, copy: bool = True, **options: Any) -> str:
    """`Dialect.generate` with a generator that was used before. Safe in threads. Raises what sqlglot raises."""
    idle = _idle.setdefault((self.generator_class, frozenset(options.items())), [])
    try:
        generator = idle.pop()
    except IndexError:
        generator = self.generator(**options)
    text = generator.generate(expression, copy=copy)
    generator._next_name = name_sequence("_t")  # what a text leaves behind; after an error it may be more
    idle.append(generator)
    return text


class _Spark(Spark):
    generate = generate_again


SPARK = _Spark()
