"""Which expressions may stand on an incremental path. Owns the allow-list: what is not on it is never harmless."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from sqlmesh_like.analyze.clock import is_clock_call

Verdict = Literal["pure", "clock", "random", "unknown"]

_RANDOM = (exp.Rand, exp.Randn, exp.Uuid)
_RANDOM_NAMES = {"UUID", "RANDOM", "RANDN", "RAND", "MONOTONICALLY_INCREASING_ID", "SPARK_PARTITION_ID", "SHUFFLE",
                 "INPUT_FILE_NAME", "INPUT_FILE_BLOCK_START", "INPUT_FILE_BLOCK_LENGTH"}  # fmt: skip

_PURE = (
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Tuple, exp.DataType,
    exp.DataTypeParam, exp.Alias, exp.Var, exp.Interval,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.Abs, exp.Round, exp.Floor, exp.Ceil,
    exp.Sqrt, exp.Pow, exp.Sign, exp.Greatest, exp.Least,
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between,
    exp.And, exp.Or, exp.Not, exp.Like, exp.RegexpLike,
    exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Cast, exp.TryCast,
    exp.Upper, exp.Lower, exp.Trim, exp.Concat, exp.ConcatWs, exp.DPipe, exp.Substring, exp.Length, exp.Replace,
    exp.RegexpReplace, exp.RegexpExtract, exp.Left, exp.Right, exp.Pad, exp.Initcap, exp.Reverse, exp.Repeat,
    exp.StartsWith, exp.EndsWith, exp.MD5, exp.SHA2, exp.JSONExtractScalar, exp.JSONPath, exp.JSONPathRoot,
    exp.JSONPathKey, exp.JSONPathSubscript,
    exp.Year, exp.Month, exp.Day, exp.Quarter, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear, exp.Hour, exp.Minute,
    exp.Second, exp.TsOrDsToDate, exp.Date, exp.DateAdd, exp.DateSub, exp.DateDiff, exp.TsOrDsAdd, exp.LastDay,
    exp.Array, exp.ArraySize, exp.Bracket, exp.RegexpSplit, exp.GenerateSeries,
    exp.TimestampTrunc, exp.DateTrunc, exp.TimeToStr, exp.StrToTime, exp.StrToDate, exp.TimeStrToTime,
)  # fmt: skip

_WINDOW = (exp.Window, exp.WindowSpec, exp.Order, exp.Ordered, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag,
           exp.Lead, exp.Ntile, exp.Sum, exp.Count, exp.Min, exp.Max, exp.Avg, exp.Star, exp.LogicalAnd, exp.LogicalOr,
           exp.CountIf, exp.PercentRank, exp.CumeDist)  # fmt: skip


def judge(node: exp.Expr, *, in_window: bool = False) -> Verdict:
    """What one node of an expression tree is.

    >>> import sqlglot
    >>> [judge(sqlglot.parse_one(sql, dialect="spark")) for sql in ("upper(a)", "now()", "rand()", "my_udf(a)")]
    ['pure', 'clock', 'random', 'unknown']
    """
    if is_clock_call(node):
        return "clock"
    if isinstance(node, _RANDOM):
        return "random"
    if isinstance(node, exp.Anonymous):
        return "random" if node.name.upper() in _RANDOM_NAMES else "unknown"
    if isinstance(node, _PURE) or (in_window and isinstance(node, _WINDOW)):
        return "pure"
    return "unknown"


def first_impure(expression: exp.Expr, *, in_window: bool = False) -> tuple[exp.Expr, Verdict] | None:
    """The first node of the tree that is not known to be a pure function of its row and the run's clock."""
    frozen: set[int] = set()
    for node in expression.walk():
        verdict = judge(node, in_window=in_window)
        if verdict == "clock":
            frozen.update(id(part) for part in node.walk())
        elif verdict != "pure" and id(node) not in frozen:
            return node, verdict
    return None
