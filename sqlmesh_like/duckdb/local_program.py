"""Delta programs in this process, by DuckDB over the tables' Parquet files. Owns when that is possible, and how.

A program over a small change is many small joins: Spark spends its time on planning them and starting jobs. If driver
and tables are on one machine, DuckDB does the same in milliseconds.

A program runs here if each of its forms is proven (`exact_sql`) and its tables are local files; for merge-on-read
tables, `merge_on_read_files` decides. In all other cases, and if anything fails on the way, there is no result, and
Spark does all of the work.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from threading import Lock

import duckdb
from sqlglot import exp

from sqlmesh_like.delta.affected_keys import key_columns
from sqlmesh_like.delta.clock_boundary import at_clocks
from sqlmesh_like.delta.emptiness import without_empty
from sqlmesh_like.delta.partitions import AFFECTED
from sqlmesh_like.delta.program import (
    TARGET,
    DeltaProgram,
    ProgramStep,
    Prune,
    RescanProgram,
    name_of,
    split_relation,
)
from sqlmesh_like.duckdb.duck_connection import file_worker
from sqlmesh_like.duckdb.duck_types import duck_quoted, duck_type, stored_type
from sqlmesh_like.duckdb.exact_sql import SETUP, ExactQuery, Unproven, exact
from sqlmesh_like.duckdb.local_files import PLAIN, LocalTable
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.duckdb.shared_lookups import LookupTable, SharedLookups, lookup_pairs, shared_columns
from sqlmesh_like.hudi.change_log import ChangeLog, new_log
from sqlmesh_like.names import IS_DELETED, KEY, WEIGHT, Column, Schema, is_hidden
from sqlmesh_like.plan.model_plan import SMALL_INPUT, InputVersion, PlannedModel
from sqlmesh_like.run.ports import NamedColumns
from sqlmesh_like.sql_text import standard_literal

_LOG = logging.getLogger(__name__)
_MEMORY_SHARE = "25%"


@dataclass(frozen=True)
class LocalActions:
    """What a program does to its table: a Parquet file with one action per key, its columns, and the counts."""

    path: Path
    schema: Schema
    upserts: int
    deletes: int
    log: ChangeLog | None = None  # the change log that the commit may name


NOTHING = LocalActions(Path(), (), 0, 0)


class LocalPrograms:
    """Runs the programs of one run of `sml`; data that several of them need is read once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._db: duckdb.DuckDBPyConnection | None = None
        self._folder: Path | None = None
        self._changes: dict[object, tuple[str, int]] = {}
        self._rows: dict[object, str] = {}
        self._kept = 0
        self._count = 0
        self._merged = MergedSlices()
        self.lookups = SharedLookups()

    def release(self) -> None:
        """Forget everything that was read."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._db = self._folder = None
            self._changes.clear()
            self._rows.clear()
            self._merged.forget()
            self.lookups.forget()

    def actions(
        self, planned: PlannedModel, program: DeltaProgram, named: NamedColumns, *, logged: bool
    ) -> LocalActions | None:
        """The actions of a program; None if Spark has to compute them. `logged`: also write a log of the change."""
        return self._tried(planned, lambda run: run.actions(program), named, logged=logged)

    def rescanned(self, planned: PlannedModel, rescan: RescanProgram, *, logged: bool) -> LocalActions | None:
        """The actions by which recomputed partitions differ from the stored ones; None if Spark has to compute them."""
        return self._tried(planned, lambda run: run.rescanned(rescan), {}, logged=logged)

    def recomputed(self, planned: PlannedModel, build: exp.Query, *, logged: bool) -> LocalActions | None:
        """The actions by which the whole query differs from the stored table; None if Spark has to compute them."""
        return self._tried(planned, lambda run: run.recomputed(build), {}, logged=logged)

    def _tried(
        self,
        planned: PlannedModel,
        work: Callable[[_Run], LocalActions | None],
        named: NamedColumns,
        *,
        logged: bool,
    ) -> LocalActions | None:
        tables = _tables_of(planned, self._merged)
        if tables is None:
            return None
        try:
            with closing(self._cursor()) as db:
                return work(_Run(self, db, planned, tables, logged, named))
        except (Unproven, duckdb.Error, OSError) as error:
            # It may fail in Spark as well, which then reports the reason.
            _LOG.debug("%s is computed by Spark: %s", planned.compiled.model.unique_id, error)
            return None

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            if self._db is None:
                self._db = file_worker(_MEMORY_SHARE, keeps_order=False)
                for statement in SETUP:
                    self._db.execute(statement)
                self._folder = Path(tempfile.mkdtemp(prefix="sml-"))
            return self._db.cursor()

    def new_file(self) -> Path:
        with self._lock:
            assert self._folder is not None
            self._count += 1
            return self._folder / f"{self._count}.parquet"

    def change(self, db: duckdb.DuckDBPyConnection, table: LocalTable, start: str, end: str) -> tuple[str, int]:
        """The name of the table with the signed rows between two frontiers, and their number."""
        with self._lock:
            known = (table.uri, start, end)
            if known not in self._changes:
                name = f"_sml_change_{len(self._changes)}"
                count = db.execute(f"CREATE TABLE {name} AS {table.change(start, end)}").fetchall()
                self._changes[known] = (name, int(count[0][0]))
            return self._changes[known]

    def rows(self, db: duckdb.DuckDBPyConnection, table: LocalTable, frontier: str) -> str:
        """SELECT of the rows of a table as of a frontier."""

        def keep(query: str) -> str:
            self._kept += 1
            db.execute(f"CREATE TABLE _sml_kept_{self._kept} AS {query}")
            return f"_sml_kept_{self._kept}"

        with self._lock:
            known = (table.uri, frontier, table.schema)
            if known not in self._rows:
                self._rows[known] = table.shared_rows(frontier, keep)
            return self._rows[known]


def _tables_of(planned: PlannedModel, merged: MergedSlices) -> Mapping[str, LocalTable] | None:
    """The inputs by unique id and the target as `this`; None if one of them cannot be read here."""
    entries = {TARGET: local_table(planned.target, merged, hidden=True)}
    for item in planned.inputs:
        entries[item.ref.unique_id] = local_table(item.state, merged, hidden=False) if item.end is not None else None
    readable = {name: table for name, table in entries.items() if table is not None}
    return readable if len(readable) == len(entries) else None


@dataclass
class _Run:
    """One program on a connection of its own, whose temporary tables are its steps."""

    programs: LocalPrograms
    db: duckdb.DuckDBPyConnection
    planned: PlannedModel
    tables: Mapping[str, LocalTable]
    logged: bool
    named: NamedColumns
    pending: dict[str, ProgramStep] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)
    steps: dict[str, Schema] = field(default_factory=dict)
    views: dict[tuple[str, str], tuple[str, Schema]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for item in self.planned.inputs:
            if item.start == item.end or self._change_of(item)[1] == 0:
                self.empty.add(f"changes.{item.ref.unique_id}")

    def actions(self, program: DeltaProgram) -> LocalActions | None:
        for step in program.steps:
            self._add(step)
        return self._written(program.result) if program.steps and program.result in self.steps else NOTHING

    def rescanned(self, rescan: RescanProgram) -> LocalActions | None:
        if self._keep(AFFECTED, self._exact(self._at_clocks(rescan.affected))) == 0:
            return NOTHING
        names = key_columns(len(rescan.partition_by))
        pairs = zip(rescan.partition_by, names, strict=True)
        same = " AND ".join(f"t.{duck_quoted(own)} IS NOT DISTINCT FROM a.{duck_quoted(name)}" for own, name in pairs)
        return self._replaced(rescan.query, f"SEMI JOIN {AFFECTED} AS a ON {same}")

    def recomputed(self, build: exp.Query) -> LocalActions | None:
        return self._replaced(build, "")

    def _replaced(self, query: exp.Query, part: str) -> LocalActions | None:
        """The actions that replace a part of the table by the rows of a query.

        `part` is a join that restricts the table `t` to this part; empty for all of it.
        """
        fresh = self._exact(self._at_clocks(query))
        target, stored = self._view("target", TARGET)
        if {column.name for column in fresh.columns} != {column.name for column in stored}:
            raise Unproven("other columns than the stored ones")
        shown = ", ".join(duck_quoted(column.name) for column in fresh.columns)
        old = f"SELECT {shown}, CAST(-1 AS BIGINT) AS {WEIGHT} FROM {target} AS t {part}"
        new = f"SELECT {shown}, CAST(1 AS BIGINT) FROM ({fresh.sql})"
        signed = ExactQuery(f"{old} UNION ALL {new}", (*fresh.columns, Column(WEIGHT, "bigint")))
        return self._written("_sml_replaced") if self._keep("_sml_replaced", signed) else NOTHING

    def _written(self, result: str) -> LocalActions | None:
        """Net signed rows to one action per key (and partition), in a file; None if Spark has to do it."""
        types = {column.name: column.type for column in self.planned.target.stored or ()}
        columns = tuple(column for column in self.steps[result] if column.name != WEIGHT)
        if any(types.get(column.name) != stored_type(column.type) for column in columns):
            return None  # the table will have other types after this commit
        parts = (KEY, *self.planned.compiled.model.config.partition_by)
        keys = ", ".join(duck_quoted(name) for name in parts)
        same = " AND ".join(f"n.{duck_quoted(name)} IS NOT DISTINCT FROM o.{duck_quoted(name)}" for name in parts)
        repeated = f"SELECT 1 FROM {result} GROUP BY {keys}, {WEIGHT} > 0 HAVING count(*) > 1 OR max(abs({WEIGHT})) > 1"
        if self.db.execute(f"{repeated} LIMIT 1").fetchone():
            return None
        differs = " OR ".join(f"n.{duck_quoted(c.name)} IS DISTINCT FROM o.{duck_quoted(c.name)}" for c in columns)
        old, new = (f"(SELECT * FROM {result} WHERE {WEIGHT} {sign} 0)" for sign in "<>")
        items = {
            tag: ", ".join(f"{tag}.{duck_quoted(c.name)} AS {duck_quoted(c.name)}" for c in columns) for tag in "no"
        }
        entering = (
            f"SELECT {items['n']}, false AS {IS_DELETED} FROM {new} AS n LEFT JOIN {old} AS o ON {same} WHERE {differs}"
        )
        leaving = f"SELECT {items['o']}, true AS {IS_DELETED} FROM {old} AS o ANTI JOIN {new} AS n ON {same}"
        self.db.execute(f"CREATE TEMP TABLE _sml_actions AS {entering} UNION ALL {leaving}")
        counts = self.db.execute(f"SELECT count(*), count(*) FILTER ({IS_DELETED}) FROM _sml_actions").fetchall()
        total, deletes = map(int, counts[0])
        if total > deletes and self._breaks_unique_key():
            return None
        path = self.programs.new_file()
        if total:
            casts = ", ".join(_parquet_item(column) for column in columns)
            actions = f"SELECT {casts}, {IS_DELETED} FROM _sml_actions"
            self.db.execute(f"COPY ({actions}) TO {standard_literal(str(path))} (FORMAT parquet)")
        log = self._log(columns, same, old) if total and self.logged else None
        return LocalActions(path, columns, total - deletes, deletes, log)

    def _log(self, columns: Schema, same: str, old: str) -> ChangeLog | None:
        """Write the log of the actions, as `logged_changes` does; None if the table merges by another order."""
        frontier, timeline = self.planned.target.frontier, self.tables[TARGET].timeline
        if frontier is None or timeline.properties.get("hoodie.record.merge.mode") != "COMMIT_TIME_ORDERING":
            return None
        shown = tuple(Column(c.name, stored_type(c.type)) for c in columns if c.name == KEY or not is_hidden(c.name))
        items = {tag: ", ".join(_parquet_item(column, tag) for column in shown) for tag in "ao"}
        leaving = f"SELECT {items['o']}, CAST(-1 AS BIGINT) AS {WEIGHT} FROM {old} AS o"
        left = f"{leaving} SEMI JOIN _sml_actions AS n ON {same}"
        entered = f"SELECT {items['a']}, CAST(1 AS BIGINT) FROM _sml_actions AS a WHERE NOT {IS_DELETED}"
        return new_log(
            timeline, frontier, (*shown, Column(WEIGHT, "bigint")),
            lambda path, metadata: self._copied(f"{left} UNION ALL {entered}", path, metadata),
        )  # fmt: skip

    def _copied(self, query: str, path: str, metadata: Mapping[str, str]) -> int:
        said = ", ".join(f"{standard_literal(name)}: {standard_literal(value)}" for name, value in metadata.items())
        options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{said}}}"
        return int(self.db.execute(f"COPY ({query}) TO {standard_literal(path)} ({options})").fetchall()[0][0])

    def _breaks_unique_key(self) -> bool:
        """Whether a declared key of an entering row is NULL, or repeats among entering and staying rows."""
        names = self.planned.compiled.model.config.unique_key
        is_key = self.planned.compiled.model.author_strategy in (None, "merge")
        if not names or not is_key:
            return False
        own = ", ".join(duck_quoted(name) for name in names)
        target, _ = self._view("target", TARGET)
        entering = f"SELECT {own}, true AS is_new FROM _sml_actions WHERE NOT {IS_DELETED}"
        staying = f"SELECT {own}, false FROM {target} AS t ANTI JOIN _sml_actions AS a ON t.{KEY} = a.{KEY}"
        nulls = " OR ".join(f"{duck_quoted(name)} IS NULL" for name in names)
        bad = f"HAVING bool_or(is_new) AND (count(*) > 1 OR bool_or({nulls}))"
        return self.db.execute(
            f"SELECT 1 FROM ({entering} UNION ALL {staying}) GROUP BY {own} {bad} LIMIT 1"
        ).fetchone() is not None  # fmt: skip

    def _add(self, step: ProgramStep) -> None:
        live = None
        if step.unless_empty not in self.empty:
            live = without_empty(self._at_clocks(step.query), lambda table: name_of(table) in self.empty)
        if live is None:
            self.empty.add(step.name)
            self.pending[step.name] = step
            return
        for name in _read_by(live):
            self._require(name)
        if self._keep(step.name, self._exact(live, step.prunes)) == 0:
            self.empty.add(step.name)

    def _require(self, name: str) -> None:
        """Create a skipped step as an empty table if it is read all the same, by an aggregate or an outer join."""
        step = self.pending.pop(name, None)
        if step is None:
            return
        for below in _read_by(step.query):
            self._require(below)
        made = self._exact(self._at_clocks(step.query))
        self._keep(name, ExactQuery(f"SELECT * FROM ({made.sql}) LIMIT 0", made.columns))

    def _keep(self, name: str, query: ExactQuery) -> int:
        count = self.db.execute(f"CREATE TEMP TABLE {duck_quoted(name)} AS {query.sql}").fetchall()
        self.steps[name] = query.columns
        return int(count[0][0])

    def _exact(self, query: exp.Query, prunes: Sequence[Prune] = ()) -> ExactQuery:
        """The query for DuckDB, over views; `prunes` bound the rows that it reads from its input if it has only one."""
        holder = exp.Subquery(this=query)
        tables = [(table, outside) for table in holder.find_all(exp.Table) if (outside := split_relation(table))]
        for table, outside in tables:
            shared = (
                self._looked_up(outside[1], prunes, query) if outside[0] == "current" and len(tables) == 1 else None
            )
            table.replace(exp.table_(shared or self._view(*outside)[0], alias=table.alias or None))
        return exact(holder.this, self._columns)

    @cached_property
    def _names(self) -> frozenset[str]:
        """Columns (lower case) that the model's own programs name."""
        queries = self.planned.compiled.table.queries
        return frozenset(column.name.lower() for query in queries for column in query.find_all(exp.Column))

    def _looked_up(self, name: str, prunes: Sequence[Prune], query: exp.Query) -> str | None:
        """The view of an input's rows that a step may need, shared by all steps; None if the whole input is read."""
        item, table = self._input(name), self.tables[name]
        pairs = lookup_pairs(prunes, name, table.schema, self.steps) if _is_large(item) else None
        if pairs is None or item.end is None or query.find(exp.Star):
            return None
        named = {column.name.lower() for column in query.find_all(exp.Column)}
        needed = [column.name for column in table.schema if column.name.lower() in named]
        columns = shared_columns(table.schema, {*(self.named.get(name) or ()), *self._names})
        select = f"SELECT * FROM {self._view('current', name)[0]}"
        wanted = LookupTable((table.uri, item.end), select, frozenset(needed), columns)
        rows = self.programs.lookups.rows(self.db, wanted, *pairs)
        if rows is None:
            return None
        view, schema = f"_sml_relation_{len(self.views)}", tuple(c for c in table.schema if c.name in columns)
        self.db.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM {rows}")
        self.views[rows, view] = (view, schema)
        return view

    def _columns(self, table: exp.Table) -> Schema:
        known = dict(self.views.values())
        return known[table.name] if table.name in known else self.steps[table.name]

    def _view(self, role: str, name: str) -> tuple[str, Schema]:
        """The view of an outside relation, and its columns."""
        if (role, name) not in self.views:
            view = f"_sml_relation_{len(self.views)}"
            table = self.tables[name]
            if role == "changes":
                text, schema = f"SELECT * FROM {self._change_of(self._input(name))[0]}", table.change_schema
            else:
                frontier = self.planned.target.frontier if role == "target" else self._input(name).end
                assert frontier is not None
                text, schema = self.programs.rows(self.db, table, frontier), table.schema
            self.db.execute(f"CREATE TEMP VIEW {view} AS {text}")
            self.views[role, name] = (view, schema)
        return self.views[role, name]

    def _change_of(self, item: InputVersion) -> tuple[str, int]:
        assert item.start is not None and item.end is not None
        return self.programs.change(self.db, self.tables[item.ref.unique_id], item.start, item.end)

    def _input(self, unique_id: str) -> InputVersion:
        return next(item for item in self.planned.inputs if item.ref.unique_id == unique_id)

    def _at_clocks(self, query: exp.Query) -> exp.Query:
        record = self.planned.target.record
        then = datetime.fromisoformat(record.now) if record else None
        return at_clocks(query, self.planned.now, then)


def _is_large(item: InputVersion) -> bool:
    return item.volume is not None and item.volume.bytes > SMALL_INPUT


def _read_by(query: exp.Expr) -> list[str]:
    return list(dict.fromkeys(name_of(table) for table in query.find_all(exp.Table)))


def _parquet_item(column: Column, table: str = "_sml_actions") -> str:
    """A SELECT item for a column of a file that Spark reads back: timestamps are UTC. Raises Unproven."""
    if column.type not in PLAIN and not (column.type or "").startswith("decimal"):
        raise Unproven(f"a column of {column.type}")
    return f"CAST({table}.{duck_quoted(column.name)} AS {duck_type(column.type or '')}) AS {duck_quoted(column.name)}"
