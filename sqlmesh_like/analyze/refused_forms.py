"""Forms that Spark's parser or analysis refuses whatever their columns are. Owns finding them in a tree.

`illegal_clauses` has the constructs that stand in a clause where they are not allowed. Source: `AstBuilder` and
`CheckAnalysis` of Spark 3.5.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlmesh_like.analyze.cte_scopes import colliding_names
from sqlmesh_like.analyze.expressions.grouping_bits import grouping_bits, grouping_calls
from sqlmesh_like.analyze.expressions.node_kinds import forms_of, has_any
from sqlmesh_like.analyze.functions.aggregates import AGGREGATES
from sqlmesh_like.analyze.illegal_clauses import Misplaced
from sqlmesh_like.analyze.refusals.arguments import JUDGED, refused_arguments
from sqlmesh_like.analyze.refusals.written_tables import WRITTEN_OUT, refused_tables
from sqlmesh_like.analyze.refused_windows import refused_windows
from sqlmesh_like.dialects import SPARK

_GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline)
_GROUPINGS = (exp.Grouping, exp.GroupingId)
_PERCENTILES = (exp.WithinGroup, exp.Median, exp.PercentileCont, exp.PercentileDisc)
_CHECKED = (
    exp.CTE, exp.Escape, exp.Floor, exp.Ceil, exp.Order, exp.Having, exp.In, *_GENERATORS, *_GROUPINGS, *_PERCENTILES,
    exp.Window, exp.Values, exp.Limit, exp.Offset, exp.Subquery, exp.Any, exp.All, exp.Stack, exp.Cube, exp.Rollup,
)  # fmt: skip


def first_refused(tree: exp.Expr) -> Misplaced | None:
    """The first form that Spark is sure to refuse.

    >>> import sqlglot
    >>> twice = "with a as (select 1), a as (select 2) select * from a"
    >>> first_refused(sqlglot.parse_one(twice, dialect="spark")).message
    "the name 'a' of WITH is ambiguous"
    """
    forms = forms_of(tree)
    checks = (check for kinds, some in _CHECKS if has_any(forms, kinds) for check in some)
    return next((misplaced for check in checks for misplaced in check(tree)), None)


def _ctes(tree: exp.Expr) -> Iterator[Misplaced]:
    for cte in colliding_names(tree):
        hint = "give it another name: one of that name is defined in this WITH or around it"
        yield Misplaced(f"the name {cte.alias!r} of WITH is ambiguous", cte, hint)


def _escapes(tree: exp.Expr) -> Iterator[Misplaced]:
    """LIKE … ESCAPE: an escape sign stands before `_`, `%` or itself."""
    for escape in tree.find_all(exp.Escape):
        like, sign = escape.this, escape.expression
        pattern = like.expression if isinstance(like, exp.Like | exp.ILike) else None
        if not (isinstance(pattern, exp.Literal) and isinstance(sign, exp.Literal) and len(sign.name) == 1):
            continue
        text, at = pattern.name, 0
        while (at := text.find(sign.name, at)) >= 0:
            if text[at + 1 : at + 2] not in ("_", "%", sign.name):
                yield Misplaced(f"{sign.name!r} escapes nothing in the pattern {text!r}", pattern)
                break
            at += 2


def _generators(tree: exp.Expr) -> Iterator[Misplaced]:
    for generator in tree.find_all(*_GENERATORS, exp.Stack):
        named = generator.this.expression if isinstance(generator.this, exp.Kwarg) else generator.this
        if any(isinstance(argument, _GENERATORS) for argument in (named, *generator.expressions)):
            yield Misplaced(f"a generator cannot be nested in another one: {generator.sql(SPARK)}", generator)
        elif isinstance(generator.this, exp.Null | exp.Literal) and not isinstance(generator, exp.Stack):
            yield Misplaced(f"{generator.sql(SPARK)} takes an array or a map", generator)


def _groupings(tree: exp.Expr) -> Iterator[Misplaced]:
    for call in tree.find_all(*_GROUPINGS):
        select = call.find_ancestor(exp.Query)
        if isinstance(select, exp.Select) and not _has_sets(select.args.get("group")):
            hint = "group by ROLLUP, CUBE or GROUPING SETS"
            yield Misplaced(f"{call.sql(SPARK)} is of grouping sets only", call, hint)
    for unresolved in grouping_calls(tree):
        if grouping_bits(unresolved) is None:
            hint = "name it and the keys that HAVING reads in the SELECT list, and its alias in HAVING"
            message = f"{unresolved.sql(SPARK)} in this HAVING is refused by Spark with Hudi's extension"
            yield Misplaced(message, unresolved, hint)


def _has_sets(group: exp.Expr | None) -> bool:
    kinds = (exp.GroupingSets, exp.Rollup, exp.Cube)
    return group is not None and (
        any(group.args.get(part) for part in ("grouping_sets", "rollup", "cube"))
        or any(isinstance(item, kinds) for item in group.expressions)
    )


def _percentiles(tree: exp.Expr) -> Iterator[Misplaced]:
    """Percentiles by an order of their own, over windows: without ORDER BY and frame."""
    for percentile in tree.find_all(*_PERCENTILES):
        window = percentile.find_ancestor(exp.Window, exp.Query)
        if not isinstance(window, exp.Window) or percentile.find_ancestor(exp.WithinGroup, exp.Window) is not window:
            continue  # of WITHIN GROUP the whole is looked at
        if any(each.args.get("order") or each.args.get("spec") for each in (window, *_named_window(window))):
            hint = "leave out ORDER BY and the frame of its window"
            yield Misplaced(f"{percentile.sql(SPARK)} has no order of rows over a window", window, hint)


def _named_window(window: exp.Window) -> Iterator[exp.Expr]:
    select, name = window.find_ancestor(exp.Select), window.text("alias").lower()
    named = (select.args.get("windows") or ()) if select is not None and name else ()
    return (each for each in named if each.name.lower() == name)


def _scales(tree: exp.Expr) -> Iterator[Misplaced]:
    for call in tree.find_all(exp.Floor, exp.Ceil):
        scale = call.args.get("decimals")
        if isinstance(scale, exp.Null) or (isinstance(scale, exp.Literal) and scale.is_string):
            yield Misplaced(f"the scale of {call.sql_name()} is a whole number, not {scale.sql(SPARK)}", call)


def _orders(tree: exp.Expr) -> Iterator[Misplaced]:
    for order in tree.find_all(exp.Order):
        for item in order.expressions if isinstance(order.parent, exp.Query) else ():
            value = item.this.this if isinstance(item.this, exp.Neg) else item.this
            is_number = isinstance(value, exp.Literal) and value.is_int
            if is_number and (value is not item.this or int(value.name) < 1):
                hint = "positions begin at 1"
                yield Misplaced(f"ORDER BY position {item.this.sql(SPARK)} is not in the SELECT list", value, hint)


def _groups(tree: exp.Expr) -> Iterator[Misplaced]:
    for having in tree.find_all(exp.Having):
        select = having.parent
        parts = [*select.expressions, having] if isinstance(select, exp.Select) and not select.args.get("group") else []
        has_columns = any(part.find(exp.Column) for part in parts)
        if has_columns and not any(part.find(*AGGREGATES, exp.Anonymous, exp.AggFunc) for part in parts):
            yield Misplaced("HAVING without GROUP BY and without an aggregate", having, "filter rows by WHERE")


def _widths(tree: exp.Expr) -> Iterator[Misplaced]:
    """IN of a query with another number of columns than values."""
    for member in tree.find_all(exp.In):
        query = member.args.get("query")
        select = query.unnest() if isinstance(query, exp.Expr) else None
        if not isinstance(select, exp.Select) or any(item.is_star for item in select.expressions):
            continue
        value = member.this.unnest()
        width = len(value.expressions) if isinstance(value, exp.Tuple) else 1
        if width != len(select.expressions) and not any(isinstance(e, exp.Tuple) for e in select.expressions):
            message = f"IN has {width} value(s), and its query {len(select.expressions)} column(s)"
            yield Misplaced(message, member)
    for query in tree.find_all(exp.Subquery):
        select, around = query.unnest(), query.parent
        is_value = isinstance(around, exp.Binary | exp.Alias) or (
            isinstance(around, exp.Select) and query.arg_key == "expressions"
        )
        items = select.expressions if isinstance(select, exp.Select) and not select.args.get("kind") else []
        if is_value and len(items) > 1 and not any(item.is_star for item in items):
            yield Misplaced(f"a subquery in the place of a value has {len(items)} columns", items[1])


def _patterns(tree: exp.Expr) -> Iterator[Misplaced]:
    for patterns in tree.find_all(exp.Any, exp.All):
        query = patterns.this.this if isinstance(patterns.this, exp.Subquery) else patterns.this
        if isinstance(query, exp.Select | exp.SetOperation):  # in further brackets it is a value
            message = f"{patterns.key.upper()} of a query is not Spark SQL"
            is_equal = isinstance(patterns.parent, exp.EQ) and isinstance(patterns, exp.Any)
            hint = "write IN" if is_equal else "compare with (select max(…) …) or (select min(…) …), or use EXISTS"
            yield Misplaced(message, patterns, hint)
        if isinstance(patterns.this, exp.Tuple) and not patterns.this.expressions:
            yield Misplaced("the list of patterns is empty", patterns)


def _sets(tree: exp.Expr) -> Iterator[Misplaced]:
    for sets in tree.find_all(exp.Rollup, exp.Cube):
        if any(isinstance(item, exp.Tuple) and not item.expressions for item in sets.expressions):
            message = f"{sets.key.upper()} has an empty set already: {sets.sql(SPARK)}"
            yield Misplaced(message, sets, "leave the () out, or write GROUPING SETS")


def _limits(tree: exp.Expr) -> Iterator[Misplaced]:
    for limit in tree.find_all(exp.Limit, exp.Offset):
        value = limit.expression
        if value is not None and (odd := value.find(exp.Column, exp.Rand)):
            yield Misplaced(f"LIMIT and OFFSET are known before any row is read: {value.sql(SPARK)}", odd)


_CHECKS = (
    (_CHECKED, (_ctes, _escapes, _generators, _groupings, _percentiles, _scales, _orders, _groups, _widths)),
    (_CHECKED, (_patterns, _limits, _sets, refused_windows)),
    (JUDGED, (refused_arguments,)),
    (WRITTEN_OUT, (refused_tables,)),
)
"""Checks by the kinds of which a query must have one."""
