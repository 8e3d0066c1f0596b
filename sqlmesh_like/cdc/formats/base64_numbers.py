"""Spark SQL that reads numbers which a source writes as base64 bytes, without losing digits. Knows no format.

Spark has no function for it: `conv` stops at 64 bits, and its decimals at 38 digits.
"""

from __future__ import annotations

MAX_DIGITS = 108
"""Digits of a decimal that is read as text: enough for all databases but PostgreSQL, which has no limit."""
_LIMB = 10**9
_LIMBS = MAX_DIGITS // 9
_WITH_EXPONENT = "^(-?)([0-9]+)[.]?([0-9]*)[eE]([+-]?[0-9]{1,3})$"
_MAX_HEX = 88  # 44 bytes: 2**351 has 106 digits


def decimal(text: str, scale: int) -> str:
    """Spark SQL of a big-endian two's complement as decimal(38,scale), by its 64-bit halves; NULL beyond 16 bytes.

    Each part is written as often as it is planned: a table may have hundreds of such columns.
    """
    raw = _hex(text)
    is_negative = f"{raw} >= '8'"
    padded = f"lpad({raw}, 32, if({is_negative}, 'F', '0'))"
    high, low = (f"cast(conv(substr({padded}, {start}, 16), 16, 10) as decimal(38,0))" for start in (1, 17))
    signed = f"({high} - if({is_negative}, {2**64}BD, 0BD))"
    number = f"concat(cast({signed} * {2**64}BD + {low} as string), 'E-{scale}')"
    return f"case when length({raw}) between 2 and 32 then try_cast({number} as decimal(38,{scale})) end"


def decimal_text(text: str, scale: int) -> str:
    """Spark SQL of the same number as text with all digits; NULL beyond 44 bytes."""
    return _digits(text, str(scale))


def own_scale_text(text: str) -> str:
    """Spark SQL of the same text from `{"scale": 3, "value": "MDk="}`, where each value has its own scale."""
    return _digits(f"get_json_object({text}, '$.value')", f"cast(get_json_object({text}, '$.scale') as int)")


def _digits(text: str, scale: str) -> str:
    """Long multiplication: the digits so far, in limbs of nine, times 65,536 plus the next two bytes."""
    read = f"named_struct('raw', {_hex(text)}, 'scale', {scale})"  # as a variable of a lambda: once
    raw, scale = "n.raw", "n.scale"
    is_negative = f"({raw} >= '8')"
    padded = f"lpad({raw}, 4 * cast(ceil(length({raw}) / 4) as int), if({is_negative}, 'F', '0'))"
    chunk = f"cast(conv(substr({padded}, i, 4), 16, 10) as bigint)"
    # The magnitude of a negative number: all bits inverted, plus one.
    turned = f"65535 - {chunk} + if(i + 4 > length({padded}), 1, 0)"
    chunks = f"transform(sequence(1, length({padded}), 4), i -> if({is_negative}, {turned}, {chunk}))"
    carried = "(limb * 65536 + s.carry)"
    done = f"concat(s.done, array({carried} % {_LIMB}))"
    times = (
        "aggregate(limbs, struct(chunk as carry, cast(array() as array<bigint>) as done), (s, limb) -> "
        f"struct({carried} div {_LIMB} as carry, {done} as done), s -> s.done)"
    )
    limbs = f"aggregate({chunks}, array_repeat(0L, {_LIMBS}), (limbs, chunk) -> {times})"
    digits = f"array_join(transform(reverse({limbs}), limb -> lpad(cast(limb as string), 9, '0')), '')"
    whole = f"coalesce(nullif(ltrim('0', left(d, {MAX_DIGITS} - greatest({scale}, 0))), ''), '0')"
    # Oracle has negative scales: so many zeros before the point.
    zeros = f"if({whole} = '0', '', repeat('0', -({scale})))"
    rest = f"case when {scale} < 0 then {zeros} when {scale} = 0 then '' else concat('.', right(d, {scale})) end"
    number = f"concat(if({is_negative}, '-', ''), {whole}, {rest})"
    fits = f"length({raw}) between 2 and {_MAX_HEX} and {scale} between -{MAX_DIGITS} and {MAX_DIGITS}"
    value = f"case when {fits} then transform(array({digits}), d -> {number})[0] end"
    return f"transform(array({read}), n -> {value})[0]"


def plain_number(text: str) -> str:
    """Spark SQL of a number without its exponent: Java writes a decimal of 0.0000001 as 1E-7."""
    sign, whole, fraction, power = (f"regexp_extract({text}, '{_WITH_EXPONENT}', {group})" for group in (1, 2, 3, 4))
    zeros = f"{power} - length({fraction})"
    scaled = f"concat({whole}, {fraction}, repeat('0', {zeros}))"
    padded = f"lpad(concat({whole}, {fraction}), greatest(length(concat({whole}, {fraction})), 1 - ({zeros})), '0')"
    shown = f"if({zeros} < 0, concat(left({padded}, length({padded}) + ({zeros})), '.', right({padded}, -({zeros}))), "
    shown += f"coalesce(nullif(ltrim('0', {scaled}), ''), '0'))"
    return f"if({text} rlike '{_WITH_EXPONENT}', concat({sign}, {shown}), {text})"


def unsigned_number_sql(text: str) -> str:
    """Spark SQL of a little-endian unsigned number as decimal(20,0); NULL beyond 8 bytes."""
    raw = _hex(text)
    padded = f"rpad({raw}, 16, '0')"
    turned = ", ".join(f"substr({padded}, {start}, 2)" for start in range(15, 0, -2))
    return f"case when length({raw}) between 2 and 16 then cast(conv(concat({turned}), 16, 10) as decimal(20,0)) end"


def _hex(text: str) -> str:
    return f"hex(try_to_binary({text}, 'BASE64'))"
