"""Names of a subquery and of its outer query. Owns distinguishing them: each name is looked up inside first."""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Named, Projection, columns
from sqlmesh_like.analyze.binding.scope import Scope, ScopeSource, UnknownName, Unsupported


def prefix_outputs(scope: Scope, prefix: str) -> Scope:
    """The scope with prefixed outputs, so that they cannot collide with those of an outer query."""
    schema = columns(scope.relation)
    items = tuple(Named(f"{prefix}.{c.name}", exp.column(c.name, quoted=True), c.type) for c in schema)
    sources = tuple(
        ScopeSource(source.alias, tuple((name, f"{prefix}.{output}") for name, output in source.outputs))
        for source in scope.sources
    )
    merged = tuple((name, f"{prefix}.{output}") for name, output in scope.merged)
    return Scope(Projection(scope.relation, items), sources, merged)


def resolve_inside_out(part: exp.Expr, inner: Scope, outer: Scope) -> exp.Expr:
    """A condition of a correlated subquery, resolved: each column is looked up inside first, then outside."""
    if query := part.find(exp.Query):
        raise Unsupported("QRY005", "a subquery in a correlated subquery", query, "SELECT")

    def resolve(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        try:
            return inner.resolve(node)
        except UnknownName as unknown:
            if "ambiguous" in unknown.message:
                raise
            return outer.resolve(node)

    return part.copy().transform(resolve, copy=False)
