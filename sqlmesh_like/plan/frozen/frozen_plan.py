"""What a run may do with a table that has frozen partitions. Owns that choice, and what is refused to keep rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlmesh_like.analyze.spark_types.type_names import stored_type
from sqlmesh_like.classify.rules import Reason, reason
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import PARTITION
from sqlmesh_like.plan.checks.config_place import config_place
from sqlmesh_like.plan.frozen.declared import KEY
from sqlmesh_like.plan.history import AS_WRITTEN, TableState

if TYPE_CHECKING:  # what has nothing to do imports none of it
    from sqlmesh_like.classify.strategy import Strategy
    from sqlmesh_like.delta.frozen import FrozenPartitions


def kept_partitions(
    compiled: CompiledModel, target: TableState, frozen: FrozenPartitions | None, *, full_refresh: bool
) -> FrozenPartitions | None:
    """The partitions of a stored table whose rows stay; None if all of its rows may be replaced.

    Raises NodeError, at the config key, where rows that were frozen would be lost. `full_refresh`: the user asks for
    all rows, except those that the config freezes.
    """
    record = target.record
    recorded = record.frozen_before if record is not None else ""
    if frozen is None:
        if recorded and not full_refresh:
            raise _frozen_rows_error(
                compiled, f"partitions before {recorded} are frozen, and {KEY} is not set any more"
            )
        return None
    if not target.exists:
        return None
    if record is None or record.fingerprint.endswith(AS_WRITTEN):
        why = "its stored rows have no keys by which they can be compared"
    elif record.partition_by != compiled.model.config.partition_by or target.kind != compiled.model.config.table_type:
        why = "the stored table has other partitions, or another table_type"
    elif names := _unreadable_columns(compiled, target):
        why = f"its stored rows cannot be read with the query's columns: {names}"
    elif recorded and not frozen.keeps(recorded) and not full_refresh:
        raise _frozen_rows_error(compiled, f"partitions before {recorded} are frozen, and {KEY} is {frozen.before} now")
    else:
        return frozen
    if full_refresh and not recorded:
        return None
    raise _frozen_rows_error(compiled, why)


def kept_strategy(
    compiled: CompiledModel,
    target: TableState,
    frozen: FrozenPartitions,
    strategy: Strategy,
    reasons: tuple[Reason, ...],
) -> tuple[Strategy, tuple[Reason, ...]]:
    """The strategy of a table that keeps rows; `strategy`: the one that it would have without them.

    `full_refresh`: all rows but the frozen ones are replaced, within the table, by rows with more columns.
    """
    if strategy == "no_op":
        return strategy, reasons
    kept = reason("FRZ001", f"rows with {frozen.column} before {frozen.before} stay as they are")
    if strategy == "full_refresh" and not _names(compiled) <= {column.name.lower() for column in target.stored or ()}:
        edited = f"the query as it is now holds from {frozen.before} on; in earlier rows its new columns are NULL"
        return "full_refresh", (*reasons, reason("FRZ001", edited))
    if strategy == "full_refresh":
        others = reason("EDT001", f"the rows from {frozen.column} {frozen.before} on are compared with the query's")
        return "recompute_merge", (*reasons, kept, others)
    if strategy != "recompute_merge" and compiled.table.derive is None:
        alone = reason("FRZ002", "a row's partition does not follow from the keys by which it is found in the table")
        return "recompute_merge", (*reasons, alone, kept)
    return "group_recompute" if strategy == "partition_rescan" else strategy, (*reasons, kept)


def require_tables(compiled: CompiledModel, frozen: FrozenPartitions | None, kinds: Iterable[str]) -> None:
    """Raise NodeError if an input is not a Hudi table: rows made of it have no keys by which they can be compared."""
    if frozen is not None and "files" in kinds:
        message = f"{KEY} of {compiled.model.table}: an input is not a Hudi table, so that its rows have no keys"
        hint = "load that input into a Hudi table, or leave frozen_before out"
        raise NodeError(message, location=config_place(compiled.model, KEY), hint=hint)


def _frozen_rows_error(compiled: CompiledModel, why: str) -> NodeError:
    model = compiled.model
    hint = "undo that; or, to make all rows of what the inputs have now, take frozen_before out (or lower it) and run"
    return NodeError(
        f"{model.table} keeps rows of frozen partitions: {why}",
        location=config_place(model, KEY), hint=f"{hint} sml run --full-refresh --select {model.name}",
    )  # fmt: skip


def _unreadable_columns(compiled: CompiledModel, target: TableState) -> str:
    """Stored columns that the query lacks or has with another type, in words; empty if there are none."""
    types = {
        each.name.lower(): stored_type(each.type) for each in ((*(compiled.facts.schema or ()), *compiled.table.state))
    }
    changed: list[str] = []
    for column in target.stored or ():
        name = column.name.lower()
        if column.name.startswith("_hoodie_") or column.name == PARTITION:
            continue
        if name not in _names(compiled):
            changed.append(f"{column.name} is gone")
        elif types.get(name) and types[name] != column.type:
            changed.append(f"{column.name} was {column.type} and is {types[name]}")
    return "; ".join(changed)


def _names(compiled: CompiledModel) -> frozenset[str]:
    """All columns of the table, hidden ones too, in lower case."""
    build = compiled.table.build
    return frozenset(name.lower() for name in build.named_selects) if build is not None else frozenset()
