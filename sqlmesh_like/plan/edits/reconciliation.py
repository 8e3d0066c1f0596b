"""What becomes of the stored rows where a table cannot follow changes: they are compared with the query's, or replaced.

Owns that choice. Compared, only rows that differ are written: where the query keeps how keys are derived, an edit, or
history that is gone, reaches the models below as the rows that it changes, and not as the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlmesh_like.analyze.spark_types.type_names import stored_type
from sqlmesh_like.classify.rules import Reason, reason
from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.names import PARTITION, Schema, is_hidden, visible
from sqlmesh_like.plan.edits.edited_query import edit_between, program_strategy
from sqlmesh_like.plan.edits.outline import Edit, edit_of
from sqlmesh_like.plan.edits.recorded_query import query_before
from sqlmesh_like.plan.history import AS_WRITTEN, History, TableState, Volume
from sqlmesh_like.render.rendered import InputRef

_COMPARABLE = frozenset(("HIS002", "HIS003", "HIS005"))
"""Reasons that say nothing against the stored rows but that they are those of another query, or of earlier inputs."""
_OWN_COLUMNS = ("_hoodie_", PARTITION)


class ReadInput(Protocol):
    """What is asked of an input (`plan.model_plan.InputVersion`)."""

    @property
    def state(self) -> TableState: ...

    @property
    def is_new(self) -> bool: ...

    @property
    def has_moved(self) -> bool: ...

    @property
    def repeats_keys(self) -> bool: ...

    @property
    def ref(self) -> InputRef: ...

    @property
    def volume(self) -> Volume | None: ...


@dataclass(frozen=True)
class Reconciliation:
    """A run whose query is run as a whole, over a table that keeps its files and history.

    `rewrites`: the table gets other columns or state, so all rows are written; else only those that differ. `edit`: the
    query need not be run as a whole. `strategy`: what is run where not all rows are written.
    """

    reasons: tuple[Reason, ...]
    rewrites: bool
    edit: Edit | None = None
    strategy: Strategy = "recompute_merge"


def reconciliation(
    compiled: CompiledModel,
    target: TableState,
    inputs: Sequence[ReadInput],
    forced: tuple[Reason, ...],
    history: History,
) -> Reconciliation | None:
    """How a table for which following the change is ruled out (`forced`) is kept; None where it is made anew."""
    if not forced or not {each.rule for each in forced} <= _COMPARABLE:
        return None
    if not _is_comparable(compiled, target) or any(item.state.kind not in ("cow", "mor") for item in inputs):
        return None
    # A writer would mistake an older file of the group for the newest: merging into it would lose rows.
    if history.missing(target.uri):
        return None
    edit = _edit(compiled, target, inputs, forced)
    rewrites = not _has_columns(compiled, target)
    if edit is not None:
        follows = (
            "; then the inputs' changes are followed"
            if any(item.has_moved and not item.is_new for item in inputs)
            else ""
        )
        strategy = "recompute_merge" if edit.program is None else program_strategy(compiled)
        words = f"{edit.words} ({_cost(edit, target, inputs, history)}){follows}"
        rule = "EDT003" if edit.inputs else "EDT002"
        return Reconciliation((*forced, reason(rule, words)), rewrites, edit, strategy)
    if rewrites:
        return Reconciliation(forced, rewrites)
    return Reconciliation((*forced, reason("EDT001", "the stored rows are compared with those of the query")), rewrites)


def _cost(edit: Edit, target: TableState, inputs: Sequence[ReadInput], history: History) -> str:
    """What an edit reads at most, beside a rebuild, in words: the columns that both read are not known in advance."""
    sizes = {item.ref.unique_id: item.volume.bytes for item in inputs if item.volume is not None}
    stored = history.volume(target.uri, target.frontier).bytes if target.frontier is not None else 0
    read = stored * edit.reads_table + sum(size for name, size in sizes.items() if name in edit.inputs)
    return f"reads at most {_megabytes(read)}, a rebuild {_megabytes(sum(sizes.values()))}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _edit(
    compiled: CompiledModel, target: TableState, inputs: Sequence[ReadInput], forced: tuple[Reason, ...]
) -> Edit | None:
    """The edit, where nothing but the query has changed: what inputs have changed since can still be followed.

    The query may read other inputs (`HIS005`) than before, as they are now.
    """
    record = target.record
    if record is None or target.schema is None or not {each.rule for each in forced} <= {"HIS002", "HIS005"}:
        return None
    known = {item.ref.unique_id: item.repeats_keys for item in inputs if not item.is_new}
    if {name for name in record.repeating if name in known} != {name for name, repeats in known.items() if repeats}:
        return None  # rows of an input have other keys
    edit = edit_of(record.outline, compiled, target.schema)
    if edit is not None:
        return edit
    before = query_before(record, compiled)
    if before is None or not _has_columns(before, target):
        return None
    return edit_between(before, compiled)


def _is_comparable(compiled: CompiledModel, target: TableState) -> bool:
    """Whether the table has keys and the layout of the plan's, and its settings let it be kept."""
    model, record = compiled.model, target.record
    config = model.config
    if record is None or record.fingerprint.endswith(AS_WRITTEN) or config.refresh not in ("auto", "incremental"):
        return False
    if config.materialized == "table" or config.snapshot is not None or model.author_strategy is not None:
        return False
    if compiled.classification.strategy == "full_refresh" or compiled.table.build is None:
        return False
    is_laid_out_alike = record.partition_by == config.partition_by and target.kind == config.table_type
    # Whether the stored rows were found to be unique by this key: those that stay are not looked at again.
    return is_laid_out_alike and record.parts.get("unique_key", "") == ",".join(config.unique_key)


def _has_columns(compiled: CompiledModel, target: TableState) -> bool:
    """Whether the table has the query's columns in their order, and its state, with their types."""
    shown, stored = compiled.facts.schema, target.stored
    if shown is None or stored is None or _stored_columns(visible(stored)) != _stored_columns(shown):
        return False
    state = {
        name: type_ for name, type_ in _stored_columns(stored) if is_hidden(name) and not name.startswith(_OWN_COLUMNS)
    }
    build = compiled.table.build
    assert build is not None
    wanted = _stored_columns(compiled.table.state)
    is_state = state.keys() == {name for name in build.named_selects if is_hidden(name)}
    return is_state and all(type_ is None or state.get(name) == type_ for name, type_ in wanted)


def _stored_columns(schema: Schema) -> list[tuple[str, str | None]]:
    """Names and types as a table stores them."""
    return [(column.name, stored_type(column.type)) for column in schema]
