"""Spark's trees as DuckDB's text. Owns the forms of which sqlglot's own translation means something else on DuckDB.

These are LATERAL VIEW (its OUTER is lost, and so is the order of positions), generators in a SELECT list, and ROLLUP,
CUBE and GROUPING SETS: DuckDB does not read them after WITH, and has a row for the empty set over no rows.
"""

from __future__ import annotations

from sqlglot import exp


def duck_text(tree: exp.Expr) -> str:
    """A query in DuckDB's dialect; the tree is changed on the way.

    >>> import sqlglot
    >>> duck_text(sqlglot.parse_one("select a from t group by a with rollup", dialect="spark"))
    'SELECT a FROM t GROUP BY ROLLUP (a) HAVING COUNT(*) > 0'
    """
    for counted in list(tree.find_all(exp.CountIf)):
        # DuckDB's own is NULL where all values are.
        counted.replace(exp.Count(this=exp.Case().when(counted.this.copy(), exp.Literal.number(1))))
    for asked in list(tree.find_all(exp.Anonymous)):
        if asked.name.upper() in ("ISNULL", "ISNOTNULL"):
            is_null = exp.Is(this=asked.expressions[0].copy(), expression=exp.Null())
            asked.replace(exp.Paren(this=is_null if asked.name.upper() == "ISNULL" else exp.Not(this=is_null)))
    for added in list(tree.find_all(exp.TsOrDsAdd)):
        # DuckDB adds an interval, which makes a timestamp of a date.
        if not (isinstance(added.parent, exp.Cast) and added.parent.to.is_type("date")):
            added.replace(exp.Cast(this=added.copy(), to=exp.DataType.build("date")))
    for cut in list(tree.find_all(exp.TimestampTrunc)):
        # DuckDB's is a date where its argument is one.
        if not isinstance(cut.parent, exp.Cast):
            cut.replace(exp.Cast(this=cut.copy(), to=exp.DataType.build("timestamp", dialect="duckdb")))
    for select in list(tree.find_all(exp.Select)):
        _without_laterals(select)
        _without_generators(select)
        _as_comma_forms(select)
    return tree.sql("duckdb")


def _without_laterals(select: exp.Select) -> None:
    joins = [_as_join(view, view.args.get("outer") is True) for view in select.args.pop("laterals", None) or []]
    for join in select.args.get("joins") or []:
        if isinstance(join.this, exp.Lateral) and isinstance(join.this.this, exp.Explode | exp.Inline):
            join.replace(_as_join(join.this, str(join.args.get("side")) == "LEFT"))
    for join in joins:
        select.append("joins", join)


def _as_join(view: exp.Lateral, is_outer: bool) -> exp.Join:
    """A view as a lateral join: list and positions are unnested side by side."""
    is_outer = is_outer or isinstance(view.this, exp.ExplodeOuter)
    listed = _filled(view.this.this, is_outer)
    items = [_unnest(listed, max_depth=2 if isinstance(view.this, exp.Inline) else 1)]
    if isinstance(view.this, exp.Posexplode):
        items.insert(0, _unnest(_positions(view.this.this, is_outer)))
    alias = view.args["alias"].copy()
    alias.set("columns", alias.columns or _default_names(view.this))
    rows = exp.Subquery(this=exp.Select(expressions=items))
    return exp.Join(this=exp.Lateral(this=rows, alias=alias), kind="CROSS")


def _without_generators(select: exp.Select) -> None:
    for item in list(select.expressions):
        generator = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
        if not isinstance(generator, exp.Explode | exp.Inline):
            continue
        is_outer = isinstance(generator, exp.ExplodeOuter)
        names = [name.copy() for name in item.expressions] if isinstance(item, exp.Aliases) else []
        names = names or ([item.args["alias"].copy()] if isinstance(item, exp.Alias) else _default_names(generator))
        parts = [_unnest(_filled(generator.this, is_outer), max_depth=1)]
        if isinstance(generator, exp.Posexplode):
            parts.insert(0, _unnest(_positions(generator.this, is_outer)))
        if len(names) == len(parts):
            shown: list[exp.Expr] = [exp.Alias(this=part, alias=name) for part, name in zip(parts, names, strict=True)]
            select.set("expressions", _spliced(select.expressions, item, shown))


def _spliced(items: list[exp.Expr], old: exp.Expr, new: list[exp.Expr]) -> list[exp.Expr]:
    return [result for item in items for result in (new if item is old else [item])]


def _default_names(generator: exp.Expr) -> list[exp.Identifier]:
    names = ["pos", "col"] if isinstance(generator, exp.Posexplode) else ["col"]
    return [] if isinstance(generator, exp.Inline) else [exp.to_identifier(name) for name in names]


def _filled(array: exp.Expr, is_outer: bool) -> exp.Expr:
    """The array, or one NULL where it has no element and the row is kept in any case."""
    return _or_null(array, array.copy()) if is_outer else array.copy()


def _positions(array: exp.Expr, is_outer: bool) -> exp.Expr:
    numbers = exp.Anonymous(this="range", expressions=[_length(array)])
    return _or_null(array, numbers) if is_outer else numbers


def _or_null(array: exp.Expr, value: exp.Expr) -> exp.Expr:
    has_some = exp.GT(this=_length(array), expression=exp.Literal.number(0))
    return exp.Case().when(has_some, value).else_(exp.Array(expressions=[exp.Null()]))


def _length(array: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="len", expressions=[array.copy()])


def _unnest(array: exp.Expr, max_depth: int = 1) -> exp.Expr:
    deeper = [exp.PropertyEQ(this=exp.to_identifier("max_depth"), expression=exp.Literal.number(max_depth))]
    return exp.Anonymous(this="unnest", expressions=[array, *(deeper if max_depth > 1 else [])])


def _as_comma_forms(select: exp.Select) -> None:
    """`GROUP BY a, b WITH ROLLUP` as `GROUP BY ROLLUP (a, b)`, and no row for the empty set over no rows."""
    group = select.args.get("group")
    if group is None:
        return
    for part, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if group.args.get(part):
            group.set(part, None)
            group.set("expressions", [kind(expressions=group.expressions)])
    if sets := group.args.get("grouping_sets"):
        group.set("grouping_sets", None)
        group.set("expressions", sets)
    if any(isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets) for part in group.expressions):
        has_rows = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
        select.having(has_rows, copy=False)
