"""Semantic models, metrics and saved queries as frozen values. Owns the shape only.

`keys` of each are those of its entry in `manifest.json` that follow from YAML alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlmesh_like.errors import Location
from sqlmesh_like.names import NodeId

MetricType = Literal["simple", "ratio", "cumulative", "derived", "conversion"]


@dataclass(frozen=True)
class NamedInput:
    """A measure or metric that an entry names. `keys`: how it is used there, with filter and alias."""

    name: str
    declared_at: Location
    keys: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class SemanticNode:
    """The fields that all three have in common; `unique_id` is `<type>.<project>.<name>`."""

    unique_id: NodeId
    name: str
    fqn: tuple[str, ...]
    declared_at: Location
    config: Mapping[str, object]
    keys: Mapping[str, object]

    @property
    def package(self) -> str:
        return self.fqn[0]

    @property
    def path(self) -> str:
        return self.declared_at.path

    @property
    def is_enabled(self) -> bool:
        return self.config.get("enabled") is True

    @property
    def group(self) -> str | None:
        group = self.config.get("group")
        return None if group is None else str(group)


@dataclass(frozen=True)
class SemanticModel(SemanticNode):
    """Entities, dimensions and measures of one model. `model` is the call of ref() that names it."""

    model: NamedInput
    measures: tuple[NamedInput, ...]


@dataclass(frozen=True)
class Metric(SemanticNode):
    """A number to query: of `measures` (simple, cumulative, conversion) or of other `metrics` (ratio, derived)."""

    type: MetricType
    tags: tuple[str, ...]
    measures: tuple[NamedInput, ...]
    metrics: tuple[NamedInput, ...]


@dataclass(frozen=True)
class SavedQuery(SemanticNode):
    """Metrics to query together. If an export sets no schema, the target decides it."""

    tags: tuple[str, ...]
    metrics: tuple[NamedInput, ...]


@dataclass(frozen=True)
class SemanticLayer:
    """All semantic nodes that a project declares, including disabled ones."""

    semantic_models: tuple[SemanticModel, ...] = ()
    metrics: tuple[Metric, ...] = ()
    saved_queries: tuple[SavedQuery, ...] = ()

    def nodes(self) -> Iterator[SemanticNode]:
        yield from self.semantic_models
        yield from self.metrics
        yield from self.saved_queries
