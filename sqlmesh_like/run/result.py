"""What a run did, node by node. Owns the values that output, artifacts and exit codes are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from sqlmesh_like.errors import Location
from sqlmesh_like.plan.history import CommitSummary
from sqlmesh_like.render.rendered import (
    RenderedExposure,
    RenderedModel,
    RenderedSeed,
    RenderedSemantic,
    RenderedTest,
    RenderedUnitTest,
)
from sqlmesh_like.run.ports import PublishResult, Rows, SparkWork

if TYPE_CHECKING:  # a call that plans nothing loads no SQL parser
    from sqlmesh_like.classify.rules import Reason
    from sqlmesh_like.classify.strategy import Strategy

NodeStatus = Literal["success", "error", "skipped", "no-op", "pass", "fail", "warn"]
UnbuiltNode = RenderedExposure | RenderedSemantic
"""Exposures and saved queries, for which `build` only reports that it reached them, as dbt does."""
RenderedNode = RenderedModel | RenderedSeed | RenderedTest | RenderedUnitTest | UnbuiltNode

BLOCKING = frozenset({"error", "fail", "skipped"})
"""With one of these the run as a whole has failed, and nothing that reads the node is run: see `blocks`."""


@dataclass(frozen=True)
class ModelResult:
    """One model of a run. `message` is for people; `seconds` is wall time; `location` is where its error is."""

    model: RenderedModel
    status: NodeStatus
    message: str
    started: datetime
    seconds: float
    strategy: Strategy | None = None
    upserts: int = 0
    deletes: int = 0
    reasons: tuple[Reason, ...] = ()
    written: CommitSummary | None = None  # what its commit wrote; None: there was none
    estimate: Mapping[str, object] | None = None  # what was planned, as `sml explain` shows it
    sent: tuple[PublishResult, ...] = ()  # where it was published
    is_unsent: bool = False  # its table is up to date, publishing it failed
    engine: str | None = None  # what computed its rows
    location: Location | None = None
    spark: SparkWork | None = None  # what Spark did for it

    @property
    def node(self) -> RenderedModel:
        return self.model

    @property
    def rows(self) -> int:
        return self.upserts + self.deletes


@dataclass(frozen=True)
class SeedResult:
    """One seed of a run. `rows` counts those written; `location` is where its error is."""

    node: RenderedSeed
    status: NodeStatus
    message: str
    started: datetime
    seconds: float
    rows: int = 0
    written: CommitSummary | None = None
    location: Location | None = None


@dataclass(frozen=True)
class TestResult:
    """One test of a run. `failures` is None if they could not be counted; `sample` is a few failing rows.

    `strategy` is how the changes of a unit test were applied; `location` is where its error is.
    """

    __test__ = False

    node: RenderedTest | RenderedUnitTest
    status: NodeStatus
    message: str
    started: datetime
    seconds: float
    failures: int | None = None
    sample: Rows | None = None
    strategy: Strategy | None = None
    location: Location | None = None


@dataclass(frozen=True)
class UnbuiltResult:
    """An exposure or a saved query of a run: there is nothing to do for it, or what it reads failed."""

    node: UnbuiltNode
    status: NodeStatus
    message: str
    started: datetime
    seconds: float
    location: Location | None = None


NodeResult = ModelResult | SeedResult | TestResult | UnbuiltResult


def blocks(result: NodeResult) -> bool:
    """Whether nothing that reads the node may run. A table that is up to date but not published can be read."""
    return result.status in BLOCKING and not (isinstance(result, ModelResult) and result.is_unsent)


@dataclass(frozen=True)
class RunResult:
    """A whole run, in the order in which nodes ended."""

    results: tuple[NodeResult, ...] = field(default=())

    @property
    def ok(self) -> bool:
        return not any(result.status in BLOCKING for result in self.results)

    @property
    def has_written(self) -> bool:
        tables = (result for result in self.results if isinstance(result, ModelResult | SeedResult))
        return any(result.written is not None for result in tables)
