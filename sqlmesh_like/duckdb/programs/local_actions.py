"""The actions of a run as a Parquet file, with the log of its change. Owns which of them are left to Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sqlmesh_like.analyze.spark_types.type_names import stored_type
from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.delta.actions import ACTIONS, require_unique
from sqlmesh_like.delta.machine import FRESH, SIGNED, Actions, ReadyStep, ready_query
from sqlmesh_like.delta.program import TARGET, RescanProgram
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_types import duck_quoted, duck_type
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.local_files import is_exact
from sqlmesh_like.duckdb.programs.local_steps import LocalSteps
from sqlmesh_like.hudi.change_log import ChangeLog, new_log
from sqlmesh_like.hudi.writer.new_table import table_name
from sqlmesh_like.names import IS_DELETED, KEY, PARTITION, WEIGHT, Column, Schema, is_hidden, is_storable, visible
from sqlmesh_like.plan.checks.contracts import refuse_breach
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.sql_text import standard_literal


@dataclass(frozen=True)
class LocalActions:
    """What a program does to its table: a Parquet file with one action per key, its columns, and the counts."""

    path: Path
    schema: Schema
    upserts: int
    deletes: int
    log: ChangeLog | None = None  # the change log that the commit may name
    notes: tuple[Reason, ...] = ()  # what the run says of its work


_MOST_VALUES = 64_000_000
"""Of a table that is built here: while its files are written, all are in memory, about forty bytes each."""
NOTHING = LocalActions(Path(), (), 0, 0)


@dataclass
class LocalWriter:
    """Writes the actions of one run to `path`. `logged`: also write a log of the change.

    Raises Unproven if Spark has to do the work.
    """

    steps: LocalSteps
    path: Path
    logged: bool
    overwrites_partitions: bool = False

    def stored_form(self, signed: str) -> str:
        """The step itself. Raises Unproven if the table would have other columns or types after this commit."""
        types = {column.name: column.type for column in self.steps.planned.target.stored or ()}
        columns = self._columns(signed)
        if any(types.get(column.name) != stored_type(column.type) for column in columns):
            raise Unproven("the table will have other types after this commit")
        stored = set(self.steps.columns(f"target.{TARGET}")) - {PARTITION}  # which the writer adds
        if signed == SIGNED and {c.name for c in columns} != stored:
            raise Unproven("other columns than the stored ones")
        if self.steps.planned.reconciles:
            refuse_breach(self.steps.planned.compiled.model, visible(columns))
        return signed

    def apply_actions(self, done: Actions) -> LocalActions:
        columns = self._columns(done.signed)
        if done.upserts + done.deletes:
            casts = ", ".join(parquet_item(column, "a") for column in columns)
            actions = f"SELECT {casts}, {IS_DELETED} FROM {ACTIONS} AS a"
            self.steps.db.execute(f"COPY ({actions}) TO {standard_literal(str(self.path))} (FORMAT parquet)")
        is_logged = self.logged and bool(done.upserts + done.deletes) and not done.has_images
        log = self._log(columns, done.signed) if is_logged else None
        return LocalActions(self.path, columns, done.upserts, done.deletes, log, done.notes)

    def keep(self, notes: tuple[Reason, ...] = ()) -> LocalActions:
        return replace(NOTHING, notes=notes)

    def overwrite_partitions(self, rescan: RescanProgram) -> LocalActions:
        raise AssertionError(f"partitions by {rescan.partition_by} are merged row by row")

    def apply_author_strategy(self) -> LocalActions:
        raise Unproven("a strategy of the author")

    def rebuild(self) -> LocalActions:
        """All rows of a table. If it gets other columns and keeps its files: with the rows that leave it."""
        planned = self.steps.planned
        build = planned.table.build
        whole = build and ready_query(build, planned.now, None, frozenset())
        if planned.strategy != "full_refresh" or whole is None:
            raise Unproven("all rows of a table")
        self.steps.create_step(ReadyStep(FRESH, whole))
        columns = self._columns(FRESH)
        require_few_values(self.steps, FRESH, columns)
        _require_declared(planned, columns)
        self._require_keys()
        columns = tuple(Column(column.name, stored_type(column.type)) for column in columns)
        items = ", ".join(parquet_item(column, "f") for column in columns)
        rows = f"SELECT {items} FROM {duck_quoted(FRESH)} AS f"
        if planned.rewrites:
            live = f" WHERE {duck_text(planned.frozen.is_live('f'), is_exact=True)}" if planned.frozen else ""
            return self._rewritten(f"{rows}{live}", columns)
        return LocalActions(self.path, columns, self._write_rows(rows), 0)

    def _rewritten(self, rows: str, columns: Schema) -> LocalActions:
        """The rows as upserts, all of them, and deletes of the others. Raises Unproven where a type would change."""
        planned = self.steps.planned
        stored = {c.name.lower(): c for c in planned.target.stored or () if not c.name.startswith("_hoodie_")}
        if any(column != stored.get(column.name.lower(), column) for column in columns):
            raise Unproven("a column of another type, or in another case")
        at = (KEY, *planned.compiled.model.config.partition_by)
        target = self.steps.bound_relation("target", TARGET)
        same = " AND ".join(f"f.{duck_quoted(name)} IS NOT DISTINCT FROM t.{duck_quoted(name)}" for name in at)
        items = ", ".join(parquet_item(c, "t") if c.name in at else _null_item(c) for c in columns)
        gone = f"SELECT {items}, true FROM {target} AS t ANTI JOIN {duck_quoted(FRESH)} AS f ON {same}"
        if planned.frozen is not None:
            gone += f" WHERE {duck_text(planned.frozen.is_live('t'), is_exact=True)}"
        (deletes,) = self.steps.db.execute(f"SELECT count(*) FROM ({gone})").fetchall()[0]
        marked = f"SELECT *, false AS {IS_DELETED} FROM ({rows})"
        count = self._write_rows(f"{marked} UNION ALL {gone}")
        return LocalActions(self.path, columns, count - int(deletes), int(deletes))

    def _write_rows(self, rows: str) -> int:
        copied = self.steps.db.execute(f"COPY ({rows}) TO {standard_literal(str(self.path))} (FORMAT parquet)")
        return int(copied.fetchall()[0][0])

    def _require_keys(self) -> None:
        """Raise Unproven if two rows share a row key, which Spark reports; NodeError where a declared key repeats."""
        copies, nulls = self.steps.conflicts(FRESH, (KEY,))
        if copies > 1 or nulls:
            raise Unproven("a row key that repeats")
        if key := self.steps.planned.unique_key:
            copies, nulls = self.steps.conflicts(FRESH, key)
            require_unique(table_name(self.steps.planned.compiled.model.table), key, copies=copies, nulls=nulls)

    def _columns(self, signed: str) -> Schema:
        return tuple(column for column in self.steps.schemas[signed] if column.name != WEIGHT)

    def _log(self, columns: Schema, signed: str) -> ChangeLog | None:
        """Write the log of the actions, as `logged_changes` does; None if the table merges by another order."""
        planned, timeline = self.steps.planned, self.steps.tables[TARGET].timeline
        frontier = planned.target.frontier
        if frontier is None or timeline.properties.get("hoodie.record.merge.mode") != "COMMIT_TIME_ORDERING":
            return None
        shown = tuple(Column(c.name, stored_type(c.type)) for c in columns if c.name == KEY or not is_hidden(c.name))
        items = {tag: ", ".join(parquet_item(column, tag) for column in shown) for tag in "ao"}
        at = (KEY, *planned.compiled.model.config.partition_by)
        same = " AND ".join(f"n.{duck_quoted(name)} IS NOT DISTINCT FROM o.{duck_quoted(name)}" for name in at)
        old = f"(SELECT * FROM {duck_quoted(signed)} WHERE {WEIGHT} < 0) AS o"
        left = f"SELECT {items['o']}, CAST(-1 AS BIGINT) AS {WEIGHT} FROM {old} SEMI JOIN {ACTIONS} AS n ON {same}"
        entered = f"SELECT {items['a']}, CAST(1 AS BIGINT) FROM {ACTIONS} AS a WHERE NOT {IS_DELETED}"
        return new_log(
            timeline, frontier, (*shown, Column(WEIGHT, "bigint")),
            lambda path, metadata: self._copy_with_metadata(f"{left} UNION ALL {entered}", path, metadata),
        )  # fmt: skip

    def _copy_with_metadata(self, query: str, path: str, metadata: Mapping[str, str]) -> int:
        said = ", ".join(f"{standard_literal(name)}: {standard_literal(value)}" for name, value in metadata.items())
        options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{said}}}"
        copied = self.steps.db.execute(f"COPY ({query}) TO {standard_literal(path)} ({options})").fetchall()
        return int(copied[0][0])


def require_few_values(steps: LocalSteps, step: str, columns: Schema) -> None:
    """Raise Unproven where a step has more rows than this process should hold while it writes a table's files."""
    (count,) = steps.db.execute(f"SELECT count(*) FROM {duck_quoted(step)}").fetchall()[0]
    if count * len(columns) > _MOST_VALUES:
        raise Unproven(f"{count:,} rows of {len(columns)} columns are written by Spark's tasks")


def _require_declared(planned: PlannedModel, columns: Schema) -> None:
    """Raise Unproven, so that Spark reports it, where the columns are not those that a table can have and must have."""
    model, shown = planned.compiled.model, visible(columns)
    names = {column.name for column in shown}
    if not all(map(is_storable, names)) or not set(model.config.partition_by) <= names:
        raise Unproven("columns that no table can have")
    refuse_breach(model, shown)


def _null_item(column: Column) -> str:
    return f"CAST(NULL AS {duck_type(column.type or '')}) AS {duck_quoted(column.name)}"


def parquet_item(column: Column, table: str) -> str:
    """A SELECT item for a column of a file that Spark reads back: timestamps are UTC. Raises Unproven."""
    if not is_exact(column.type):
        raise Unproven(f"a column of {column.type}")
    return f"CAST({table}.{duck_quoted(column.name)} AS {duck_type(column.type or '')}) AS {duck_quoted(column.name)}"
