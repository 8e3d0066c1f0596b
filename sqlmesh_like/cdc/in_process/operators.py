"""Operators of Spark SQL: comparison and arithmetic. Owns which values compare, and numbers that overflow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext

from sqlmesh_like.cdc.in_process.strict import Function, strict
from sqlmesh_like.cdc.in_process.values import Float32, NotProvenError, Row, Value, order_of

_MOST_DIGITS = 10**38
_DIGITS = 80
"""With which decimals are computed: more than two of Spark's have."""


def _alike(left: Value, right: Value) -> None:
    kinds = {type(left), type(right)}
    is_number = kinds <= {int, Decimal} or kinds == {float}
    if len(kinds) > 1 and not is_number:
        raise NotProvenError(f"a comparison of {type(left).__name__} and {type(right).__name__}")
    if kinds & {list, dict} or (kinds & {float, Float32} and (left != left or right != right)):
        raise NotProvenError(f"a comparison of {type(left).__name__}")


def _comparison(test: Callable[[Value, Value], bool]) -> Function:
    def called(left: Value, right: Value) -> bool | None:
        if left is None or right is None:
            return None
        _alike(left, right)
        return test(order_of(left), order_of(right)) if isinstance(left, Row) else test(left, right)

    return called


_equal = _comparison(lambda left, right: left == right)


def same(left: Value, right: Value) -> bool:
    """`<=>`, which knows NULL."""
    if left is None or right is None:
        return left is None and right is None
    return bool(_equal(left, right))


def _in(value: Value, *among: Value) -> bool | None:
    if value is None:
        return None
    if any(_equal(value, each) for each in among):
        return True
    return None if None in among else False


def _of_known_values(function: Callable[..., Value]) -> Function:
    def called(*values: Value) -> Value:
        known = [value for value in values if value is not None]
        for value in known[1:]:
            _alike(known[0], value)
        return function(known) if known else None

    return called


def _number(value: Value) -> Value:
    if isinstance(value, Decimal) and abs(value) >= _MOST_DIGITS:
        return None  # an overflow
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise NotProvenError("a whole number of more than 64 bits")
    return value


def _arithmetic(operation: Callable[[Value, Value], Value]) -> Function:
    def called(left: Value, right: Value) -> Value:
        kinds = {type(left), type(right)}
        if not kinds <= {int, Decimal} or any(map(_has_places, (left, right))):
            raise NotProvenError("a computation with other than whole numbers")
        with localcontext() as context:
            context.prec = _DIGITS
            result = _number(operation(left, right))
        if kinds == {int} and not _is_small(result) and _is_small(left) and _is_small(right):
            raise NotProvenError("a computation of whole numbers beyond 32 bits, unless they have 64")
        return result

    return strict(called)


def _has_places(value: Value) -> bool:
    """Whether it is a decimal with digits after the point: of results with such, Spark may round some away."""
    return isinstance(value, Decimal) and value.as_tuple().exponent != 0


def _is_small(value: int) -> bool:
    return -(2**31) <= value < 2**31


def _divide(left: Value, right: Value) -> Value:
    if not right:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return left / right
    with localcontext() as context:
        context.prec = _DIGITS
        result = Decimal(left) / Decimal(right)
        if result * right != left or result.as_tuple().exponent < -6:  # type: ignore[operator]
            raise NotProvenError("a quotient of decimals that is not exact")
    return result


def _div(left: int, right: int) -> int | None:
    if not right:
        return None
    result = abs(left) // abs(right)
    return result if (left < 0) == (right < 0) else -result


def _modulo(left: int, right: int) -> int | None:
    if not right:
        return None
    if type(left) is not int or type(right) is not int:
        raise NotProvenError("a remainder of other numbers")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _conv(text: str, base: int, to: int) -> str:
    if (base, to) != (16, 10) or not 0 < len(text) <= 16:
        raise NotProvenError("conv of other numbers")
    try:
        return str(int(text, 16))
    except ValueError:
        raise NotProvenError("conv of no number") from None


def _never(name: str) -> Value:
    raise NotProvenError(f"the function {name} of other values")


OPERATORS: Mapping[str, Function] = {
    "=": _equal,
    "!=": _comparison(lambda left, right: left != right),
    "<": _comparison(lambda left, right: left < right),
    "<=": _comparison(lambda left, right: left <= right),
    ">": _comparison(lambda left, right: left > right),
    ">=": _comparison(lambda left, right: left >= right),
    "<=>": same,
    "in": _in,
    "not": strict(lambda value: not value),
    "nullif": lambda value, other: None if _equal(value, other) else value,
    "greatest": _of_known_values(max),
    "least": _of_known_values(min),
    "+": _arithmetic(lambda left, right: left + right),
    "-": _arithmetic(lambda left, right: left - right),
    "*": _arithmetic(lambda left, right: left * right),
    "/": strict(_divide),
    "div": strict(_div),
    "%": strict(_modulo),
    "negative": strict(lambda value: value.copy_negate() if isinstance(value, Decimal) else -value),
    "abs": strict(lambda value: value.copy_abs() if isinstance(value, Decimal) else abs(value)),
    "floor": strict(math.floor),
    "ceil": strict(math.ceil),
    "shiftright": strict(lambda value, places: value >> places),
    "conv": strict(_conv),
    "int": strict(lambda value: value if isinstance(value, int) else _never("int")),
}
