"""`* EXCEPT (…)`, which Spark 3.5 does not know yet. Owns writing out the columns that are left.

Names are known where FROM holds tables, CTEs and derived tables with known columns; elsewhere the star stays as it is.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.binding.scope import UnknownName
from sqlmesh_like.analyze.name_resolution import ColumnsOf, is_open, visible_columns
from sqlmesh_like.errors import nearest


def with_star_columns(tree: exp.Expr, columns_of: ColumnsOf) -> exp.Expr:
    """The tree, or a copy in which stars with EXCEPT are columns. Raises UnknownName for a name that no column has.

    >>> import sqlglot
    >>> from sqlmesh_like.dialects import SPARK
    >>> query = sqlglot.parse_one("select * except (B), 1 as d from t", dialect=SPARK)
    >>> with_star_columns(query, lambda *_: ("a", "b", "c")).sql(SPARK)
    'SELECT `t`.`a`, `t`.`c`, 1 AS d FROM t'
    """
    if not any(star.args.get("except_") for star in tree.find_all(exp.Star)):
        return tree
    made = tree.copy()
    for scope, known in visible_columns(made, columns_of):
        select = scope.expression
        if isinstance(select, exp.Select) and not is_open(scope):
            tables = [table.lower() for table in scope.selected_sources]
            items = [column for item in select.expressions for column in _expand_star(item, known, tables)]
            select.set("expressions", items)
    return made


def _expand_star(item: exp.Expr, known: dict[str, tuple[str, ...] | None], tables: list[str]) -> list[exp.Expr]:
    star = item.this if isinstance(item, exp.Column) else item
    if not isinstance(star, exp.Star) or not star.args.get("except_"):
        return [item]
    wanted = [item.table.lower()] if isinstance(item, exp.Column) else tables
    columns = [(table, name) for table in wanted for name in known.get(table) or ()]
    if any(known.get(table) is None for table in wanted) or star.args.get("replace") or star.args.get("rename"):
        return [item]
    left_out = {name.name.lower(): name for name in star.args["except_"]}
    names = [name for _, name in columns]
    for low, name in left_out.items():
        if low not in map(str.lower, names):
            hint = nearest(name.name, names) or f"known: {', '.join(names)}"
            raise UnknownName(f"unknown column {name.name!r} in EXCEPT of a star", name, hint)
    return [exp.column(name, table=table, quoted=True) for table, name in columns if name.lower() not in left_out]
