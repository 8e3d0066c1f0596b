"""Random queries, one operator over others. Owns what every operator uses; each kind of operator has its own file.

Each query says which constructs it has, so that a test can count whether all of them were tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.properties.expressions import OTHER, Col, expression, of, quoted
from tests.properties.values import Columns, names

X = TypeVar("X")


@dataclass(frozen=True)
class Built:
    """A query and its output columns (one integer at least), with the constructs that it has."""

    sql: str
    columns: tuple[Col, ...]
    constructs: frozenset[str] = field(default=frozenset())


@dataclass(frozen=True)
class Source:
    """An item of FROM under an alias."""

    sql: str
    alias: str
    query: Built

    @property
    def columns(self) -> list[Col]:
        """Its columns, qualified."""
        return [Col(f"{quoted(self.alias)}.{c.name}", c.type, c.copied) for c in self.query.columns]

    def under(self, alias: str) -> Source:
        """The same rows once more."""
        return Source(f"{self.sql.removesuffix(quoted(self.alias))}{quoted(alias)}", alias, self.query)


Maker = Callable[["Builder", int, str], Built]
"""Draws an operator over sources of that many operators in all; the text is the construct that it must have."""


@dataclass(frozen=True)
class Builder:
    """Draws queries over some tables with some operators."""

    draw: DrawFn
    tables: Mapping[str, Columns]
    makers: Mapping[str, Maker]

    def one_of(self, options: Sequence[X]) -> X:
        return self.draw(st.sampled_from(options))

    def shuffled(self, options: Sequence[X]) -> list[X]:
        return self.draw(st.permutations(options))

    def sometimes(self, share: int = 3) -> bool:
        """True once in `share` cases."""
        return self.draw(st.integers(1, share)) == share

    def query(self, size: int, wanted: str = "") -> Built:
        """A query of `size` operators; the top one has the wanted construct, if there is one."""
        if size == 0:
            table = self.one_of(sorted(self.tables))
            return Built(f"select * from ods.{table}", tuple(Col(quoted(n), t, True) for n, t in self.tables[table]))
        construct = wanted or self.one_of(tuple(self.makers))
        made = self.makers[construct](self, size - 1, construct)
        return Built(made.sql, made.columns, made.constructs | {construct})

    def source(self, size: int, alias: str) -> Source:
        """A query in FROM: a table by its name, all else in parentheses."""
        query = self.query(size)
        is_table = size == 0 and not query.constructs
        text = query.sql.removeprefix("select * from ") if is_table else f"({query.sql})"
        return Source(f"{text} as {quoted(alias)}", alias, query)

    def two(self, size: int, left: str, right: str) -> tuple[Source, Source]:
        """Two sources that share the operators."""
        first = self.draw(st.integers(0, size))
        return self.source(first, left), self.source(size - first, right)

    def where(self, columns: Sequence[Col], share: int = 3, word: str = "where") -> str:
        return f" {word} {expression(self.draw, columns, 'boolean')}" if self.sometimes(share) else ""

    def some(self, columns: Sequence[Col], least: int = 1, most: int = 4) -> list[Col]:
        """Some columns, an integer first."""
        first = self.one_of(of(columns, "int"))
        others = [column for column in columns if column != first]
        count = self.draw(st.integers(least - 1, most - 1))
        return [first, *(self.draw(st.lists(st.sampled_from(others), max_size=count, unique=True)) if others else [])]

    def named(self, items: Sequence[Col]) -> tuple[str, tuple[Col, ...]]:
        """A SELECT list of expressions under new names, and the columns that it makes."""
        new = self.draw(names(len(items)))
        text = ", ".join(f"{item.name} as {quoted(name)}" for item, name in zip(items, new, strict=True))
        return text, tuple(Col(quoted(n), item.type, item.copied) for item, n in zip(items, new, strict=True))

    def computed(self, columns: Sequence[Col], types: Sequence[str], depth: int = 2) -> list[Col]:
        """Expressions of these types."""
        return [Col(expression(self.draw, columns, type_, depth), type_) for type_ in types]


def made(*sources: Source | Built) -> frozenset[str]:
    """The constructs of all of them."""
    queries = [source.query if isinstance(source, Source) else source for source in sources]
    return frozenset(construct for query in queries for construct in query.constructs)


__all__ = ["OTHER", "Builder", "Built", "Col", "Maker", "Source", "made", "of"]
