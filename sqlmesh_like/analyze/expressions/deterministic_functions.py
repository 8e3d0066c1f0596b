"""Deterministic functions: one result per row, in every run and session. Owns the reviewed table of them.

It covers the deterministic scalar functions of Spark 3.5's `FunctionRegistry`, by class where sqlglot has one, else by
name. Left out on purpose: random functions (`rand`, `uuid`, `shuffle`, `aes_encrypt` with its random IV), those that
depend on session, file or partition (`current_user`, `input_file_name`, `spark_partition_id`), generators (`explode`,
`window`), calls of other code (`reflect`, `java_method`), deliberate failures (`raise_error`), and functions that
return a map or an interval, since such values cannot be compared.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.dialects import SPARK

_SYNTAX = (
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Tuple, exp.DataType,
    exp.DataTypeParam, exp.Alias, exp.Var, exp.Interval, exp.Lambda, exp.Dot, exp.Bracket, exp.PropertyEQ,
)  # fmt: skip

_MATHS = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.Negative, exp.Abs, exp.Round, exp.Floor,
    exp.Ceil, exp.Rint, exp.Sqrt, exp.Cbrt, exp.Pow, exp.Exp, exp.Ln, exp.Log, exp.Sign, exp.Factorial, exp.Greatest,
    exp.Least, exp.Pi, exp.Sin, exp.Sinh, exp.Asin, exp.Asinh, exp.Cos, exp.Cosh, exp.Acos, exp.Acosh, exp.Tan,
    exp.Tanh, exp.Atan, exp.Atan2, exp.Atanh, exp.Cot, exp.Csc, exp.Sec, exp.Degrees, exp.Radians, exp.WidthBucket,
    exp.SafeAdd, exp.SafeSubtract, exp.SafeMultiply, exp.SafeDivide, exp.Hex, exp.Unhex, exp.BitwiseAnd,
    exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.BitwiseCount,
    exp.Getbit,
)  # fmt: skip

_CONDITIONS = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.EqualNull, exp.Is, exp.In,
    exp.Between, exp.And, exp.Or, exp.Not, exp.Like, exp.ILike, exp.Escape, exp.RegexpLike, exp.Case, exp.If,
    exp.Coalesce, exp.Nullif, exp.Nvl2, exp.Nanvl, exp.IsNan, exp.Decode, exp.DecodeCase, exp.Cast, exp.TryCast,
    exp.Typeof,
)  # fmt: skip

_TEXTS = (
    exp.Upper, exp.Lower, exp.Trim, exp.Concat, exp.ConcatWs, exp.DPipe, exp.Substring, exp.SubstringIndex, exp.Length,
    exp.BitLength, exp.Replace, exp.Translate, exp.Overlay, exp.RegexpReplace, exp.RegexpExtract,
    exp.RegexpExtractAll, exp.RegexpCount, exp.RegexpInstr, exp.RegexpSubstr, exp.RegexpSplit, exp.SplitPart, exp.Left,
    exp.Right, exp.Pad, exp.Initcap, exp.Reverse, exp.Repeat, exp.Space, exp.StartsWith, exp.EndsWith, exp.Contains,
    exp.StrPosition, exp.Ascii, exp.Chr, exp.Elt, exp.Encode, exp.Format, exp.Levenshtein, exp.Soundex, exp.ToNumber,
    exp.ToBinary, exp.ToBase64, exp.FromBase64, exp.MD5, exp.SHA, exp.SHA2, exp.ParseUrl,
    exp.JSONExtractScalar, exp.JSONPath, exp.JSONPathRoot, exp.JSONPathKey, exp.JSONPathSubscript, exp.JSONFormat,
    exp.JSONKeys, exp.FromJson,
)  # fmt: skip

_TIMES = (
    exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.Quarter, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear, exp.Hour,
    exp.Minute, exp.Second, exp.Extract, exp.TsOrDsToDate, exp.Date, exp.DateAdd, exp.DateSub, exp.DateDiff,
    exp.TsOrDsAdd, exp.TimestampAdd, exp.TimestampDiff, exp.AddMonths, exp.MonthsBetween, exp.NextDay, exp.LastDay,
    exp.TimestampTrunc, exp.DateTrunc, exp.TimeToStr, exp.StrToTime, exp.StrToDate, exp.StrToUnix, exp.TimeStrToTime,
    exp.UnixToStr,
    exp.UnixDate, exp.UnixSeconds, exp.UnixMillis, exp.UnixMicros, exp.DateFromUnixDate, exp.TimestampFromParts,
    exp.AtTimeZone, exp.FromTimeZone, exp.ConvertTimezone,
)  # fmt: skip

_NESTED = (
    exp.Struct, exp.Array, exp.ArrayAppend, exp.ArrayPrepend, exp.ArrayInsert, exp.ArrayRemove, exp.ArrayCompact,
    exp.ArrayContains, exp.ArrayDistinct, exp.ArrayExcept, exp.ArrayIntersect, exp.ArrayFilter, exp.ArrayMax,
    exp.ArrayMin, exp.ArrayPosition, exp.ArraySize, exp.ArraySlice, exp.ArraySort, exp.ArrayToString,
    exp.ArraysZip, exp.ArrayConcat, exp.Exists, exp.Flatten, exp.GenerateSeries, exp.MapKeys, exp.MapContainsKey,
    exp.Reduce, exp.Transform,
)  # fmt: skip

CLASSES = (*_SYNTAX, *_MATHS, *_CONDITIONS, *_TEXTS, *_TIMES, *_NESTED)

NAMES = frozenset(
    # maths
    "BIN BROUND CONV E EXPM1 HYPOT LOG1P PMOD POSITIVE SHIFTRIGHTUNSIGNED "
    # conditions and casts
    "ISNULL ISNOTNULL REGEXP BIGINT BINARY DECIMAL SMALLINT TINYINT "
    # texts and hashes
    "LEVENSHTEIN TO_CHAR TO_VARCHAR "
    "BTRIM FIND_IN_SET FORMAT_NUMBER LUHN_CHECK MASK OCTET_LENGTH PRINTF SENTENCES TRY_TO_BINARY TRY_TO_NUMBER "
    "CRC32 HASH XXHASH64 URL_DECODE URL_ENCODE "
    # dates and times
    "DATE_PART DATEPART MAKE_DATE MAKE_TIMESTAMP_LTZ MAKE_TIMESTAMP_NTZ TIMESTAMP_MICROS TIMESTAMP_MILLIS "
    # with patterns that have no equal in Python
    "DATE_FORMAT FROM_UNIXTIME TO_DATE TO_TIMESTAMP TO_UNIX_TIMESTAMP UNIX_TIMESTAMP "
    "TIMESTAMP_SECONDS TO_TIMESTAMP_LTZ TO_TIMESTAMP_NTZ TRY_TO_TIMESTAMP WEEKDAY "
    # nested values and documents
    "ARRAY_REPEAT ARRAY_SIZE ARRAY_UNION ARRAYS_OVERLAP CARDINALITY FORALL GET MAP_VALUES ZIP_WITH "
    "JSON_ARRAY_LENGTH FROM_CSV SCHEMA_OF_CSV SCHEMA_OF_JSON TO_CSV XPATH XPATH_BOOLEAN XPATH_DOUBLE XPATH_FLOAT "
    "XPATH_INT XPATH_LONG XPATH_NUMBER XPATH_SHORT XPATH_STRING".split()
)
"""Functions that sqlglot has no class for."""


def is_pure(node: exp.Expr) -> bool:
    """Whether one node of a resolved expression is a pure function of its children.

    >>> import sqlglot
    >>> [is_pure(sqlglot.parse_one(sql, dialect="spark")) for sql in ("crc32(a)", "instr(a, 'x')", "uuid()", "f(a)")]
    [True, True, False, False]
    """
    match node:
        case exp.Anonymous():
            return node.name.upper() in NAMES
        case exp.Lambda():
            return not _captures(node)
        case exp.FromJson():
            return "map" not in node.sql(SPARK).lower()
        case exp.Cast():
            return node.to.find(exp.DataType) is not None and "MAP" not in node.to.sql(SPARK).upper()
    return isinstance(node, CLASSES)


def _captures(function: exp.Lambda) -> bool:
    """Whether a column in the body has a parameter's name; in the text a qualifier distinguished the two."""
    parameters = {parameter.name.lower() for parameter in function.expressions}
    return any(column.name.lower() in parameters for column in function.this.find_all(exp.Column))
