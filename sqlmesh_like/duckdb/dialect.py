"""Spark's trees as DuckDB's text. Owns the forms whose translation by sqlglot means something else on DuckDB.

These are LATERAL VIEW (its OUTER is lost, and so is the order of positions), generators in a SELECT list, and ROLLUP,
CUBE and GROUPING SETS: DuckDB does not parse them after WITH, and returns a row for the empty set over no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generator import Generator

from sqlmesh_like.analyze.binding.generators import stack_as_inline
from sqlmesh_like.analyze.binding.scope import Unsupported
from sqlmesh_like.analyze.binding.subqueries.in_values import is_below_not, is_value
from sqlmesh_like.analyze.binding.time_windows import is_window_call, replace_window_calls, time_window_of
from sqlmesh_like.analyze.functions.aggregates import AGGREGATES
from sqlmesh_like.dialects import Write, duck_template, generate_again, percentile_sql
from sqlmesh_like.duckdb.row_generators import name_columns, without_generators, without_laterals


def _percentile_sql(self: Generator, node: exp.PercentileCont | exp.PercentileDisc) -> str:
    """Over a window DuckDB has no WITHIN GROUP."""
    if not isinstance(node.parent, exp.Window) or node.args.get("desc"):
        return percentile_sql(self, node)
    name = "QUANTILE_DISC" if isinstance(node, exp.PercentileDisc) else "QUANTILE_CONT"
    return self.func(name, node.this, node.expression)


class _DuckDB(DuckDB):
    generate = generate_again
    writes: ClassVar[Mapping[type[exp.Expr], Write]] = {
        exp.Hint: lambda *_: "",  # it is Spark's
        exp.PercentileCont: _percentile_sql,
        exp.PercentileDisc: _percentile_sql,
    }


DUCKDB = _DuckDB()


def duck_text(tree: exp.Expr, *, is_exact: bool = False) -> str:
    """A query in DuckDB's dialect; changes the tree in place.

    `is_exact`: its casts and time functions are already DuckDB's own, as `exact_sql` writes them.

    >>> import sqlglot
    >>> duck_text(sqlglot.parse_one("select a from t group by a with rollup", dialect="spark"))
    'SELECT a FROM t GROUP BY ROLLUP (a) HAVING COUNT(*) > 0'
    >>> duck_text(sqlglot.parse_one("select collect_set(distinct a) from t", dialect="spark"))
    'SELECT COALESCE(LIST(DISTINCT a) FILTER(WHERE NOT a IS NULL), []) FROM t'
    >>> duck_text(sqlglot.parse_one("select a from t left anti join u", dialect="spark"))
    'SELECT a FROM t ANTI JOIN u ON TRUE'
    >>> duck_text(sqlglot.parse_one("select last(a, true) over (order by b) from t", dialect="spark"))
    'SELECT LAST_VALUE(a IGNORE NULLS) OVER (ORDER BY b NULLS FIRST) FROM t'
    """
    for call in list(tree.find_all(exp.CountIf)):
        if (same := AGGREGATES[exp.CountIf].same_as) is not None:  # DuckDB's COUNT_IF is NULL if all values are NULL
            call.replace(same.kind(this=same.argument(call)))
    for asked in list(tree.find_all(exp.Anonymous)):
        if asked.name.upper() in ("ISNULL", "ISNOTNULL"):
            is_null = exp.Is(this=asked.expressions[0].copy(), expression=exp.Null())
            asked.replace(exp.Paren(this=is_null if asked.name.upper() == "ISNULL" else exp.Not(this=is_null)))
    for collected in list(tree.find_all(exp.ArrayUniqueAgg)):
        if isinstance(collected.this, exp.Distinct):  # `collect_set(distinct a)`: DuckDB allows DISTINCT once
            collected.set("this", collected.this.expressions[0])
    _with_chosen_nulls(tree)
    _with_ignored_nulls(tree)
    _without_short_intervals(tree)
    for cut in list(tree.find_all(exp.TimestampTrunc)):
        # DuckDB's returns a date for a date.
        if not isinstance(cut.parent, exp.Cast):
            cut.replace(exp.Cast(this=cut.copy(), to=exp.DataType.build("timestamp", dialect="duckdb")))
    for stack in list(tree.find_all(exp.Stack)):
        stack.replace(stack_as_inline(stack))
    tree = _without_time_windows(tree)
    _without_null_of_in(tree)
    for item in list(tree.find_all(exp.Values, exp.Table)):
        name_columns(item)
    for select in list(tree.find_all(exp.Select)):
        without_laterals(select)
        without_generators(select)
        _as_comma_forms(select)
    _with_conditions(tree)
    return (tree if is_exact else _with_spark_values(tree)).sql(DUCKDB, copy=False)


def _with_chosen_nulls(tree: exp.Expr) -> None:
    """Let the row that max_by or min_by chooses have a value that is NULL: DuckDB passes over such rows."""
    for chosen in list(tree.find_all(exp.ArgMax, exp.ArgMin)):
        if chosen.args.get("count") or isinstance(chosen.this, exp.Distinct):
            continue
        whole: exp.Expr = chosen
        while isinstance(whole.parent, exp.Filter | exp.Window) and whole.arg_key == "this":
            whole = whole.parent
        field = exp.PropertyEQ(this=exp.to_identifier("v"), expression=chosen.this.copy())
        chosen.set("this", exp.Struct(expressions=[field]))
        whole.replace(exp.func("struct_extract", whole.copy(), exp.Literal.string("v"), dialect="duckdb"))


def _with_ignored_nulls(tree: exp.Expr) -> None:
    """Write LAST and FIRST without NULLs over a window by the names of which sqlglot keeps IGNORE NULLS."""
    for ignoring in list(tree.find_all(exp.IgnoreNulls)):
        if type(ignoring.this) in _OF_WINDOWS and isinstance(ignoring.parent, exp.Window):
            ignoring.set("this", _OF_WINDOWS[type(ignoring.this)](this=ignoring.this.this))
    for of_group in list(tree.find_all(exp.FirstValue, exp.LastValue)):  # DuckDB's are of windows alone
        if not isinstance(of_group.parent, exp.Window | exp.IgnoreNulls | exp.RespectNulls):
            of_group.replace((exp.First if isinstance(of_group, exp.FirstValue) else exp.Last)(this=of_group.this))


_OF_WINDOWS: Mapping[type[exp.Expr], type[exp.Expr]] = {exp.First: exp.FirstValue, exp.Last: exp.LastValue}


def _with_conditions(tree: exp.Expr) -> None:
    """Add the condition that SEMI and ANTI JOIN may lack in Spark, where a row then matches any other."""
    for join in tree.find_all(exp.Join):
        if join.kind in ("SEMI", "ANTI") and not (join.args.get("on") or join.args.get("using") or join.method):
            join.set("on", exp.true())


def _without_null_of_in(tree: exp.Expr) -> None:
    """Make IN of a query as a value false, or NOT IN false, where it is NULL, as in Spark."""
    for node in list(filter(is_value, tree.find_all(exp.In))):
        node.replace(exp.Coalesce(this=node.copy(), expressions=[exp.Boolean(this=is_below_not(node))]))


def _without_time_windows(tree: exp.Expr) -> exp.Expr:
    """The query, changed in place, with the arithmetic of its windows of time, which DuckDB groups as structs."""
    if not any(map(is_window_call, tree.find_all(exp.Anonymous))):
        return tree
    for select in reversed(list(tree.find_all(exp.Select))):  # inner queries first
        made = _without_time_window(select)
        if select is tree:
            return made
        if made is not select:
            select.replace(made)
    return tree


def _without_time_window(select: exp.Select) -> exp.Select:
    try:
        window = time_window_of(select)
    except Unsupported:
        window = None
    if window is None:
        return select
    made = replace_window_calls(select, window.whole(), window.field("start"), window.field("end"))
    if window.is_sliding:
        made.append("laterals", window.lateral_view())
    return made.where(window.condition(), copy=False)


def _without_short_intervals(tree: exp.Expr) -> None:
    """Add days and smaller units as numbers: DuckDB 2.0 treats intervals of a month and of 30 days as equal.

    Of two columns that add these to one value it computes only one; the same holds for 12 months and 360 days.
    """
    for added in reversed(list(tree.find_all(exp.TsOrDsAdd))):
        if added.text("unit").upper() in ("", "DAY"):
            day = exp.Cast(this=added.this.copy(), to=exp.DataType.build("date"))
            days = exp.Cast(this=added.expression.copy(), to=exp.DataType.build("int"))
            added.replace(exp.Paren(this=exp.Add(this=day, expression=days)))
    for moved in reversed(list(tree.find_all(exp.Add, exp.Sub))):
        interval = moved.expression
        size = MICROSECONDS.get(interval.text("unit").upper().removesuffix("S"))
        if isinstance(interval, exp.Interval) and size and interval.this.name.isdigit():
            sign = "-" if isinstance(moved, exp.Sub) else "+"
            later = f"make_timestamp(epoch_us(x) {sign} {int(interval.this.name) * size})"
            moved.replace(_fill_template(later, moved.this))


_UNITS = {"MM": "MONTH", "MON": "MONTH", "YY": "YEAR", "YYYY": "YEAR"}
MICROSECONDS = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
"""Lengths of units that are no longer than a day."""


def _with_spark_values(tree: exp.Expr) -> exp.Expr:
    """Replace functions that DuckDB lacks, or whose namesake returns another value, by equivalents of DuckDB."""
    for node in reversed(list(tree.walk())):  # inner nodes first
        match node:
            case exp.Cast():
                _as_spark_casts(node)
            case exp.Anonymous() if node.name.upper() == "TIMESTAMP_SECONDS":
                node.replace(_fill_template("make_timestamp(CAST(x AS BIGINT) * 1000000)", node.expressions[0]))
            case exp.Anonymous() if node.name.upper() == "DATE_PART":
                part, of = node.expressions[0].name.lower(), node.expressions[1]
                node.replace(_fill_template(f"date_part('{DATE_PARTS[part]}', x) + {int(part in _FROM_ONE)}", of))
            case exp.ArrayAgg() | exp.ArrayUniqueAgg():  # over no values Spark's list is empty
                node.replace(exp.Coalesce(this=node.copy(), expressions=[exp.Array()]))
            case exp.StrToUnix():
                node.replace(_fill_template("epoch_us(x) // 1000000", node.this))
            case exp.AddMonths():
                later = "CAST(CAST(x AS DATE) + to_months(n) AS DATE)"  # which takes no text, unlike an interval
                node.replace(duck_template(later, x=node.this, n=node.expression))
            case exp.DayOfWeek():
                node.replace(_fill_template("dayofweek(x) + 1", node.this))
            case exp.Right():
                number = node.expression
                taken = exp.Right(this=node.this.copy(), expression=_fill_template("greatest(x, 0)", number))
                node.replace(exp.Case().when(exp.Not(this=exp.Is(this=number.copy(), expression=exp.Null())), taken))
            case exp.AtTimeZone():
                node.set("this", _fill_template("x AT TIME ZONE 'UTC'", node.this))
            case _:
                _as_spark_functions(node)
    return tree


def _as_spark_functions(node: exp.Expr) -> None:
    match node:
        case exp.Div() | exp.Mod() if not _is_written_number(node.expression):
            divisor = node.expression.unnest() if isinstance(node.expression, exp.Paren) else node.expression
            node.set("expression", exp.Nullif(this=divisor.copy(), expression=exp.Literal.number(0)))
        case exp.Anonymous() if node.name.upper() == "TIMESTAMP_MICROS":
            node.replace(_fill_template("make_timestamp(x)", node.expressions[0]))
        case exp.DateTrunc() if (unit := _UNITS.get(node.text("unit").upper())) is not None:
            node.set("unit", exp.Var(this=unit))
        case exp.Trim() if node.expression is None:  # DuckDB's removes other spaces, too
            node.set("expression", exp.Literal.string(" "))
        case exp.Substring() if node.args.get("length") is not None:  # DuckDB's counts back from the start
            length = node.args["length"]
            is_known = isinstance(length, exp.Literal)
            node.set("length", length if is_known else _fill_template("x * CAST(x > 0 AS INT)", length))
        case exp.Floor() | exp.Ceil() if node.args.get("decimals") is None:
            name = "floor" if isinstance(node, exp.Floor) else "ceil"
            node.replace(_fill_template(_WHOLE_NUMBER.format(name=name), node.this))


_WHOLE_NUMBER = (
    "struct_extract({{'whole': x, 'decimal': {name}(x),"
    " 'double': CASE WHEN typeof(x) IN ('DOUBLE', 'FLOAT') THEN CAST({name}(x) AS BIGINT) END}},"
    " CASE WHEN typeof(x) IN ('DOUBLE', 'FLOAT') THEN 'double' WHEN starts_with(typeof(x), 'DECIMAL') THEN 'decimal'"
    " ELSE 'whole' END)"
)
"""FLOOR or CEIL with Spark's type, as DuckDB returns a double: the types choose the field when the query is bound."""


