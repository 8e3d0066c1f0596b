"""Values of partition columns → folder names of derived tables, encoded as in Spark, for few values.

The expression for Spark is `spark.frames.partition_paths.encoded`, which explains the encoding.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Sequence

import pyarrow as pa

from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError
from sqlmesh_like.names import LONGEST_PARTITION

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


def partition_names(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The partition of each row. Raises UnsupportedRowsError for values that only Spark can encode."""
    try:
        values = list(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))
    except (ValueError, OverflowError) as error:
        raise UnsupportedRowsError("a date that Python does not know") from error
    known: dict[tuple[object, ...], str] = {}
    return pa.array(
        [known.get(value) or known.setdefault(value, partition_name(value)) for value in values], pa.string()
    )


def partition_name(values: Sequence[object]) -> str:
    """The name of one partition.

    >>> partition_name(["a b", 3, None]), partition_name([datetime.date(2024, 1, 2)])
    ('_x612062__3___null', '2024-01-02')
    """
    whole = "__".join(map(_encode_value, values))
    if len(whole) <= LONGEST_PARTITION:
        return whole
    return f"{whole[: LONGEST_PARTITION - 40]}_h{hashlib.sha256(whole.encode()).hexdigest()[:32]}"


def _encode_value(value: object) -> str:
    match value:
        case None:
            return "_null"
        case bool():
            return str(value).lower()
        case str() | int():
            text = str(value)
        case datetime.datetime():
            text = value.replace(tzinfo=None).isoformat(" ", "seconds") + f".{value.microsecond:06d}".rstrip(
                "0"
            ).rstrip(".")
        case datetime.date():
            text = value.isoformat()
        case _:
            raise UnsupportedRowsError(f"a partition by {type(value).__name__}")
    return text if _SAFE.fullmatch(text) else f"_x{text.encode().hex().upper()}"
