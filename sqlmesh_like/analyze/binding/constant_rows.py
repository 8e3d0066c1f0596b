"""Rows that stand in the SQL: VALUES, and the table function RANGE. Owns reading them as relations without inputs.

Source: Spark SQL reference, "Inline table" and "Table-valued functions".
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Explode, Named, OneRow, Projection, Relation, UnionAll, columns
from sqlmesh_like.analyze.binding.scope import Scope, UnknownName, Unsupported, quoted_alias
from sqlmesh_like.analyze.binding.set_types import cast_to_schema, common_schema
from sqlmesh_like.names import Column

MOST_ROWS = 200
"""Rows of VALUES, each of which is a branch of a union."""


def read_values(values: exp.Values) -> Relation:
    """The rows of VALUES, whose columns are `col1`, `col2` …; those of one column have one type.

    Raises Unsupported and UnknownName.
    """
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row.unnest()] for row in values.expressions]
    if len({len(row) for row in rows}) != 1:
        raise UnknownName("the rows of VALUES have different numbers of columns", values, "give each row all of them")
    if len(rows) > MOST_ROWS:
        raise Unsupported("QRY009", f"VALUES of more than {MOST_ROWS} rows", values, "VALUES")
    branches = [_row(row) for row in rows]
    schema = columns(branches[0])
    for branch in branches[1:]:
        before = schema
        schema, unproven = common_schema(_null_as(before, branches[0]), branch)
        is_proven = unproven is None and not any(map(_differ, schema, columns(branch)))
        if not is_proven or any(map(_is_made_text, before, schema)):
            raise Unsupported("TYP001", "a column of VALUES has values of different types", values, "VALUES")
    if len(branches) == 1:
        return branches[0]
    return UnionAll(tuple(cast_to_schema(branch, schema) for branch in branches), schema)


def _row(values: list[exp.Expr]) -> Projection:
    scope = Scope(OneRow(), ())
    items = [
        scope.resolve_item(quoted_alias(value.unalias(), f"col{number}")) for number, value in enumerate(values, 1)
    ]
    return Projection(scope.relation, tuple(items))


def _null_as(schema: tuple[Column, ...], first: Projection) -> Relation:
    """A row with columns of these types; of a type that is not known yet, that of a NULL."""
    items = zip(schema, first.items, strict=True)
    return Projection(
        OneRow(), tuple(Named(c.name, _null_of_type(c.type, item.expression), c.type) for c, item in items)
    )


def _null_of_type(type_: str | None, value: exp.Expr) -> exp.Expr:
    return value if type_ is None else exp.cast(exp.Null(), type_, dialect="spark")


def _is_made_text(before: Column, common: Column) -> bool:
    """Whether other values would become texts, which Spark refuses here (`INCOMPATIBLE_TYPES_IN_INLINE_TABLE`)."""
    return common.type == "string" and before.type not in (None, "string")


def _differ(column: Column, own: Column) -> bool:
    """Whether a value would be converted: Spark has rules of its own for VALUES. NULL has no type."""
    return own.type is not None and own.type != column.type


def numbers(call: exp.Anonymous) -> Relation:
    """The rows of RANGE of integers: one column, `id`. Raises Unsupported for arguments that are not written out."""
    arguments = [_integer(argument) for argument in call.expressions]
    if not 1 <= len(arguments) <= 4 or None in arguments:
        raise Unsupported("QRY008", "RANGE of other than integers as they are written", call)
    start, end, step = ([0, *arguments, 1] if len(arguments) == 1 else [*arguments, 1])[:3]
    assert start is not None and end is not None and step is not None
    if step == 0:
        raise UnknownName("RANGE by steps of 0 has no end", call, "give another step")
    count = max(0, -((start - end) // step))
    if not count:
        ends: list[exp.Expr] = []
        array: exp.Expr = exp.cast(exp.Array(expressions=ends), "array<bigint>", dialect="spark")
    else:
        ends = [_bigint(start), _bigint(start + (count - 1) * step), _bigint(step)]
        array = exp.GenerateSeries(start=ends[0], end=ends[1], step=ends[2])
    every = Explode(OneRow(), array, "_sml_place", Column("id", "bigint"))
    return Projection(every, (Named("id", exp.column("id", quoted=True), "bigint"),))


def is_range(item: exp.Expr) -> bool:
    """Whether an item of FROM calls the table function RANGE."""
    return isinstance(item, exp.Table) and isinstance(item.this, exp.Anonymous) and item.this.name.lower() == "range"


def _integer(node: exp.Expr) -> int | None:
    sign = -1 if isinstance(node, exp.Neg) else 1
    node = node.this if isinstance(node, exp.Neg) else node
    is_whole = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
    return sign * int(node.name) if is_whole else None


def _bigint(number: int) -> exp.Expr:
    return exp.cast(exp.Literal.number(number), "bigint", dialect="spark")
