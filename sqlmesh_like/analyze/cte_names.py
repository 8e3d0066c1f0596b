"""Names of CTEs in a query with inlined queries. Owns making them unique.

sqlglot writes all of a query's CTEs for Spark in one WITH, where duplicate names are an error.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp


def distinct_ctes(tree: exp.Expr) -> exp.Expr:
    """The query with CTEs of duplicate names renamed; changes the tree in place.

    >>> import sqlglot
    >>> twice = "(with a as (select 1 as x) select a.x from a) union all (with a as (select 2 as x) select a.x from a)"
    >>> distinct_ctes(sqlglot.parse_one(twice)).sql().partition("UNION ALL ")[2]
    '(WITH a_2 AS (SELECT 2 AS x) SELECT a.x FROM a_2 AS a)'
    """
    names = [cte.alias.lower() for cte in tree.find_all(exp.CTE)]
    if len(set(names)) < len(names):
        taken = {table.name.lower() for table in tree.find_all(exp.Table)}
        _Renaming(taken | set(names)).visit(tree, {})
    return tree


class _Renaming:
    def __init__(self, taken: set[str]) -> None:
        self._met: set[str] = set()
        self._taken = taken

    def visit(self, node: exp.Expr, scope: Mapping[str, str]) -> None:
        """Rename CTEs and their references below a node; `scope` maps old names of visible CTEs to new ones."""
        with_ = node.args.get("with_")
        if with_ is not None:
            scope = self._rename_ctes(with_, scope)
        elif (
            isinstance(node, exp.Table)
            and not node.db
            and (new := scope.get(node.name.lower(), node.name)) != node.name
        ):
            if not node.alias:
                node.set("alias", exp.TableAlias(this=node.this.copy()))
            node.set("this", exp.to_identifier(new))
        for child in list(node.iter_expressions()):
            if child is not with_:
                self.visit(child, scope)

    def _rename_ctes(self, with_: exp.With, scope: Mapping[str, str]) -> dict[str, str]:
        inner = dict(scope)
        for cte in with_.expressions:
            name = cte.alias.lower()
            new = self._fresh(name) if name in self._met else cte.alias
            self._met.add(name)
            if with_.recursive:
                inner[name] = new
            self.visit(cte.this, inner)
            inner[name] = new
            if new != cte.alias:
                cte.args["alias"].set("this", exp.to_identifier(new))
        return inner

    def _fresh(self, name: str) -> str:
        number = 2
        while f"{name}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{name}_{number}")
        return f"{name}_{number}"
