"""Comparing a table with its recompute, whole or by a sample of keys; `run.close_rows` owns when two rows are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sqlmesh_like.run.close_rows import MATCHED_AT_MOST, RELATIVE_TOLERANCE, close_difference
from sqlmesh_like.run.ports import ComparedKeys, LargestHash, Row, RowDifference, Sample
from sqlmesh_like.spark.frames.map_entries import as_entries, as_maps, has_map
from sqlmesh_like.spark.frames.python_rows import python_rows

_ENGINE = "spark"
_COPIES = "_sml_copies"
_HASH = "_sml_hash"
_ROWS, _FEWEST, _STORED, _WANTED, _EXACT = "_sml_rows", "_sml_fewest", "_sml_stored_", "_sml_wanted_", "_sml_exact_"


def difference(
    stored: DataFrame,
    expected: DataFrame,
    limit: int,
    inexact: Sequence[str] | None = None,
    tolerance: float = RELATIVE_TOLERANCE,
) -> RowDifference:
    """Rows of either side without an equal row on the other (multisets). If all are equal, each side is read once.

    `inexact`: the columns that are compared at the tolerance; None: all floating-point numbers.
    """
    types = stored.schema
    stored, alike = _with_entries(stored), _with_entries(_cast_as(stored, expected))
    signed = stored.withColumn(_COPIES, F.lit(1)).unionByName(alike.withColumn(_COPIES, F.lit(-1)))
    unequal = signed.groupBy(*[f"`{name}`" for name in stored.columns]).agg(F.sum(_COPIES).alias(_COPIES))
    unequal = unequal.where(f"{_COPIES} <> 0")
    total = _count(unequal)
    floats = [name for name, type_ in stored.dtypes if type_ in ("double", "float")] if inexact is None else inexact
    if floats and total > MATCHED_AT_MOST:
        unequal = _without_close_pairs(unequal, floats, tolerance)
        total = _count(unequal)

    def rows_of(sign: int, most: int | None) -> list[Row]:
        frame = _repeat_surplus(unequal, -sign)
        return _rows(frame if most is None else frame.limit(most), types)

    return close_difference(total, rows_of, floats, limit, tolerance)


def _with_entries(frame: DataFrame) -> DataFrame:
    if not has_map(frame.schema):
        return frame
    return frame.select(*[as_entries(F.col(f"`{f.name}`"), f.dataType).alias(f.name) for f in frame.schema.fields])


def _count(unequal: DataFrame) -> int:
    return unequal.agg(F.sum(F.abs(_COPIES))).collect()[0][0] or 0


def _without_close_pairs(unequal: DataFrame, floats: Sequence[str], tolerance: float) -> DataFrame:
    """Without the pairs of one row of each side that differ in these columns only, and there within the tolerance.

    Rows that share their other columns with further ones stay.
    """
    exact = [name for name in unequal.columns if name not in (*floats, _COPIES)]
    sides = unequal.groupBy(*[f"`{name}`" for name in exact]).agg(
        F.count(F.lit(1)).alias(_ROWS),
        F.min(_COPIES).alias(_FEWEST),
        F.max(_COPIES).alias(_COPIES),
        *(
            F.max(F.when(F.col(_COPIES) > 0, F.col(f"`{name}`"))).alias(f"{_STORED}{n}")
            for n, name in enumerate(floats)
        ),
        *(
            F.max(F.when(F.col(_COPIES) < 0, F.col(f"`{name}`"))).alias(f"{_WANTED}{n}")
            for n, name in enumerate(floats)
        ),
    )
    is_pair = (F.col(_ROWS) == 2) & (F.col(_FEWEST) == -1) & (F.col(_COPIES) == 1)
    for number in range(len(floats)):
        is_pair &= _is_close(F.col(f"{_STORED}{number}"), F.col(f"{_WANTED}{number}"), tolerance)
    pairs = sides.where(is_pair).select(*[F.col(f"`{name}`").alias(f"{_EXACT}{n}") for n, name in enumerate(exact)])
    is_same = F.lit(True)
    for number, name in enumerate(exact):
        is_same &= F.col(f"`{name}`").eqNullSafe(F.col(f"{_EXACT}{number}"))
    return unequal.join(pairs, is_same, "left_anti")


def _is_close(one: Column, other: Column, tolerance: float) -> Column:
    """As `math.isclose` by the relative tolerance, and NULLs and NaNs are equal. In Spark NaN is above infinity."""
    distance = F.abs(one - other)
    is_near = distance <= F.greatest(F.abs(one), F.abs(other)) * tolerance
    return one.eqNullSafe(other) | F.coalesce(is_near & (distance < float("inf")), F.lit(False))


def sampled_difference(
    stored: DataFrame,
    expected: DataFrame,
    names: Sequence[str],
    sample: Sample,
    limit: int,
    inexact: Sequence[str],
    tolerance: float,
) -> RowDifference:
    """As `difference`, of the rows whose hash of these columns is among the smallest `sample.keys` in the table."""
    if not names:
        keys = ComparedKeys((), 0, is_all=True, up_to=LargestHash(_ENGINE, None))
        return replace(difference(stored, expected, limit, inexact, tolerance), keys=keys)
    hashed = F.xxhash64(F.lit(sample.seed), *[F.col(f"`{name}`") for name in names])
    if sample.up_to is None:
        hashes = stored.select(hashed.alias(_HASH)).distinct().orderBy(_HASH).limit(sample.keys + 1).collect()
        count = min(len(hashes), sample.keys)
        largest = hashes[sample.keys - 1][0] if len(hashes) > sample.keys else None
        is_sampled = _up_to(hashed, largest)
    else:
        largest = sample.up_to.of(_ENGINE)
        is_sampled = _up_to(hashed, largest)
        count = stored.where(is_sampled).select(hashed).distinct().count()
    alike = _cast_as(stored, expected)
    sampled = difference(stored.where(is_sampled), alike.where(is_sampled), limit, inexact, tolerance)
    keys = ComparedKeys(tuple(names), count, is_all=largest is None, up_to=LargestHash(_ENGINE, largest))
    return replace(sampled, keys=keys)


def _up_to(hashed: Column, largest: int | None) -> Column:
    return F.lit(True) if largest is None else hashed <= F.lit(largest)


def _cast_as(stored: DataFrame, expected: DataFrame) -> DataFrame:
    return expected.select(*[F.col(f"`{field.name}`").cast(field.dataType) for field in stored.schema.fields])


def _repeat_surplus(unequal: DataFrame, sign: int) -> DataFrame:
    """Rows of which one side has more copies, each repeated by the difference. `sign`: 1 stored, -1 expected."""
    times = F.explode(F.sequence(F.lit(1), F.col(_COPIES) * sign))
    more = unequal.where(F.col(_COPIES) * sign > 0)
    return more.withColumn(_COPIES, times).drop(_COPIES)


def _rows(frame: DataFrame, types: StructType) -> list[Row]:
    """Rows whose columns had these types before they were compared."""
    shown = frame.select(*[as_maps(F.col(f"`{f.name}`"), f.dataType).alias(f.name) for f in types.fields])
    return [SparkRow(*shown.columns)(*row).asDict(recursive=True) for row in python_rows(shown)]
