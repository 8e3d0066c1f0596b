"""The trees of Spark SQL. `parser` makes them of texts; what they mean, `expressions` and `queries` say."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmesh_like.cdc.in_process.values import Value


@dataclass(frozen=True)
class Literal:
    value: Value


@dataclass(frozen=True)
class Path:
    """Names with dots between: a column, with the relation before it or members behind it."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """A function, or an operator under its own sign."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Case:
    """`case`, or `case subject`; each of `whens` is a condition, or a value, and a result."""

    subject: Expression | None
    whens: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression


@dataclass(frozen=True)
class Cast:
    value: Expression
    type: Type


@dataclass(frozen=True)
class Member:
    """A member of a struct by `name`."""

    value: Expression
    name: str


@dataclass(frozen=True)
class Lambda:
    parameters: tuple[str, ...]
    body: Expression


Expression = Literal | Path | Call | Case | Cast | Member | Lambda


@dataclass(frozen=True)
class Type:
    """A type: its name, of `decimal` the digits, of others the members (name, type); a list's has no name."""

    name: str
    digits: tuple[int, ...] = ()
    members: tuple[tuple[str, Type], ...] = ()


@dataclass(frozen=True)
class Item:
    """An entry of a SELECT: an expression, None for `*`, and its names, two for a generator's position and value."""

    expression: Expression | None
    names: tuple[str, ...]


@dataclass(frozen=True)
class Relation:
    """A table or a query, and the name before its columns."""

    source: str | Query
    alias: str | None


@dataclass(frozen=True)
class Join:
    """A left join `on` a condition, or a left semi join `using` columns."""

    relation: Relation
    on: Expression | None = None
    using: tuple[str, ...] = ()


@dataclass(frozen=True)
class Select:
    items: tuple[Item, ...]
    relation: Relation | None
    joins: tuple[Join, ...] = ()
    where: Expression | None = None
    groups: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Query:
    """SELECTs whose rows are put together (UNION ALL), over named queries."""

    selects: tuple[Select, ...]
    named: tuple[tuple[str, Query], ...] = ()
