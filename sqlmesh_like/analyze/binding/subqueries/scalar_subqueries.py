"""Scalar subqueries as joins. Owns the forms that provably have one value for each outer row.

An aggregate without GROUP BY is one row: a cross join. So is any other query that reads no outer row; a run fails if it
has several, as in Spark. An aggregate correlated by equalities is a left join with the aggregate grouped by them, and
one correlated otherwise a left join with the aggregate by the values that it reads (`outer_values`); where no group
matches, COUNT is 0 and the other aggregates are NULL. Source: Galindo-Legaria, Joshi, "Orthogonal optimization of
subqueries and aggregation", 2001; Spark 3.5 `RewriteCorrelatedScalarSubquery`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Call,
    Join,
    Named,
    Projection,
    Relation,
    ScalarValue,
    columns,
)
from sqlmesh_like.analyze.binding.from_clause import FromReader
from sqlmesh_like.analyze.binding.grouping import aggregate_calls, read_aggregate
from sqlmesh_like.analyze.binding.joining import factored_conjuncts, filter_rows, make_join
from sqlmesh_like.analyze.binding.scope import (
    Scope,
    ScopeSource,
    UnknownName,
    Unsupported,
    offset_of,
    quoted_alias,
    require_pure,
    with_names,
)
from sqlmesh_like.analyze.binding.subqueries.correlated_groups import correlated_groups, is_grouped
from sqlmesh_like.analyze.binding.subqueries.correlation import prefix_outputs, resolve_inside_out
from sqlmesh_like.analyze.binding.subqueries.outer_values import rows_by_outer_values
from sqlmesh_like.analyze.expressions.types import infer, is_one_key
from sqlmesh_like.analyze.functions.aggregates import aggregate_named

_PARTS = {"expressions", "from_", "from", "where", "joins", "kind"}


@dataclass(frozen=True)
class ScalarSubqueries:
    """Reads the scalar subqueries of one SELECT; `tables` is the reader of its FROM."""

    tables: FromReader

    def join_values(self, scope: Scope, expression: exp.Expr, name: str) -> tuple[Scope, exp.Expr]:
        """The scope joined with the values of the expression's subqueries, and the expression over them.

        `name` prefixes the names of added columns and must be new in the scope. Raises Unsupported.
        """
        root = exp.Paren(this=expression.copy())
        outermost = [q for q in root.find_all(exp.Subquery) if q.find_ancestor(exp.Query) is None]
        for position, query in enumerate(outermost):
            if isinstance(query.parent, exp.In):
                raise Unsupported("QRY005", "IN of a query inside another condition", query, "SELECT")
            scope, value = self._join_one(scope, query, f"{name}_{position}")
            query.replace(value)
        return scope, root.this

    def read_alone(self, query: exp.Expr) -> Relation | None:
        """The algebra of a subquery without outer references; None for one that may have them."""
        try:
            return self._read_query(query)
        except UnknownName:
            return None  # the name may belong to the outer query, in which it is not looked up here

    def _read_query(self, query: exp.Expr) -> Relation:
        return self.tables.read(with_names(query), self.tables.lookup, self.tables.ctes)

    def _join_one(self, scope: Scope, query: exp.Subquery, name: str) -> tuple[Scope, exp.Expr]:
        try:
            relation = self._read_query(query)
        except UnknownName:
            return self._join_correlated(scope, query, name)
        if len(columns(relation)) != 1:
            raise Unsupported("QRY005", "a subquery of several columns in an expression", query, "SELECT")
        if not isinstance(relation, Aggregate) or relation.keys:
            relation = ScalarValue(relation, offset_of(query), "SELECT")
        (item,) = columns(relation)
        one = Projection(relation, (Named(name, exp.column(item.name, quoted=True), item.type),))
        cross_join = make_join(scope.relation, one, "inner", None)
        return _with_values(scope, cross_join, name, (name,)), exp.column(name, table=name, quoted=True)

    def _join_correlated(self, scope: Scope, query: exp.Subquery, name: str) -> tuple[Scope, exp.Expr]:
        select = query.this
        if is_grouped(select):
            return self._join_correlated_groups(scope, query, name)
        if not isinstance(select, exp.Select) or any(v for part, v in select.args.items() if v and part not in _PARTS):
            raise _unsupported("a correlated subquery with more than FROM and WHERE", query)
        item = select.expressions[0].unalias()
        if len(select.expressions) != 1 or not aggregate_calls(item):
            raise _unsupported("a correlated subquery that is not an aggregate", query)
        try:
            return _Correlation(scope, prefix_outputs(self.tables.scope(select), name), name, query).join(select, item)
        except UnknownName:
            raise _unsupported("a correlated subquery with a name that is not found in it or around", query) from None

    def _join_correlated_groups(self, scope: Scope, query: exp.Subquery, name: str) -> tuple[Scope, exp.Expr]:
        """The value of the one group that an outer row meets: NULL where there is none, for COUNT as well."""
        try:
            groups = correlated_groups(self.tables.scope(query.this), scope, query.this, name)
        except UnknownName:
            groups = None
        if groups is None or not groups.across or not groups.is_grouped_alike or len(query.this.expressions) != 1:
            raise _unsupported(
                "a correlated subquery with GROUP BY of other than what equals the rows around it", query
            )
        joined = make_join(scope.relation, groups.relation, "left", exp.and_(*groups.across))
        assert isinstance(joined, Join), "a left join keeps its whole condition"
        names = tuple(column.name for column in columns(groups.relation))
        return _with_values(scope, joined, name, names), exp.column(groups.item, table=name, quoted=True)


@dataclass(frozen=True)
class _Equality:
    """One conjunct that correlates the two queries: the inner side as written, the outer side resolved."""

    inner: exp.Expr
    outer: exp.Expr
    is_null_safe: bool

    def tie(self, key: str) -> exp.Expr:
        """By which an outer row meets the group whose inner value stands in a column of this name."""
        kind = exp.NullSafeEQ if self.is_null_safe else exp.EQ
        return kind(this=self.outer.copy(), expression=exp.column(key, quoted=True))


@dataclass(frozen=True)
class _Correlation:
    """A correlated aggregate `query` with the outer scope and its own, whose outputs start with `name`."""

    outer: Scope
    inner: Scope
    name: str
    query: exp.Subquery

    def join(self, select: exp.Select, item: exp.Expr) -> tuple[Scope, exp.Expr]:
        """The outer scope with the aggregate's calls, and the item over them."""
        local, guards, across = self._conditions(select)
        inner = replace(self.inner, relation=filter_rows(self.inner.relation, local))
        pairs = [self._pair(part) for part in across]
        equalities = [pair for pair in pairs if pair is not None]
        if equalities and len(equalities) == len(across):
            keys = [quoted_alias(pair.inner, self._key(number)) for number, pair in enumerate(equalities)]
            ties = [pair.tie(self._key(number)) for number, pair in enumerate(equalities)]
        else:
            resolved = [resolve_inside_out(part, self.inner, self.outer) for part in across]
            by_values = rows_by_outer_values(inner, self.outer, resolved, self.name, self.query)
            inner = by_values.scope
            keys = [quoted_alias(column, self._key(number)) for number, column in enumerate(by_values.keys.values())]
            ties = by_values.ties([key.alias for key in keys])
        return self._join_aggregate(self._aggregate(inner, keys, item), ties, guards)

    def _join_aggregate(
        self, aggregate: Aggregate, ties: list[exp.Expr], guards: list[exp.Expr]
    ) -> tuple[Scope, exp.Expr]:
        value = aggregate.items[-1].expression
        calls = {call.name: call for call in aggregate.calls}
        if any(column.name not in calls for column in value.find_all(exp.Column)):
            raise Unsupported(
                "QRY012", "a correlated subquery with a column that is not aggregated", self.query, "SELECT"
            )
        shown = [Named(self._of(name), exp.column(name, quoted=True), call.type) for name, call in calls.items()]
        grouped = replace(aggregate, items=(*aggregate.items[:-1], *shown))
        joined = make_join(self.outer.relation, grouped, "left", exp.and_(*ties, *guards))
        assert isinstance(joined, Join), "a left join keeps its whole condition"
        if len(joined.pairs) != len(ties):
            raise _unsupported("a correlation by values that are not of one exact type", self.query)
        if offset_of(exp.and_(*ties)) is None:
            joined = replace(joined, offset=offset_of(self.query), keyword="SELECT")
        scope = _with_values(self.outer, joined, self.name, tuple(named_.name for named_ in shown))
        return scope, exp.Paren(this=value.transform(lambda node: self._value(node, calls)))

    def _conditions(self, select: exp.Select) -> tuple[list[exp.Expr], list[exp.Expr], list[exp.Expr]]:
        """The conjuncts of WHERE: on inner rows only, on outer rows only, and as written those on both."""
        local: list[exp.Expr] = []
        guards: list[exp.Expr] = []
        across: list[exp.Expr] = []
        where = select.args.get("where")
        for part in factored_conjuncts(where.this) if where else []:
            resolved = resolve_inside_out(part, self.inner, self.outer)
            require_pure(resolved)
            if self._is_inner(resolved):
                local.append(resolved)
            elif self._is_outer(resolved):
                guards.append(resolved)
            else:
                across.append(part)
        if not across:
            raise _unsupported("a correlated subquery without a condition on its rows and those around it", self.query)
        return local, guards, across

    def _pair(self, part: exp.Expr) -> _Equality | None:
        """The equality of an inner and an outer value of one exact type that a conjunct is; None for any other."""
        if not isinstance(part, exp.EQ | exp.NullSafeEQ):
            return None
        for written, other in ((part.this, part.expression), (part.expression, part.this)):
            mine, theirs = (resolve_inside_out(side, self.inner, self.outer) for side in (written, other))
            is_apart = self._is_inner(mine) and self._is_outer(theirs) and mine.find(exp.Column) is not None
            if is_apart and is_one_key(infer(mine, self.inner.known), infer(theirs, self.outer.known)):
                return _Equality(written, theirs, isinstance(part, exp.NullSafeEQ))
        return None

    def _aggregate(self, scope: Scope, keys: list[exp.Alias], item: exp.Expr) -> Aggregate:
        """The inner query grouped by what an outer row meets it by; the last item is its value."""
        group = exp.Group(expressions=[key.this.copy() for key in keys])
        grouped = read_aggregate(exp.Select(group=group), scope, [*keys, quoted_alias(item, self._of("value"))])
        assert isinstance(grouped, Aggregate)
        for call in grouped.calls:
            if _of_nothing(call) is None:
                raise _unsupported(f"{call.sql} of rows that are not there", self.query)
        return grouped

    def _value(self, node: exp.Expr, calls: dict[str, Call]) -> exp.Expr:
        """A call's column as an outer row sees it: COUNT is 0 where no group matches."""
        if not isinstance(node, exp.Column):
            return node
        value = exp.column(self._of(node.name), table=self.name, quoted=True)
        if _of_nothing(calls[node.name]) != "zero":
            return value
        return exp.Coalesce(this=value, expressions=[exp.cast(exp.Literal.number(0), "bigint", dialect="spark")])

    def _of(self, name: str) -> str:
        return f"{self.name}.{name}"

    def _key(self, number: int) -> str:
        return self._of(f"k{number}")

    def _is_inner(self, resolved: exp.Expr) -> bool:
        return self.outer.outputs_of(resolved) <= set(self.inner.known)

    def _is_outer(self, resolved: exp.Expr) -> bool:
        return not self.outer.outputs_of(resolved) & set(self.inner.known)


def _of_nothing(call: Call) -> str | None:
    """What an aggregate is over no rows, None where it is not known."""
    record = aggregate_named(call.function)
    return None if record is None else record.of_nothing


def _unsupported(message: str, query: exp.Subquery) -> Unsupported:
    return Unsupported("QRY012", message, query, "SELECT")


def _with_values(scope: Scope, relation: Relation, alias: str, names: tuple[str, ...]) -> Scope:
    """The scope over a wider relation whose new columns only the compiler can name."""
    return replace(scope, relation=relation, sources=(*scope.sources, ScopeSource(alias, tuple((n, n) for n in names))))
