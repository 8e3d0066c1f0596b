"""The joins of queries in a form in which alike ones are the same text. Owns that form.

A program of a TPC-DS query has a hundred steps, most of which join as others do. How Spark joins follows from FROM,
JOIN and WHERE of each SELECT: a *block* is these, with tables, columns and literals named by their first mention, so
that each kind of join need be planned but once.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlmesh_like.analyze.binding.joining import conjuncts

TABLE = "t"
"""Stands for every table; its columns are `c0`, `c1`, … in the order of their mention, aliases `r0`, `r1`, …"""
_CLAUSES = ("from_", "joins", "where")


def blocks(query: exp.Query) -> Iterator[str]:
    """The blocks of a query that combine rows of several relations.

    >>> import sqlglot
    >>> list(blocks(sqlglot.parse_one("select max(a.x) from t1 as a join (select k, v from t2) as b on a.k = b.k")))
    ['SELECT 1 FROM t AS r0 JOIN t AS r1 ON r0.c2 = r1.c2']
    >>> list(blocks(sqlglot.parse_one("select x from a where x in (select y from b) and z < 4")))
    ['SELECT 1 FROM t WHERE c0 IN (SELECT c1 FROM t)']
    >>> list(blocks(sqlglot.parse_one("select x from a where z < 4")))
    []
    """
    for select in query.find_all(exp.Select):
        where = select.args.get("where")
        if not _is_predicate(select) and (select.args.get("joins") or (where and where.find(exp.Query))):
            yield _canonical(_bare(select)).sql("spark")


def _is_predicate(select: exp.Select) -> bool:
    """Whether it is that of an EXISTS or IN, which is part of the block around it."""
    above = select.parent.parent if isinstance(select.parent, exp.Subquery) else select.parent
    return isinstance(above, exp.Exists | exp.In)


def _bare(select: exp.Select) -> exp.Select:
    """A SELECT that joins as this one does: a table in place of each of its relations, and no more."""
    left = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=_table(select.args["from_"].this)))
    for join in select.args.get("joins") or ():
        kind = {name: join.args[name] for name in ("method", "side", "kind") if join.args.get(name)}
        left.append(
            "joins",
            exp.Join(this=_table(join.this), on=join.args["on"].copy() if join.args.get("on") else None, **kind),
        )
    where = select.args.get("where")
    parts = conjuncts(where.this) if where else []
    if combining := [part for part in parts if part.find(exp.Query) or len(_aliases(part)) > 1]:
        left.set("where", exp.Where(this=exp.and_(*combining)))
    for source in list(left.find_all(exp.Table, exp.Subquery)):
        if isinstance(source.parent, exp.From | exp.Join):
            source.replace(_table(source))
    for each in left.find_all(exp.Select):
        shown = [item for item in each.expressions if each is not left and isinstance(item, exp.Column)]
        each.set("expressions", shown or [exp.Literal.number(1)])
    return left


def _table(source: exp.Expr) -> exp.Expr:
    return exp.alias_(exp.table_(TABLE), source.alias, table=True) if source.alias else exp.table_(TABLE)


def _aliases(expression: exp.Expr) -> set[str]:
    return {column.table for column in expression.find_all(exp.Column)}


def _canonical(select: exp.Select) -> exp.Select:
    """Names and literals by their first mention. An alias is never spelt as a column: that would hide it."""
    for join in select.args.get("joins") or ():
        _qualify(join, select.args["from_"].alias_or_name)
    names: dict[tuple[str, str], str] = {}
    for identifier in select.find_all(exp.Identifier, bfs=False):
        if not isinstance(identifier.parent, exp.Table):
            kind = "c" if identifier.arg_key == "this" and isinstance(identifier.parent, exp.Column) else "r"
            known = names.setdefault((kind, identifier.name.lower()), f"{kind}{len(names)}")
            identifier.replace(exp.to_identifier(known))
    for literal in select.find_all(exp.Literal):
        literal.set("this", "1")
    return select


def _qualify(join: exp.Join, first: str) -> None:
    """Outer joins are by pairs of columns, the first relation's and then the other's, and conditions on the other."""
    condition = join.args.get("on")
    if condition is None:
        return
    firsts = {id(column) for pair in condition.find_all(exp.EQ, exp.NullSafeEQ) for column in _unqualified(pair.this)}
    for column in _unqualified(condition):
        column.set("table", exp.to_identifier(first if id(column) in firsts else join.alias_or_name))


def _unqualified(expression: exp.Expr) -> list[exp.Column]:
    return [column for column in expression.find_all(exp.Column) if not column.table]
