"""Which names of a WITH clause a table in a query can refer to, and where such names collide.

Source: `CTESubstitution` of Spark 3.5, which refuses a name in doubt (`spark.sql.legacy.ctePrecedencePolicy`).
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def is_cte(table: exp.Table) -> bool:
    """Whether a table is a name of a WITH clause that is visible where it stands.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("with a as (select 1 from b), b as (select 1 from a) select 1 from b", dialect="spark")
    >>> sorted((table.name, is_cte(table)) for table in tree.find_all(exp.Table))
    [('a', True), ('b', False), ('b', True)]
    """
    return not table.db and table.name.lower() in visible_names(table)


def visible_names(node: exp.Expr) -> set[str]:
    """Names (lower case) of the WITH clauses around a node, as far as they are defined before it."""
    names: set[str] = set()
    child, parent = node, node.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            before = parent.expressions[: child.index or 0] if isinstance(child, exp.CTE) else parent.expressions
            names.update(cte.alias.lower() for cte in before)
            if parent.recursive and isinstance(child, exp.CTE):
                names.add(child.alias.lower())
            child, parent = parent.parent or parent, (parent.parent or parent).parent
            continue
        if (clause := parent.args.get("with_")) is not None:
            names.update(cte.alias.lower() for cte in clause.expressions)
        child, parent = parent, parent.parent
    return names


def colliding_names(tree: exp.Expr) -> Iterator[exp.CTE]:
    """Definitions whose name is one of the same WITH clause, or of one around the query that they begin.

    A query in FROM may define a name anew; one that is itself a definition, or a subquery of an expression, may not.
    """
    for clause in tree.find_all(exp.With):
        query = clause.parent
        outer = visible_names(query) if query is not None and _is_begun_anew(query) else set()
        names: set[str] = set()
        for cte in clause.expressions:
            if cte.alias.lower() in names | outer:
                yield cte
            names.add(cte.alias.lower())


def _is_begun_anew(query: exp.Expr) -> bool:
    """Whether a query is a definition of WITH or a subquery of an expression, not one of FROM or of a set operation."""
    around = query.parent
    if isinstance(around, exp.Subquery):
        query, around = around, around.parent
    return around is not None and not isinstance(around, exp.From | exp.Join | exp.SetOperation | exp.Lateral)
