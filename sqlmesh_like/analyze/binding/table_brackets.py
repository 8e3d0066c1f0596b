"""Items of FROM in brackets, which mean what they mean without them. Owns taking the brackets away.

An alias behind the brackets hides one within them. Joins in brackets stay.
"""

from __future__ import annotations

from sqlglot import exp

_TABLE = {"this", "db", "catalog", "alias"}
_QUERY = {"this", "alias"}
_AROUND = {"this", "alias", "joins", "pivots"}


def without_table_brackets(tree: exp.Expr) -> exp.Expr:
    """The query, changed in place, without brackets around one table or derived table.

    >>> import sqlglot
    >>> def written(sql): return without_table_brackets(sqlglot.parse_one(sql, dialect="spark")).sql("spark")
    >>> written("select x.a from ((t as y)) as x join (u) on true")
    'SELECT x.a FROM t AS x JOIN u ON TRUE'
    >>> written("select a from ((select 1 as a) as x)"), written("select 1 from (t join u on true)")
    ('SELECT a FROM (SELECT 1 AS a) AS x', 'SELECT 1 FROM (t JOIN u ON TRUE)')
    """
    for holder in list(tree.find_all(exp.From, exp.Join)):
        _take_off(holder.this)
    return tree


def _take_off(item: exp.Expr) -> None:
    if not isinstance(item, exp.Subquery):
        return
    _take_off(item.this)
    inner = item.this
    if not isinstance(inner, exp.Table | exp.Subquery) or not _has_only(item, _AROUND):
        return
    if not _has_only(inner, _TABLE if isinstance(inner, exp.Table) else _QUERY):
        return
    alias, own = item.args.get("alias"), inner.args.get("alias")
    if alias is not None:
        if own is not None and own.columns and not alias.columns:
            alias.set("columns", [name.copy() for name in own.columns])
        inner.set("alias", alias)
    for part in ("joins", "pivots"):
        inner.set(part, item.args.get(part))
    item.replace(inner)


def _has_only(node: exp.Expr, parts: set[str]) -> bool:
    return all(not value or part in parts for part, value in node.args.items())
