"""Files that other writers made, whose values only Spark reads as they are meant. Owns how these are recognized.

A writer with `spark.sql.parquet.datetimeRebaseModeInWrite: LEGACY`, and Spark before 3.0, counts days before 1582-10-15
in the Julian calendar: 0001-01-01 is two days off for any other reader. A text that is not marked as one is bytes, and
of timestamps as INT96 pyarrow knows the years 1677 to 2262.
Source: `DataSourceUtils.datetimeRebaseSpec` of Spark 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlmesh_like.hudi.commits import Slice
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, Column, Schema

_MARKS = ("org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96")
_VERSION = "org.apache.spark.version"
_IN_CALENDAR = re.compile(r"\b(date|timestamp)\b")
_OF_TYPES = re.compile(r"\b(date|timestamp|string|array)\b")


def foreign_reason(timeline: Timeline, slices: Iterable[Slice], columns: Schema) -> str | None:
    """Why only Spark reads these columns of some of the files; None: any reader does.

    One file is looked at for each commit that is not this project's, as a commit's files have one writer.
    """
    paths = {each.instant: each.path for each in slices}
    is_read = any(_OF_TYPES.search(column.type or "") for column in columns)
    if not (paths and is_read):
        return None
    reasons = (_reason(timeline, paths[instant], columns) for instant in _foreign_instants(timeline, paths))
    return next((reason for reason in reasons if reason), None)


def _foreign_instants(timeline: Timeline, instants: Iterable[str]) -> list[str]:
    """Those of other writers. Of commits that are archived it is not known, but for tables with this project's key."""
    is_ours: dict[str, bool] = {}
    missing = set(instants)
    for commit in timeline.newest_first():
        if not missing:
            break
        if commit.instant.requested in missing:
            missing.remove(commit.instant.requested)
            is_ours[commit.instant.requested] = commit.is_ours
    if missing:
        has_key = f'"{KEY}"' in (timeline.schema_json(max(missing | is_ours.keys())) or "")
        is_ours |= dict.fromkeys(missing, has_key)
    return sorted(instant for instant, ours in is_ours.items() if not ours)


def _reason(timeline: Timeline, path: str, columns: Schema) -> str | None:
    if any(_IN_CALENDAR.search(column.type or "") for column in columns) and is_legacy(timeline.footer(path)):
        return "dates before 1582 in the Julian calendar"
    stored = {field.name.lower(): str(field.type) for field in timeline.file_columns(path)}
    reasons = (_misread(column, stored.get(column.name.lower(), "")) for column in columns)
    return next((reason for reason in reasons if reason), None)


def _misread(column: Column, stored: str) -> str | None:
    """Why a column is misread by others than Spark where pyarrow gives it the type `stored`.

    >>> _misread(Column("a", "array<int>"), "list<array: int32 not null>")
    'arrays of a in the layout of two levels'
    >>> _misread(Column("a", "array<timestamp>"), "list<element: timestamp[us, tz=UTC]>") is None
    True
    """
    types = set(re.findall(r"\w+", column.type or ""))
    if "string" in types and "binary" not in types and "binary" in stored:
        return f"texts of {column.name} that are not marked as texts"
    if "timestamp" in types and "[ns" in stored:
        return f"timestamps of {column.name} as INT96, beyond the years that pyarrow knows"
    if "array" in types and re.search(r"list<(array|\w+_tuple)\b", stored):
        return f"arrays of {column.name} in the layout of two levels"
    return None


def is_legacy(footer: Mapping[str, str]) -> bool:
    """Whether a file's dates before 1582 may be counted in the Julian calendar.

    >>> is_legacy({"org.apache.spark.version": "2.4.8"}), is_legacy({"org.apache.spark.version": "3.5.9"})
    (True, False)
    """
    version = footer.get(_VERSION)
    return version is not None and (int(version.partition(".")[0]) < 3 or any(mark in footer for mark in _MARKS))
