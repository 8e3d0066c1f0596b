"""The next run of a model whose author wrote the incremental SQL. Owns when its branch runs; `spark` runs it.

As in dbt the branch runs if the table exists, and the table is never rebuilt unless requested: its rows may be all
that is left of what a source once held. Unlike in dbt nothing is done if neither an input nor the clock has moved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.classify.rules import reason
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.errors import Location, NodeError
from sqlmesh_like.plan.fingerprint import fingerprint
from sqlmesh_like.plan.history import History, TableState
from sqlmesh_like.plan.model_plan import PlannedModel, input_version, is_clock_moved


def plan_branch(
    branch: CompiledModel,
    whole: CompiledModel,
    target: TableState,
    states: Mapping[str, TableState],
    history: History,
    now: datetime,
    awaited: Collection[str] = (),
) -> PlannedModel:
    """Plan the incremental branch of a model whose table exists.

    `whole` is the query without the branch: the table's fingerprint is that of `whole`. `states` includes the table
    itself, which the branch may read.

    Raises NodeError if the table was not written by a run of this project.
    """
    model = branch.model
    strategy = model.author_strategy
    assert strategy is not None
    if target.record is None:
        hint = "run it with --full-refresh once, which replaces the table, or give the model another alias"
        message = f"the table {model.table} was written by something else: its rows cannot be distinguished"
        raise NodeError(message, location=Location(model.path, 1, 1), hint=hint)
    inputs = tuple(
        input_version(ref, states[ref.unique_id], target.record, history, awaits=ref.unique_id in awaited)
        for ref in branch.facts.inputs
    )
    others = tuple(item for item in inputs if item.ref.unique_id != model.unique_id)
    is_idle = not any(item.has_moved for item in others)
    is_idle = is_idle and not is_clock_moved(clock_calls(branch.facts.tree), target, now)
    reasons = () if is_idle else (reason("CFG005", f"{strategy} of the rows that the branch gives"),)
    chosen = "no_op" if is_idle else strategy
    return PlannedModel(branch, target, chosen, reasons, inputs, fingerprint(whole), now)
