"""Spark SQL that reads dates, moments and times of day. Knows no format.

Each expression is NULL for a text that it cannot read. A number is only read where its unit is known.
"""

from __future__ import annotations

from sqlmesh_like.cdc.formats.encoding import Encoding
from sqlmesh_like.sql_text import spark_literal

MAX_MILLIS = 253402300799999  # 9999-12-31T23:59:59.999Z: the last moment that every reader of Parquet understands
MIN_MILLIS = -62135596800000  # 0001-01-01T00:00:00Z
MAX_DAYS, MIN_DAYS = MAX_MILLIS // 86_400_000, MIN_MILLIS // 86_400_000

_OFFSET = "(?:Z|[+-][0-9]{2}:[0-9]{2}(?::[0-9]{2})?)"
_DAY = "^ *((?!0000)[0-9]{4}-[0-9]{1,2}-[0-9]{1,2})(?:[T ] *00:00(?::00(?:[.]0+)?)?)? *(?:Z|UTC|GMT|[+-][0-9:]+)? *$"
_ISO_TIME = f"^([0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:[.][0-9]{{1,9}})?)?){_OFFSET}$"
_PARTS = "STRUCT<year: INT, month: INT, day: INT, hour: INT, minute: INT, second: INT, nanos: INT, offsetSeconds: INT>"


def decode_time(encoding: Encoding, text: str) -> tuple[str, str]:
    """Spark SQL of a value in an encoding of dates and times, and its type: `time` is a text `[-]HH:mm:ss[.ffffff]`."""
    number = f"try_cast({text} as bigint)"
    match encoding:
        case Encoding.DAYS:
            days = f"try_cast({text} as int)"
            return f"case when {days} between {MIN_DAYS} and {MAX_DAYS} then date_from_unix_date({days}) end", "date"
        case Encoding.SECONDS | Encoding.MILLIS | Encoding.MICROS | Encoding.NANOS:
            return _from_epoch(number, encoding), "timestamp"
        case Encoding.ISO_DATE:
            return date(text), "date"
        case Encoding.ISO_TIMESTAMP:
            return timestamp(text), "timestamp"
        case Encoding.ISO_TIME:
            iso = spark_literal(_ISO_TIME)
            return f"if({text} rlike {iso}, regexp_extract({text}, {iso}, 1), null)", "time"
        case Encoding.DATE_PARTS:
            return f"try_cast({_date_of(_parts(text))} as date)", "date"
        case Encoding.TIMESTAMP_PARTS:
            return _moment_of(_parts(text)), "timestamp"
        case Encoding.TIME_PARTS:
            return _time_of(_parts(text)), "time"
        case _:
            return _time_of_day(number, encoding), "time"


def date(text: str) -> str:
    """Spark SQL of a date from an ISO text, which may have an offset, and midnight as its time.

    Spark's cast accepts any text behind a date, and leaves it out.
    """
    return f"try_cast(nullif(regexp_extract({text}, {spark_literal(_DAY)}, 1), '') as date)"


def has_time(text: str) -> str:
    """Spark SQL: whether the text of a date goes on with a time of day."""
    return f"{text} rlike '^ *[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}[T ] *[0-9]'"


def whole_day(moment: str) -> str:
    """Spark SQL of the date of a moment; NULL where it is not midnight in UTC."""
    return f"if(unix_micros({moment}) % 86400000000 = 0, cast({moment} as date), null)"


def timestamp(text: str) -> str:
    """Spark SQL of a moment from an ISO text; without an offset it is in UTC."""
    return f"case when {_starts_as_date(text)} then try_cast({text} as timestamp) end"


def local(moment: str, zone: str, *, is_key: bool = False) -> str:
    """Spark SQL of the moment of a local time, given as if it were in UTC; NULL beyond the years 1 to 9999.

    Of an hour that the clock repeats, it is the first one; a time that the clock skips is as much later as it skips:
    `java.time.ZonedDateTime.of`, which Spark calls. In a key that would be the key of another row: NULL.
    """
    there = f"to_utc_timestamp({moment}, {spark_literal(zone)})"
    condition = f"unix_micros({there}) between {MIN_MILLIS}000 and {MAX_MILLIS}999"
    if is_key:
        condition += f" and from_utc_timestamp({there}, {spark_literal(zone)}) = {moment}"
    return f"case when {condition} then {there} end"


