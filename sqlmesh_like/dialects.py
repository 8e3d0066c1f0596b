"""The dialect that trees are written in. Owns its generators, which are used again: each one costs memory for good.

sqlglot makes a generator for each text. As compiled (`sqlglotc`, 30.30) each one whose class has its own SELECT_KINDS
loses 56 bytes, the tuple that its base class had put there: megabytes a day in a process that runs each minute. So
trees are written by `tree.sql(SPARK)`; the dialect's name instead of it is for tests and examples. Also owns what
sqlglot's parser of Spark's SQL would lose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.spark import Spark
from sqlglot.generator import Generator
from sqlglot.helper import name_sequence
from sqlglot.parser import Parser
from sqlglot.parsers.spark import SparkParser


@dataclass(frozen=True)
class _Generators:
    """Generators with the same options. `idle`: as many as were at once at work, in threads or for parts of a tree."""

    dialect: Dialect
    options: Mapping[str, Any]
    idle: list[Generator] = field(default_factory=list)

    def text(self, expression: exp.Expr, copy: bool) -> str:
        try:
            generator = self.idle.pop()
        except IndexError:
            generator = self.dialect.generator(**self.options)
        text = generator.generate(expression, copy=copy)
        generator._next_name = name_sequence("_t")  # what a text leaves behind; after an error it may be more
        self.idle.append(generator)
        return text


@cache
def _generators(dialect: type[Dialect], options: frozenset[tuple[str, Any]]) -> _Generators:
    return _Generators(dialect(), dict(options))


def generate_again(self: Dialect, expression: exp.Expr, copy: bool = True, **options: Any) -> str:
    """`Dialect.generate` with a generator that was used before. Safe in threads. Raises what sqlglot raises."""
    return _generators(type(self), frozenset(options.items())).text(expression, copy)


def _within_group(self: Generator, node: exp.WithinGroup) -> str:
    return f"{self.sql(node, 'this')} WITHIN GROUP ({self.sql(node, 'expression').strip()})"


# sqlglot writes these as an approximation and as a cast to text. As compiled its generators have no subclasses.
Spark.Generator.TRANSFORMS.update({
    exp.WithinGroup: _within_group,
    exp.PercentileCont: lambda self, node: self.func("PERCENTILE_CONT", node.this),
    exp.PercentileDisc: lambda self, node: self.func("PERCENTILE_DISC", node.this),
    exp.ToChar: lambda self, node: self.func("TO_CHAR", node.this, node.args.get("format")),
})  # fmt: skip


def _positive(parser: Parser) -> exp.Expr | None:
    """What a plus stands before. sqlglot drops the sign, but Spark makes a double of a text there."""
    operand = parser._parse_unary()
    literal = operand.this if isinstance(operand, exp.Neg) else operand
    is_number = literal is None or (isinstance(literal, exp.Literal) and not literal.is_string)
    return operand if is_number else exp.Anonymous(this="positive", expressions=[operand])


# Assigned, because a compiled parser cannot be inherited from.
SparkParser.UNARY_PARSERS = {**SparkParser.UNARY_PARSERS, TokenType.PLUS: _positive}


class _Spark(Spark):
    generate = generate_again


SPARK = _Spark()
