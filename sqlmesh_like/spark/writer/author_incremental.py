"""Rows of an author's incremental SQL → one Hudi commit. Owns dbt's four strategies; `plan` decides when they run.

As in dbt: https://docs.getdbt.com/docs/build/incremental-strategy. `append` adds all rows. `merge` replaces the stored
row of each unique_key, or some columns of it. `delete+insert` removes the stored rows of each unique_key, then adds
rows. `insert_overwrite` replaces the partitions of the rows, or the whole table where it has none. Without a unique_key
there is nothing to match, and rows are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.analyze.expressions.clock import frozen
from sqlmesh_like.analyze.expressions.predicates import read_predicate
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import Location, NodeError
from sqlmesh_like.names import IS_DELETED, KEY, PARTITION, is_hidden
from sqlmesh_like.plan.history import RECORD_KEY
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.run.ports import WriteResult
from sqlmesh_like.spark.frames.content_key import keyed_by_content
from sqlmesh_like.spark.frames.partition_paths import target_paths
from sqlmesh_like.spark.program.view_bindings import visible_rows
from sqlmesh_like.spark.writer import upsert as sinks
from sqlmesh_like.spark.writer.schema_reconciliation import reconciled_schema
from sqlmesh_like.spark.writer.upsert import TableSpec

_OLD = "_sml_old_"


def write_branch(
    planned: PlannedModel, given: DataFrame, stored: DataFrame, target: TableSpec, must_carry: bool
) -> WriteResult:
    """Write the rows of the author's incremental SQL (`given`) by the plan's strategy.

    `stored`: the table's rows with hidden columns. `must_carry`: commit the frontier even without a change. Raises
    NodeError where columns do not fit, or a unique_key of `merge` is NULL or repeats.
    """
    keys = planned.compiled.model.config.unique_key
    rows = _keyed_anew(reconciled_schema(given, visible_rows(stored), planned.compiled.model), target)
    if planned.strategy == "insert_overwrite":
        return _overwrite(planned, rows, target, must_carry)
    match planned.strategy:
        case "merge" if keys:
            sinks.check_rows(rows, target)
            actions = _merge_actions(rows, stored, target, _matching(planned), _kept_columns(planned, rows))
        case "delete+insert" if keys:
            old = _with_old_names(stored)
            leaving = old.join(rows, _matching(planned), "left_semi").toDF(*stored.columns)
            actions = _entering(rows, target).unionByName(_leaving(leaving), allowMissingColumns=True)
        case _:
            actions = _entering(rows, target)
    return _commit(planned, actions.persist(), stored, target, must_carry)


def _commit(
    planned: PlannedModel, actions: DataFrame, stored: DataFrame, target: TableSpec, must_carry: bool
) -> WriteResult:
    try:
        counted = actions.agg(F.count_if(~F.col(IS_DELETED)), F.count_if(F.col(IS_DELETED))).collect()[0]
        upserts, deletes = int(counted[0]), int(counted[1])
        if not upserts and not deletes and not must_carry:
            return WriteResult(planned.strategy, 0, 0, committed=False)
        metadata = _metadata(planned, target, {"upserts": upserts, "deletes": deletes})
        sinks.commit_actions(actions, sinks.WriteCounts(upserts, deletes), target, metadata, stored)
        return WriteResult(planned.strategy, upserts, deletes, committed=True)
    finally:
        actions.unpersist()


def _metadata(planned: PlannedModel, target: TableSpec, rows: Mapping[str, int]) -> dict[str, str]:
    return {RECORD_KEY: planned.record(planned.strategy, target.table.buckets, rows).to_json()}


def _overwrite(planned: PlannedModel, rows: DataFrame, target: TableSpec, must_carry: bool) -> WriteResult:
    count = rows.count()
    if not target.partition_by:
        sinks.rebuild(rows, target, _metadata(planned, target, {"upserts": count}))
        return WriteResult(planned.strategy, count, 0, committed=True)
    paths = target_paths(rows, target.partition_by)
    metadata = _metadata(planned, target, {"partitions": len(paths)})
    if paths:
        sinks.overwrite(rows, target, paths, metadata)
    elif must_carry:
        sinks.merge_nothing(rows, target, metadata)
    return WriteResult(planned.strategy, count, 0, committed=bool(paths) or must_carry)


def _keyed_anew(rows: DataFrame, target: TableSpec) -> DataFrame:
    """Give rows keys that no stored row has, so that rows equal to stored ones are added as separate rows."""
    return keyed_by_content(rows).withColumn(KEY, F.concat_ws(".", F.col(KEY), F.lit(target.state.frontier)))


def _entering(rows: DataFrame, target: TableSpec) -> DataFrame:
    return target.prepared(rows).withColumn(IS_DELETED, F.lit(False))


def _leaving(stored: DataFrame) -> DataFrame:
    return stored.withColumn(IS_DELETED, F.lit(True))


def _with_old_names(stored: DataFrame) -> DataFrame:
    return stored.select(*[F.col(f"`{name}`").alias(_OLD + name) for name in stored.columns])


def _matching(planned: PlannedModel) -> SparkColumn:
    """Condition that matches a row with the stored rows of its unique_key that fulfil the author's predicates."""
    config = planned.compiled.model.config
    same = [F.col(f"`{name}`") == F.col(f"`{_OLD}{name}`") for name in config.unique_key]
    predicates, strategy = config.incremental_predicates, planned.strategy
    read = (read_predicate(text, strategy, lambda name: _OLD + name) for text in predicates)
    return reduce(SparkColumn.__and__, [*same, *(F.expr(frozen(tree, planned.now).sql(SPARK)) for tree in read)])


