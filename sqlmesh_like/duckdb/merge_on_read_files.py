"""Merge-on-read tables as DuckDB's SQL: base files with the change logs since, or merged file slices.

Owns how each yields a table's rows and their change, and which kind of table is read in which way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sqlmesh_like.duckdb.duck_types import duck_quoted
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.local_files import FILE, ROW, LocalTable, same
from sqlmesh_like.duckdb.merged_slices import MergedSlices, is_last_commit_wins
from sqlmesh_like.hudi.change_log import NotLoggedError
from sqlmesh_like.hudi.commits import Slice
from sqlmesh_like.hudi.logged_slices import LoggedSlices, logged_slices
from sqlmesh_like.hudi.missing_files import SliceFiles, missing_files, slice_files
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, WEIGHT, Column, is_hidden, visible
from sqlmesh_like.plan.history import TableState

_LOG = logging.getLogger(__name__)
_NUMBER = "_sml_number"


@dataclass(frozen=True)
class LocalMergedTable(LocalTable):
    """One merge-on-read table: its base files with the change logs since.

    Without change logs its slices are merged on demand, if the last commit of a key wins in the table.
    """

    merged: MergedSlices

    def rows(self, frontier: str) -> str:
        try:
            return self.logged_rows(frontier)
        except NotLoggedError as error:
            return self._merged_rows(frontier, error)

    def logged_rows(self, frontier: str) -> str:
        """As `rows`, from change logs. Raises NotLoggedError if these are incomplete, and Unproven."""
        slices = self._logged_slices(frontier)
        if not (newest := self._newest(slices)):
            return self._select(slices.bases, frontier)
        whole, changed = (self._select(some, frontier) for some in (slices.whole, slices.changed))
        return (
            f"WITH newest AS MATERIALIZED ({newest}) {whole}"
            f" UNION ALL SELECT o.* FROM ({changed}) AS o ANTI JOIN newest AS n ON {_identical(slices)}"
            f" UNION ALL {_entered('newest')}"
        )

    def shared_rows(self, frontier: str, keep: Callable[[str], str]) -> str:
        """As `rows`; the keys, texts, are compared once, and readers skip the outdated rows by file and number."""
        try:
            slices = self._logged_slices(frontier)
            if not (query := self._newest(slices)):
                return self._select(slices.bases, frontier)
        except NotLoggedError as error:
            return self._merged_rows(frontier, error)
        newest = keep(query)
        whole, placed = self._select(slices.whole, frontier), self._select(slices.changed, frontier, places=True)
        at = f"SELECT {FILE}, {ROW} FROM ({placed}) AS o SEMI JOIN {newest} AS n ON {_identical(slices)}"
        rest = f"SELECT * FROM ({placed}) AS o ANTI JOIN {keep(at)} AS n ON {same(FILE, ROW)}"
        return f"{whole} UNION ALL SELECT * EXCLUDE ({FILE}, {ROW}) FROM ({rest}) UNION ALL {_entered(newest)}"

    def _merged_rows(self, frontier: str, why: NotLoggedError) -> str:
        _LOG.info("%s: file slices are merged: %s", self.uri, why)
        return self._select(self._slices(frontier).values(), frontier)

    def _logged_slices(self, frontier: str) -> LoggedSlices:
        self._require(frontier, None)
        return logged_slices(self.timeline, frontier)

    def _newest(self, slices: LoggedSlices) -> str | None:
        """SELECT of the newest row per key in the logs, with its sign; it replaces the rows of its key in base files.

        None if the logs have no rows. Raises NotLoggedError if they lack columns.
        """
        logs = [log for log in slices.logs if log.rows]
        if not logs:
            return None
        names = {column.name for column in self.schema}
        if not names.issuperset(slices.at) or any(is_hidden(name) and name != KEY for name in names):
            raise NotLoggedError("columns are asked for that change logs lack")
        numbered = (f"SELECT *, {number} AS {_NUMBER} FROM ({self._logged([log])})" for number, log in enumerate(logs))
        identity = ", ".join(map(duck_quoted, (KEY, *slices.at)))
        return (
            f"SELECT * FROM ({' UNION ALL '.join(numbered)}) QUALIFY row_number() OVER"
            f" (PARTITION BY {identity} ORDER BY {_NUMBER} DESC, {WEIGHT} DESC) = 1"
        )

    def _slices(self, frontier: str) -> Mapping[tuple[str, str], Slice]:
        timeline, at = self.timeline, self.timeline.as_of(frontier)
        if not is_last_commit_wins(timeline.properties):
            raise Unproven("a merge-on-read table that merges by an order")
        if timeline.is_archived:
            raise Unproven("slices of a merge-on-read table whose commits are archived")
        return {group: self._slice(group, files) for group, files in slice_files(timeline, at).items()}

    def _slice(self, group: tuple[str, str], files: SliceFiles) -> Slice:
        logs = tuple(files.own_logs())
        if files.base is None:
            raise Unproven("a file slice of log files alone")
        if not logs:
            return Slice(*group, files.base, files.since)
        written = {self.timeline.schema_json(f"{instant}_") for instant in (files.since, *files.log_instants())}
        if len(written) > 1:
            raise Unproven("a file slice of several schemas")
        return Slice(*group, self.merged.path(self.timeline, files.base, logs), files.since)

    def _compared(self, start: str, end: str) -> str:
        """The change by comparing the rows of the slices that commits touched, before and after."""
        touched = set[tuple[str, str]]().union(*(commit.touched for commit in self.timeline.between(start, end)))
        for frontier in (start, end):
            self._require(frontier, touched)
        old, new = (f"({self._select(self._of(at, touched).values(), at)})" for at in (start, end))
        parts = (f"SELECT *, CAST({weight} AS BIGINT) AS {WEIGHT} FROM (FROM {some} EXCEPT ALL FROM {other})"
                 for weight, some, other in ((1, new, old), (-1, old, new)))  # fmt: skip
        return " UNION ALL ".join(parts)

    def _require(self, frontier: str, groups: Collection[tuple[str, str]] | None) -> None:
        timeline = self.timeline
        if not timeline.holds(frontier) or not timeline.is_settled(frontier):
            raise Unproven("a frontier that is no longer there")
        if missing_files(timeline, frontier, groups):
            raise Unproven("files that are no longer there")


def local_table(state: TableState, merged: MergedSlices, *, hidden: bool) -> LocalTable | None:
    """A table (`hidden`: with our hidden columns) as DuckDB reads it; None if it cannot."""
    if state.kind not in ("cow", "mor") or state.frontier is None or not folder(state.uri).is_local:
        return None
    shown = (state.stored if hidden else state.schema) or ()
    columns = shown if hidden else visible(shown)
    kept = [c for c in columns if not c.name.startswith("_hoodie_") and c.name != KEY]
    timeline, schema = Timeline(state.uri), (*kept, Column(KEY, "string"))
    if state.kind == "cow":
        return LocalTable(state.uri, timeline, schema)
    return LocalMergedTable(state.uri, timeline, schema, merged)


def _identical(slices: LoggedSlices) -> str:
    names = map(duck_quoted, (KEY, *slices.at))
    return " AND ".join(f"o.{name} IS NOT DISTINCT FROM n.{name}" for name in names)


def _entered(newest: str) -> str:
    return f"SELECT * EXCLUDE ({WEIGHT}, {_NUMBER}) FROM {newest} WHERE {WEIGHT} > 0"
