"""The relational algebra that plans are derived from. Owns its node types; `binder` builds them from SQL.

A relation has uniquely named output columns (compared without case, as Spark does). Expressions inside a node are
sqlglot trees whose columns are unqualified names of the child's output. Every relation also carries a row key,
`_sml_key`, unique and non-null within the relation, which the delta compiler threads through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from sqlglot import exp

from sqlmesh_like.names import Column, Schema


@dataclass(frozen=True)
class Named:
    """An expression and the output column it becomes; `type` is a Spark type, None where it is not proven."""

    name: str
    expression: exp.Expr
    type: str | None


class _Listing:
    """A relation whose columns are its items."""

    items: tuple[Named, ...]

    @cached_property
    def schema(self) -> Schema:
        """Output columns; cached, because every relation above reads them."""
        return tuple(Column(item.name, item.type) for item in self.items)


@dataclass(frozen=True)
class Scan:
    """Rows of one input. `schema` holds its visible columns."""

    input_id: str
    schema: Schema


@dataclass(frozen=True)
class OneRow:
    """One row without columns, whatever the inputs have: what a SELECT without FROM, and VALUES, compute on."""


@dataclass(frozen=True)
class Filter:
    """The child's rows for which the condition is true (not NULL)."""

    child: Relation
    condition: exp.Expr


@dataclass(frozen=True)
class Projection(_Listing):
    """One output row for each row of the child; no window functions, no aggregates."""

    child: Relation
    items: tuple[Named, ...]


@dataclass(frozen=True)
class Windowed(_Listing):
    """A projection that contains window functions; `partitions` has the PARTITION BY list of each."""

    child: Relation
    items: tuple[Named, ...]
    partitions: tuple[tuple[exp.Expr, ...], ...]


@dataclass(frozen=True)
class Explode:
    """One row per array element for each row of the child, in the array's order; none for a NULL or empty array.

    `position` (an int from 0) and `element` are added to the child's columns.
    """

    child: Relation
    array: exp.Expr
    position: str
    element: Column


@dataclass(frozen=True)
class UnionAll:
    """The rows of all branches; columns by position, names of the first."""

    branches: tuple[Relation, ...]
    schema: Schema


JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True)
class Pair:
    """One equality of a join: an expression over the left side and one over the right side."""

    left: exp.Expr
    right: exp.Expr
    is_null_safe: bool


@dataclass(frozen=True)
class Join:
    """Matching rows of both sides (`semi`, `anti`: rows of the left side only); all combinations without a condition.

    Column names of the two sides are different. `pairs` are the equalities among the condition's conjuncts. Its
    source position is the last `keyword` before `offset` in the compiled text (`offset` itself without a keyword).
    """

    left: Relation
    right: Relation
    kind: JoinKind
    condition: exp.Expr | None
    pairs: tuple[Pair, ...]
    offset: int | None = None
    keyword: str = ""


@dataclass(frozen=True)
class Distinct:
    """The child's rows without duplicates. `offset`: where the SELECT list starts in the compiled text."""

    child: Relation
    offset: int | None = None


@dataclass(frozen=True)
class Call:
    """One aggregate call. `argument` is None for COUNT(*); FILTER is already folded into it.

    `type` is that of its result. `sql` and `offset` (in the compiled text) are for messages; `distinct` and `function`
    decide how it is maintained; `tolerance` is that of sums of floating numbers, None where these are recomputed.
    """

    name: str
    function: str
    argument: exp.Expr | None
    argument_type: str | None
    distinct: bool
    call: exp.Expr
    sql: str
    offset: int | None
    type: str | None
    tolerance: float | None = None


@dataclass(frozen=True)
class Aggregate(_Listing):
    """One row for each distinct combination of `keys` (a single row if there are none).

    `items` are the visible output: expressions over key names and call names.
    """

    child: Relation
    keys: tuple[Named, ...]
    calls: tuple[Call, ...]
    items: tuple[Named, ...]


@dataclass(frozen=True)
class SortTerm:
    """One term of ORDER BY: a column of the ordered relation."""

    column: str
    is_descending: bool
    is_null_first: bool


@dataclass(frozen=True)
class TopK:
    """The first `count` rows of the child by `order`, and by the row key where `order` leaves rows tied.

    The first `skipped` rows are left out before; with None for `count` all rows behind them stay. Its columns are those
    of the child that are `shown`; the child has further ones only to be ordered by. `offset` and `keyword`: as those of
    a join.
    """

    child: Relation
    order: tuple[SortTerm, ...]
    count: int | None
    shown: frozenset[str]
    offset: int | None = None
    keyword: str = ""
    skipped: int = 0

    @cached_property
    def schema(self) -> Schema:
        return tuple(column for column in columns(self.child) if column.name in self.shown)

    @cached_property
    def order_only(self) -> Schema:
        """The child's columns that are not shown."""
        return tuple(column for column in columns(self.child) if column.name not in self.shown)


@dataclass(frozen=True)
class ScalarValue:
    """One row with the only column of the child, which has at most one row: NULL if it has none, else an error.

    `offset` and `keyword`: as those of a join.
    """

    child: Relation
    offset: int | None = None
    keyword: str = ""