def _merge_actions(
    rows: DataFrame, stored: DataFrame, target: TableSpec, same: SparkColumn, kept: Sequence[str]
) -> DataFrame:
    """Actions that write each row under the key of the stored row that it replaces, whose `kept` columns stay."""
    old = _with_old_names(stored)
    is_there = F.col(f"`{_OLD}{KEY}`").isNotNull()
    kept_values = {name: F.when(is_there, F.col(f"`{_OLD}{name}`")).otherwise(F.col(f"`{name}`")) for name in kept}
    key = F.coalesce(F.col(f"`{_OLD}{KEY}`"), F.col(KEY))
    met = target.prepared(rows.join(old, same, "left").withColumns({**kept_values, KEY: key}))
    own = [name for name in met.columns if not name.startswith(_OLD)]
    entering = met.select(*[f"`{name}`" for name in own]).withColumn(IS_DELETED, F.lit(False))
    if not target.partition_by:
        return entering
    # A row that moves to another partition is deleted in the old one.
    has_moved = is_there & (F.col(f"`{_OLD}{PARTITION}`") != F.col(PARTITION))
    leaving = met.where(has_moved).select(
        *[F.col(f"`{_OLD}{PARTITION if name == PARTITION else KEY}`").alias(name) if name in (KEY, PARTITION)
          else F.col(f"`{name}`") for name in own]
    )  # fmt: skip
    return entering.unionByName(_leaving(leaving))


def _kept_columns(planned: PlannedModel, rows: DataFrame) -> list[str]:
    """Columns that `merge` does not change in a stored row. Raises NodeError where its settings are wrong."""
    config, model = planned.compiled.model.config, planned.compiled.model
    updated, excluded = config.merge_update_columns, config.merge_exclude_columns
    known = {name.lower() for name in rows.columns if not is_hidden(name)}
    if unknown := [name for name in (*updated, *excluded) if name.lower() not in known]:
        hint = f"its columns: {', '.join(sorted(known))}"
        raise NodeError(f"merge names {unknown[0]!r}, which is not a column", location=Location(model.path), hint=hint)
    if updated and excluded:
        hint = "leave one of them out"
        raise NodeError(
            "merge_update_columns and merge_exclude_columns exclude each other",
            location=Location(model.path),
            hint=hint,
        )
    named = {name.lower() for name in updated or excluded}
    names = [name for name in rows.columns if not is_hidden(name) and named]
    return [name for name in names if (name.lower() in named) == bool(excluded)]
