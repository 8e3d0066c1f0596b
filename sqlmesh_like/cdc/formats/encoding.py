"""How sources encode values in JSON, and the units in which they count time. Owns the names; knows no format."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from sqlmesh_like.project.nodes import TimeUnit


class Encoding(Enum):
    """How a source encodes a value in JSON."""

    PLAIN = "plain"  # text or number, as the type says
    BASE64 = "base64"
    BASE64_DECIMAL = "base64_decimal"  # unscaled two's complement, big endian
    OWN_SCALE = "own_scale"  # a JSON object of a scale and a value as in BASE64_DECIMAL
    BITS = "bits"  # base64 of an unsigned number, little endian
    DAYS = "days"
    SECONDS = "seconds"
    MILLIS = "millis"
    MICROS = "micros"
    NANOS = "nanos"
    SECONDS_OF_DAY = "seconds_of_day"
    MILLIS_OF_DAY = "millis_of_day"
    MICROS_OF_DAY = "micros_of_day"
    NANOS_OF_DAY = "nanos_of_day"
    ISO_DATE = "iso_date"  # with an offset: 2017-09-15Z
    ISO_TIMESTAMP = "iso_timestamp"
    ISO_TIME = "iso_time"  # with an offset: 04:05:11.789Z
    DATE_PARTS = "date_parts"  # a JSON object of year, month and day
    TIMESTAMP_PARTS = "timestamp_parts"  # of these, hour, minute, second and nanos, perhaps offsetSeconds
    TIME_PARTS = "time_parts"  # of hour, minute, second and nanos, perhaps offsetSeconds
    LABEL_NUMBER = "label_number"  # the number of an enumeration's label, from 1; 0 is the empty text
    LABEL_BITS = "label_bits"  # a number whose lowest bit says whether the first label is in the set
    LATIN1 = "latin1"  # each byte as the character with that number


DATES = (Encoding.DAYS,)
MOMENTS = (Encoding.SECONDS, Encoding.MILLIS, Encoding.MICROS, Encoding.NANOS)
"""Numbers since 1970, in UTC."""
TIMES_OF_DAY = (Encoding.SECONDS_OF_DAY, Encoding.MILLIS_OF_DAY, Encoding.MICROS_OF_DAY, Encoding.NANOS_OF_DAY)
"""Numbers since midnight."""

_SINCE_1970: Mapping[TimeUnit, Encoding] = {
    "days": Encoding.DAYS,
    "seconds": Encoding.SECONDS,
    "millis": Encoding.MILLIS,
    "micros": Encoding.MICROS,
    "nanos": Encoding.NANOS,
}
_SINCE_MIDNIGHT: Mapping[TimeUnit, Encoding] = {
    "seconds": Encoding.SECONDS_OF_DAY,
    "millis": Encoding.MILLIS_OF_DAY,
    "micros": Encoding.MICROS_OF_DAY,
    "nanos": Encoding.NANOS_OF_DAY,
}


def encoding_of(unit: TimeUnit, spark_type: str) -> Encoding | None:
    """The encoding of numbers that count this unit, by the type of their column; None where it holds no time.

    >>> encoding_of("micros", "timestamp"), encoding_of("micros", "string"), encoding_of("micros", "int")
    (<Encoding.MICROS: 'micros'>, <Encoding.MICROS_OF_DAY: 'micros_of_day'>, None)
    """
    if spark_type == "string":
        return _SINCE_MIDNIGHT.get(unit)
    return _SINCE_1970[unit] if spark_type in ("date", "timestamp") else None
