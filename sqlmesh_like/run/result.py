"""What a run did, model by model. Owns the values that output, artifacts and exit codes are made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.render.rendered import RenderedModel

Status = Literal["success", "error", "skipped", "no-op"]


@dataclass(frozen=True)
class ModelResult:
    """One model of a run. `message` is for people; `seconds` is wall time."""

    model: RenderedModel
    status: Status
    message: str
    started: datetime
    seconds: float
    strategy: Strategy | None = None
    upserts: int = 0
    deletes: int = 0
    reasons: tuple[Reason, ...] = ()

    @property
    def rows(self) -> int:
        return self.upserts + self.deletes


@dataclass(frozen=True)
class RunResult:
    """A whole run, in the order in which models ended."""

    results: tuple[ModelResult, ...] = field(default=())

    @property
    def ok(self) -> bool:
        return all(result.status in ("success", "no-op") for result in self.results)
