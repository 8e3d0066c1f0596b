"""ORDER BY … LIMIT. Owns what the terms of ORDER BY refer to, and the columns that a query needs only for its order.

A name is that of an output column, as in Spark; only then one of FROM. An expression that the query does not return
becomes a further column of it, which its table keeps hidden. Source: Spark 3.5 `ResolveReferencesInSort`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Named,
    Projection,
    Relation,
    ScalarValue,
    SortTerm,
    TopK,
    Windowed,
    columns,
)
from sqlmesh_like.analyze.binding.expression_copies import replace_nodes
from sqlmesh_like.analyze.binding.grouping import aggregate_calls, canonical
from sqlmesh_like.analyze.binding.scope import Scope, ScopeSource, UnknownName, Unsupported, offset_of, quoted_alias
from sqlmesh_like.analyze.expressions.types import infer, is_exact_key
from sqlmesh_like.dialects import SPARK

_HIDDEN = "_sml_order_"


@dataclass(frozen=True)
class Limit:
    """The LIMIT of a query and what decides which rows are first. `added` are the columns that it needs for that.

    `count`, `skipped`: as those of `TopK`.
    """

    count: int | None
    skipped: int
    order: tuple[SortTerm, ...]
    added: tuple[exp.Alias, ...]
    node: exp.Expr

    def of(self, relation: Relation) -> TopK:
        """The first rows of a relation that also has the added columns. Raises Unsupported."""
        types = {column.name.lower(): column.type for column in columns(relation)}
        keyword = _keyword(self.node)
        for term in self.order:
            type_ = types[term.column.lower()]
            if not (is_exact_key(type_) or type_ == "double"):
                written = next((a.this.sql(SPARK) for a in self.added if a.alias == term.column), term.column)
                raise Unsupported(
                    "QRY003", f"{keyword} by {written} of type {type_ or 'not proven'}", self.node, keyword
                )
        hidden = {item.alias for item in self.added}
        shown = frozenset(column.name for column in columns(relation) if column.name not in hidden)
        return TopK(relation, self.order, self.count, shown, offset_of(self.node), keyword, self.skipped)


def read_limit(query: exp.Query, relation: Relation, items: Sequence[exp.Alias], scope: Scope) -> Limit | None:
    """The LIMIT of a query with these items; None if it has none, or if it cuts nothing off. Raises Unsupported."""
    count, skipped, node = _counts(query)
    if (count is None or has_one_row(relation)) and not skipped:
        return None
    order, keyword = query.args.get("order"), _keyword(node)
    if order is None:
        words = f"{keyword} without ORDER BY: which rows are first is not determined"
        raise Unsupported("QRY003", words, node, keyword)
    terms: list[SortTerm] = []
    added: dict[str, exp.Alias] = {}
    for ordered in order.expressions:
        name = _column(ordered.this, items, scope, added)
        terms.append(SortTerm(name, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))))
    if not query.args.get("group") and any(aggregate_calls(item.this) for item in added.values()):
        raise Unsupported("QRY003", f"{keyword} of rows in the order of an aggregate", node, keyword)
    if added and query.args.get("distinct"):
        raise Unsupported("QRY003", f"{keyword} of DISTINCT rows in an order that they do not show", node, keyword)
    return Limit(count, skipped, tuple(terms), tuple(added.values()), node)


def apply_limit(query: exp.Query, relation: Relation) -> Relation:
    """The first rows of a set operation. Raises Unsupported."""
    shown = columns(relation)
    scope = Scope(relation, (ScopeSource("", tuple((column.name, column.name) for column in shown)),))
    items = [quoted_alias(exp.column(column.name, quoted=True), column.name) for column in shown]
    limit = read_limit(query, relation, items, scope)
    if limit is None:
        return relation
    if not limit.added:
        return limit.of(relation)
    kept = [Named(column.name, exp.column(column.name, quoted=True), column.type) for column in shown]
    more = [Named(a.alias, value := scope.resolve(a.this), infer(value, scope.known)) for a in limit.added]
    return limit.of(Projection(relation, (*kept, *more)))


def has_one_row(relation: Relation) -> bool:
    """Whether a relation has one row at most, whatever its inputs hold."""
    match relation:
        case Aggregate():
            return not relation.keys or has_one_row(relation.child)
        case Filter() | Projection() | Windowed() | Distinct():
            return has_one_row(relation.child)
        case Join():
            is_left = relation.kind in ("semi", "anti")
            return relation.kind != "full" and has_one_row(relation.left) and (is_left or has_one_row(relation.right))
        case TopK():
            return relation.count == 1
        case ScalarValue():
            return True
    return False


def unique_columns(relation: Relation) -> frozenset[str] | None:
    """Columns whose values no two rows share; None where none are known."""
    match relation:
        case Aggregate():
            items = {i.expression.name: i.name for i in relation.items if isinstance(i.expression, exp.Column)}
            names = [items.get(key.name) for key in relation.keys]
            return None if None in names else frozenset(name for name in names if name is not None)
        case Distinct():
            return frozenset(column.name for column in columns(relation))
        case Filter() | Join(kind="semi" | "anti"):
            return unique_columns(relation.child if isinstance(relation, Filter) else relation.left)
        case Projection() | Windowed():
            below = unique_columns(relation.child)
            items = {i.expression.name: i.name for i in relation.items if isinstance(i.expression, exp.Column)}
            return None if below is None or not below <= items.keys() else frozenset(items[name] for name in below)
    return None


def has_total_order(relation: TopK) -> bool:
    """Whether no two rows are tied by ORDER BY alone."""
    unique = unique_columns(relation.child)
    return unique is not None and unique <= {term.column for term in relation.order}


def _counts(query: exp.Query) -> tuple[int | None, int, exp.Expr]:
    """How many rows LIMIT lets through, how many OFFSET skips before, and the node of LIMIT, or of OFFSET alone."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    skipped = 0 if offset is None else _number(offset, "OFFSET")
    if limit is None:
        return None, skipped, query if offset is None else offset
    count = _number(limit, "LIMIT")
    if count == 0:
        raise Unsupported("QRY003", "LIMIT 0", limit, "LIMIT")
    return count, skipped, limit


