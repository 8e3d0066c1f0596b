"""Execution of hooks of nodes and runs. Owns when a statement must run and whose failure it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlmesh_like.errors import NodeError, SmlError
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.config import HookTime


class HookStatements(Protocol):
    """Renders hooks lazily: each after the ones before it have run."""

    def of_node(self, unique_id: str, moment: HookTime) -> Iterator[str]: ...

    def of_run(self, end: bool, more: Mapping[str, object]) -> Iterator[str]: ...


class StatementRunner(Protocol):
    """Runs statements over the lake."""

    def execute(self, sql: str) -> None: ...


@dataclass(frozen=True)
class Hooks:
    """Runs hooks around a node's work: only if there is work, since a node with nothing to do starts no engine."""

    statements: HookStatements
    lake: StatementRunner

    def around(self, unique_id: NodeId, moment: HookTime) -> bool:
        """Run the hooks of a node; whether there was one. Raises NodeError with the statement that failed."""
        return self._run_statements(self.statements.of_node(unique_id, moment), moment)

    def around_run(self, end: bool, more: Mapping[str, object]) -> None:
        """Run the hooks `on-run-start` or `on-run-end`. Raises NodeError with the statement that failed."""
        self._run_statements(self.statements.of_run(end, more), "on-run-end" if end else "on-run-start")

    def _run_statements(self, statements: Iterator[str], name: str) -> bool:
        has_run = False
        for statement in statements:
            if not statement.strip(" ;\n\t"):
                continue
            has_run = True
            try:
                self.lake.execute(statement)
            except SmlError as error:
                shown = " ".join(statement.split())[:120]
                raise NodeError(f"{name} failed: {error.message}", hint=f"in: {shown}") from error
        return has_run
