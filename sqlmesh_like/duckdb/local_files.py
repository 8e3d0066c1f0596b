"""Hudi tables as DuckDB's SQL over their Parquet files. Owns which files hold a table's rows, and those of its change.

Local tables only: the timeline names their files. Which files these are, and which rows a range of commits changed,
follows the same rules as in `cow_change_feed`, which gives the reasons.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.duckdb.duck_types import duck_quoted, duck_type
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.hudi.change_log import ChangeLog, NotLoggedError, logged_columns, logs_between
from sqlmesh_like.hudi.commits import Commit, Slice
from sqlmesh_like.hudi.file_schemas import paths_by_schema, spark_schema_of
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import COMMIT_TIME, KEY, PARTITION_PATH, RECORD_KEY, SEQUENCE, WEIGHT, Column, Schema
from sqlmesh_like.sql_text import standard_literal

_LOG = logging.getLogger(__name__)
FILE, ROW = "_sml_file", "_sml_row"
"""Where a row is stored: its file, and its number in it."""
_WIDER = {
    "tinyint": ("smallint", "int", "bigint"), "smallint": ("int", "bigint"), "int": ("bigint", "double"),
}  # fmt: skip
"""Types in older files whose values a cast to these newer types preserves."""
PLAIN = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "date", "timestamp")


@dataclass(frozen=True)
class LocalTable:
    """One copy-on-write table. `schema` holds the columns that a program reads, including `_sml_key`."""

    uri: str
    timeline: Timeline
    schema: Schema

    @property
    def change_schema(self) -> Schema:
        return (*self.schema, Column(WEIGHT, "bigint"))

    def rows(self, frontier: str) -> str:
        """SELECT of the rows as of a frontier. Raises Unproven if it or files are gone, or types do not fit."""
        self._require(frontier, None)
        return self._select(self._slices(frontier).values(), frontier)

    def shared_rows(self, frontier: str, keep: Callable[[str], str]) -> str:  # noqa: ARG002 (see `LocalMergedTable`)
        """As `rows`, for several readers. `keep` creates a table from a SELECT and returns its name."""
        return self.rows(frontier)

    def change(self, start: str, end: str) -> str:
        """SELECT of the signed rows between two frontiers; a row rewritten without a change has both signs."""
        try:
            return self._logged(logs_between(self.timeline, start, end))
        except NotLoggedError as error:
            _LOG.info("%s: file slices are compared: %s", self.uri, error)
            return self._compared(start, end)

    def _logged(self, logs: Collection[ChangeLog]) -> str:
        """The change according to the change logs of the commits."""
        by_columns: dict[str, list[str]] = defaultdict(list)
        for log in logs:
            if log.rows:
                by_columns[logged_columns(self.timeline, log)] += [file.path for file in log.files]
        parts = [self._read(self._logged_items(columns), paths) for columns, paths in by_columns.items()]
        return " UNION ALL ".join(parts) if parts else _no_rows(self.change_schema)

    def _logged_items(self, columns: str) -> list[str]:
        """SELECT items of `change_schema` over log files with these columns."""
        types = {column.name: column.type or "" for column in spark_schema_of(columns)}
        if not {KEY, WEIGHT} <= types.keys():
            raise NotLoggedError("a change log has other columns than this version writes")
        return [self._item(column, types, "") for column in self.change_schema]

    def _compared(self, start: str, end: str) -> str:
        """The change by comparing the file slices that commits touched, before and after."""
        commits = self.timeline.between(start, end)
        touched = set[tuple[str, str]]().union(*(commit.touched for commit in commits))
        for frontier in (start, end):
            self._require(frontier, touched)
        old, new = (self._of(at, touched) for at in (start, end))
        shown = ", ".join(duck_quoted(column.name) for column in self.schema)
        is_new = f"{COMMIT_TIME} > '{self.timeline.standing(start)}'"
        added = f"SELECT * FROM ({self._select(new.values(), end, meta=True)}) WHERE {is_new}"
        kept = self._select(new.values(), end, meta=True)
        unsure = _where_rows_may_leave(commits)
        sure = [result for group, result in old.items() if unsure is not None and group not in unsure]
        rest = [result for group, result in old.items() if unsure is None or group in unsure]
        parts = [f"SELECT {shown}, CAST(1 AS BIGINT) AS {WEIGHT} FROM added"]
        if sure:
            # In these no row can have left unless a newer one of the same key replaced it.
            parts.append(self._removed(shown, sure, end, f"SEMI JOIN added AS n ON {same(RECORD_KEY, PARTITION_PATH)}"))
        if rest:
            parts.append(self._removed(shown, rest, end, f"ANTI JOIN kept AS n ON {same(RECORD_KEY, SEQUENCE)}"))
        columns = f"SELECT {RECORD_KEY}, {SEQUENCE} FROM ({kept})"
        return f"WITH added AS MATERIALIZED ({added}), kept AS ({columns}) {' UNION ALL '.join(parts)}"

    def _removed(self, shown: str, slices: Iterable[Slice], end: str, join: str) -> str:
        old = self._select(slices, end, meta=True)
        return f"SELECT {shown}, CAST(-1 AS BIGINT) FROM ({old}) AS o {join}"

    def _of(self, frontier: str, touched: Collection[tuple[str, str]]) -> dict[tuple[str, str], Slice]:
        return {group: file_slice for group, file_slice in self._slices(frontier).items() if group in touched}

    def _slices(self, frontier: str) -> Mapping[tuple[str, str], Slice]:
        return self.timeline.slices(frontier)

    def _select(self, slices: Iterable[Slice], frontier: str, *, meta: bool = False, places: bool = False) -> str:
        """Rows of base files; files with different writer schemas are read separately and cast."""
        extra = (COMMIT_TIME, SEQUENCE, RECORD_KEY, PARTITION_PATH) if meta else ()
        at = (FILE, f"file_row_number AS {ROW}") if places else ()
        options = f", filename = '{FILE}', file_row_number = true" if places else ""
        parts = []
        for written, paths in paths_by_schema(self.timeline, slices).items():
            types = {column.name: column.type or "" for column in written}
            items = [self._item(column, types, frontier) for column in self.schema]
            parts.append(self._read([*items, *extra, *at], paths, options))
        if parts:
            return " UNION ALL ".join(parts)
        added = (
            *(Column(name, "string") for name in extra),
            *((Column(FILE, "string"), Column(ROW, "bigint")) * places),
        )
        return _no_rows((*self.schema, *added))

    def _read(self, items: Collection[str], paths: Collection[str], options: str = "") -> str:
        # A merged slice has an absolute path. DuckDB estimates the size of all files from the first: if that were a
        # small one, a join would build its hash table from the whole table, not from the few keys that are looked up.
        whole = [path if path.startswith("/") else f"{folder(self.uri).path}/{path}" for path in sorted(paths)]
        whole.sort(key=_bytes_of, reverse=True)
        listed = ", ".join(map(standard_literal, whole))
        return f"SELECT {', '.join(items)} FROM read_parquet([{listed}], hive_partitioning = false{options})"

    def _item(self, column: Column, written: dict[str, str], frontier: str) -> str:
        name, type_ = duck_quoted(column.name), column.type or ""
        if column.name == KEY and KEY not in written:
            return f"{self._row_key(frontier)} AS {name}"
        if column.name not in written:
            return f"CAST(NULL AS {_duck(type_)}) AS {name}"
        if not _keeps_value(written[column.name], type_):
            raise Unproven(f"a column of {written[column.name]} that became {type_}")
        if type_ == "double":
            return f"CAST({name} AS DOUBLE) + 0 AS {name}"  # see `exact_sql`: no negative zero
        is_cast = type_ in PLAIN or type_.startswith("decimal")
        return f"CAST({name} AS {duck_type(type_)}) AS {name}" if is_cast else name

    def _row_key(self, frontier: str) -> str:
        """SQL of the row key, as in `cow_change_feed`."""
        path = f"coalesce({PARTITION_PATH}, '')"
        number = f" || '/' || {SEQUENCE}" if self.timeline.repeats_keys(frontier) else ""
        return f"CAST(length({path}) AS VARCHAR) || '/' || {path} || '/' || {RECORD_KEY}{number}"

    def _require(self, frontier: str, groups: Collection[tuple[str, str]] | None) -> None:
        if not self.timeline.holds(frontier) or self.timeline.missing(frontier, groups):
            raise Unproven("a frontier or files that are no longer there")


def _no_rows(schema: Schema) -> str:
    items = [f"CAST(NULL AS {duck_type(c.type or 'string')}) AS {duck_quoted(c.name)}" for c in schema]
    return f"SELECT {', '.join(items)} WHERE false"


def _where_rows_may_leave(commits: Iterable[Commit]) -> set[tuple[str, str]] | None:
    """File groups that rows may have left without a newer row of their key; None if any may be such."""
    entries: set[tuple[str, str]] = set()
    for commit in commits:
        if commit.operation != "UPSERT" or commit.replaced:
            return None
        entries |= {(write.partition, write.file_id) for write in commit.writes if write.deletes}
    return entries


def _bytes_of(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0  # the read will report that it is missing


def _keeps_value(written: str, wanted: str) -> bool:
    return written == wanted or wanted in _WIDER.get(written, ())


def _duck(type_: str) -> str:
    if type_ not in PLAIN and not type_.startswith("decimal"):
        raise Unproven(f"a column of {type_} that older files lack")
    return duck_type(type_)


def same(*names: str) -> str:
    return " AND ".join(f"o.{name} = n.{name}" for name in names)
