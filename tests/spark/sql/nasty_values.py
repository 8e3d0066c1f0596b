# ruff: noqa: E501
"""Values on which engines differ, as pairs in the rows of one table, and an expression of each kind over them.

Owns no catalogue: `expressions` builds calls for whatever classes it is given, so that a new entry of DuckDB's list is
compared with Spark without a line here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from sqlglot import exp

ALPHABETS: dict[str, tuple[str | None, ...]] = {
    "int": ("0", "1", "-1", "2", "7", "60", "2147483647", "-2147483648", None),
    "bigint": ("0", "1", "-1", "3", "9007199254740993", "9223372036854775807", "-9223372036854775808", None),
    "decimal(12,2)": ("0.00", "1.50", "-1.50", "2.25", "0.05", "-0.05", "9999999999.99", None),
    "decimal(38,18)": ("0", "1.000000000000000001", "12345678901234567890.123456789012345678", "-0.5", "3", None),
    "double": ("0.0", "-0.0", "1.5", "-2.5", "0.1", "0.3", "NaN", "Infinity", "-Infinity", "1e300", "5e-324", "1e15", None),
    "string": (
        "", " ", "a", "A", " x ", "\u3000张\u3000", "\u00a0b", "\tb\n", "ß", "ΑΣ", "İI", "ıi", "ŉ", "ﬁ", "ǆ", "1.9", "2",
        "2.0", " 2 ", "-0", "1e3", "NaN", "x", "2024-02-29", "1500-01-01", "2024-01-01 10:00:00", "true", "t", "🤦x",
        "e\u0301", "a/b/c", "%_", None,
    ),
    "date": (
        "1970-01-01", "2024-02-29", "2024-12-31", "1582-10-04", "1582-10-15", "1500-02-28", "0001-01-01", "9999-12-31",
        "+10000-01-01", "1969-12-31", "2024-01-31", None,
    ),
    "timestamp": (
        "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2024-03-10 02:30:00", "2024-11-03 01:30:00",
        "1582-10-10 00:00:00", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "1883-11-18 12:00:00.5",
        "+10000-01-01 00:00:00", "2024-02-29 12:00:00.1", None,
    ),
    "boolean": ("true", "false", None),
}  # fmt: skip
NAMES = {type_: type_.split("(")[0] + type_[-3:-1].replace(",", "") * type_.startswith("dec") for type_ in ALPHABETS}
"""The part of a column's name that tells its type."""
LITERALS = ("0", "2", "1.5", "'2'", "'1.9'", "' 2 '", "'x'", "'2024-02-29'", "null")