def _keyword(node: exp.Expr) -> str:
    return "OFFSET" if isinstance(node, exp.Offset) else "LIMIT"


def _number(clause: exp.Expr, keyword: str) -> int:
    number = clause.expression if isinstance(clause, exp.Limit | exp.Offset) else None
    if not isinstance(number, exp.Literal) or number.is_string or not number.name.isdigit():
        raise Unsupported("QRY003", f"{keyword} of other than a number", clause, keyword)
    return int(number.name)


def _column(term: exp.Expr, items: Sequence[exp.Alias], scope: Scope, added: dict[str, exp.Alias]) -> str:
    """The column of the query by which a term orders its rows, which may have to be added."""
    if isinstance(term, exp.Literal) and not term.is_string and term.name.isdigit():
        if not 1 <= int(term.name) <= len(items):
            raise Unsupported("QRY003", f"ORDER BY position {term.name}, which is not in the SELECT list", term)
        return items[int(term.name) - 1].alias
    aliases = {item.alias.lower(): item for item in items}
    if isinstance(term, exp.Column) and not term.table and (item := aliases.get(term.name.lower())) is not None:
        return item.alias
    written = _with_aliases(term, aliases)
    try:
        text = canonical(scope.resolve(written))
        same = [item for item in items if not item.this.find(exp.Query) and canonical(scope.resolve(item.this)) == text]
    except UnknownName:
        raise Unsupported("QRY003", f"ORDER BY {term.sql(SPARK)}", term) from None
    if same:
        return same[0].alias
    if written.find(exp.Window, exp.Query):
        raise Unsupported("QRY003", f"ORDER BY {term.sql(SPARK)}, which the query does not return", term)
    return added.setdefault(text, quoted_alias(written, f"{_HIDDEN}{len(added)}")).alias


def _with_aliases(term: exp.Expr, aliases: dict[str, exp.Alias]) -> exp.Expr:
    """The term with the aliases of the SELECT list replaced by their expressions."""
    inside = {id(column) for call in aggregate_calls(term) for column in call.find_all(exp.Column)}

    def expression_of(node: exp.Expr) -> exp.Expr:
        item = aliases.get(node.name.lower()) if isinstance(node, exp.Column) and not node.table else None
        if item is None:
            return node
        if isinstance(item.this, exp.Column) and item.this.name.lower() == node.name.lower():
            return item.this.copy()
        if id(node) in inside:
            raise Unsupported("QRY003", f"ORDER BY an aggregate of {node.name}, which is an alias", node)
        return exp.Paren(this=item.this.copy())

    return replace_nodes(term, expression_of)
