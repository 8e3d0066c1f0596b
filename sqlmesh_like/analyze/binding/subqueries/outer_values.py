"""Queries that read values around them, for each combination of these values once. Owns that join.

What a query yields for a row around it is a function of the columns that it reads of that row. It is computed for their
distinct values, which are joined with its rows by whatever condition, and every row around it then meets the results
that have its own values, compared null-safe. Source: Neumann, Kemper, "Unnesting Arbitrary Queries" (BTW 2015); Spark
3.5 `DecorrelateInnerQuery`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Named, Projection, Relation
from sqlmesh_like.analyze.binding.distinct_rows import distinct_rows
from sqlmesh_like.analyze.binding.expression_copies import replace_nodes
from sqlmesh_like.analyze.binding.joining import make_join
from sqlmesh_like.analyze.binding.scope import Scope, ScopeSource, Unsupported, offset_of
from sqlmesh_like.analyze.expressions.types import is_exact_key


@dataclass(frozen=True)
class RowsByOuterValues:
    """The rows of a query for each combination of the values that it reads around it.

    `keys`: the columns of `scope` with these values, by the output of the outer scope.
    """

    scope: Scope
    keys: dict[str, exp.Column]

    def by_values(self, expression: exp.Expr) -> exp.Expr:
        """A resolved expression of the query, over the values in place of the outer columns."""
        by_name = {output.lower(): column for output, column in self.keys.items()}

        def of_values(node: exp.Expr) -> exp.Expr:
            known = by_name.get(node.name.lower()) if isinstance(node, exp.Column) else None
            return node if known is None else known.copy()

        return replace_nodes(expression, of_values)

    def ties(self, names: Sequence[str]) -> list[exp.Expr]:
        """By which an outer row meets what was computed for its values, in columns of these names."""
        return [
            exp.NullSafeEQ(this=exp.column(output, quoted=True), expression=exp.column(name, quoted=True))
            for output, name in zip(self.keys, names, strict=True)
        ]


def rows_by_outer_values(
    inner: Scope, outer: Scope, across: Sequence[exp.Expr], name: str, query: exp.Expr
) -> RowsByOuterValues:
    """The rows of `inner` that meet the resolved conditions `across`, by the outer values that these read.

    Outputs of the two scopes are different; `name` prefixes those that are added. Raises
    Unsupported where an outer value is not of an exact type.
    """
    read = {column.name.lower(): column.name for part in across for column in part.find_all(exp.Column)}
    outputs = [output for low, output in read.items() if low in outer.known and low not in inner.known]
    for output in outputs:
        type_ = outer.known[output.lower()]
        if not is_exact_key(type_):
            shown = output.split(".")[-1]
            raise Unsupported("QRY012", f"a correlation by {shown} of type {type_ or 'not proven'}", query, "SELECT")
    if not outputs:
        return RowsByOuterValues(inner, {})
    keys = {output: exp.column(f"{name}.o{number}", quoted=True) for number, output in enumerate(outputs)}
    items = [
        Named(column.name, exp.column(output, quoted=True), outer.known[output.lower()])
        for output, column in keys.items()
    ]
    values: Relation = distinct_rows(Projection(outer.relation, tuple(items)), offset_of(query))
    own = ScopeSource(f"{name}.outer", tuple((column.name, column.name) for column in keys.values()))
    made = RowsByOuterValues(replace(inner, sources=(*inner.sources, own)), keys)
    condition = exp.and_(*map(made.by_values, across)) if across else None
    relation = make_join(values, inner.relation, "inner", condition)
    return replace(made, scope=replace(made.scope, relation=relation))
