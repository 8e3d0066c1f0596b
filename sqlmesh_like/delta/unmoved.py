"""Branches of a program that can yield nothing, since an input has not moved. Owns leaving them out before binding.

Without this, `L as it is ⋈ ΔR` would read all of L to meet no row of R.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from sqlmesh_like.delta.program import split_relation


def without_unmoved(query: exp.Expr, unmoved: Collection[str]) -> exp.Expr:
    """The query without those branches of UNION ALL that read the changes of `unmoved` inputs; changed in place."""
    if not unmoved:
        return query
    # Inner unions first, so that an outer one sees what is left of them.
    for union in reversed(list(query.find_all(exp.Union))):
        left, right = union.this, union.expression
        if union.parent is None or union.args.get("distinct") or left.named_selects != right.named_selects:
            continue
        if _is_nothing(right, unmoved):
            union.replace(left)
        elif _is_nothing(left, unmoved):
            union.replace(right)
    return query


def _is_nothing(source: exp.Expr | None, unmoved: Collection[str]) -> bool:
    """Whether a FROM item or query has no rows: it joins, by inner and cross joins alone, a change without rows."""
    match source:
        case exp.Table():
            outside = split_relation(source)
            return outside is not None and outside[0] == "changes" and outside[1] in unmoved
        case exp.Subquery():
            return _is_nothing(source.this, unmoved)
        case exp.Union():
            return _is_nothing(source.this, unmoved) and _is_nothing(source.expression, unmoved)
        case exp.Select():
            return _has_no_row(source, unmoved)
    return False


def _has_no_row(select: exp.Select, unmoved: Collection[str]) -> bool:
    """An aggregate of no rows without GROUP BY is a row; everything else over no rows has none."""
    from_, joins, grouped = select.args.get("from_"), select.args.get("joins") or [], select.args.get("group")
    is_scalar = grouped is None and any(item.find(exp.AggFunc) for item in select.selects)
    if from_ is None or is_scalar or select.args.get("laterals"):
        return False
    if any(join.args.get("side") or join.args.get("method") for join in joins):
        return False
    return any(_is_nothing(item, unmoved) for item in (from_.this, *(join.this for join in joins)))
