"""Items of a SELECT list that refer to an alias to their left. Owns replacing it by what it stands for.

A column of FROM wins over such an alias. Source: Spark 3.5 `ResolveLateralColumnAliasReference`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlmesh_like.analyze.binding.expression_copies import replace_nodes
from sqlmesh_like.analyze.binding.scope import Scope, Unsupported, quoted_alias
from sqlmesh_like.analyze.expressions.functions import first_impure


def with_lateral_aliases(items: Sequence[exp.Alias], scope: Scope) -> list[exp.Alias]:
    """The SELECT list with the aliases that it reads written out. Raises Unsupported.

    What is not a function of its row may not be written twice, and windows and aggregates not within others. A window's
    result may: both copies are over the same rows, and ties are decided by the row key.
    """
    known: dict[str, exp.Expr] = {}
    result: list[exp.Alias] = []
    for item in items:
        read = [column for column in item.this.find_all(exp.Column) if _is_lateral(column, known, scope)]
        for column in read:
            value = known[column.name.lower()]
            if _is_within(column, item) or value.find(exp.Query, exp.UDTF) or _is_random(value):
                raise Unsupported("QRY009", f"the lateral alias {column.name!r}", column)
        written = replace_nodes(item.this, lambda node: _expand_alias(node, known, scope)) if read else item.this
        result.append(quoted_alias(written, item.alias) if read else item)
        known[item.alias.lower()] = written
    return result


def _is_lateral(node: exp.Expr, known: dict[str, exp.Expr], scope: Scope) -> bool:
    name = node.name.lower()
    return isinstance(node, exp.Column) and not node.table and name in known and name not in scope.bare


def _expand_alias(node: exp.Expr, known: dict[str, exp.Expr], scope: Scope) -> exp.Expr:
    return exp.Paren(this=known[node.name.lower()].copy()) if _is_lateral(node, known, scope) else node


def _is_within(column: exp.Expr, item: exp.Expr) -> bool:
    """Whether a column of an item is read by an aggregate, a window or a query."""
    node = column.parent
    while node is not None and node is not item:
        if isinstance(node, exp.AggFunc | exp.Window | exp.Query):
            return True
        node = node.parent
    return False


def _is_random(value: exp.Expr) -> bool:
    impure = first_impure(value, in_window=True)
    return impure is not None and impure[1] != "pure"