class NodeNumbers:
    """Numbers nodes and their parts by identity, in the order in which they are first seen.

    Equal nodes at two positions of a query have two numbers.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[int, object]] = {}

    def of(self, node: object) -> int:
        # Keeps a reference to the node: ids are unique only among live objects.
        return self._numbers.setdefault(id(node), (len(self._numbers), node))[0]


Relation = (
    OneRow
    | Scan
    | Filter
    | Projection
    | Explode
    | Windowed
    | UnionAll
    | Join
    | Distinct
    | Aggregate
    | TopK
    | ScalarValue
)


def columns(relation: Relation) -> Schema:
    """Output columns of a relation with their types."""
    match relation:
        case OneRow():
            return ()
        case Scan(schema=schema) | UnionAll(schema=schema):
            return schema
        case Filter(child=child) | Distinct(child=child) | ScalarValue(child=child):
            return columns(child)
        case Explode():
            return (*columns(relation.child), Column(relation.position, "int"), relation.element)
        case Join(kind="semi" | "anti"):
            return columns(relation.left)
        case Join():
            return columns(relation.left) + columns(relation.right)
        case Projection() | Windowed() | Aggregate() | TopK():
            return relation.schema


def children(relation: Relation) -> tuple[Relation, ...]:
    match relation:
        case OneRow() | Scan():
            return ()
        case UnionAll(branches=branches):
            return branches
        case Join():
            return (relation.left, relation.right)
        case Filter() | Projection() | Explode() | Windowed() | Distinct() | Aggregate() | TopK() | ScalarValue():
            return (relation.child,)


def with_children(relation: Relation, below: tuple[Relation, ...]) -> Relation:
    """The node over other children, in their order."""
    match relation:
        case Scan() | OneRow():
            return relation
        case UnionAll():
            return replace(relation, branches=below)
        case Join():
            return replace(relation, left=below[0], right=below[1])
        case Filter() | Projection() | Explode() | Windowed() | Distinct() | Aggregate() | TopK() | ScalarValue():
            return replace(relation, child=below[0])


def expressions(relation: Relation) -> list[exp.Expr]:
    """The expressions of a node itself, over its children's columns (an aggregate's items: over keys and calls)."""
    match relation:
        case Filter():
            return [relation.condition]
        case Projection() | Windowed():
            return [item.expression for item in relation.items]
        case Join():
            return [relation.condition] if relation.condition is not None else []
        case Explode():
            return [relation.array]
        case Aggregate():
            calls = [call.call for call in relation.calls]
            return [named.expression for named in (*relation.keys, *relation.items)] + calls
    return []


def walk(relation: Relation) -> Iterator[Relation]:
    """The relation and everything below it, top first."""
    yield relation
    for child in children(relation):
        yield from walk(child)


def inputs(relation: Relation) -> tuple[str, ...]:
    """Ids of the inputs that are read, in order of first appearance."""
    return tuple(dict.fromkeys(node.input_id for node in walk(relation) if isinstance(node, Scan)))


def is_linear_node(node: Relation) -> bool:
    """Whether the change of a node's result is a sum over the changes of its children."""
    return isinstance(node, OneRow | Scan | Filter | Projection | Explode | UnionAll) or (
        isinstance(node, Join) and node.kind == "inner"
    )


def is_linear(relation: Relation) -> bool:
    """Whether all nodes are linear: each needs only changed rows and the rows that they join."""
    return all(is_linear_node(node) for node in walk(relation))


def used_columns(relation: Relation) -> dict[str, tuple[str, ...]]:
    """For each input the columns that the result depends on, in the input's order."""
    used: dict[str, set[str]] = {}
    _collect(relation, None, used)
    return {
        input_id: tuple(column.name for column in schema if column.name.lower() in used.get(input_id, set()))
        for input_id, schema in scanned_columns(relation).items()
    }


def scanned_columns(relation: Relation) -> dict[str, Schema]:
    """For each input the columns that its scans have, each once."""
    columns_by_scan: dict[str, dict[Column, None]] = {}
    for node in walk(relation):
        if isinstance(node, Scan):
            columns_by_scan.setdefault(node.input_id, {}).update(dict.fromkeys(node.schema))
    return {input_id: tuple(columns) for input_id, columns in columns_by_scan.items()}


def _collect(relation: Relation, needed: set[str] | None, used: dict[str, set[str]]) -> None:
    """Add the columns needed from each scan; `needed` None means all columns of this relation."""
    match relation:
        case Scan():
            wanted = needed if needed is not None else {column.name.lower() for column in relation.schema}
            used.setdefault(relation.input_id, set()).update(wanted)
        case Filter():
            own = _names([relation.condition])
            _collect(relation.child, None if needed is None else needed | own, used)
        case Explode():
            own = {column.name.lower() for column in columns(relation.child)}
            read = _names([relation.array])
            _collect(relation.child, None if needed is None else (needed & own) | read, used)
        case Distinct() | TopK() | ScalarValue():
            _collect(relation.child, None, used)
        case Join():
            _collect_join(relation, needed, used)
        case UnionAll():
            for branch in relation.branches:
                pairs = zip(columns(branch), relation.schema, strict=True)
                read = {own.name.lower() for own, merged in pairs if needed is None or merged.name.lower() in needed}
                _collect(branch, read, used)
        case Projection() | Windowed():
            items = [i.expression for i in relation.items if needed is None or i.name.lower() in needed]
            _collect(relation.child, _names(items), used)
        case Aggregate():
            grouped = [key.expression for key in relation.keys] + [call.call for call in relation.calls]
            _collect(relation.child, _names(grouped), used)


def _collect_join(join: Join, needed: set[str] | None, used: dict[str, set[str]]) -> None:
    condition = _names([join.condition]) if join.condition is not None else set()
    for side in (join.left, join.right):
        own = {column.name.lower() for column in columns(side)}
        is_shown = side is join.left or join.kind not in ("semi", "anti")
        if needed is None and is_shown:
            _collect(side, None, used)
        else:
            _collect(side, ((needed or set()) | condition) & own, used)


def _names(expressions: list[exp.Expr]) -> set[str]:
    return {column.name.lower() for e in expressions for column in e.find_all(exp.Column)}
