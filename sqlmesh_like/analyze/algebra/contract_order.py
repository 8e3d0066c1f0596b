"""The order of columns that an enforced contract gives a table. Owns reordering; `plan.checks.contracts` checks.

As in dbt, a table has its columns in the order of the YAML, whatever the order of the SELECT; a view keeps its own.
Source: https://docs.getdbt.com/docs/mesh/govern/model-contracts
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Aggregate, Named, Projection, Relation, TopK, Windowed, columns
from sqlmesh_like.render.rendered import RenderedModel


def contract_order(model: RenderedModel) -> tuple[str, ...]:
    """Names of the table's columns in the order of its contract; empty for views and without a contract."""
    is_table = model.config.materialized in ("incremental", "table")
    return tuple(column.name for column in model.declared) if is_table and model.has_contract else ()


def in_order(tree: exp.Expr, relation: Relation | None, order: tuple[str, ...]) -> tuple[exp.Expr, Relation | None]:
    """A query and its algebra with the columns in this order; unchanged if they have other columns.

    >>> import sqlglot
    >>> in_order(sqlglot.parse_one("select 1 as b, 2 as a"), None, ("a", "b"))[0].sql("spark")
    'SELECT `a`, `b` FROM (SELECT 1 AS b, 2 AS a) AS `_sml_contract`'
    """
    assert isinstance(tree, exp.Query)
    wanted = [name.lower() for name in order]
    is_star_hidden = relation is None and tree.is_star
    names = [column.name for column in columns(relation)] if relation is not None else tree.named_selects
    have = [name.lower() for name in names]
    if not is_star_hidden and (sorted(have) != sorted(wanted) or have == wanted):
        return tree, relation
    inner = exp.Subquery(this=tree.copy(), alias=exp.TableAlias(this=exp.to_identifier("_sml_contract", quoted=True)))
    ordered = exp.select(*[exp.column(name, quoted=True) for name in order]).from_(inner)
    return ordered, relation and _relation_in_order(relation, wanted)


def _relation_in_order(relation: Relation, wanted: list[str]) -> Relation:
    def rank(item: Named) -> int:
        name = item.name.lower()
        return wanted.index(name) if name in wanted else len(wanted)  # what a query is only ordered by comes last

    if isinstance(relation, Projection | Windowed | Aggregate):
        return replace(relation, items=tuple(sorted(relation.items, key=rank)))
    if isinstance(relation, TopK):
        return replace(relation, child=_relation_in_order(relation.child, wanted))
    items = (Named(column.name, exp.column(column.name, quoted=True), column.type) for column in columns(relation))
    return Projection(relation, tuple(sorted(items, key=rank)))
