"""Numbers with a fraction as Java writes them. Owns for which of them every version of Java certainly writes this text.

Up to version 18 `Double.toString` does not always write the shortest text that means the number (JDK-4511638): it takes
a number for equally far from both of its neighbours, which powers of two are not, and no text that lies right between
two numbers. Below 2^52 (2^21 of 32 bits) what lies there has more digits than any text that is tried. Powers of two
from 2^-9, the first that has no exponent, have so few digits that all of them are written.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal

_PLAIN = (1e-3, 1e7)
"""From the first to below the second, Java writes no exponent."""
PLAIN_TEXT = r"(0\.0{0,2}[1-9][0-9]*|[1-9][0-9]{0,6}\.[0-9]+)"
"""The shortest texts of positive doubles in this range (RE2): all of them are Java's."""
DOUBLE_BOUND = 2.0**52
"""Of smaller doubles, Java's digits are the shortest, but for powers of two: of those below 2^-24 the 17th digit may be
another one, which is the 24th place after the point or a later one."""
_OF_64_BITS, _OF_32_BITS = (2.0**-1021, DOUBLE_BOUND, 2.0**54), (2.0**-125, 2.0**21, 2.0**25)
"""The smallest number, the bound of all, and that of those whose text means them exactly: Java writes all digits."""
_MOST_DIGITS_OF_32_BITS = 9


def double_text(value: float) -> str | None:
    """What `Double.toString` gives; None where that is not certain.

    >>> double_text(0.1), double_text(12345678.9), double_text(-2e-05), double_text(3.0), double_text(2.0**-44)
    ('0.1', '1.23456789E7', '-2.0E-5', '3.0', None)
    """
    return _text(value, repr(value), _OF_64_BITS)


def shortest_double_text(value: float) -> str:
    """What `Double.toString` gives from Java 19 on, as it is written in JSON: what is not a number is a text.

    >>> shortest_double_text(2e23), shortest_double_text(float("inf"))
    ('2.0E23', '"Infinity"')
    """
    return _json(value, repr(value))


def shortest_float_text(value: float) -> str:
    """The same of a number of 32 bits."""
    return _json(value, _shortest_of_32_bits(value))


def float_text(value: float) -> str | None:
    """What `Float.toString` gives for a number of 32 bits; None where that is not certain.

    >>> float_text(0.10000000149011612)
    '0.1'
    """
    return _text(value, _shortest_of_32_bits(value), _OF_32_BITS)


def _shortest_of_32_bits(value: float) -> str:
    lengths = range(1, _MOST_DIGITS_OF_32_BITS + 1)
    texts = (f"{value:.{length}g}" for length in lengths)
    return next((text for text in texts if _of_32_bits(float(text)) == value), repr(value))


def _of_32_bits(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.inf


def _text(value: float, shortest: str, bounds: tuple[float, float, float]) -> str | None:
    if value == 0:
        return str(float(value))
    smallest, bound, bound_of_exact = bounds
    is_exact = math.isfinite(value) and Decimal(shortest) == Decimal(value)
    is_known = abs(value) < (bound_of_exact if is_exact else bound)
    if not (smallest <= abs(value) and is_known) or (abs(math.frexp(value)[0]) == 0.5 and not is_exact):
        return None
    return _written(value, shortest)


def _json(value: float, shortest: str) -> str:
    if not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else f'"{"-" if value < 0 else ""}Infinity"'
    return _written(value, shortest) if value else str(value)


def _written(value: float, shortest: str) -> str:
    """A number other than 0 in Java's form."""
    sign = "-" if value < 0 else ""
    _, own, exponent = Decimal(shortest).as_tuple()
    digits = "".join(map(str, own)).rstrip("0")
    point = len(own) + int(exponent)  # where the digits have it
    if not _PLAIN[0] <= abs(value) < _PLAIN[1]:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    whole, fraction = digits[: max(point, 0)].ljust(point, "0"), digits[max(point, 0) :].rjust(len(digits) - point, "0")
    return f"{sign}{whole or '0'}.{fraction or '0'}"
