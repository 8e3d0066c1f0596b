"""Subqueries that are equivalent to joins. Owns reading EXISTS and IN; scalar ones are in `scalar_subqueries`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import JoinKind, Named, Projection, Relation, columns
from sqlmesh_like.analyze.binding.correlation import renamed, resolved_inside_out
from sqlmesh_like.analyze.binding.expression_copies import operand
from sqlmesh_like.analyze.binding.from_clause import FromReader
from sqlmesh_like.analyze.binding.joining import conjuncts, filtered, make_join, written_at
from sqlmesh_like.analyze.binding.match_flags import MatchedKeys, is_negated, with_match, with_membership
from sqlmesh_like.analyze.binding.scalar_subqueries import ScalarSubqueries
from sqlmesh_like.analyze.binding.scope import Scope, UnknownName, Unsupported, require_pure


@dataclass(frozen=True)
class Subqueries:
    """Reads the subqueries in the WHERE of one SELECT; `tables` is the reader of its FROM."""

    tables: FromReader

    @property
    def scalars(self) -> ScalarSubqueries:
        return ScalarSubqueries(self.tables)

    def filtered(self, scope: Scope, condition: exp.Expr) -> Scope:
        """The scope restricted to rows that satisfy WHERE; EXISTS and IN of a query become semi and anti joins."""
        plain: list[exp.Expr] = []
        for number, part in enumerate(conjuncts(condition)):
            joined = self._membership(scope, part, number)
            if joined is not None:
                scope = replace(scope, relation=joined)
                continue
            scope, part = self.flagged(scope, part, f"_sml_f{number}", is_root_condition=True)
            scope, part = self.scalars.joined(scope, part, f"_sml_s{number}")
            resolved = scope.resolve(part)
            require_pure(resolved)
            plain.append(resolved)
        return replace(scope, relation=filtered(scope.relation, plain))

    def flagged(
        self, scope: Scope, expression: exp.Expr, name: str, *, is_root_condition: bool
    ) -> tuple[Scope, exp.Expr]:
        """The scope joined with what EXISTS and IN of a query depend on, and the expression over their values.

        `is_root_condition`: rows for which the whole expression is NULL are dropped.
        """
        if expression.find(exp.Exists, exp.In) is None:
            return scope, expression
        root = exp.Paren(this=expression.copy())
        tests = [node for node in root.find_all(exp.Exists, exp.In) if node.find_ancestor(exp.Query) is None]
        for position, node in enumerate(tests):
            if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
                keys = self._exists_keys(scope, node, f"{name}_{position}")
                scope, value = with_match(scope, keys, f"{name}_{position}", node, "EXISTS")
            elif isinstance(node, exp.In) and node.args.get("query") is not None:
                is_below_not = is_negated(node, root.this if is_root_condition else None)
                if is_below_not is None:
                    raise Unsupported("QRY005", "IN of a query as other than a condition", node)
                keys = self._in_keys(scope, node)
                scope, value = with_membership(scope, keys, f"{name}_{position}", node, is_negated=is_below_not)
            else:
                continue
            node.replace(exp.Paren(this=value))
        return scope, root.this

    def _exists_keys(self, outer: Scope, exists: exp.Exists, alias: str) -> MatchedKeys:
        right, across, inside = self._exists_parts(outer, exists, alias)
        pairs = [_pair(part, set(inside.known)) for part in across]
        if not pairs or any(pair is None for pair in pairs):
            raise Unsupported("QRY005", "EXISTS as a value, correlated by other than equalities", exists, "EXISTS")
        inner, values = zip(*(pair for pair in pairs if pair is not None), strict=True)
        return MatchedKeys(right, inner, values, tuple(isinstance(part, exp.NullSafeEQ) for part in across))

    def _in_keys(self, outer: Scope, membership: exp.In) -> MatchedKeys:
        relation = self.scalars.uncorrelated(membership.args["query"])
        if len(columns(relation)) != 1 or isinstance(membership.this, exp.Tuple):
            raise Unsupported("QRY011", "NOT IN, or IN as a value, of a query with several columns", membership)
        if membership.this.find(exp.Query):
            raise Unsupported("QRY005", "a subquery in IN of a query", membership)
        value = outer.resolve(membership.this)
        require_pure(value)
        return MatchedKeys(relation, (exp.column(columns(relation)[0].name, quoted=True),), (value,), (False,))

    def _membership(self, scope: Scope, part: exp.Expr, number: int) -> Relation | None:
        """The semi or anti join for an EXISTS or IN conjunct of WHERE; None for any other condition."""
        inner, negated = (part.this, True) if isinstance(part, exp.Not) else (part, False)
        while isinstance(inner, exp.Paren):
            inner = inner.this
        kind: JoinKind = "anti" if negated else "semi"
        if isinstance(inner, exp.Exists):
            return self._exists(scope, inner, kind, f"_sml_e{number}")
        if isinstance(inner, exp.In) and inner.args.get("query") is not None:
            if negated:
                return None
            return self._in(scope, inner, f"_sml_e{number}")
        return None

    def _exists(self, outer: Scope, exists: exp.Exists, kind: JoinKind, alias: str) -> Relation:
        right, across, _ = self._exists_parts(outer, exists, alias)
        joined = make_join(outer.relation, right, kind, exp.and_(*across) if across else None)
        return written_at(joined, exists, "EXISTS")

    def _exists_parts(self, outer: Scope, exists: exp.Exists, alias: str) -> tuple[Relation, list[exp.Expr], Scope]:
        """The rows of EXISTS by themselves, the conditions across both queries, and the scope of the inner one."""
        query = exists.this.this if isinstance(exists.this, exp.Subquery) else exists.this
        allowed = {"expressions", "from_", "from", "where", "joins", "kind"}
        if not isinstance(query, exp.Select) or any(v for p, v in query.args.items() if v and p not in allowed):
            raise Unsupported("QRY005", "EXISTS of a query with more than FROM and WHERE", exists, "EXISTS")
        try:
            inner = self.tables.scope(query)
        except UnknownName:  # the name may belong to the outer query
            raise Unsupported(
                "QRY005", "EXISTS of a query that is correlated below its FROM", exists, "EXISTS"
            ) from None
        inside = renamed(inner, alias)
        _require_row_by_row(query, inside, outer, exists)
        where = query.args.get("where")
        local: list[exp.Expr] = []
        across: list[exp.Expr] = []
        for part in conjuncts(where.this) if where else []:
            resolved = resolved_inside_out(part, inside, outer)
            require_pure(resolved)
            is_local = outer.outputs_of(resolved) <= set(inside.known)
            (local if is_local else across).append(resolved)
        return filtered(inside.relation, local), across, inside

    def _in(self, outer: Scope, membership: exp.In, alias: str) -> Relation:
        relation = self.scalars.uncorrelated(membership.args["query"])
        if len(columns(relation)) != 1 or isinstance(membership.this, exp.Tuple):
            raise Unsupported("QRY005", "IN of a query with several columns", membership)
        only = columns(relation)[0]
        name = f"{alias}.{only.name}"
        right = Projection(relation, (Named(name, exp.column(only.name, quoted=True), only.type),))
        value = outer.resolve(membership.this)
        require_pure(value)
        condition = exp.EQ(this=operand(value), expression=exp.column(name, quoted=True))
        return written_at(make_join(outer.relation, right, "semi", condition), membership.this)


def _pair(part: exp.Expr, inside: set[str]) -> tuple[exp.Expr, exp.Expr] | None:
    """The two sides of an equality between the queries, the inner one first; None for any other condition."""
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return None
    reads = [{column.name.lower() for column in side.find_all(exp.Column)} for side in (part.this, part.expression)]
    if reads[0] and reads[0] <= inside and not reads[1] & inside:
        return part.this, part.expression
    return (part.expression, part.this) if reads[1] and reads[1] <= inside and not reads[0] & inside else None


def _require_row_by_row(query: exp.Select, inner: Scope, outer: Scope, exists: exp.Exists) -> None:
    """Raise Unsupported for EXISTS of a SELECT list that changes the number of rows: an aggregate always has one."""
    for item in query.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            continue
        if item.find(exp.AggFunc):
            raise Unsupported("QRY005", "EXISTS of an aggregate, which is always true", exists, "EXISTS")
        require_pure(resolved_inside_out(item, inner, outer))