_INFIX = {
    exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.NullSafeEQ: "<=>",
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||", exp.And: "and", exp.Or: "or",
}  # fmt: skip
_TARGETS = (
    "string",
    "int",
    "bigint",
    "decimal(10,1)",
    "decimal(38,18)",
    "double",
    "float",
    "date",
    "timestamp",
    "boolean",
    "tinyint",
)
_UNITS = ("DAY", "WEEK", "MONTH", "YEAR", "HOUR", "QUARTER", "MINUTE", "SECOND")
_ZONES = ("America/New_York", "Asia/Kolkata", "Asia/Shanghai")
_PATTERNS = (
    "yyyy-MM-dd HH:mm:ss",
    "E",
    "EEEE",
    "MMM",
    "MMMM",
    "yyyyMMdd",
    "d/M/yyyy",
    "YYYY",
    "yy",
    "DDD",
    "H:m:s",
    "hh a",
    "SSS",
    "SSSSSS",
    "EEE MMM dd",
)
WRITTEN: dict[type[exp.Expr], tuple[str, ...]] = {
    **{kind: (f"{{a}} {sign} {{b}}", f"{{a}} {sign} {{l}}", f"{{l}} {sign} {{a}}") for kind, sign in _INFIX.items()},
    exp.Neg: ("-{a}",),
    exp.Not: ("not {a}",),
    exp.Is: ("{a} is null", "{a} is not null"),
    exp.In: ("{a} in ({b})", "{a} in ({l})", "{a} in ({l}, {b})", "{a} not in ({b}, {l})"),
    exp.Between: ("{a} between {b} and {b}", "{a} between {l} and {b}", "{l} between {a} and {b}"),
    exp.Like: tuple(f"{{a}} like '{p}'" for p in ("a%", "_", "%s_", "%", "")),
    exp.ILike: tuple(f"{{a}} ilike '{p}'" for p in ("a%", "_i", "ß", "SS", "ı%", "%Σ")),
    exp.Exists: (),
    exp.If: ("if(a_boolean, {a}, {b})", "if(a_boolean, {a}, {l})", "if({a}, 1, 2)"),
    exp.Case: (
        "case {a} when {b} then 1 else 2 end", "case {a} when {l} then 1 else 2 end",
        "case when a_boolean then {l} when b_boolean then {a} end", "case when a_boolean then {a} else {b} end",
        "case when {a} then 1 else 2 end",
    ),
    exp.Cast: tuple(f"cast({{a}} as {t})" for t in _TARGETS),
    exp.TryCast: tuple(f"try_cast({{a}} as {t})" for t in _TARGETS),
    exp.Coalesce: ("coalesce({a}, {b})", "coalesce({a}, {l})", "coalesce({l}, {a})", "ifnull({a}, {l})", "nvl({a}, {b})"),
    exp.Nullif: ("nullif({a}, {b})", "nullif({a}, {l})", "nullif({l}, {a})"),
    exp.Greatest: ("greatest({a}, {b})", "greatest({a}, {l})"),
    exp.Least: ("least({a}, {b})", "least({l}, {a})"),
    exp.Abs: ("abs({a})",), exp.Floor: ("floor({a})", "floor({a}) / 2", "floor({a}, 1)"), exp.Ceil: ("ceil({a})", "ceil({a}) / 2", "ceil({a}, 1)"),
    exp.Round: ("round({a})", "round({a}, 1)", "round({a}, -1)"),
    exp.Upper: ("upper({a})",), exp.Lower: ("lower({a})",), exp.Trim: ("trim({a})", "ltrim({a})", "rtrim({a})", "trim('x' from {a})"),
    exp.Length: ("length({a})", "char_length({a})"),
    exp.Concat: ("concat({a}, {b})", "concat({a})", "concat({a}, {l})"),
    exp.Substring: (
        "substring({a}, 2)", "substring({a}, 2, 1)", "substring({a}, 1, {b})", "substring({a}, {b})", "substring({a}, 0)",
        "substring({a}, -2)", "substring({a}, 1, -1)", "substring({a}, 2, a_int - 3)", "left({a}, 2)", "left({a}, {b})",
    ),
    exp.Replace: ("replace({a}, {b}, 'y')", "replace({a}, 'x', {b})", "replace({a}, '', 'y')", "replace({a}, {l})"),
    exp.SplitPart: tuple(f"split_part({{a}}, '{d}', {n})" for d in ("/", ".", " ") for n in (1, 2, -1)),
    exp.Right: ("right({a}, 2)", "right({a}, {b})", "right({a}, -1)"),
    exp.RegexpExtract: ("regexp_extract({a}, '[a-z]+', 0)", "regexp_extract({a}, '(.)x', 1)", "regexp_extract({a}, '.', 0)"),
    exp.RegexpLike: ("{a} rlike '^.$'", "{a} rlike 'x'", "{a} rlike '(?i)i'", "{a} rlike '[^a]'", "{a} rlike 'b$'"),
    exp.StrPosition: ("locate({a}, {b})", "locate('x', {a})", "position({l} in {a})", "instr({a}, {b})"),
    exp.DateDiff: ("datediff({a}, {b})", "datediff({a}, {l})"),
    exp.TsOrDsAdd: ("date_add({a}, {b})", "date_add({a}, 1)", "date_sub({a}, 31)", "date_add({a}, {l})", "date_sub({a}, {b})"),
    exp.TsOrDsToDate: ("to_date({a})", "date({a})"),
    exp.TimeToStr: tuple(f"date_format({{a}}, '{p}')" for p in _PATTERNS),
    exp.TimeStrToTime: ("to_timestamp({a})",),
    exp.TimestampTrunc: tuple(f"date_trunc('{u}', {{a}})" for u in _UNITS),
    exp.Interval: tuple(f"{{a}} {s} interval {n} {u}" for s in "+-" for n, u in ((1, "day"), (1, "month"), (30, "hours"), (1, "year"), (90, "minutes"))),
    exp.AddMonths: ("add_months({a}, 1)", "add_months({a}, {b})", "add_months({a}, -12)"),
    exp.StrToUnix: ("unix_timestamp({a})", "unix_timestamp(cast({a} as timestamp))"),
    exp.AtTimeZone: tuple(f"from_utc_timestamp({{a}}, '{z}')" for z in _ZONES),
    exp.FromTimeZone: tuple(f"to_utc_timestamp({{a}}, '{z}')" for z in _ZONES),
    exp.Explode: (), exp.Posexplode: (), exp.Array: (), exp.CurrentDate: (), exp.CurrentTimestamp: (),
    exp.Pow: ("power({a}, {b})", "power(2, 10)", "power({a}, 2)"),
    exp.MD5: ("md5({a})",),
    exp.Count: ("count({a})", "count(distinct {a})", "count(distinct {a}, {b})"),
    exp.Sum: ("sum({a})", "sum(distinct {a})"), exp.Avg: ("avg({a})", "avg(distinct {a})"),
    exp.Min: ("min({a})",), exp.Max: ("max({a})",), exp.CountIf: ("count_if({a})",),
    exp.LogicalAnd: ("bool_and({a})",), exp.LogicalOr: ("bool_or({a})",), exp.AnyValue: ("any_value({a})",),
    exp.First: ("first({a})",), exp.Last: ("last({a})",), exp.FirstValue: ("first_value({a})",), exp.LastValue: ("last_value({a})",),
    exp.ArgMax: ("max_by({a}, {b})", "max_by({a}, {a})"), exp.ArgMin: ("min_by({a}, {b})", "min_by({b}, {b})"),
    exp.Grouping: (), exp.GroupingId: (),
    exp.RowNumber: ("row_number() over (partition by {a} order by k)",),
    exp.Rank: ("rank() over (order by {a})", "rank() over (order by {a} desc)"),
    exp.DenseRank: ("dense_rank() over (order by {a} desc nulls last)", "dense_rank() over (order by {a})"),
    exp.Ntile: ("ntile(4) over (partition by {a} order by k)", "ntile({l}) over (order by k)", "ntile(5000) over (order by k)"),
    exp.PercentRank: ("percent_rank() over (order by {a})", "percent_rank() over (partition by {b} order by {a} desc)"),
    exp.CumeDist: ("cume_dist() over (order by {a})", "cume_dist() over (partition by {b} order by {a} desc)"),
    exp.Lag: ("lag({a}) over (order by k)", "lag({a}, 1, {l}) over (order by k)"),
    exp.Lead: ("lead({a}, 2, {b}) over (order by k)",),
}  # fmt: skip
AGGREGATES = ("count(", "sum(", "avg(", "min(", "max(", "count_if(", "bool_and(", "bool_or(", "any_value(", "first(", "last(",
              "first_value(", "last_value(", "max_by(", "min_by(")  # fmt: skip
