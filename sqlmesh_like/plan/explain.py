"""A planned model in the words of the contract. Owns the JSON form of `sml explain`; the command line prints it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlmesh_like.classify.advice.trial import with_useful_advice
from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.program import TablePlan
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.plan.cost import NO_WORK, Estimate, WorkEstimate
from sqlmesh_like.plan.model_plan import InputVersion, PlannedModel
from sqlmesh_like.plan.slices.sliced_build import SlicedBuild


def explain_model(planned: PlannedModel) -> dict[str, object]:
    """The plan of one model; `strategy` is what its SQL allows, `next_run` what a run would do now and why."""
    return {
        **explain_classification(planned.compiled),
        "inputs": [_input(item) for item in planned.inputs],
        "next_run": planned.strategy,
        "next_run_reasons": [_reason(reason) for reason in _reasons_with_advice(planned)],
        "estimate": explain_estimate(planned),
        **({"slices": _slices(planned.slices)} if planned.slices is not None else {}),
    }


def _slices(build: SlicedBuild) -> dict[str, object]:
    """The build in slices that a run begins or goes on with; how many are left is known once it has begun."""
    return {
        "column": build.column, "by": build.by or None, "built": build.built,
        "left": None if build.left is None else len(build.left), "next": build.left[0] if build.left else None,
        "visible": build.is_in_place,
    }  # fmt: skip


def explain_classification(compiled: CompiledModel) -> dict[str, object]:
    """The part of a plan that follows from the SQL alone, whatever the lake holds."""
    return {
        "unique_id": compiled.model.unique_id,
        "strategy": compiled.classification.strategy,
        "refresh": compiled.model.config.refresh,
        "aggregates": [
            {
                "sql": verdict.sql, "class": verdict.verdict, "rule": verdict.reason.rule,
                "line": verdict.reason.line, "column": verdict.reason.column,
            }
            for verdict in compiled.advised.aggregates
        ],
        "reasons": [_reason(reason) for reason in compiled.advised.reasons],
    }  # fmt: skip


def _reasons_with_advice(planned: PlannedModel) -> Iterator[Reason]:
    """The reasons for the next run; those that follow from the SQL with the advice that was tried on it."""
    compiled = planned.compiled
    pairs = zip(compiled.classification.reasons, compiled.advised.reasons, strict=True)
    known = dict(pairs) if set(planned.reasons) & set(compiled.classification.reasons) else {}
    return (with_useful_advice(known.get(reason, reason), compiled.classification) for reason in planned.reasons)


def _reason(reason: Reason) -> dict[str, object]:
    values: dict[str, object] = {
        "rule": reason.rule, "message": reason.message, "line": reason.line, "column": reason.column,
    }  # fmt: skip
    return values | ({"hint": reason.hint} if reason.hint else {})


def explain_estimate(planned: PlannedModel) -> dict[str, object] | None:
    """Rows, files and bytes according to commit metadata; None if the change is not known before the run."""
    estimate = planned.estimate
    if planned.strategy == "no_op":
        estimate = Estimate(0, 0, 0.0, (("no_op", NO_WORK),), NO_WORK)
    if estimate is None:
        return None
    chosen = estimate.work(planned.strategy)
    return {
        "changed_rows": estimate.changed_rows, "changed_files": estimate.changed_files,
        "read_bytes": chosen.read, "rewritten_bytes": chosen.rewritten,
        "incremental": _work(estimate.incremental), "full_refresh": _work(estimate.full),
        "strategies": {name: _work(work) for name, work in estimate.ways}, "chosen": planned.strategy,
        "is_timed": estimate.is_timed,
    }  # fmt: skip


def _work(work: WorkEstimate) -> dict[str, object]:
    size = {"read_bytes": work.read, "rewritten_bytes": work.rewritten, "seconds": round(work.seconds, 1)}
    if (done := work.cluster) is None:
        return {**size}
    doers = {"scans": done.scans, "computes": done.computes, "commits": done.commits}
    return {**size, **doers, "jobs": done.jobs, "job_seconds": round(done.job_seconds, 3)}


def _input(item: InputVersion) -> dict[str, object]:
    return {
        "unique_id": item.ref.unique_id, "from": item.start, "to": item.end, "pending_rows": item.change.rows,
        **({"compared_because": item.change.compared} if item.has_moved and item.change.compared else {}),
    }  # fmt: skip


def program_text(plan: TablePlan) -> str:
    """The SQL that a plan runs, step by step; empty where the query is run as written."""
    steps: list[tuple[str, str]] = []
    if plan.build is not None:
        steps.append(("full build", plan.build.sql(SPARK, pretty=True)))
    if plan.program is not None:
        steps += [(step.name, step.query.sql(SPARK, pretty=True)) for step in plan.program.steps]
    if plan.rescan is not None:
        steps.append(("affected", plan.rescan.affected.sql(SPARK, pretty=True)))
        steps.append(("rescan", plan.rescan.query.sql(SPARK, pretty=True)))
    return "\n\n".join(f"-- {name}\n{sql};" for name, sql in steps)
