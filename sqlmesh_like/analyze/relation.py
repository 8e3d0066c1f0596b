"""The relational algebra that plans are derived from. Owns its node types; `reader` builds them from SQL.

A relation has uniquely named output columns (compared without case, as Spark does). Expressions inside a node are
sqlglot trees whose columns are unqualified names of the child's output. Every relation also carries a row key,
`_sml_key`, unique and non-null within the relation, which the delta compiler threads through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.names import Column, Schema


@dataclass(frozen=True)
class Named:
    """An expression and the output column it becomes; `type` is a Spark type, None where it is not proven."""

    name: str
    expression: exp.Expr
    type: str | None


@dataclass(frozen=True)
class Scan:
    """Rows of one input. `schema` holds its visible columns."""

    input_id: str
    schema: Schema


@dataclass(frozen=True)
class Filter:
    """The child's rows for which the condition is true (not NULL)."""

    child: Relation
    condition: exp.Expr


@dataclass(frozen=True)
class Project:
    """One output row for each row of the child; no window functions, no aggregates."""

    child: Relation
    items: tuple[Named, ...]


@dataclass(frozen=True)
class Windowed:
    """A projection that holds window functions; `partitions` has the PARTITION BY list of each."""

    child: Relation
    items: tuple[Named, ...]
    partitions: tuple[tuple[exp.Expr, ...], ...]


@dataclass(frozen=True)
class UnionAll:
    """The rows of all branches; columns by position, names of the first."""

    branches: tuple[Relation, ...]
    schema: Schema


@dataclass(frozen=True)
class Distinct:
    """The child's rows without duplicates. `offset`: where the SELECT list starts in the compiled text."""

    child: Relation
    offset: int | None = None


@dataclass(frozen=True)
class Call:
    """One aggregate call. `argument` is None for COUNT(*); FILTER is already folded into it.

    `sql` and `offset` (in the compiled text) are for people; `distinct` and `function` decide how it is maintained.
    """

    name: str
    function: str
    argument: exp.Expr | None
    argument_type: str | None
    distinct: bool
    call: exp.Expr
    sql: str
    offset: int | None


@dataclass(frozen=True)
class Aggregate:
    """One row for each distinct combination of `keys` (one in all where there are none).

    `items` are the visible output: expressions over key names and call names.
    """

    child: Relation
    keys: tuple[Named, ...]
    calls: tuple[Call, ...]
    items: tuple[Named, ...]


Relation = Scan | Filter | Project | Windowed | UnionAll | Distinct | Aggregate


def columns(relation: Relation) -> Schema:
    """Output columns of a relation with their types."""
    match relation:
        case Scan(schema=schema) | UnionAll(schema=schema):
            return schema
        case Filter(child=child) | Distinct(child=child):
            return columns(child)
        case Project(items=items) | Windowed(items=items) | Aggregate(items=items):
            return tuple(Column(item.name, item.type) for item in items)


def children(relation: Relation) -> tuple[Relation, ...]:
    match relation:
        case Scan():
            return ()
        case UnionAll(branches=branches):
            return branches
        case Filter() | Project() | Windowed() | Distinct() | Aggregate():
            return (relation.child,)


def walk(relation: Relation) -> Iterator[Relation]:
    """The relation and everything below it, top first."""
    yield relation
    for child in children(relation):
        yield from walk(child)


def inputs(relation: Relation) -> tuple[str, ...]:
    """Ids of the inputs that are read, in order of first appearance."""
    return tuple(dict.fromkeys(node.input_id for node in walk(relation) if isinstance(node, Scan)))


def is_row_wise(relation: Relation) -> bool:
    """Whether each output row is a function of exactly one input row."""
    return all(isinstance(node, Scan | Filter | Project | UnionAll) for node in walk(relation))


def used_columns(relation: Relation) -> dict[str, tuple[str, ...]]:
    """For each input the columns that the result depends on, in the input's order."""
    used: dict[str, set[str]] = {}
    _collect(relation, None, used)
    schemas = {node.input_id: node.schema for node in walk(relation) if isinstance(node, Scan)}
    return {
        input_id: tuple(column.name for column in schema if column.name.lower() in used.get(input_id, set()))
        for input_id, schema in schemas.items()
    }


def _collect(relation: Relation, needed: set[str] | None, used: dict[str, set[str]]) -> None:
    """Add the columns needed of each scan; `needed` None means all columns of this relation."""
    match relation:
        case Scan():
            wanted = needed if needed is not None else {column.name.lower() for column in relation.schema}
            used.setdefault(relation.input_id, set()).update(wanted)
        case Filter():
            own = _names([relation.condition])
            _collect(relation.child, None if needed is None else needed | own, used)
        case Distinct():
            _collect(relation.child, None, used)
        case UnionAll():
            for branch in relation.branches:
                _collect(branch, None, used)
        case Project() | Windowed():
            items = [i.expression for i in relation.items if needed is None or i.name.lower() in needed]
            _collect(relation.child, _names(items), used)
        case Aggregate():
            read = [key.expression for key in relation.keys] + [call.call for call in relation.calls]
            _collect(relation.child, _names(read), used)


def _names(expressions: list[exp.Expr]) -> set[str]:
    return {column.name.lower() for e in expressions for column in e.find_all(exp.Column)}
