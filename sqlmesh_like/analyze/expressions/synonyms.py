"""Synonyms of aggregate functions. Owns their conversion to the one form that later stages know.

Source: Spark 3.5 `FunctionRegistry`. `percentile_cont(p) WITHIN GROUP (ORDER BY x)` is `percentile(x, p)` there
(`PercentileCont` is replaced by `Percentile`), while sqlglot would write it as an approximation. Other percentiles
by an order become calls of one value as well, with the fraction as `expression` and `desc`; `dialects` writes them out.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.functions.aggregates import AGGREGATES
from sqlmesh_like.dialects import copy_notes


def with_known_names(tree: exp.Expr) -> exp.Expr:
    """The tree, changed in place, with each aggregate under one name.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("select every(a), percentile_cont(0.5) within group (order by b) from t", "spark")
    >>> with_known_names(tree).sql("spark")
    'SELECT BOOL_AND(a), PERCENTILE(b, 0.5) FROM t'
    """
    return (
        tree
        if tree.find(exp.Anonymous, exp.Any, exp.WithinGroup) is None
        else tree.transform(_replace_synonym, copy=False)
    )


def _replace_synonym(node: exp.Expr) -> exp.Expr:
    made: exp.Expr | None = None
    match node:
        case exp.Anonymous() if len(node.expressions) == 1 and (kind := _kind_of(node.name)) is not None:
            made = kind(this=node.expressions[0])
        case exp.Any() if isinstance(node.this, exp.Paren) and not _is_pattern_list(node):
            made = exp.LogicalOr(this=node.this.this)
        case exp.WithinGroup(this=exp.PercentileCont() | exp.PercentileDisc()):
            made = _percentile(node)
    if made is None:
        return node
    copy_notes(made, node)
    return made


def _kind_of(name: str) -> type[exp.Expr] | None:
    synonyms = ((kind, record.functions[1:]) for kind, record in AGGREGATES.items())
    return next((kind for kind, others in synonyms if name.lower() in {each.name for each in others}), None)


def _is_pattern_list(node: exp.Any) -> bool:
    """`LIKE ANY (…)`, which is not an aggregate."""
    return isinstance(node.parent, exp.Like | exp.ILike) and node.parent.expression is node


def _percentile(node: exp.WithinGroup) -> exp.Expr | None:
    (first, *others) = node.expression.expressions
    if others:
        return None
    is_descending = bool(first.args.get("desc"))
    made: exp.Expr
    if isinstance(node.this, exp.PercentileCont) and not is_descending:
        made = exp.Quantile(this=first.this, quantile=node.this.this)
    else:
        made = type(node.this)(this=first.this, expression=node.this.this, desc=is_descending)
    copy_notes(made, node.this)
    return made
