"""Window functions: over which frames and types they are proven, and how DuckDB is given them.

Spark and DuckDB agree on peers (values that are equal as keys, NULL among them), and on the frames of `frames`. They
differ in the types of results, which are cast. Not proven are sums and means of doubles, which depend on the order in
which rows are added.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.duckdb.exact.aggregates import replace_average
from sqlmesh_like.duckdb.exact.form import SYNTAX, Form
from sqlmesh_like.duckdb.exact.frames import prove_frame, require_decided_order
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_hashed, require_only, require_ordered
from sqlmesh_like.duckdb.exact.values import (
    INTEGERS,
    MOST_DIGITS,
    NULL,
    Types,
    cast_of,
    decimal_digits,
    only_where,
    replace_by_cast,
)

_CHOICES = (exp.First, exp.FirstValue, exp.Last, exp.LastValue)
_FRAMED = (exp.Count, exp.CountIf, exp.Sum, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr)


def _window(node: exp.Window, types: Types) -> str:
    require_only(node, "this", "partition_by", "order", "spec", "over")
    require_hashed(types.of(part) for part in node.args.get("partition_by") or ())
    order = node.args.get("order")
    for item in order.expressions if order is not None else ():
        ordered_by = types.of(item.this)
        require_ordered((ordered_by,))
        if ordered_by == "float":
            raise Unproven("an order by floats")
    prove_frame(node, types)
    match node.this:
        case exp.RowNumber() | exp.Rank() | exp.DenseRank():
            require_only(node, "this", "partition_by", "order", "over")
            return replace_by_cast(node, "int")
        case exp.PercentRank() | exp.CumeDist():
            require_only(node, "this", "partition_by", "order", "over")
            return "double"  # either engine divides one number of rows by another one
        case exp.Ntile():
            return _part_number(node)
        case exp.Avg():
            return replace_average(node, node.this, types)
        case (
            exp.NthValue()
            | exp.IgnoreNulls()
            | exp.Lag()
            | exp.Lead()
            | exp.First()
            | exp.FirstValue()
            | exp.Last()
            | exp.LastValue()
        ):
            return _value_of_row(node, types)
        case exp.Expr() if isinstance(node.this, _FRAMED):
            return _aggregate(node, types)
    raise Unproven(f"the window of {node.this.key.upper()}")


def _part_number(node: exp.Window) -> str:
    require_only(node, "this", "partition_by", "order", "over")
    parts = node.this.this
    if not isinstance(parts, exp.Literal) or not parts.is_int or not 0 < int(parts.name) < 2**31:
        raise Unproven("NTILE of other than a number as written")
    require_decided_order(node)
    return replace_by_cast(node, "int")


def _aggregate(node: exp.Window, types: Types) -> str:
    function = node.this
    if isinstance(function.this, exp.Distinct):
        raise Unproven("a window of distinct values")
    result = types.of(function)
    node.set("this", function)
    if isinstance(function, exp.Sum):
        argument = types.of(function.this)
        if argument not in INTEGERS and decimal_digits(argument)[0] + 10 > MOST_DIGITS:
            return _bounded_sum(node, decimal_digits(argument)[1], result)
    return replace_by_cast(node, result)


def _bounded_sum(node: exp.Window, scale: int, result: str) -> str:
    """A sum whose type has no room for any number of rows: Spark is NULL once a sum on the way has 39 digits.

    None has where all sizes of the partition together have no more; otherwise it fails.
    """
    sizes = exp.Sum(this=exp.Abs(this=cast_of(node.this.this.copy(), f"decimal({MOST_DIGITS},{scale})")))
    size = exp.Window(**{**node.copy().args, "this": sizes, "order": None, "spec": None})
    most = cast_of(exp.Literal.string(f"{10 ** (MOST_DIGITS - scale) - 1}"), f"decimal({MOST_DIGITS},{scale})")
    node.replace(only_where(exp.LTE(this=size, expression=most), size, cast_of(node.copy(), result), result))
    return result


def _value_of_row(node: exp.Window, types: Types) -> str:
    """The value of one row, as it is: LAG and LEAD count rows, the others take an end of the frame."""
    function = node.this.this if isinstance(node.this, exp.IgnoreNulls) else node.this
    require_decided_order(node)
    result = types.of(function.this)
    if result == NULL:
        raise Unproven("a window over NULL")
    if isinstance(function, exp.Lag | exp.Lead):
        require_only(node, "this", "partition_by", "order", "over")
        require_only(function, "this", "offset", "default")
        _shift(function, result, types)
    elif isinstance(function, _CHOICES):
        require_only(function, "this")
    elif isinstance(function, exp.NthValue):
        require_only(function, "this", "offset")
        _require_place(function)
    else:
        raise Unproven(f"the window of {function.key.upper()}")
    return result


def _require_place(function: exp.NthValue) -> None:
    place = function.args.get("offset")
    if not isinstance(place, exp.Literal) or not place.is_int or not 0 < int(place.name) < 2**31:
        raise Unproven("NTH_VALUE of other than a number as written")


def _shift(function: exp.Lag | exp.Lead, result: str, types: Types) -> None:
    offset, default = function.args.get("offset"), function.args.get("default")
    is_count = isinstance(offset, exp.Literal) and offset.is_int and len(offset.name) < 10 and int(offset.name) > 0
    if offset is not None and not is_count:
        raise Unproven(f"{function.key.upper()} by other than a number as written")
    if default is None:
        return
    other = types.of(default)
    if other not in (NULL, result) and INTEGERS.get(other, 99) > INTEGERS.get(result, 0):
        raise Unproven(f"{function.key.upper()} of {result} or {other}")
    if other != result:
        function.set("default", cast_of(function.args["default"].copy(), result))


FORMS: dict[type[exp.Expr], Form] = {
    exp.Window: Form(_window, is_listed=False, why=SYNTAX),
}
