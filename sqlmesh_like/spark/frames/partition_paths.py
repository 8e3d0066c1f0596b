"""Partition values → partition paths. Owns the path-safe encoding of derived tables' partitions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.delta.program import Prune
from sqlmesh_like.names import LONGEST_PARTITION, PARTITION
from sqlmesh_like.plan.history import StoredLayout

MAX_VALUES = 10_000
"""Above this many partition values nothing is pruned, because they are collected to the driver."""

_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_SAFE = r"\A[A-Za-z0-9][A-Za-z0-9.-]*\z"


def partition_path(columns: Sequence[str]) -> SparkColumn:
    """Value of `_sml_partition`: each value's text if it is safe as a folder name on every store, else hexadecimal.

    Hudi reads partition values back from paths and gets many wrong (`''` becomes NULL, a timestamp 1970-01-01), so the
    user's columns stay data and only this text is a path. NULL is `_null`, hexadecimal starts with `_x`. A text that is
    too long for a file name is cut and ends with a hash of the whole.
    """
    whole = F.concat_ws("__", *[_encoded_one(name) for name in columns])
    short = F.concat(F.substring(whole, 1, LONGEST_PARTITION - 40), F.lit("_h"), F.substring(F.sha2(whole, 256), 1, 32))
    return F.when(F.length(whole) > LONGEST_PARTITION, short).otherwise(whole).alias(PARTITION)


def _encoded_one(name: str) -> SparkColumn:
    value = F.col(f"`{name}`").cast("string")
    safe = F.when(value.rlike(_SAFE), value).otherwise(F.concat(F.lit("_x"), F.hex(F.encode(value, "UTF-8"))))
    return F.when(value.isNull(), F.lit("_null")).otherwise(safe)


def target_paths(values: DataFrame, columns: Sequence[str]) -> list[str]:
    """Partition paths of a derived table for rows with its partition columns."""
    paths = values.select(partition_path(columns)).distinct().collect()
    return sorted(f"{PARTITION}={row[PARTITION]}" for row in paths)


def pruned_paths(step: DataFrame, prune: Prune, relation: str, layout: StoredLayout) -> set[str] | None:
    """Partition paths of a relation that match rows of a step; None: all, because pruning is not proven safe."""
    pairs = dict(prune.columns.get(relation, ()))
    by_name = {own.lower(): source for own, source in pairs.items()}
    if not layout.columns or any(name.lower() not in by_name for name in layout.columns):
        return None
    renamed = step.select(*[F.col(f"`{by_name[name.lower()]}`").alias(name) for name in layout.columns]).distinct()
    if layout.encoded:
        rows = renamed.select(partition_path(layout.columns)).distinct().limit(MAX_VALUES + 1).collect()
        return {f"{PARTITION}={row[0]}" for row in rows} if len(rows) <= MAX_VALUES else None
    texts = renamed.select(*[F.col(f"`{name}`").cast("string").alias(name) for name in layout.columns])
    result = texts.limit(MAX_VALUES + 1).collect()
    # Hudi has special names for NULL and the empty text, and may escape other texts.
    if len(result) > MAX_VALUES or any(value is None or not _PLAIN.fullmatch(value) for row in result for value in row):
        return None
    return {"/".join(f"{name}={row[name]}" for name in layout.columns) for row in result}
