"""Which of Spark's functions a node calls. Owns the names and the order of arguments that sqlglot's classes hide."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze.functions.aggregates import aggregate_of


@dataclass(frozen=True)
class FunctionCall:
    """A function of Spark by its name (lower case) and its arguments in Spark's order."""

    name: str
    arguments: tuple[exp.Expr, ...]


_OF_THIS = (
    exp.Abs, exp.Acos, exp.Acosh, exp.Asin, exp.Asinh, exp.Atanh, exp.Cbrt, exp.Cos, exp.Cosh, exp.Cot, exp.Csc,
    exp.Degrees, exp.Exp, exp.Ln, exp.Radians, exp.Rint, exp.Sec, exp.Sin, exp.Sinh, exp.Sqrt, exp.Tan, exp.Tanh,
    exp.Sign, exp.Factorial, exp.Negative, exp.Hex, exp.Typeof, exp.Ascii, exp.Length, exp.Upper, exp.Lower,
    exp.Soundex, exp.Space, exp.Unhex, exp.Hour, exp.Minute, exp.Second, exp.Quarter, exp.Year, exp.Month, exp.Day,
    exp.DayOfWeek, exp.DayOfYear, exp.MD5, exp.Ntile, exp.Lag, exp.Lead,
)  # fmt: skip
"""Classes named as the function, with one argument."""
_SPECIFIC = {
    exp.IsNan: "isnan this", exp.BitLength: "bit_length this", exp.LastDay: "last_day this",
    exp.ArrayMax: "array_max this", exp.ArrayMin: "array_min this", exp.ArraySize: "size this",
    exp.MapKeys: "map_keys this", exp.BitmapCount: "bitmap_count this", exp.Atan: "atan this",
    exp.Atan2: "atan2 this expression", exp.Pow: "pow this expression", exp.Log: "log this expression",
    exp.WidthBucket: "width_bucket this min_value max_value num_buckets", exp.BitwiseCount: "bit_count this",
    exp.Getbit: "getbit this expression", exp.BitwiseLeftShift: "shiftleft this expression",
    exp.BitwiseRightShift: "shiftright this expression", exp.Nanvl: "nanvl this expression",
    exp.Coalesce: "coalesce this expressions", exp.Nvl2: "nvl2 this true false", exp.If: "if this true false",
    exp.Nullif: "nullif this expression", exp.EqualNull: "equal_null this expression",
    exp.Greatest: "greatest this expressions", exp.Least: "least this expressions", exp.Rand: "rand this",
    exp.Randn: "randn this", exp.Uuid: "uuid", exp.Pi: "pi", exp.CurrentCatalog: "current_catalog",
    exp.CurrentDatabase: "current_database", exp.CurrentSchema: "current_schema",
    exp.CurrentTimezone: "current_timezone", exp.CurrentUser: "current_user", exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp", exp.Localtimestamp: "localtimestamp", exp.ToBase64: "base64 this",
    exp.FromBase64: "unbase64 this", exp.Chr: "chr expressions", exp.ConcatWs: "concat_ws expressions",
    exp.Contains: "contains this expression", exp.StartsWith: "startswith this expression",
    exp.EndsWith: "endswith this expression", exp.Elt: "elt this expressions", exp.Encode: "encode this charset",
    exp.Decode: "decode this charset", exp.Format: "format_string this expressions", exp.Initcap: "initcap this",
    exp.Left: "left this expression", exp.Right: "right this expression", exp.StrPosition: "instr this substr",
    exp.Levenshtein: "levenshtein this expression", exp.Pad: "lpad this expression fill_pattern",
    exp.Trim: "trim this expression", exp.Overlay: "overlay this expression from_ for_",
    exp.ParseUrl: "parse_url this part_to_extract key", exp.RegexpCount: "regexp_count this expression",
    exp.RegexpInstr: "regexp_instr this expression position", exp.RegexpLike: "regexp_like this expression",
    exp.RegexpExtract: "regexp_extract this expression group",
    exp.RegexpExtractAll: "regexp_extract_all this expression group",
    exp.RegexpReplace: "regexp_replace this expression replacement position",
    exp.RegexpSubstr: "regexp_substr this expression", exp.Repeat: "repeat this times",
    exp.Replace: "replace this expression replacement", exp.Reverse: "reverse this",
    exp.RegexpSplit: "split this expression limit", exp.SplitPart: "split_part this delimiter part_index",
    exp.Substring: "substring this start length", exp.SubstringIndex: "substring_index this delimiter count",
    exp.Translate: "translate this from_ to", exp.ToBinary: "to_binary this format", exp.ToChar: "to_char this format",
    exp.SHA: "sha this", exp.SHA2: "sha2 this length", exp.Like: "like this expression",
    exp.ILike: "ilike this expression", exp.AddMonths: "add_months this expression",
    exp.DateFromUnixDate: "date_from_unix_date this", exp.DayOfMonth: "dayofmonth this",
    exp.WeekOfYear: "weekofyear this", exp.MonthsBetween: "months_between this expression roundoff",
    exp.NextDay: "next_day this expression", exp.DateTrunc: "trunc this unit", exp.TsOrDsToDate: "to_date this",
    exp.StrToTime: "to_timestamp this", exp.StrToUnix: "unix_timestamp this", exp.UnixToStr: "from_unixtime this",
    exp.UnixDate: "unix_date this", exp.UnixSeconds: "unix_seconds this", exp.UnixMillis: "unix_millis this",
    exp.UnixMicros: "unix_micros this", exp.TimeToStr: "date_format this format",
    exp.AtTimeZone: "from_utc_timestamp this zone", exp.FromTimeZone: "to_utc_timestamp this zone",
    exp.TimestampFromParts: "make_timestamp year month day hour min sec",
    exp.ConvertTimezone: "convert_timezone source_tz target_tz timestamp",
    exp.JSONExtractScalar: "get_json_object this expression", exp.JSONKeys: "json_object_keys this",
    exp.JSONFormat: "to_json this options", exp.Array: "array expressions",
    exp.ArrayAppend: "array_append this expression", exp.ArrayPrepend: "array_prepend this expression",
    exp.ArrayCompact: "array_compact this", exp.ArrayContains: "array_contains this expression",
    exp.ArrayDistinct: "array_distinct this", exp.ArrayExcept: "array_except this expression",
    exp.ArrayIntersect: "array_intersect expressions", exp.ArrayToString: "array_join this expression null",
    exp.ArrayPosition: "array_position this expression", exp.ArrayRemove: "array_remove this expression",
    exp.ArraySlice: "slice this start end", exp.ArrayFilter: "filter this expression",
    exp.Exists: "exists this expression", exp.Shuffle: "shuffle this", exp.MapContainsKey: "map_contains_key this key",
    exp.MapFromEntries: "map_from_entries this", exp.StrToMap: "str_to_map this pair_delim key_value_delim",
    exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank", exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist", exp.NthValue: "nth_value this offset",
    exp.MakeInterval: "make_interval year month week day hour minute second", exp.Map: "map_from_arrays keys values",
    exp.BitmapBitPosition: "bitmap_bit_position this", exp.BitmapBucketNumber: "bitmap_bucket_number this",
}  # fmt: skip
_LAYOUTS: dict[type[exp.Expr], tuple[str, ...]] = {
    **{kind: (kind.__name__.lower(), "this") for kind in _OF_THIS},
    **{kind: tuple(layout.split()) for kind, layout in _SPECIFIC.items()},
}
_OF_A_DATE = (exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear)
"""Classes whose argument sqlglot puts into TO_DATE."""


