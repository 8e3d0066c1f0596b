"""`incremental_predicates`: conditions on the rows that a merge may touch. Owns reading them.

As in dbt: https://docs.getdbt.com/docs/build/incremental-strategy#about-incremental_predicates. Each column
is of DBT_INTERNAL_DEST, the table, or of DBT_INTERNAL_SOURCE, the new rows. In `delete+insert` a column alone is the
table's, since dbt writes the condition into a DELETE of the table; in a MERGE it would be ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.analyze.nesting import parse_text

TABLE, ROWS = "DBT_INTERNAL_DEST", "DBT_INTERNAL_SOURCE"


class PredicateFault(Exception):
    """An invalid predicate; a caller that knows its position turns this into a located error."""


def read_predicate(text: str, strategy: str, stored_name: Callable[[str], str]) -> exp.Expr:
    """The condition with the table's columns renamed by `stored_name`, those of the rows as they are.

    Raises PredicateFault.

    >>> read_predicate("DBT_INTERNAL_DEST.day > DBT_INTERNAL_SOURCE.day", "merge", "old_{}".format).sql("spark")
    '`old_day` > `day`'
    >>> read_predicate("day > '2024'", "delete+insert", "old_{}".format).sql("spark")
    "`old_day` > '2024'"
    """
    try:
        tree = parse_text(text)
    except SqlglotError as error:
        raise PredicateFault(f"incremental_predicates: {text!r} is not a condition") from error
    if isinstance(tree, exp.Query) or tree.find(exp.Subquery, exp.Select):
        raise PredicateFault(f"incremental_predicates: {text!r} has a subquery, which is not supported")
    for column in list(tree.find_all(exp.Column)):
        side = column.table.upper() or (TABLE if strategy == "delete+insert" else "")
        if side not in (TABLE, ROWS):
            raise PredicateFault(f"incremental_predicates: write {TABLE}.{column.name} or {ROWS}.{column.name}")
        name = stored_name(column.name) if side == TABLE else column.name
        renamed = exp.column(name, quoted=True)
        if column is tree:
            return renamed
        column.replace(renamed)
    return tree
