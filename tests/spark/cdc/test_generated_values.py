"""Moments and numbers that a generator makes, in each unit and each encoding of Debezium: what arrives is the source's.

Only Spark can show it: the decoders are Spark SQL.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.project.nodes import TimeUnit
from tests.semantic_types import CONNECT, DATA, TIME
from tests.spark.ingest_lake import Lake, base64_decimal, event, table

pytestmark = pytest.mark.release

ROWS = 80
_EPOCH, _DAY = datetime(1970, 1, 1), 86_400_000_000
_FIRST, _LAST = -62_135_424_000_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, in microseconds, but for the first two days, which PySpark cannot collect."""
_EDGES = (
    *(0, 1, -1, 999, -999, 1_000_000, -1_000_000, _DAY - 1, _DAY, -_DAY, _FIRST, _LAST, -12_219_292_800_000_000),
    *(-30_610_224_000_000_000, 168_328_800_000_000, 34_400_706_000_007, 1_714_521_600_123_456, 2_147_483_648_000_000),
)
"""Ends of what is read, the beginning of the Gregorian calendar and of MySQL's years, the end of 32 bits."""
_PER_UNIT: dict[TimeUnit, tuple[int, int]] = {
    "days": (_DAY, 1), "seconds": (1_000_000, 1), "millis": (1_000, 1), "micros": (1, 1), "nanos": (1, 1_000),
}  # fmt: skip
"""Microseconds that a unit has, or units that a microsecond has."""


