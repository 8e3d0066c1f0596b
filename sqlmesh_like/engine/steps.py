"""The steps of a delta program on Spark. Owns which are kept, which are skipped, and which need no shuffle."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from sqlmesh_like.delta.program import DeltaProgram, Step, outside_of, steps_of
from sqlmesh_like.engine.bindings import Bindings


def run_steps(program: DeltaProgram, bindings: Bindings) -> DataFrame:
    """The signed target rows of a program. Steps that are read often are persisted until `bindings` releases them."""
    run = _Run(program, bindings)
    for step in program.steps:
        run.add(step)
    return bindings.steps[program.result]


@dataclass
class _Run:
    """`single` names the steps that are one partition: grouping, netting and joining them starts no shuffle.

    These are made of small changes, and of stored rows of as many keys, alone. What meets a snapshot of an input may
    have any number of rows and stays as parallel as it is.
    """

    program: DeltaProgram
    bindings: Bindings
    empty: dict[str, bool] = field(default_factory=dict)
    single: set[str] = field(default_factory=set)

    def add(self, step: Step) -> None:
        nothing = step.unless_empty is not None and self._is_empty(step.unless_empty)
        frame = self.bindings.run(step.query, step.prune, nothing=nothing)
        roles = {role for role, _ in outside_of(step.query)}
        if self.bindings.is_small and self._reads_single(step) and (nothing or roles <= {"changes", "target"}):
            self.single.add(step.name)
            # Stored rows are searched in parallel before the few that are found come together.
            frame = frame.repartition(1) if "target" in roles and not nothing else frame.coalesce(1)
        self.bindings.keep(step.name, frame, persist=self._is_read_often(step.name))

    def _is_empty(self, name: str) -> bool:
        if name not in self.empty:
            self.empty[name] = self.bindings.steps[name].isEmpty()
        return self.empty[name]

    def _reads_single(self, step: Step) -> bool:
        return self.single.issuperset(steps_of(step.query))

    def _is_read_often(self, name: str) -> bool:
        steps = self.program.steps
        reads = sum(steps_of(step.query).count(name) for step in steps)
        checks = sum(name in (step.unless_empty, step.prune.step if step.prune else None) for step in steps)
        return reads + checks > 1
