"""A snapshot's new versions, computed in this process. Owns running its program; `delta.snapshot` has the SQL.

Spark does all of the work where a form or a type of the query, of a key or of a stored column is not proven here.
"""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

import duckdb
import sqlglot
from sqlglot import exp

from sqlmesh_like.analyze.spark_types.type_names import stored_type
from sqlmesh_like.delta.actions import require_unique
from sqlmesh_like.delta.keys import column
from sqlmesh_like.delta.machine import FRESH, ReadyStep, ready_query
from sqlmesh_like.delta.program import TARGET
from sqlmesh_like.delta.snapshot import (
    SOURCE,
    STORED,
    SnapshotProgram,
    key_expression,
    refuse_other_types,
    require_own_beginnings,
    snapshot_program,
)
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.duck_types import duck_quoted
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.programs.local_actions import LocalActions, parquet_item, require_few_values
from sqlmesh_like.duckdb.programs.local_steps import LocalSteps, tables_read
from sqlmesh_like.duckdb.programs.shared_rows import SharedRows
from sqlmesh_like.hudi.writer.new_table import table_name
from sqlmesh_like.names import IS_DELETED, KEY, Column, Schema, is_storable, visible
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.project.snapshots import SnapshotConfig
from sqlmesh_like.sql_text import standard_literal

_LOG = logging.getLogger(__name__)
_KEYED, _VERSIONS = "_sml_snapshot_keyed", "_sml_snapshot_versions"


def snapshot_actions(planned: PlannedModel, shared: SharedRows) -> LocalActions | None:
    """The versions that begin or end with this run, as upserts (grain: key × version); None if Spark has to find them.

    Of a new table: all its rows. Raises NodeError where a key is NULL or repeats, a column has another type than in the
    table, or two versions begin at once.
    """
    tables = tables_read(planned, shared.merged, target=planned.target.exists)
    if tables is None:
        return None
    try:
        with closing(shared.cursor()) as db:
            return _Snapshot(planned, LocalSteps(shared, db, planned, tables, {}), shared.new_file()).actions()
    except (Unproven, duckdb.Error, OSError) as error:
        _LOG.debug("%s is computed by Spark: %s", planned.compiled.model.unique_id, error)
        return None


@dataclass(frozen=True)
class _Snapshot:
    planned: PlannedModel
    steps: LocalSteps
    path: Path

    def actions(self) -> LocalActions:
        source = self._take_source()
        self._require_keys()
        stored = self._stored_columns()
        if stored is None:
            columns = self._create_versions(self._program(source, None).first)
            return LocalActions(self.path, columns, self._write(columns, ""), 0)
        refuse_other_types(self.planned.compiled.model.table, source, visible(stored))
        known = {column.name.lower() for column in stored}
        if any(each.name.lower() not in known for each in source):
            raise Unproven("the table gets columns")
        columns = self._create_versions(self._program(source, visible(stored)).changes)
        types = {each.name: each.type for each in stored}
        if any(types.get(each.name) != each.type for each in columns):
            raise Unproven("a column of another type, or in another case")
        ordered = tuple(each for name in types for each in columns if each.name == name)
        count = self._write(ordered, f", false AS {IS_DELETED}")
        keys = self.steps.db.execute(f"SELECT count(DISTINCT {KEY}) FROM {duck_quoted(_VERSIONS)}").fetchall()[0][0]
        require_own_beginnings(self.planned.compiled.model.table, count, keys)
        return LocalActions(self.path, ordered, count, 0)

    @property
    def _config(self) -> SnapshotConfig:
        config = self.planned.compiled.model.config.snapshot
        assert config is not None
        return config

    def _take_source(self) -> Schema:
        """Create the step of the query's rows, and return its columns."""
        build = self.planned.table.build
        whole = build and ready_query(build, self.planned.now, None, frozenset())
        if whole is None or self.planned.compiled.model.has_contract:
            raise Unproven("a query that is not known in full, or has a contract")
        self.steps.create_step(ReadyStep(FRESH, whole))
        shown = visible(self.steps.schemas[FRESH])
        if not all(is_storable(each.name) for each in shown):
            raise Unproven("columns that no table can have")
        select = exp.select(*(column(each.name) for each in shown)).from_(exp.table_(FRESH, quoted=True))
        self.steps.create_step(ReadyStep(SOURCE, select))
        return shown

    def _require_keys(self) -> None:
        """Raise NodeError where the key of the query's rows is NULL or repeats."""
        names = self._config.unique_key
        computed = {part: tree for part in names if (tree := key_expression(part)) is not None}
        items = [exp.alias_(tree, part, quoted=True) for part, tree in computed.items()]
        keyed = exp.select(*items, *(column(part) for part in names if part not in computed))
        self.steps.create_step(ReadyStep(_KEYED, keyed.from_(exp.table_(SOURCE, quoted=True))))
        copies, nulls = self.steps.conflicts(_KEYED, names)
        require_unique(table_name(self.planned.compiled.model.table), names, copies=copies, nulls=nulls)

    def _stored_columns(self) -> Schema | None:
        """The table's columns that a commit has to write; None before its first one."""
        if not self.planned.target.exists:
            return None
        schema = self.steps.tables[TARGET].schema
        return tuple(each for each in schema if each.name == KEY or each in visible(schema))

    def _program(self, source: Schema, stored: Schema | None) -> SnapshotProgram:
        now = self.planned.now.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
        return snapshot_program(self._config, source, stored, now)

    def _create_versions(self, text: str) -> Schema:
        """Create the step of the versions to write, and return its columns as they are stored."""
        query = sqlglot.parse_one(text, dialect=SPARK)
        assert isinstance(query, exp.Query)
        for table in [each for each in query.find_all(exp.Table) if each.name == STORED]:
            table.replace(exp.table_(TARGET, db="target", alias=table.alias or None))
        self.steps.create_step(ReadyStep(_VERSIONS, query))
        columns = tuple(Column(each.name, stored_type(each.type)) for each in self.steps.schemas[_VERSIONS])
        require_few_values(self.steps, _VERSIONS, columns)
        return columns

    def _write(self, columns: Schema, more: str) -> int:
        items = ", ".join(parquet_item(each, "v") for each in columns)
        rows = f"SELECT {items}{more} FROM {duck_quoted(_VERSIONS)} AS v"
        copied = self.steps.db.execute(f"COPY ({rows}) TO {standard_literal(str(self.path))} (FORMAT parquet)")
        return int(copied.fetchall()[0][0])
