"""Merge-on-read tables as DuckDB's SQL: base files with the change logs since, or merged file slices.

Owns the SQL of both; `hudi.reading` says which of them a table is read by.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from sqlmesh_like.duckdb.duck_types import duck_quoted
from sqlmesh_like.duckdb.local_files import FILE, FILE_ROW, LocalTable, is_plain, same
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.hudi.reading.change_plan import Comparison
from sqlmesh_like.hudi.reading.recent_timelines import timeline_at
from sqlmesh_like.hudi.reading.rows_plan import BaseFiles, Overlay, RowKey, SliceMerge, Source
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.names import KEY, WEIGHT, Column, Schema, visible
from sqlmesh_like.plan.history import TableState

_LOG = logging.getLogger(__name__)
_NUMBER = "_sml_number"


@dataclass(frozen=True)
class LocalMergedTable(LocalTable):
    """One merge-on-read table: its base files with the change logs since.

    Without change logs its slices are merged on demand, if the last commit of a key wins in the table.
    """

    merged: MergedSlices

    @property
    def proven(self) -> Schema:
        """Structs of log files, which hudi-rs may merge, are not compared with Spark's."""
        return tuple(Column(c.name, c.type if is_plain(c.type) else None) for c in self.schema)

    def shared_rows(self, frontier: str, keep: Callable[[str], str]) -> str:
        """As `rows`; the keys, texts, are compared once, and readers skip the outdated rows by file and number."""
        plan = self.rows_plan(frontier)
        if not isinstance(plan.source, Overlay):
            return self.select_rows(plan)
        overlay, key = plan.source, plan.key
        newest = keep(self._newest(overlay))
        whole, placed = self._select(overlay.whole, key), self._select(overlay.changed, key, positions=True)
        at = f"SELECT {FILE}, {FILE_ROW} FROM ({placed}) AS o SEMI JOIN {newest} AS n ON {_identical(overlay)}"
        rest = f"SELECT * FROM ({placed}) AS o ANTI JOIN {keep(at)} AS n ON {same(FILE, FILE_ROW)}"
        return (
            f"{whole} UNION ALL SELECT * EXCLUDE ({FILE}, {FILE_ROW}) FROM ({rest}) UNION ALL {_entering_rows(newest)}"
        )

    def _select_source(self, source: Source, key: RowKey) -> str:
        match source:
            case BaseFiles():
                return self._select(source.slices, key)
            case Overlay():
                whole, changed = (self._select(some, key) for some in (source.whole, source.changed))
                return (
                    f"WITH newest AS MATERIALIZED ({self._newest(source)}) {whole}"
                    f" UNION ALL SELECT o.* FROM ({changed}) AS o ANTI JOIN newest AS n ON {_identical(source)}"
                    f" UNION ALL {_entering_rows('newest')}"
                )
            case SliceMerge():
                _LOG.info("%s: file slices are merged: %s", self.uri, source.why)
                return self._select(self.merged.slices(self.timeline, source), key)

    def _newest(self, overlay: Overlay) -> str:
        """SELECT of the newest row per identity in the logs, with its sign."""
        numbered = (
            f"SELECT *, {number} AS {_NUMBER} FROM ({self._select_logs([log])})"
            for number, log in enumerate(overlay.logs)
        )
        identity = ", ".join(map(duck_quoted, overlay.identity))
        return (
            f"SELECT * FROM ({' UNION ALL '.join(numbered)}) QUALIFY row_number() OVER"
            f" (PARTITION BY {identity} ORDER BY {_NUMBER} DESC, {WEIGHT} DESC) = 1"
        )

    def _select_difference(self, plan: Comparison) -> str:
        # By content, whatever numbers say: hudi-rs returns visible values as Hudi does, which is shown by tests.
        old, new = (f"({self._select_source(each, plan.key)})" for each in (plan.old, plan.new))
        parts = (f"SELECT *, CAST({weight} AS BIGINT) AS {WEIGHT} FROM (FROM {some} EXCEPT ALL FROM {other})"
                 for weight, some, other in ((1, new, old), (-1, old, new)))  # fmt: skip
        return " UNION ALL ".join(parts)


def local_table(state: TableState, merged: MergedSlices, *, hidden: bool) -> LocalTable | None:
    """A table (`hidden`: with our hidden columns) as DuckDB reads it; None if it cannot."""
    if state.kind not in ("cow", "mor") or state.frontier is None or not folder(state.uri).is_in_reach:
        return None
    shown = (state.stored if hidden else state.schema) or ()
    columns = shown if hidden else visible(shown)
    kept = [c for c in columns if not c.name.startswith("_hoodie_") and c.name != KEY]
    timeline, schema = timeline_at(state.uri, state.frontier), (*kept, Column(KEY, "string"))
    if state.kind == "cow":
        return LocalTable(state.uri, timeline, schema)
    return LocalMergedTable(state.uri, timeline, schema, merged)


def _identical(overlay: Overlay) -> str:
    names = map(duck_quoted, overlay.identity)
    return " AND ".join(f"o.{name} IS NOT DISTINCT FROM n.{name}" for name in names)


def _entering_rows(newest: str) -> str:
    return f"SELECT * EXCLUDE ({WEIGHT}, {_NUMBER}) FROM {newest} WHERE {WEIGHT} > 0"
