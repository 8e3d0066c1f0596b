"""What is computed over the aggregates of the same SELECT: `rank() over (order by sum(x))`, HAVING with a subquery.

Owns splitting such a SELECT into two. Spark evaluates windows after GROUP BY and HAVING: the aggregate gets an item for
everything that the windows read, and the windows are in a projection above it. Source: Spark 3.5
`ExtractWindowExpressions`.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Relation, columns
from sqlmesh_like.analyze.binding.expression_copies import WRITTEN, replace_nodes
from sqlmesh_like.analyze.binding.scope import Scope, ScopeSource, offset_of, quoted_alias
from sqlmesh_like.dialects import SPARK

_READ = re.compile(r"`_sml_\d+_((?:[^`]|``)*)`")
"""The name of what a window reads, in SQL: a backtick within a name is doubled."""
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


class SplitItems:
    """A SELECT list as that of the aggregate (`inner`) and that of windows and subqueries above it (`outer`).

    Items keep their position in `inner`, because GROUP BY may refer to it; what windows read is appended. Expressions
    of GROUP BY are read as a whole.
    """

    def __init__(self, items: list[exp.Alias], group: exp.Expr | None = None) -> None:
        keys = [_at_position(key, items) for key in group.expressions] if group is not None else []
        self._keys = {_text(key) for key in keys if not isinstance(key, exp.Literal | exp.Column)}
        self._read: dict[str, exp.Alias] = {}
        self.outer = [
            quoted_alias(self._above(item.this), item.alias)
            if _is_above(item)
            else quoted_alias(exp.column(item.alias, quoted=True), item.alias)
            for item in items
        ]
        kept = [quoted_alias(exp.Literal.number(1), f"_sml_x{n}") if _is_above(i) else i for n, i in enumerate(items)]
        self.inner = [*kept, *self._read.values()]

    def scope(self, groups: Relation) -> Scope:
        """The names that the windows see: the columns of the aggregate."""
        return Scope(groups, (ScopeSource("", tuple((column.name, column.name) for column in columns(groups))),))

    def _above(self, node: exp.Expr, *, is_window_function: bool = False) -> exp.Expr:
        """The expression with aggregate calls and columns replaced by columns of the aggregate."""
        if isinstance(node, exp.Query):
            return node.copy()
        is_call = isinstance(node, exp.AggFunc | exp.Filter) and not is_window_function
        if is_call or isinstance(node, exp.Column) or self._is_key(node):
            return self._column(node)
        copy = node.copy()
        is_below = isinstance(node, exp.Window) or (is_window_function and isinstance(node, _WRAPPERS))
        for child, original in zip(list(copy.iter_expressions()), list(node.iter_expressions()), strict=True):
            child.replace(self._above(original, is_window_function=is_below and original is node.this))
        return copy

    def _is_key(self, node: exp.Expr) -> bool:
        return bool(self._keys) and isinstance(node, exp.Condition) and _text(node) in self._keys

    def _column(self, node: exp.Expr) -> exp.Expr:
        item = self._read.setdefault(_text(node), quoted_alias(node, f"_sml_{len(self._read)}_{_author_sql(node)}"))
        column = exp.column(item.alias, quoted=True)
        if (offset := offset_of(node)) is not None:
            column.meta["start"] = offset
        return column


def as_written(window: exp.Expr) -> str:
    """A window function's SQL for messages, with the aggregates that it reads as they were written.

    >>> as_written(exp.column("_sml_0_SUM(a)", quoted=True))
    'SUM(a)'
    >>> as_written(exp.column("_sml_0_SUM(`a b`)", quoted=True))
    'SUM(`a b`)'
    """
    return _READ.sub(lambda read: read[1].replace("``", "`"), _author_sql(window))


def _author_sql(node: exp.Expr) -> str:
    """The SQL of an expression, with what stands for something else as its author wrote it."""
    shown = replace_nodes(node, lambda part: exp.Var(this=text) if (text := part.meta_get(WRITTEN)) else part)
    return shown.sql(SPARK, comments=False)


def _at_position(key: exp.Expr, items: list[exp.Alias]) -> exp.Expr:
    """The item that a number in GROUP BY stands for; any other key itself."""
    is_place = isinstance(key, exp.Literal) and not key.is_string and key.name.isdigit()
    return items[int(key.name) - 1].this if is_place and 1 <= int(key.name) <= len(items) else key


def _text(node: exp.Expr) -> str:
    return node.sql(SPARK, comments=False)


def _is_above(item: exp.Alias) -> bool:
    return item.this.find(exp.Window, exp.Query) is not None