def call_of(node: exp.Expr) -> FunctionCall | None:
    """The function that a node calls; None for operators, casts and what has a rule of its own.

    >>> import sqlglot
    >>> call = call_of(sqlglot.parse_one("instr(a, 'x')", dialect="spark"))
    >>> call.name, [argument.sql() for argument in call.arguments]
    ('instr', ['a', "'x'"])
    """
    if isinstance(node, exp.Anonymous):
        return FunctionCall(node.name.lower(), tuple(node.expressions))
    if isinstance(node, exp.ConvertTimezone) and node.args.get("source_tz") is None:
        zone = node.args["target_tz"]  # from the session's zone
        return FunctionCall("convert_timezone", (zone, zone, node.args["timestamp"]))
    layout = _LAYOUTS.get(type(node)) or _aggregate_layout(node)
    if layout is None:
        return None
    name, *parts = layout
    arguments: list[exp.Expr] = []
    for part in parts:
        value = node.args.get(part)
        arguments += value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
    return FunctionCall(name, tuple(_as_given(node, argument) for argument in arguments))


def _aggregate_layout(node: exp.Expr) -> tuple[str, ...] | None:
    record = aggregate_of(node)
    return None if record is None else tuple(record.call.split())


def _as_given(node: exp.Expr, argument: exp.Expr) -> exp.Expr:
    """An argument without the conversion that sqlglot puts around it, which Spark may refuse where it is implicit."""
    is_added = isinstance(node, _OF_A_DATE) and isinstance(argument, exp.TsOrDsToDate)
    return argument.this if is_added and not argument.args.get("format") else argument
