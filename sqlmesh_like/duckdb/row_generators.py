"""Table functions and VALUES as DuckDB has them: LATERAL VIEW, generators in a SELECT list, STACK. Owns these forms."""

from __future__ import annotations

from sqlglot import exp


def name_columns(item: exp.Expr) -> None:
    """Give VALUES and RANGE the column names that Spark gives them."""
    if isinstance(item, exp.Values) and not isinstance(item.parent, exp.From | exp.Join):
        return  # of INSERT
    if isinstance(item, exp.Values):
        first = item.expressions[0]
        names = [f"col{number}" for number, _ in enumerate(getattr(first, "expressions", None) or [first], 1)]
    elif isinstance(item.this, exp.Anonymous) and item.this.name.lower() == "range":
        names = ["id"]
    else:
        return
    alias = item.args.get("alias") or exp.TableAlias(this=exp.to_identifier("_sml_rows"))
    if not alias.columns:
        alias.set("columns", [exp.to_identifier(name) for name in names])
    item.set("alias", alias)


def without_laterals(select: exp.Select) -> None:
    joins = [_as_join(view, view.args.get("outer") is True) for view in select.args.pop("laterals", None) or []]
    for join in select.args.get("joins") or []:
        if isinstance(join.this, exp.Lateral) and isinstance(join.this.this, exp.Explode | exp.Inline):
            condition = join.args.get("on")
            made = _as_join(join.this, condition is None and str(join.args.get("side")) == "LEFT")
            if condition is not None:  # it chooses elements before an outer join adds a row without any
                made.set("on", condition.copy())
                made.set("kind", None)
                made.set("side", join.args.get("side"))
            join.replace(made)
    for join in joins:
        select.append("joins", join)


def _as_join(view: exp.Lateral, is_outer: bool) -> exp.Join:
    """A LATERAL VIEW as a lateral join that unnests the list and its positions side by side."""
    is_outer = is_outer or isinstance(view.this, exp.ExplodeOuter)
    listed = _outer_array(view.this.this, is_outer)
    items = [_unnest(listed, max_depth=2 if isinstance(view.this, exp.Inline) else 1)]
    if isinstance(view.this, exp.Posexplode):
        items.insert(0, _unnest(_positions(view.this.this, is_outer)))
    alias = view.args["alias"].copy()
    alias.set("columns", alias.columns or _default_names(view.this))
    rows = exp.Subquery(this=exp.Select(expressions=items))
    return exp.Join(this=exp.Lateral(this=rows, alias=alias), kind="CROSS")


def without_generators(select: exp.Select) -> None:
    for item in list(select.expressions):
        generator = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
        if not isinstance(generator, exp.Explode | exp.Inline):
            continue
        is_outer = isinstance(generator, exp.ExplodeOuter)
        names = [name.copy() for name in item.expressions] if isinstance(item, exp.Aliases) else []
        names = names or ([item.args["alias"].copy()] if isinstance(item, exp.Alias) else _default_names(generator))
        parts = _columns(generator) or [_unnest(_outer_array(generator.this, is_outer), max_depth=1)]
        if isinstance(generator, exp.Posexplode):
            parts.insert(0, _unnest(_positions(generator.this, is_outer)))
        if len(names) == len(parts):
            shown: list[exp.Expr] = [exp.Alias(this=part, alias=name) for part, name in zip(parts, names, strict=True)]
            select.set("expressions", _replace_item(select.expressions, item, shown))


def _columns(generator: exp.Expr) -> list[exp.Expr]:
    """The columns of INLINE of structs that are written out, side by side; empty for any other generator."""
    rows = generator.this.expressions if isinstance(generator, exp.Inline) and generator.this.expressions else []
    if not all(isinstance(row, exp.Struct) for row in rows):
        return []
    columns = zip(*([field.expression.copy() for field in row.expressions] for row in rows), strict=True)
    return [_unnest(exp.Array(expressions=list(column))) for column in columns]


def _replace_item(items: list[exp.Expr], old: exp.Expr, new: list[exp.Expr]) -> list[exp.Expr]:
    return [result for item in items for result in (new if item is old else [item])]


def _default_names(generator: exp.Expr) -> list[exp.Identifier]:
    names = ["pos", "col"] if isinstance(generator, exp.Posexplode) else ["col"]
    return [] if isinstance(generator, exp.Inline) else [exp.to_identifier(name) for name in names]


def _outer_array(array: exp.Expr, is_outer: bool) -> exp.Expr:
    """The array; if `is_outer`, an array of one NULL instead of an empty or NULL one."""
    return _or_null(array, array.copy()) if is_outer else array.copy()


def _positions(array: exp.Expr, is_outer: bool) -> exp.Expr:
    positions = exp.Anonymous(this="range", expressions=[_length(array)])
    numbers = exp.Cast(this=positions, to=exp.DataType.build("int[]", dialect="duckdb"))
    return _or_null(array, numbers) if is_outer else numbers


def _or_null(array: exp.Expr, value: exp.Expr) -> exp.Expr:
    has_some = exp.GT(this=_length(array), expression=exp.Literal.number(0))
    return exp.Case().when(has_some, value).else_(exp.Array(expressions=[exp.Null()]))


def _length(array: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="len", expressions=[array.copy()])


def _unnest(array: exp.Expr, max_depth: int = 1) -> exp.Expr:
    deeper = [exp.PropertyEQ(this=exp.to_identifier("max_depth"), expression=exp.Literal.number(max_depth))]
    return exp.Anonymous(this="unnest", expressions=[array, *(deeper if max_depth > 1 else [])])
