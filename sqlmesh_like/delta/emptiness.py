"""What remains of a query when some relations that it reads have no rows. Owns this one simplification.

A program is compiled for changes of any input. In a run most inputs have not moved, and most lookups have nothing to
look up: the parts that are therefore empty are neither planned nor read. Source: Spark's `PropagateEmptyRelation`,
which itself treats a step in memory as a relation of unknown size.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

IsEmpty = Callable[[exp.Table], bool]
"""Whether a relation or step is known to have no rows."""


def without_empty(query: exp.Query, is_empty: IsEmpty) -> exp.Query | None:
    """The query without the parts that yield no rows, changed in place; None if nothing remains.

    >>> import sqlglot
    >>> query = sqlglot.parse_one("select a from x union all select a from y where exists (select 1 from z)")
    >>> without_empty(query, lambda table: table.name == "z").sql()
    'SELECT a FROM x'
    """
    return _Simplifier(is_empty).query(query)


class _Simplifier:
    def __init__(self, is_empty: IsEmpty) -> None:
        self._is_empty = is_empty

    def query(self, query: exp.Query) -> exp.Query | None:
        match query:
            case exp.Union() if not query.args.get("distinct") or _is_plain(query):
                return self._union(query)
            case exp.Select():
                return self._select(query)
        return query

    def _union(self, union: exp.Union) -> exp.Query | None:
        left, right = self.query(union.this), self.query(union.expression)
        if left is None or right is None:
            kept = right if left is None else left
            if kept is not None and left is None and union.this.named_selects != kept.named_selects:
                return _rename_branch_columns(union, kept)
            return kept if kept is None or not union.args.get("distinct") else _distinct(kept)
        union.set("this", left)
        union.set("expression", right)
        return union

    def _select(self, select: exp.Select) -> exp.Query | None:
        """The simplified SELECT; None if it has no rows, unlike an aggregate without GROUP BY, which always has one."""
        from_, joins = select.args.get("from_"), select.args.get("joins") or []
        is_scalar = select.args.get("group") is None and any(item.find(exp.AggFunc) for item in select.selects)
        inner = [from_, *(join for join in joins if _is_inner(join))]
        has_rows = True
        if from_ is not None and not any(join.args.get("side") in ("RIGHT", "FULL") for join in joins):
            has_rows = all(self._item(item) for item in inner)
        where = select.args.get("where")
        if where is not None:
            condition = self._condition(where.this)
            if _is(condition, False):
                has_rows = False
            elif _is(condition, True):
                select.set("where", None)
            else:
                where.set("this", condition)
        return select if has_rows or is_scalar else None

    def _item(self, holder: exp.Expr) -> bool:
        """Whether a FROM or JOIN item may have rows; replaces the item by what remains of it."""
        item = holder.this
        if isinstance(item, exp.Table):
            return not self._is_empty(item)
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
            query = self.query(item.this)
            if query is None:
                return False
            item.set("this", query)
        return True

    def _condition(self, condition: exp.Expr, *, negated: bool = False) -> exp.Expr:
        """The condition with tests for rows of an empty relation replaced by their result.

        Unless it is `negated`, a part that is never true may become false: NULL passes no row either.
        """
        match condition:
            case exp.Paren():
                inner = self._condition(condition.this, negated=negated)
                return inner if isinstance(inner, exp.Boolean) else exp.Paren(this=inner)
            case exp.And() | exp.Or():
                return self._simplify_connector(condition, negated)
            case exp.Not():
                inner = self._condition(condition.this, negated=True)
                return exp.Boolean(this=not inner.this) if isinstance(inner, exp.Boolean) else exp.Not(this=inner)
            case exp.Exists() if isinstance(condition.this, exp.Query):
                query = self.query(condition.this)
                return exp.false() if query is None else exp.Exists(this=query)
            case exp.In() if condition.args.get("query") is not None:
                subquery = condition.args["query"]
                query = self.query(subquery.this)
                if query is None:
                    return exp.false()
                subquery.set("this", query)
            case exp.NEQ() if not negated and repr(condition.this) == repr(condition.expression):
                return exp.false()  # no row crosses a boundary of the clock
        return condition

    def _simplify_connector(self, condition: exp.Expr, negated: bool) -> exp.Expr:
        parts = [self._condition(part, negated=negated) for part in condition.flatten()]
        neutral = isinstance(condition, exp.And)
        if any(_is(part, not neutral) for part in parts):
            return exp.Boolean(this=not neutral)
        kept = [part for part in parts if not _is(part, neutral)]
        if not kept:
            return exp.Boolean(this=neutral)
        return exp.and_(*kept, copy=False) if neutral else exp.or_(*kept, copy=False)


def _is_inner(join: exp.Expr) -> bool:
    args = join.args
    return not args.get("side") and not args.get("method") and args.get("kind") in (None, "", "INNER", "CROSS")


def _is(condition: exp.Expr, value: bool) -> bool:
    return isinstance(condition, exp.Boolean) and condition.this is value


def _is_plain(union: exp.Union) -> bool:
    return not any(union.args.get(part) for part in ("by_name", "side", "kind", "on", "limit", "order"))


def _rename_branch_columns(union: exp.Union, kept: exp.Query) -> exp.Query:
    """The second branch of a union with the column names of the first."""
    names = union.this.named_selects
    pairs = zip(kept.named_selects, names, strict=True)
    items = [exp.alias_(exp.column(own, quoted=True), name, quoted=True) for own, name in pairs]
    query = exp.select(*items).from_(exp.Subquery(this=kept, alias=exp.TableAlias(this=exp.to_identifier("_sml_u"))))
    return _distinct(query) if union.args.get("distinct") else query


def _distinct(query: exp.Query) -> exp.Query:
    if isinstance(query, exp.Select) and not query.args.get("distinct"):
        rows = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("_sml_u")))
        return exp.select("*").distinct().from_(rows)
    return query
