"""Subqueries that are equivalent to joins. Owns reading EXISTS and IN; scalar ones are in `scalar_subqueries`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import JoinKind, Named, Projection, Relation, columns
from sqlmesh_like.analyze.binding.expression_copies import operand
from sqlmesh_like.analyze.binding.from_clause import FromReader
from sqlmesh_like.analyze.binding.joining import conjuncts, factored_conjuncts, filter_rows, make_join, with_position
from sqlmesh_like.analyze.binding.scope import Scope, ScopeSource, UnknownName, Unsupported, require_pure
from sqlmesh_like.analyze.binding.subqueries.correlated_groups import (
    correlated_groups,
    is_grouped,
    is_null_over_no_rows,
)
from sqlmesh_like.analyze.binding.subqueries.correlation import prefix_outputs, resolve_inside_out
from sqlmesh_like.analyze.binding.subqueries.match_flags import (
    MatchedKeys,
    is_negated,
    with_existence,
    with_match,
    with_match_by_halves,
    with_membership,
)
from sqlmesh_like.analyze.binding.subqueries.row_queries import is_plain, plain_rows, select_of, without_order
from sqlmesh_like.analyze.binding.subqueries.scalar_subqueries import ScalarSubqueries
from sqlmesh_like.analyze.expressions.clock import clock_calls


@dataclass(frozen=True)
class CorrelatedRows:
    """The rows of a correlated query by themselves, the conditions across both queries, and the scope of its own."""

    relation: Relation
    across: list[exp.Expr]
    inside: Scope


@dataclass(frozen=True)
class Subqueries:
    """Reads the subqueries in the WHERE of one SELECT; `tables` is the reader of its FROM."""

    tables: FromReader

    @property
    def scalars(self) -> ScalarSubqueries:
        return ScalarSubqueries(self.tables)

    def filter_scope(self, scope: Scope, condition: exp.Expr) -> Scope:
        """The scope restricted to rows that satisfy WHERE; EXISTS and IN of a query become semi and anti joins."""
        plain: list[exp.Expr] = []
        for number, part in enumerate(conjuncts(condition)):
            joined = self._membership(scope, part, number)
            if joined is not None:
                scope = replace(scope, relation=joined)
                continue
            scope, part = self.join_predicates(scope, part, f"_sml_f{number}")
            scope, part = self.scalars.join_values(scope, part, f"_sml_s{number}")
            resolved = scope.resolve(part)
            require_pure(resolved)
            plain.append(resolved)
        return replace(scope, relation=filter_rows(scope.relation, plain))

    def join_predicates(
        self, scope: Scope, expression: exp.Expr, name: str, *, is_in_whole: bool = True
    ) -> tuple[Scope, exp.Expr]:
        """The scope joined with what EXISTS and IN of a query depend on, and the expression over their values.

        `is_in_whole`: the whole may be IN, as the condition of rows or a value is, which is false where it is NULL.
        """
        if expression.find(exp.Exists, exp.In) is None:
            return scope, expression
        root = exp.Paren(this=expression.copy())
        tests = [node for node in root.find_all(exp.Exists, exp.In) if node.find_ancestor(exp.Query) is None]
        for position, node in enumerate(tests):
            own = f"{name}_{position}"
            if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
                scope, value = self._with_existence(scope, node, own) or self._with_match(
                    scope, self._exists_rows(scope, node, own), own, node, "EXISTS"
                )
            elif isinstance(node, exp.In) and node.args.get("query") is not None:
                is_below_not = is_negated(node, root.this if is_in_whole else None)
                if is_below_not is None:
                    raise Unsupported("QRY005", "IN of a query as other than a condition", node)
                scope, value = self._with_membership(scope, node, own, is_negated=is_below_not)
            else:
                continue
            node.replace(exp.Paren(this=value))
        return scope, root.this

    def _with_existence(self, scope: Scope, exists: exp.Exists, name: str) -> tuple[Scope, exp.Expr] | None:
        """The scope with whether a query has rows, and that value; None for a correlated query."""
        asked, skipped = without_order(exists.this)
        alone = self.scalars.read_alone(asked)
        return None if alone is None else with_existence(scope, alone, name, exists, skipped)

    def _with_match(
        self, scope: Scope, rows: CorrelatedRows, name: str, node: exp.Expr, keyword: str
    ) -> tuple[Scope, exp.Expr]:
        """The scope with whether a row matches one of these: by their keys where they have some, else by halves."""
        pairs = [_pair(part, set(rows.inside.known)) for part in rows.across]
        known = [pair for pair in pairs if pair is not None]
        if known and len(known) == len(pairs):
            inner, values = zip(*known, strict=True)
            is_safe = tuple(isinstance(part, exp.NullSafeEQ) for part in rows.across)
            with suppress(Unsupported):
                return with_match(scope, MatchedKeys(rows.relation, inner, values, is_safe), name, node, keyword)
        if any(map(clock_calls, rows.across)):
            raise Unsupported("QRY005", f"{node.key.upper()} as a value, that depends on the clock", node, keyword)
        return with_match_by_halves(scope, rows.relation, rows.across, name, node, keyword)

    def _with_membership(
        self, outer: Scope, membership: exp.In, name: str, *, is_negated: bool
    ) -> tuple[Scope, exp.Expr]:
        """The scope with what IN depends on, and its value in a condition; `is_negated`: also where that is NULL."""
        if membership.this.find(exp.Query):
            raise Unsupported("QRY005", "a subquery in IN of a query", membership)
        alone = self.scalars.read_alone(membership.args["query"])
        if alone is not None and len(columns(alone)) == 1 and not isinstance(membership.this, exp.Tuple):
            value = outer.resolve(membership.this)
            require_pure(value)
            keys = MatchedKeys(alone, (exp.column(columns(alone)[0].name, quoted=True),), (value,), (False,))
            with suppress(Unsupported):
                return with_membership(outer, keys, name, membership, is_negated=is_negated)
        if alone is not None:
            rows = _rows_alone(outer, membership, alone, name, is_negated=is_negated)
        else:
            rows = self._correlated_in(outer, membership, name, is_negated=is_negated)
        return self._with_match(outer, rows, name, membership, "")

    def _membership(self, scope: Scope, part: exp.Expr, number: int) -> Relation | None:
        """The semi or anti join for an EXISTS or IN conjunct of WHERE; None for any other condition."""
        inner, negated = (part.this, True) if isinstance(part, exp.Not) else (part, False)
        while isinstance(inner, exp.Paren):
            inner = inner.this
        kind: JoinKind = "anti" if negated else "semi"
        alias = f"_sml_e{number}"
        if isinstance(inner, exp.Exists) and isinstance(inner.this, exp.Query):
            if (existence := self._with_existence(scope, inner, alias)) is not None:
                wider, is_some = existence
                return filter_rows(wider.relation, [wider.resolve(exp.Not(this=is_some) if negated else is_some)])
            rows = self._exists_rows(scope, inner, alias)
            joined = make_join(scope.relation, rows.relation, kind, exp.and_(*rows.across) if rows.across else None)
            return with_position(joined, inner, "EXISTS")
        if isinstance(inner, exp.In) and inner.args.get("query") is not None:
            alone = self.scalars.read_alone(inner.args["query"])
            if alone is None:
                rows = self._correlated_in(scope, inner, alias, is_negated=negated)
                return with_position(make_join(scope.relation, rows.relation, kind, exp.and_(*rows.across)), inner.this)
            if negated and not isinstance(inner.this, exp.Tuple):
                return None
            rows = _rows_alone(scope, inner, alone, alias, is_negated=negated)
            return with_position(make_join(scope.relation, rows.relation, kind, exp.and_(*rows.across)), inner.this)
        return None

    def _exists_rows(self, outer: Scope, exists: exp.Exists, alias: str) -> CorrelatedRows:
        query = plain_rows(exists.this)
        if query is None and is_grouped(asked := select_of(exists.this)):
            return self._groups(outer, asked, alias, exists, "EXISTS")[0]
        if query is None:
            raise Unsupported("QRY005", "EXISTS of a query with more than FROM and WHERE", exists, "EXISTS")
        rows = self._rows(outer, query, alias, exists, "EXISTS")
        _require_row_by_row(query, rows.inside, outer, exists)
        return rows

    def _correlated_in(
        self, outer: Scope, membership: exp.In, alias: str, *, is_negated: bool = False
    ) -> CorrelatedRows:
        """The rows of a correlated query that a value may be in; those that it is in are equal to it as well.

        `is_negated`: also those that make it unknown whether the value is in the query, which NOT IN drops.
        """
        query = select_of(membership.args["query"].unnest())
        if is_grouped(query) or (is_null_over_no_rows(query) and not is_negated):
            return self._correlated_groups_in(outer, membership, query, alias, is_negated=is_negated)
        if not is_plain(query) or any(item.find(exp.AggFunc, exp.Window) for item in query.expressions):
            raise Unsupported("QRY005", "IN of a correlated query with more than FROM and WHERE", membership)
        values = _values_of(membership)
        if len(query.expressions) != len(values) or query.is_star:
            raise Unsupported("QRY005", "IN of a query with several columns", membership)
        rows = self._rows(outer, query, alias, membership, "")
        candidates = [resolve_inside_out(item.unalias(), rows.inside, outer) for item in query.expressions]
        pairs = zip(values, candidates, strict=True)
        same = [_same(outer, value, candidate, is_negated=is_negated) for value, candidate in pairs]
        return replace(rows, across=[*rows.across, *same])

    def _correlated_groups_in(
        self, outer: Scope, membership: exp.In, query: exp.Select, alias: str, *, is_negated: bool
    ) -> CorrelatedRows:
        """The groups of a correlated query that a value may be in."""
        if len(query.expressions) != 1 or query.is_star or isinstance(membership.this, exp.Tuple):
            raise Unsupported("QRY005", "IN of a query with several columns", membership)
        rows, item = self._groups(outer, query, alias, membership, "")
        candidate = exp.column(item, quoted=True)
        return replace(rows, across=[*rows.across, _same(outer, membership.this, candidate, is_negated=is_negated)])

    def _groups(
        self, outer: Scope, query: exp.Select, alias: str, node: exp.Expr, keyword: str
    ) -> tuple[CorrelatedRows, str]:
        """The groups of a correlated query, and the column of its first item."""
        try:
            inner, query = self._own_rows(query)
            groups = correlated_groups(inner, outer, query, alias)
        except UnknownName:
            groups = None
        if groups is None:
            message = f"{node.key.upper()} of groups that are correlated by other than values of one exact type"
            raise Unsupported("QRY005", message, node, keyword)
        shown = tuple((column.name, column.name) for column in columns(groups.relation))
        inside = Scope(groups.relation, (ScopeSource(alias, shown),))
        return CorrelatedRows(groups.relation, list(groups.across), inside), groups.item

    def _own_rows(self, query: exp.Select) -> tuple[Scope, exp.Select]:
        """The FROM of a correlated query, restricted by what its own rows ask of subqueries, and the rest of the query.

        Raises UnknownName where such a question reads the outer query.
        """
        inner, where = self.tables.scope(query), query.args.get("where")
        parts = conjuncts(where.this) if where else []
        asking = [part for part in parts if part.find(exp.Query)]
        if not asking:
            return inner, query
        rest, others = query.copy(), [part for part in parts if not part.find(exp.Query)]
        rest.set("where", exp.Where(this=exp.and_(*others)) if others else None)
        return self.filter_scope(inner, exp.and_(*asking)), rest

    def _rows(self, outer: Scope, query: exp.Select, alias: str, node: exp.Expr, keyword: str) -> CorrelatedRows:
        """The rows of a correlated query by themselves, and the conditions across both queries."""
        try:
            inner, query = self._own_rows(query)
        except UnknownName:  # the name may belong to the outer query
            message = f"{node.key.upper()} of a query that is correlated below its FROM"
            raise Unsupported("QRY005", message, node, keyword) from None
        inside = prefix_outputs(inner, alias)
        where = query.args.get("where")
        local: list[exp.Expr] = []
        across: list[exp.Expr] = []
        for part in factored_conjuncts(where.this) if where else []:
            resolved = resolve_inside_out(part, inside, outer)
            require_pure(resolved)
            is_local = outer.outputs_of(resolved) <= set(inside.known)
            (local if is_local else across).append(resolved)
        return CorrelatedRows(filter_rows(inside.relation, local), across, inside)


def _same(outer: Scope, value: exp.Expr, candidate: exp.Expr, *, is_negated: bool) -> exp.Expr:
    """Whether a value is equal to one of a query; `is_negated`: or may be, if one of them is NULL."""
    if value.find(exp.Query):
        raise Unsupported("QRY005", "a subquery in IN of a query", value)
    resolved = outer.resolve(value)
    for expression in (candidate, resolved):
        require_pure(expression)
    same: exp.Expr = exp.EQ(this=operand(resolved), expression=operand(candidate))
    if not is_negated:
        return same
    return exp.Paren(this=exp.or_(same, exp.Is(this=exp.Paren(this=same.copy()), expression=exp.Null())))


def _values_of(membership: exp.In) -> list[exp.Expr]:
    return membership.this.expressions if isinstance(membership.this, exp.Tuple) else [membership.this]


def _rows_alone(
    outer: Scope, membership: exp.In, relation: Relation, alias: str, *, is_negated: bool
) -> CorrelatedRows:
    """The rows of a query by itself that a value, or several, may be in; `is_negated`: also where that is unknown."""
    values = _values_of(membership)
    if len(columns(relation)) != len(values):
        raise Unsupported("QRY005", "IN of a query with several columns", membership)
    items = tuple(
        Named(f"{alias}.{each.name}", exp.column(each.name, quoted=True), each.type) for each in columns(relation)
    )
    pairs = zip(values, items, strict=True)
    across = [_same(outer, value, exp.column(item.name, quoted=True), is_negated=is_negated) for value, item in pairs]
    right = Projection(relation, items)
    return CorrelatedRows(right, across, Scope(right, (ScopeSource(alias, tuple((i.name, i.name) for i in items)),)))


def _pair(part: exp.Expr, inside: set[str]) -> tuple[exp.Expr, exp.Expr] | None:
    """The two sides of an equality between the queries, the inner one first; None for any other condition."""
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return None
    reads = [{column.name.lower() for column in side.find_all(exp.Column)} for side in (part.this, part.expression)]
    if reads[0] and reads[0] <= inside and not reads[1] & inside:
        return part.this, part.expression
    return (part.expression, part.this) if reads[1] and reads[1] <= inside and not reads[0] & inside else None


def _require_row_by_row(query: exp.Select, inner: Scope, outer: Scope, exists: exp.Exists) -> None:
    """Raise Unsupported for EXISTS of a SELECT list that changes the number of rows.

    An aggregate always has one, but Spark 3.5 sees it only where a row is chosen (`duckdb.exact.conditions`).
    """
    for item in query.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            continue
        if item.find(exp.AggFunc):
            message = "EXISTS of an aggregate of rows that are chosen by the row around it"
            raise Unsupported("QRY005", message, exists, "EXISTS")
        require_pure(resolve_inside_out(item, inner, outer))
