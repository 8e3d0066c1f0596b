"""GROUPING and GROUPING_ID in HAVING, as Spark runs them. Owns their expressions over the number of a grouping set.

Hudi's rules ask for the columns of a query before Spark has resolved such a call in its HAVING, which fails ("Invalid
call to exprId on unresolved object"). The column of which Spark makes the call may be named there instead: it has one
bit per key, that of the first key highest. Source: Spark 3.5 `ResolveGroupingAnalytics` and `grouping.scala`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from sqlmesh_like.dialects import SPARK

NUMBER = "spark_grouping_id"
"""Spark's own column: the number of the grouping set of a row."""
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
PARTS_OF_DATES = (
    exp.Year, exp.Quarter, exp.Month, exp.WeekOfYear, exp.DayOfYear, exp.DayOfWeek, exp.Hour, exp.Minute, exp.DateTrunc,
    exp.TimestampTrunc,
)  # fmt: skip
"""Functions of which two never make equal keys of one column."""


def grouping_calls(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Calls in a HAVING of the SELECT that has it."""
    for having in tree.find_all(exp.Having):
        for call in having.find_all(exp.Grouping, exp.GroupingId):
            if call.find_ancestor(exp.Having, exp.Query) is having:
                yield call


def grouping_bits(call: exp.Expr) -> exp.Expr | None:
    """A call in HAVING over the set's number; None where it does not follow from the text which key it asks for.

    >>> import sqlglot
    >>> def ask(text):
    ...     bits = grouping_bits(next(grouping_calls(sqlglot.parse_one(text, dialect="spark"))))
    ...     return bits and bits.sql("spark")
    >>> ask("select a from t group by cube(a, b) having grouping(t.A) = 0"), ask("select 1 from t having grouping(a)")
    (None, None)
    >>> ask("select a from t group by cube(a, b) having grouping(A) = 0")
    'CAST(SHIFTRIGHT(spark_grouping_id, 1) & 1 AS TINYINT)'
    >>> ask("select a from t group by cube(a, b) having grouping_id() = 0")
    'spark_grouping_id'
    """
    select = call.parent_select
    if not isinstance(select, exp.Select) or any(
        name.name.lower() == NUMBER for name in select.find_all(exp.Identifier)
    ):
        return None
    asked = [_text_of(each) for each in call.expressions]
    keys = _keys(select)
    if keys is None or _names_hidden_keys(select):
        return None
    if isinstance(call, exp.GroupingId):
        return exp.column(NUMBER) if asked in ([], keys) else None
    if len(asked) != 1 or asked[0] not in keys:
        return None
    place = exp.Literal.number(len(keys) - 1 - keys.index(asked[0]))
    shifted = exp.Anonymous(this="SHIFTRIGHT", expressions=[exp.column(NUMBER), place])
    return exp.cast(exp.BitwiseAnd(this=shifted, expression=exp.Literal.number(1)), "tinyint", dialect=SPARK)


def _names_hidden_keys(select: exp.Select) -> bool:
    """Whether HAVING names a key that SELECT does not show, which Spark finds beside no column of its own."""
    shown = {item.alias_or_name.lower() for item in select.expressions}
    around = (exp.Grouping, exp.GroupingId, exp.AggFunc, exp.Query, exp.Having)
    for column in select.args["having"].find_all(exp.Column):
        if isinstance(column.find_ancestor(*around), exp.Having) and column.name.lower() not in shown:
            return True
    return False


def _keys(select: exp.Select) -> list[str] | None:
    """The keys of GROUP BY in Spark's order, by their text; None if two texts may be one key to Spark."""
    keys: dict[str, exp.Expr] = {}
    group = select.args.get("group")
    for key in _flat_keys(group) if group is not None else ():
        keys.setdefault(_text_of(key), key)
    aliases = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    seen: dict[str, exp.Expr] = {}
    for key in keys.values():
        columns = list(key.find_all(exp.Column))
        names = {column.name.lower() for column in columns}
        for alias in {column.name.lower() for column in columns if not column.table} & aliases.keys():
            names |= {column.name.lower() for column in aliases[alias].find_all(exp.Column)}
        if not names or any(not _are_apart(key, seen[name], aliases) for name in names & seen.keys()):
            return None
        seen |= dict.fromkeys(names, key)
    return list(keys)


def _are_apart(one: exp.Expr, other: exp.Expr, aliases: Collection[str]) -> bool:
    """Whether two keys that share a column are never one: parts of its date, or the column and a condition."""
    if isinstance(one, PARTS_OF_DATES) and isinstance(other, PARTS_OF_DATES):
        return type(one) is not type(other)
    kinds = sorted((one, other), key=lambda key: isinstance(key, exp.Column))
    is_column = isinstance(kinds[1], exp.Column) and (kinds[1].table != "" or kinds[1].name.lower() not in aliases)
    return is_column and isinstance(kinds[0], exp.Predicate)


def _flat_keys(group: exp.Group) -> Iterator[exp.Expr]:
    """Keys in the order of the text; of `GROUP BY a, b GROUPING SETS (…)` and `… WITH CUBE`, those before."""
    parts = list(group.expressions)
    if not parts:
        parts = [part for name in ("grouping_sets", "rollup", "cube") for part in group.args.get(name) or ()]
    while parts:
        part = parts.pop(0).unnest()
        if isinstance(part, (*_SETS, exp.Tuple)):
            parts = [*part.expressions, *parts]
        else:
            yield part


def _text_of(key: exp.Expr) -> str:
    copy = key.unnest().copy()
    for name in copy.find_all(exp.Identifier):
        name.replace(exp.to_identifier(name.name.lower(), quoted=True))
    return copy.sql(SPARK, comments=False)