"""How the expressions begin that are of a group."""
NAMED = {
    "DATE_PART": tuple(f"date_part('{p}', {{a}})" for p in ("year", "quarter", "month", "week", "day", "doy", "dow", "dow_iso", "hour", "minute")),
    "NOW": (),
}  # fmt: skip


def expressions(kinds: Iterable[type[exp.Expr]], named: Iterable[str] = ()) -> Iterator[str]:
    """Expressions over the columns `a_…` and `b_…` that use each of these classes and functions."""
    for kind in kinds:
        name = kind.sql_name() if issubclass(kind, exp.Func) else kind.key
        for template in WRITTEN.get(kind, (f"{name}({{a}})", f"{name}({{a}}, {{b}})")):
            yield from _filled(template)
    for name in named:
        for template in NAMED.get(name, (f"{name}({{a}})",)):
            yield from _filled(template)


def _filled(template: str) -> Iterator[str]:
    marks = [mark for mark in "abl" if "{" + mark + "}" in template]
    columns = {mark: [f"{mark}_{name}" for name in NAMES.values()] for mark in "ab"} | {"l": list(LITERALS)}
    for values in product(*(columns[mark] for mark in marks)):
        yield template.format(**dict(zip(marks, values, strict=True)))


def pairs() -> Iterator[tuple[int, dict[str, str | None]]]:
    """Rows that hold, for any two types, nearly all pairs of their values, and for strings all."""
    size = len(ALPHABETS["string"])
    for number, (one, other) in enumerate(product(range(size), repeat=2)):
        a = {f"a_{NAMES[type_]}": values[one % len(values)] for type_, values in ALPHABETS.items()}
        b = {f"b_{NAMES[type_]}": values[other % len(values)] for type_, values in ALPHABETS.items()}
        yield number, a | b