_ALIKE = (
    r"\x00-\x{DE}\x{E0}-\x{12F}\x{131}-\x{148}\x{14A}-\x{1EF}\x{1F1}-\x{24F}"  # Latin
    r"\x{300}-\x{36F}\x{384}-\x{38F}\x{391}-\x{3A2}\x{3A4}-\x{3AF}\x{3B1}-\x{3FF}\x{400}-\x{527}"  # Greek, Cyrillic
    r"\x{531}-\x{586}\x{590}-\x{109F}\x{1100}-\x{11FF}\x{1EA0}-\x{1EFF}"  # Armenian to Thai, Vietnamese
    r"\x{2000}-\x{20CF}\x{3000}-\x{9FFF}\x{AC00}-\x{D7A3}\x{F900}-\x{FAFF}\x{FE30}-\x{FFEF}"  # signs, East Asia
    r"\x{1F300}-\x{1FAFF}"
)
CASED_ALIKE: dict[type[exp.Expr], str] = {
    exp.Upper: rf"[\x{{130}}\x{{3A3}}{_ALIKE}]*",
    exp.Lower: rf"[\x{{DF}}\x{{149}}\x{{1F0}}\x{{390}}\x{{3B0}}{_ALIKE}]*",
}
"""Patterns (RE2) of texts whose letters both engines write alike, which was compared for every code point.

DuckDB maps one letter to one; Java maps some to several (ß to SS), and a Greek final sigma by its place. Letters that
got their case in a later Unicode than Java 8 has are left out.
"""


