"""Groups that ask subqueries: in aggregates and their FILTER, in GROUP BY, and beside them. Owns where each goes.

What an aggregate or GROUP BY asks is about a single row, so it is joined to the rows before they are grouped; each row
stays one row. What is asked beside aggregates, or by HAVING, is about a group, and is joined to the groups; what it
reads of them, keys and aggregates, are columns of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Projection, Relation
from sqlmesh_like.analyze.binding.grouping import aggregate_calls, having_item, key_expression, read_aggregate
from sqlmesh_like.analyze.binding.joining import filter_rows
from sqlmesh_like.analyze.binding.scope import Scope, UnknownName, Unsupported, quoted_alias
from sqlmesh_like.analyze.binding.subqueries.in_values import is_aggregated, is_below_not
from sqlmesh_like.analyze.binding.subqueries.predicate_subqueries import Subqueries
from sqlmesh_like.analyze.binding.ties import core
from sqlmesh_like.analyze.binding.windows_over_groups import SplitItems


class RowQuestions:
    """Replaces what aggregates and GROUP BY ask by columns of `scope`, which grows; equal questions are one.

    IN below NOT is another question than IN: both are false where it is unknown.
    """

    def __init__(self, scope: Scope, subqueries: Subqueries) -> None:
        self.scope = scope
        self._subqueries = subqueries
        self._answers: dict[str, exp.Expr] = {}

    def answer_group_by(self, select: exp.Select, items: list[exp.Alias]) -> exp.Select:
        """The SELECT with answers in its GROUP BY, which may name an item that asks, or its position."""
        group = select.args.get("group")
        if group is None or not any(part.find(exp.Query) for part in (group, *items)):
            return select
        copy = select.copy()
        for key in list(copy.args["group"].expressions):
            meant = key_expression(key, items, self.scope)
            if meant.find(exp.Query) and not aggregate_calls(meant):
                key.replace(self._answer(meant))
        return copy

    def items(self, items: Sequence[exp.Alias]) -> list[exp.Alias]:
        """The items with answers in their aggregates, and in place of an expression of GROUP BY."""
        return [
            quoted_alias(self._replace_by_answers(item.this), item.alias) if item.find(exp.Query) else item
            for item in items
        ]

    def _replace_by_answers(self, expression: exp.Expr) -> exp.Expr:
        root = exp.Paren(this=expression.copy())
        for node in list(root.walk()):
            known = self._answers.get(repr(node)) if node is not root else None
            if known is not None and not (node.find(exp.In) and is_below_not(node)):
                node.replace(known.copy())
            elif known is not None and node.find_ancestor(exp.AggFunc, exp.Filter) is None:
                raise Unsupported("QRY005", "NOT IN of a query beside groups by that IN", node)
        for call in aggregate_calls(root):
            if isinstance(call, exp.Filter) and call.find(exp.Query):
                condition = call.expression.this
                condition.replace(self._answer(condition))
            function = core(call)
            holder = function.this if isinstance(function.this, exp.Distinct) else function
            for argument in list(holder.iter_expressions()):
                if argument.find(exp.Query):
                    argument.replace(self._answer(argument, is_in_whole=is_aggregated(argument, function)))
        answered: exp.Expr = root.this
        return answered

    def _answer(self, expression: exp.Expr, *, is_in_whole: bool = True) -> exp.Expr:
        text = repr(expression)
        if text not in self._answers:
            name = f"_sml_q{len(self._answers)}"
            scope, value = self._subqueries.join_predicates(self.scope, expression, name, is_in_whole=is_in_whole)
            self.scope, value = self._subqueries.scalars.join_values(scope, value, f"{name}_s")
            self._answers[text] = exp.Paren(this=value)
        return self._answers[text].copy()


class _GroupValues:
    """Replaces what subqueries read of the groups around them, keys and aggregates, by columns of these: `items`."""

    def __init__(self, scope: Scope, subqueries: Subqueries) -> None:
        self._scope = scope
        self._subqueries = subqueries
        self.items: list[exp.Alias] = []
        self._names: dict[str, str] = {}

    def replace_in_item(self, item: exp.Alias) -> exp.Alias:
        """The item with these columns in its subqueries."""
        if item.find(exp.Query) is None:
            return item
        copy = item.copy()
        for query in [node for node in copy.find_all(exp.Select) if node.find_ancestor(exp.Select) is None]:
            self._replace_in(query)
        return copy

    def _replace_in(self, select: exp.Select) -> None:
        try:
            inner = self._subqueries.scalars.tables.scope(select)
        except UnknownName:
            return  # a derived table that reads the groups, which is refused where it is read
        own = [column for column in select.find_all(exp.Column) if column.find_ancestor(exp.Select) is select]
        for column in own:
            if (
                not isinstance(column.this, exp.Star)
                and not _resolves(column, inner)
                and _resolves(column, self._scope)
            ):
                call = column.find_ancestor(exp.AggFunc, exp.Select)
                self._replace(call if isinstance(call, exp.AggFunc) else column)

    def _replace(self, node: exp.Expr) -> None:
        text = repr(node)
        if text not in self._names:
            self._names[text] = f"_sml_u{len(self.items)}"
            self.items.append(quoted_alias(node, self._names[text]))
        node.replace(exp.column(self._names[text], quoted=True))


def _resolves(column: exp.Expr, scope: Scope) -> bool:
    try:
        scope.resolve(column)
    except UnknownName as unknown:
        return "ambiguous" in unknown.message
    return True


def asking_groups(select: exp.Select, items: list[exp.Alias], scope: Scope, subqueries: Subqueries) -> Relation | None:
    """Groups whose HAVING or items ask subqueries, which are joined to them; None if no such is left."""
    having = select.args.get("having")
    asked = [item.this for item in items if item.find(exp.Query)]
    if not asked and (having is None or having.find(exp.Query) is None):
        return None
    if window := next((window for item in items for window in item.this.find_all(exp.Window)), None):
        raise Unsupported("QRY006", "a window function beside a subquery of groups", window)
    conditions = [having_item(having.this, items, scope)] if having is not None else []
    values_around = _GroupValues(scope, subqueries)
    parts = [values_around.replace_in_item(item) for item in (*items, *conditions)]
    split = SplitItems(parts, select.args.get("group"))
    grouped = exp.Select(group=select.args["group"].copy()) if select.args.get("group") else exp.Select()
    above = split.scope(read_aggregate(grouped, scope, [*split.inner, *values_around.items]))
    values: list[exp.Alias] = []
    try:
        for number, item in enumerate(split.outer):
            above, value = subqueries.join_predicates(above, item.this, f"_sml_j{number}")
            above, value = subqueries.scalars.join_values(above, value, f"_sml_h{number}")
            values.append(quoted_alias(value, item.alias))
    except UnknownName:
        query = (having.find(exp.Query) if having is not None else None) or asked[0].find(exp.Query)
        raise Unsupported("QRY005", "a correlated subquery of groups", query, "SELECT") from None
    kept = filter_rows(above.relation, [above.resolve(value.this) for value in values[len(items) :]])
    return Projection(kept, tuple(above.resolve_item(value) for value in values[: len(items)]))