_LOCAL = "^ *[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T]+[0-9:.]*)? *$"


def is_local_text(text: str) -> str:
    """Spark SQL: whether the text of a moment has neither an offset nor a zone."""
    return f"{text} rlike {spark_literal(_LOCAL)}"


def _starts_as_date(text: str) -> str:
    """Guards a cast: Spark reads `12:30` as a time of today, and accepts years that other readers do not."""
    return f"{text} rlike '^ *(?!0000)[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}'"


def _from_epoch(number: str, encoding: Encoding) -> str:
    match encoding:
        case Encoding.SECONDS:
            first, last, moment = str(MIN_MILLIS // 1000), str(MAX_MILLIS // 1000), f"timestamp_seconds({number})"
        case Encoding.MILLIS:
            first, last, moment = str(MIN_MILLIS), str(MAX_MILLIS), f"timestamp_millis({number})"
        case Encoding.MICROS:
            first, last, moment = f"{MIN_MILLIS}000", f"{MAX_MILLIS}999", f"timestamp_micros({number})"
        case _:
            return f"timestamp_micros(cast(floor({number} / 1000BD) as bigint))"
    return f"case when {number} between {first} and {last} then {moment} end"


_UNITS_PER_SECOND = {
    Encoding.SECONDS_OF_DAY: 1,
    Encoding.MILLIS_OF_DAY: 1_000,
    Encoding.MICROS_OF_DAY: 1_000_000,
    Encoding.NANOS_OF_DAY: 1_000_000_000,
}


def _time_of_day(number: str, encoding: Encoding) -> str:
    """Spark SQL of a time as MySQL writes it, which may be negative or exceed a day."""
    unit = _UNITS_PER_SECOND[encoding]
    seconds = f"(abs({number}) div {unit})"
    clock = f"format_string('%02d:%02d:%02d', {seconds} div 3600, {seconds} div 60 % 60, {seconds} % 60)"
    digits = len(str(unit)) - 1
    fraction = (
        f"if({number} % {unit} = 0, '', concat('.', lpad(cast(abs({number}) % {unit} as string), {digits}, '0')))"
    )
    return f"concat(if({number} < 0, '-', ''), {clock}, {fraction})"


def _parts(text: str) -> str:
    return f"from_json({text}, {spark_literal(_PARTS)})"


def _date_of(parts: str) -> str:
    """Spark SQL of a date's text. NULL for `infinity`, which has no year, and for years that no reader knows."""
    day = f"format_string('%04d-%02d-%02d', {parts}.year, {parts}.month, {parts}.day)"
    return f"case when {parts}.year between 1 and 9999 then {day} end"


def _moment_of(parts: str) -> str:
    clock = f"format_string('%02d:%02d:%02d.%09d', {parts}.hour, {parts}.minute, {parts}.second, {parts}.nanos)"
    local = f"try_cast(concat({_date_of(parts)}, ' ', {clock}) as timestamp)"
    return f"timestamp_micros(unix_micros({local}) - 1000000L * coalesce({parts}.offsetSeconds, 0))"


def _time_of(parts: str) -> str:
    """Spark SQL of a time; one with an offset keeps it, as `ZonedTime` does."""
    clock = f"format_string('%02d:%02d:%02d', {parts}.hour, {parts}.minute, {parts}.second)"
    micros = f"format_string('.%06d', {parts}.nanos div 1000)"
    fraction = f"case {parts}.nanos when 0 then '' else if({parts}.nanos % 1000 = 0, {micros}, "
    fraction += f"format_string('.%09d', {parts}.nanos)) end"
    seconds = f"{parts}.offsetSeconds"
    minutes = f"abs({seconds}) div 60"
    offset = f"format_string('%s%02d:%02d', if({seconds} < 0, '-', '+'), int({minutes} div 60), int({minutes} % 60))"
    zone = f"case when {seconds} is null then '' when {seconds} = 0 then 'Z' else {offset} end"
    return f"if({parts}.hour is null, null, concat({clock}, {fraction}, {zone}))"