def _is_written_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and float(node.name) != 0


def _as_spark_casts(cast: exp.Cast) -> None:
    if cast.to.is_type(exp.DType.DECIMAL) and not isinstance(cast.this, exp.Null):
        if not cast.to.expressions:
            cast.set("to", exp.DataType.build("decimal(10, 0)"))
        # By way of its text a double is rounded by its decimal digits, as in Spark.
        cast.set("this", _fill_template(_TEXT_OF_NUMBER, cast.this))
    elif cast.to.is_type(*_MOMENTS) and not _is_text_or_clock(cast.this):
        spelt = "TRY_CAST" if isinstance(cast, exp.TryCast) else "CAST"
        cast.replace(_fill_template(_MOMENT_OF.format(cast=spelt), cast.this))


def _is_text_or_clock(value: exp.Expr) -> bool:
    return isinstance(value, exp.Null | exp.CurrentTimestamp) or (isinstance(value, exp.Literal) and value.is_string)


DATE_PARTS = {
    "year": "year", "quarter": "quarter", "month": "month", "week": "week", "day": "day", "doy": "doy",
    "dayofweek_iso": "isodow", "dow_iso": "isodow", "dow": "dow", "dayofweek": "dow", "hour": "hour",
    "minute": "minute",
}  # fmt: skip
"""Parts of a date by Spark's name, with DuckDB's name; for `_FROM_ONE`, Spark counts weekdays from 1 (Sunday)."""
_FROM_ONE = ("dow", "dayofweek")
_TEXT_OF_NUMBER = (
    "list_transform([x], LAMBDA v : CASE typeof(v) WHEN 'FLOAT' THEN CAST(CAST(v AS DOUBLE) AS VARCHAR)"
    " ELSE CAST(v AS VARCHAR) END)[1]"
)
"""As in Spark, which converts a float to a double before it takes the digits."""
_MOMENTS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
_MOMENT_OF = (
    "list_transform([x], LAMBDA v : CASE WHEN typeof(v) IN ('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT')"
    " THEN make_timestamp(CAST(CAST(v AS VARCHAR) AS BIGINT) * 1000000)"
    " ELSE {cast}(CAST(v AS VARCHAR) AS TIMESTAMP) END)[1]"
)
"""A whole number is in seconds, a cast that DuckDB refuses; by way of a text both branches can be bound."""


def _fill_template(template: str, value: exp.Expr) -> exp.Expr:
    """The DuckDB expression `template` with `value` for `x`, in parentheses."""
    tree = exp.Paren(this=duck_template(template))
    for place in [column for column in tree.find_all(exp.Column) if column.name == "x"]:
        copied = value.copy()
        place.replace(exp.Paren(this=copied) if isinstance(value, exp.Binary | exp.Unary) else copied)
    return tree


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