def moments(dice: random.Random) -> list[int]:
    """Microseconds since 1970: edges, all centuries, and the years that are small in other units."""
    near = (dice.randint(-60_000_000_000_000, 300_000_000_000_000) for _ in range(ROWS // 4))
    return [*_EDGES, *near, *(dice.randint(_FIRST, _LAST) for _ in range(ROWS - len(_EDGES) - ROWS // 4))]


def in_unit(micros: int, unit: TimeUnit) -> int | None:
    """The number that a source counts; None where its 64 bits end."""
    size, parts = _PER_UNIT[unit]
    number = micros // size * parts
    return number if abs(number) < 2**63 else None


def moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def test_a_number_is_the_moment_that_its_declared_unit_counts(spark: SparkSession, tmp_path: Path) -> None:
    made = moments(random.Random("38 B"))
    units = {f"in_{unit}": unit for unit in _PER_UNIT}
    columns = {"id": "int", **dict.fromkeys(units, "timestamp")}
    declared = replace(table(columns=columns), units=units)
    lake = Lake(spark, tmp_path, (declared, table("u", columns={"id": "int", "at": "timestamp"})))
    values = [{name: in_unit(micros, unit) for name, unit in units.items()} for micros in made]
    lake.ingest(
        *(event("c", {"id": number, **row}) for number, row in enumerate(values)),
        *(event("c", {"id": number, "at": micros}, table="u") for number, micros in enumerate(made)),
        event("c", {"id": -1, "at": None}, table="u"),
    )
    expected = [
        (number, *(None if row[name] is None else moment(micros // _PER_UNIT[unit][0] * _PER_UNIT[unit][0])
                   for name, unit in units.items()))
        for number, (micros, row) in enumerate(zip(made, values, strict=True))
    ]  # fmt: skip
    assert sorted(lake.rows("t", "id", *units)) == expected
    # Without a unit no number is read, whatever its size: each event says what is missing.
    assert lake.rows("u", "id") == [(-1,)]
    reasons = [reason for *_, reason, _ in lake.dead_letters()]
    assert len(reasons) == len(made) and all("declare `unit:`" in reason for reason in reasons)


def encoded(dice: random.Random) -> Iterator[tuple[str, str, str, dict[str, str], Any, Any]]:
    """Of each column of a row: name, literal and semantic type, parameters, the value of an event, and its meaning."""
    micros = dice.choice((dice.choice(_EDGES), dice.randint(_FIRST, _LAST)))
    then, day = moment(micros), micros // _DAY
    whole, millis = moment(micros // 1000 * 1000), micros // 1000
    yield "date", "int32", TIME + "Date", {}, day, (_EPOCH + timedelta(days=day)).date()
    yield "connect_date", "int32", CONNECT + "Date", {}, day, (_EPOCH + timedelta(days=day)).date()
    yield "milli", "int64", TIME + "Timestamp", {}, millis, whole
    yield "connect", "int64", CONNECT + "Timestamp", {}, millis, whole
    yield "micro", "int64", TIME + "MicroTimestamp", {}, micros, then
    near = dice.randint(-(2**63), 2**63 - 1)
    yield "nano", "int64", TIME + "NanoTimestamp", {}, near, moment(near // 1000)
    iso = then.isoformat(timespec="microseconds")
    yield "iso", "string", TIME + "IsoTimestamp", {}, f"{iso}Z", then
    yield "iso_date", "string", TIME + "IsoDate", {}, f"{then.date().isoformat()}Z", then.date()
    hours = dice.randint(-12, 14)
    inner = min(max(micros, _FIRST + _DAY), _LAST - _DAY)
    zoned = (moment(inner) + timedelta(hours=hours)).isoformat(timespec="microseconds")
    offset = f"{'-' if hours < 0 else '+'}{abs(hours):02d}:00" if hours else "Z"
    yield "zoned", "string", TIME + "ZonedTimestamp", {}, f"{zoned}{offset}", moment(inner)
    clock = dice.choice((0, 1, _DAY - 1, dice.randrange(_DAY), dice.randrange(_DAY) // 1_000_000 * 1_000_000))
    yield "clock", "int64", TIME + "MicroTime", {}, clock, time_of(clock, 6)
    yield "clock_milli", "int32", TIME + "Time", {}, clock // 1000, time_of(clock // 1000 * 1000, 3)
    year = dice.choice((1901, 2155, 0, 1970))
    yield "year", "int32", TIME + "Year", {}, year, year
    scale, size = dice.randint(0, 30), dice.randint(0, 37)
    number = dice.choice((0, -1, 127, 128, -128, -129, 255, 256, dice.randint(-(10**size), 10**size)))
    wide = {"scale": "4", "connect.decimal.precision": "38"}
    yield "decimal", "bytes", CONNECT + "Decimal", wide, base64_decimal(number), Decimal(f"{number}E-4")
    variable = {"scale": scale, "value": base64_decimal(number)}
    yield "variable", "struct", DATA + "VariableScaleDecimal", {}, variable, f"{Decimal(f'{number}E-{scale}'):f}"
    bits = dice.choice((0, 1, 2**63, 2**64 - 1, dice.getrandbits(64)))
    length = {"length": "64"}
    yield "bits", "bytes", DATA + "Bits", length, base64.b64encode(bits.to_bytes(8, "little")).decode(), bits
    raw = dice.randbytes(dice.randint(0, 5))
    yield "raw", "bytes", "", {}, base64.b64encode(raw).decode(), bytearray(raw)
    text = "".join(dice.choices("aß漢😀 '\"\\\n\t{}[]\u3000\u00a0", k=dice.randint(0, 5)))
    yield "text", "string", "", {}, text, text
    yield "json", "string", DATA + "Json", {}, (kept := json.dumps({text: [1.10, text]})), kept
    for name, width in (("int8", 8), ("int16", 16), ("int32", 32), ("int64", 64)):
        end = 2 ** (width - 1)
        yield name, name, "", {}, (drawn := dice.choice((-end, end - 1, 0, dice.randrange(-end, end)))), drawn
    drawn_double = dice.choice((0.1, 1e300, -5e-324, 1 / 3, dice.uniform(-1e6, 1e6)))
    yield "float64", "float64", "", {}, drawn_double, drawn_double
    yield "boolean", "boolean", "", {}, (flag := dice.random() < 0.5), flag
    items = dice.choices((1, None, -7, 2**31 - 1), k=dice.randint(0, 3))
    yield "numbers", "array", "", {}, items, json.dumps(items, separators=(",", ":"))


def time_of(micros: int, digits: int) -> str:
    clock = f"{micros // 3_600_000_000:02d}:{micros // 60_000_000 % 60:02d}:{micros // 1_000_000 % 60:02d}"
    return clock if micros % 1_000_000 == 0 else f"{clock}.{f'{micros % 1_000_000:06d}'[:digits]}"


def test_a_value_in_any_encoding_is_the_sources(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random("38 C")
    rows = [list(encoded(dice)) for _ in range(ROWS)]
    fields: list[dict[str, Any]] = [{"field": "id", "type": "int32"}]
    for name, kind, said, parameters, _, _ in rows[0]:
        more = {"items": {"type": "int32", "optional": True}} if kind == "array" else {}
        fields.append({"field": name, "type": kind, **({"name": said} if said else {}), **more,
                       **({"parameters": parameters} if parameters else {})})  # fmt: skip
    lake = Lake(spark, tmp_path, (table(),))
    lake.ingest(
        *(
            event("c", {"id": number, **{name: value for name, *_, value, _ in row}}, fields=fields)
            for number, row in enumerate(rows)
        )
    )
    assert not Path(lake.uri("shop__dead_letters")).exists()
    names = [name for name, *_ in rows[0]]
    stored = {row[0]: dict(zip(names, row[1:], strict=True)) for row in lake.rows("t", "id", *names)}
    differing = [
        (number, name, value, stored[number][name], meaning)
        for number, row in enumerate(rows)
        for name, *_, value, meaning in row
        if stored[number][name] != meaning
    ]
    assert differing == []
