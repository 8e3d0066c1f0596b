"""A column of each semantic type that Debezium and Kafka Connect have, with a value and what it means."""

from __future__ import annotations

import datetime
from typing import Any

DAY = datetime.date(2017, 9, 15)
MOMENT = datetime.datetime(2019, 7, 9, 2, 28, 57, 123456)
WKB = {"wkb": "AQEAAAAAAAAAAADwPwAAAAAAAABA", "srid": None}
TIME, DATA, CONNECT = "io.debezium.time.", "io.debezium.data.", "org.apache.kafka.connect.data."
SEMANTIC_TYPES: dict[str, tuple[str, str, Any, Any]] = {
    "connect_date": ("int32", CONNECT + "Date", 17424, DAY),
    "connect_time": ("int32", CONNECT + "Time", 14711789, "04:05:11.789"),
    "connect_timestamp": ("int64", CONNECT + "Timestamp", 1562639337123, MOMENT.replace(microsecond=123000)),
    "date": ("int32", TIME + "Date", 17424, DAY),
    "time": ("int32", TIME + "Time", 14711789, "04:05:11.789"),
    "micro_time": ("int64", TIME + "MicroTime", 14711789000, "04:05:11.789000"),
    "nano_time": ("int64", TIME + "NanoTime", 14711789000001, "04:05:11.789000001"),
    "timestamp": ("int64", TIME + "Timestamp", 1562639337123, MOMENT.replace(microsecond=123000)),
    "micro_timestamp": ("int64", TIME + "MicroTimestamp", 1562639337123456, MOMENT),
    "nano_timestamp": ("int64", TIME + "NanoTimestamp", 1562639337123456789, MOMENT),
    "zoned_timestamp": ("string", TIME + "ZonedTimestamp", "2019-07-09T04:28:57.123456+02:00", MOMENT),
    "zoned_time": ("string", TIME + "ZonedTime", "04:05:11.789Z", "04:05:11.789Z"),
    "year": ("int32", TIME + "Year", 2018, 2018),
    "iso_date": ("string", TIME + "IsoDate", "2017-09-15Z", DAY),
    "iso_time": ("string", TIME + "IsoTime", "04:05:11.789Z", "04:05:11.789"),
    "iso_timestamp": ("string", TIME + "IsoTimestamp", "2019-07-09T02:28:57.123456Z", MOMENT),
    "structured_date": ("struct", TIME + "StructuredDate", {"year": 2017, "month": 9, "day": 15}, DAY),
    "structured_time": (
        *("struct", TIME + "StructuredTime"),
        *({"hour": 4, "minute": 5, "second": 11, "nanos": 789000000, "precision": 3}, "04:05:11.789000"),
    ),
    "structured_timestamp": (
        *("struct", TIME + "StructuredTimestamp"),
        {"year": 2019, "month": 7, "day": 9, "hour": 2, "minute": 28, "second": 57, "nanos": 123456789},
        MOMENT,
    ),
    "structured_zoned_time": (
        *("struct", TIME + "StructuredZonedTime"),
        *({"hour": 4, "minute": 5, "second": 11, "nanos": 0, "offsetSeconds": -19800}, "04:05:11-05:30"),
    ),
    "structured_zoned_timestamp": (
        *("struct", TIME + "StructuredZonedTimestamp"),
        {
            "year": 2019,
            "month": 7,
            "day": 9,
            "hour": 4,
            "minute": 28,
            "second": 57,
            "nanos": 123456000,
            "offsetSeconds": 7200,
            "zoneId": "Europe/Paris",
            "specialValue": None,
        },
        MOMENT,
    ),
    "structured_duration": (
        *("struct", TIME + "StructuredDuration"),
        *({"years": 1, "seconds": 5}, '{"years":1,"seconds":5}'),
    ),
    "interval": ("string", TIME + "Interval", "P1Y2M3DT4H5M6.78S", "P1Y2M3DT4H5M6.78S"),
    "micro_duration": ("int64", TIME + "MicroDuration", 37091106780000, 37091106780000),
    "nano_duration": ("int64", TIME + "NanoDuration", 37091106780000000, 37091106780000000),
    "variable_scale": ("struct", DATA + "VariableScaleDecimal", {"scale": 3, "value": "MDk="}, "12.345"),
    "negative_scale": ("struct", DATA + "VariableScaleDecimal", {"scale": -2, "value": "MDk="}, "1234500"),
    "enum": ("string", DATA + "Enum", "paid", "paid"),
    "set": ("string", DATA + "EnumSet", "a,b", "a,b"),
    "json": ("string", DATA + "Json", '{"a": 1.10}', '{"a": 1.10}'),
    "uuid": ("string", DATA + "Uuid", "0b7c4ef2-0000-4000-8000-000000000001", "0b7c4ef2-0000-4000-8000-000000000001"),
    "xml": ("string", DATA + "Xml", "<a>1</a>", "<a>1</a>"),
    "ltree": ("string", DATA + "Ltree", "Top.Science", "Top.Science"),
    "tsvector": ("string", DATA + "Tsvector", "'fat':2 'rat':3", "'fat':2 'rat':3"),
    "point": ("struct", DATA + "geometry.Point", {"x": 1.0, "y": 2.5, **WKB}, None),
    "geometry": ("struct", DATA + "geometry.Geometry", {**WKB, "extensions": {"type": "box"}}, None),
    "geography": ("struct", DATA + "geometry.Geography", WKB, None),
    "line": ("struct", DATA + "geometry.Line", {"a": 1.0, "b": -1.0, "c": 1e-07}, None),
    "circle": ("struct", DATA + "geometry.Circle", {"center": {"x": 1.0, "y": 2.0}, "radius": 2.5}, None),
    "double_vector": ("array", DATA + "DoubleVector", [1.1, 22.0, 1e16], "[1.1,22.0,1e+16]"),
    "float_vector": ("array", DATA + "FloatVector", [0.1, 2.0], "[0.1,2.0]"),
    "sparse_vector": ("struct", DATA + "SparseDoubleVector", {"dimensions": 5, "vector": [[1, 1.5], [3, -2.0]]}, None),
    "bytes": ("bytes", "", "AAH/", bytearray(b"\x00\x01\xff")),
    "boolean": ("boolean", "", True, True),
    "int8": ("int8", "", -5, -5),
    "float64": ("float64", "", 0.1, 0.1),
    "numbers": ("array", "", [7, None], "[7,null]"),
    "hstore": ("map", "", {"k": "v"}, '{"k":"v"}'),
}
"""Of each column: literal type, semantic type, the value as an event of that type has it, and what it means."""
FIELDS: list[dict[str, Any]] = [
    {"field": "id", "type": "int32"},
    *({"field": name, "type": kind, "name": said} for name, (kind, said, _, _) in SEMANTIC_TYPES.items()),
    {"field": "decimal", "type": "bytes", "name": CONNECT + "Decimal", "parameters": {"scale": "2"}},
    {
        "field": "hundreds",
        "type": "bytes",
        "name": CONNECT + "Decimal",
        "parameters": {"scale": "-2", "connect.decimal.precision": "5"},
    },
    {"field": "bits", "type": "bytes", "name": DATA + "Bits", "parameters": {"length": "10"}},
    {"field": "isbn", "type": "string", "name": "io.debezium.postgresql.type.Isbn"},
]
"""The fields of a row with a column of each."""
ROW: dict[str, Any] = {
    "id": 1,
    **{name: value for name, (_, _, value, _) in SEMANTIC_TYPES.items()},
    "decimal": "+y4=",
    "hundreds": "Bw==",
    "bits": "AwI=",
    "isbn": "0-1",
}
