"""Aliases of a SELECT list within its window functions. Owns expanding them there, which Spark does not do.

Spark lets an item name an alias to its left, but not within a window function
(`UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_WINDOW`). A column of FROM wins over an alias of the same name.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from sqlmesh_like.analyze.expressions.functions import first_impure
from sqlmesh_like.analyze.name_resolution import ColumnsOf, is_open, visible_columns

_Aliases = dict[str, exp.Expr | None]
"""Expressions of items to the left by alias; None for one that must not be repeated."""


def with_window_aliases(tree: exp.Expr, columns_of: ColumnsOf) -> exp.Expr:
    """The query with aliases in window functions replaced by their expressions; changes the tree in place.

    Not replaced: aliases of expressions that are not known to be pure, of window functions and of subqueries,
    duplicate aliases, and aliases in a SELECT whose FROM columns are not all known.

    >>> import sqlglot
    >>> sql = "select a + 1 as b, b * 2 as c, sum(c) over (order by b) as s from t"
    >>> print(with_window_aliases(sqlglot.parse_one(sql, dialect="spark"), lambda db, name: ("a",)).sql("spark"))
    SELECT a + 1 AS b, b * 2 AS c, SUM(((a + 1) * 2)) OVER (ORDER BY (a + 1)) AS s FROM t
    """
    if tree.find(exp.Window) is None:
        return tree
    for scope, known in list(visible_columns(tree, columns_of)):
        select = scope.expression
        names = [known.get(alias.lower()) for alias in scope.selected_sources]
        if isinstance(select, exp.Select) and not is_open(scope) and not scope.is_subquery and None not in names:
            _write_out(select, {name.lower() for part in names for name in part or ()})
    return tree


def _write_out(select: exp.Select, columns: Collection[str]) -> None:
    aliases: _Aliases = {}
    for item in select.expressions:
        for window in list(item.find_all(exp.Window)):
            for column in list(window.find_all(exp.Column)):
                expression = aliases.get(column.name.lower()) if _is_alias(column, columns) else None
                if expression is not None and column.find_ancestor(exp.Lambda, exp.Query) is select:
                    column.replace(_at(expression, column))
        if isinstance(item, exp.Alias):
            name = item.alias.lower()
            aliases[name] = None if name in aliases else _repeatable(item.this, columns, aliases)


def _at(expression: exp.Expr, column: exp.Column) -> exp.Expr:
    """A copy of the expression in parentheses, at the column's position in the text, where errors point."""
    written = exp.paren(expression.copy())
    for node in written.walk():
        if "start" in node.meta:
            node.meta.update(column.this.meta)
    return written


def _repeatable(value: exp.Expr, columns: Collection[str], aliases: _Aliases) -> exp.Expr | None:
    """The expression over columns of FROM alone; None if it must not be repeated, as copies might differ."""
    if value.find(exp.Window, exp.Query, exp.UDTF, exp.Lambda) or first_impure(value, in_window=True):
        return None
    named = [column.name.lower() for column in value.find_all(exp.Column) if _is_alias(column, columns)]
    if any(name in aliases and aliases[name] is None for name in named):
        return None

    def expand_alias(node: exp.Expr) -> exp.Expr:
        expression = aliases.get(node.name.lower()) if _is_alias(node, columns) else None
        return node if expression is None else exp.paren(expression.copy())

    return value.transform(expand_alias)


def _is_alias(node: exp.Expr, columns: Collection[str]) -> bool:
    is_bare = isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier)
    return is_bare and node.name.lower() not in columns
