"""Names of a query's columns. Owns those that data tests and questions leave out."""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.dialects import SPARK


def name_all(tree: exp.Expr, *, as_written: bool) -> bool:
    """Name unnamed columns, which data tests (`select 1 from …`: only the rows count) and questions may have.

    Returns whether there were any.
    """
    first, any_unnamed = tree, False
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    for number, item in enumerate(first.expressions if isinstance(first, exp.Select) else ()):
        if not isinstance(item, exp.Alias | exp.Aliases | exp.Column | exp.Star | exp.UDTF):
            name = item.sql(SPARK, comments=False) if as_written else f"value_{number}"
            # Not `alias_`, which would give a subquery the alias of a derived table.
            item.replace(exp.Alias(this=item.copy(), alias=exp.to_identifier(name, quoted=as_written)))
            any_unnamed = True
    return any_unnamed


def known_names(tree: exp.Expr) -> tuple[str, ...] | None:
    """Names of a query's columns; None where their number does not follow from the text."""
    items = tree.selects if isinstance(tree, exp.Query) else []
    is_known = not any(item.is_star or isinstance(item, exp.Aliases | exp.UDTF) for item in items)
    names = tuple(item.alias_or_name for item in items)
    return names if is_known and all(names) else None
