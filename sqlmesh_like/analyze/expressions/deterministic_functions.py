"""Deterministic functions: one result per row, in every run and session. Owns the forms of them;
`functions.table` has the functions.

Left out on purpose: random functions (`rand`, `uuid`, `shuffle`, `aes_encrypt` with its random IV), those that
depend on session, file or partition (`current_user`, `input_file_name`, `spark_partition_id`), generators (`explode`,
`window`), calls of other code (`reflect`, `java_method`), deliberate failures (`raise_error`), and functions that
return a map or an interval, since such values cannot be compared.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.functions.table import FUNCTIONS
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import python_function_of

_SYNTAX = (
    exp.Column, exp.Identifier, exp.Literal, exp.HexString, exp.Null, exp.Boolean, exp.Paren, exp.Tuple, exp.DataType,
    exp.DataTypeParam, exp.Alias, exp.Var, exp.Interval, exp.Lambda, exp.Dot, exp.Bracket, exp.PropertyEQ,
)  # fmt: skip

_MATHS = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.Round, exp.Floor, exp.Ceil, exp.SafeAdd,
    exp.SafeSubtract, exp.SafeMultiply, exp.SafeDivide, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot,
)  # fmt: skip

_CONDITIONS = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between,
    exp.And, exp.Or, exp.Not, exp.Escape, exp.Case, exp.DecodeCase, exp.Cast, exp.TryCast,
)  # fmt: skip

_TEXTS = (
    exp.Concat, exp.DPipe, exp.ToNumber, exp.JSONPath, exp.JSONPathRoot, exp.JSONPathKey, exp.JSONPathSubscript,
    exp.FromJson,
)  # fmt: skip

_TIMES = (
    exp.Extract, exp.Date, exp.DateAdd, exp.DateSub, exp.DateDiff, exp.TsOrDsAdd, exp.TimestampAdd, exp.TimestampDiff,
    exp.TimestampTrunc, exp.StrToDate, exp.TimeStrToTime,
)  # fmt: skip

_NESTED = (
    exp.Struct, exp.ArrayInsert, exp.ArraySort, exp.ArraysZip, exp.ArrayConcat, exp.Flatten, exp.GenerateSeries,
    exp.Reduce, exp.Transform,
)  # fmt: skip

_DECIDED = {name: function for name, function in FUNCTIONS.items() if function.decided_by == "arguments"}
_KINDS = tuple(function.kind for function in _DECIDED.values() if function.kind is not None)
CLASSES: tuple[type[exp.Expr], ...] = (*_SYNTAX, *_MATHS, *_CONDITIONS, *_TEXTS, *_TIMES, *_NESTED, *_KINDS)
"""Forms with a syntax or a rule of their own, and the functions of the table that their arguments decide."""


def is_pure(node: exp.Expr) -> bool:
    """Whether one node of a resolved expression is a pure function of its children.

    >>> import sqlglot
    >>> [is_pure(sqlglot.parse_one(sql, dialect="spark")) for sql in ("crc32(a)", "instr(a, 'x')", "uuid()", "f(a)")]
    [True, True, False, False]
    """
    match node:
        case exp.Anonymous():
            python = python_function_of(node.name)
            return python[1] if python is not None else node.name.lower() in _DECIDED
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
