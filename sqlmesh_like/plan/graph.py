"""The graph of a project's nodes. Owns who reads whom and in which order; `selector` selects nodes."""

from __future__ import annotations

import graphlib
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from sqlmesh_like.errors import CycleError
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.nodes import Exposure, ParsedProject
from sqlmesh_like.project.semantic.declarations import SemanticModel
from sqlmesh_like.project.versions import Version
from sqlmesh_like.render.rendered import (
    RenderedExposure,
    RenderedModel,
    RenderedProject,
    RenderedSeed,
    RenderedSemantic,
    RenderedTest,
    RenderedUnitTest,
)

if TYPE_CHECKING:
    import networkx as nx

SemanticType = Literal["semantic_model", "metric", "saved_query"]
SEMANTIC_TYPES: tuple[SemanticType, ...] = get_args(SemanticType)
ResourceType = (
    Literal["model", "seed", "source", "test", "unit_test", "exposure", "analysis", "snapshot"] | SemanticType
)
BY_NAME = frozenset({"exposure", "unit_test", *SEMANTIC_TYPES})
"""Types whose nodes are listed by selection method, package and name: `metric:shop.revenue`."""


@dataclass(frozen=True)
class Node:
    """A node as selection and listing see it. `fqn` starts with the name of its package."""

    unique_id: NodeId
    name: str
    resource_type: ResourceType
    path: str
    fqn: tuple[str, ...]
    tags: tuple[str, ...] = ()
    config: Mapping[str, object] = field(default_factory=dict)
    source_name: str | None = None
    test_type: str | None = None
    version: Version | None = None
    tests: str | None = None  # name of the generic test, such as `unique`

    @property
    def search_name(self) -> str:
        """The name as a user writes it: `orders`, `source:shop.user`."""
        if self.resource_type in BY_NAME:
            return f"{self.resource_type}:{self.name}"
        return f"source:{self.source_name}.{self.name}" if self.source_name else self.name


Edge = tuple[str, str]
"""An input and one of its readers, by unique id."""


@dataclass(frozen=True)
class Graph:
    """Nodes by unique id, and an edge from each input to each of its readers. The graph is acyclic.

    `project`: name of the root project.
    """

    nodes: Mapping[str, Node]
    edges: frozenset[Edge]
    project: str = ""
    _inputs: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    _readers: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_inputs", _neighbours((reader, each) for each, reader in self.edges))
        object.__setattr__(self, "_readers", _neighbours(self.edges))

    def order(self, among: Iterable[str] | None = None) -> tuple[str, ...]:
        """Unique ids, every node after its inputs; ties are ordered by file path, then by id."""
        wanted = None if among is None else frozenset(among)
        sorter = self._sorter()
        sorter.prepare()
        ready: list[tuple[str, str]] = []
        ordered: list[str] = []
        while sorter.is_active():
            for unique_id in sorter.get_ready():
                heapq.heappush(ready, (self.nodes[unique_id].path, unique_id))
            _, first = heapq.heappop(ready)
            ordered.append(first)
            sorter.done(first)
        return tuple(unique_id for unique_id in ordered if wanted is None or unique_id in wanted)

    @property
    def has_cycle(self) -> bool:
        try:
            self._sorter().prepare()
        except graphlib.CycleError:
            return True
        return False

    def _sorter(self) -> graphlib.TopologicalSorter[str]:
        return graphlib.TopologicalSorter({unique_id: self.parents(unique_id) for unique_id in self.nodes})

    def parents(self, unique_id: str) -> tuple[str, ...]:
        return self._inputs.get(unique_id, ())

    def children(self, unique_id: str) -> tuple[str, ...]:
        return self._readers.get(unique_id, ())

    def ancestors(self, unique_id: str, depth: int | None = None) -> frozenset[str]:
        """All nodes it reads, directly or not, up to `depth` edges away."""
        return _reach(self._inputs, [unique_id], depth) - {unique_id}

    def above(self, unique_ids: Iterable[str]) -> frozenset[str]:
        """These nodes and all that they read, directly or not: each is visited once, however many are given."""
        return _reach(self._inputs, unique_ids, None)

    def descendants(self, unique_id: str, depth: int | None = None) -> frozenset[str]:
        """All nodes that read it, directly or not, up to `depth` edges away."""
        return _reach(self._readers, [unique_id], depth) - {unique_id}


def _neighbours(edges: Iterable[Edge]) -> Mapping[str, tuple[str, ...]]:
    """The second ends of edges, sorted, by the first."""
    by_first: dict[str, list[str]] = {}
    for first, second in edges:
        by_first.setdefault(first, []).append(second)
    return {first: tuple(sorted(seconds)) for first, seconds in by_first.items()}


def _reach(neighbours: Mapping[str, tuple[str, ...]], starts: Iterable[str], depth: int | None) -> frozenset[str]:
    """The nodes at most `depth` edges away, the starts included."""
    reached, ring = set[str](), {*starts}
    while ring:
        reached |= ring
        if depth is not None:
            depth -= 1
            if depth < 0:
                break
        ring = {each for unique_id in ring for each in neighbours.get(unique_id, ())} - reached
    return frozenset(reached)


def build_graph(project: ParsedProject, rendered: RenderedProject) -> Graph:
    """The graph of all enabled nodes. Raises CycleError with the whole cycle."""
    nodes = [
        *_sources(project),
        *(_seed(seed) for seed in rendered.seeds),
        *(_model(model) for model in rendered.models),
        *(_test(test) for test in rendered.tests),
        *(_unit_test(test) for test in rendered.unit_tests),
        *(_exposure(exposure.exposure) for exposure in rendered.exposures),
        *(_semantic(one) for one in rendered.semantic),
        *(_model(analysis) for analysis in rendered.analyses),
    ]
    edges: set[Edge] = set()
    readers: list[RenderedModel | RenderedTest | RenderedExposure]
    readers = [*rendered.models, *rendered.tests, *rendered.exposures, *rendered.analyses]
    for reader in readers:
        edges.update((ref.unique_id, reader.unique_id) for ref in reader.inputs)
    for exposure in rendered.exposures:
        edges.update((metric, exposure.unique_id) for metric in exposure.metrics.values())
    for one in rendered.semantic:
        edges.update((unique_id, one.unique_id) for unique_id in one.reads)
    # As in dbt a unit test is a child of its model, so that selecting the model selects it too.
    edges.update((test.model.unique_id, test.unique_id) for test in rendered.unit_tests)
    texts = {model.unique_id: model.raw_sql for model in rendered.models}
    graph = Graph({node.unique_id: node for node in nodes}, frozenset(edges), project.name)
    if graph.has_cycle:
        raise _cycle_error(graph, texts)
    return graph


def _sources(project: ParsedProject) -> list[Node]:
    return [
        Node(
            unique_id=table.unique_id,
            name=table.name,
            resource_type="source",
            path=table.declared_at.path,
            fqn=table.fqn,
            tags=table.tags,
            source_name=source.name,
        )
        for source in project.sources
        for table in source.tables
    ]


def _seed(seed: RenderedSeed) -> Node:
    config = {**seed.config, "materialized": "seed"}
    return Node(seed.unique_id, seed.name, "seed", seed.path, seed.fqn, seed.tags, config)


def _model(model: RenderedModel) -> Node:
    return Node(
        unique_id=model.unique_id,
        name=model.name,
        resource_type=_type_of(model.unique_id),
        path=model.path,
        fqn=model.fqn,
        tags=model.config.tags,
        config={**model.settings, **vars(model.config)},
        version=model.version,
    )


def _test(test: RenderedTest) -> Node:
    return Node(
        unique_id=test.unique_id,
        name=test.name,
        resource_type="test",
        path=test.path,
        fqn=test.fqn,
        tags=test.tags,
        config={**test.config, "severity": test.severity, "materialized": "test"},
        test_type=test.test_type,
        tests=test.metadata.name if test.metadata else None,
    )


def _type_of(unique_id: NodeId) -> ResourceType:
    match unique_id.kind:
        case "analysis":
            return "analysis"
        case "snapshot":
            return "snapshot"
        case _:
            return "model"


def _exposure(exposure: Exposure) -> Node:
    return Node(
        unique_id=exposure.unique_id,
        name=exposure.name,
        resource_type="exposure",
        path=exposure.declared_at.path,
        fqn=exposure.fqn,
        tags=exposure.tags,
        config={"meta": exposure.meta},
    )


def _semantic(rendered: RenderedSemantic) -> Node:
    """As in dbt, a metric is the only one of these that `group:` matches, and a semantic model has no tags."""
    declared = rendered.declared
    return Node(
        unique_id=declared.unique_id,
        name=declared.name,
        resource_type=next(kind for kind in SEMANTIC_TYPES if kind == declared.unique_id.kind),
        path=declared.path,
        fqn=declared.fqn,
        tags=() if isinstance(declared, SemanticModel) else declared.tags,
        config=declared.config,
    )


def _unit_test(test: RenderedUnitTest) -> Node:
    return Node(
        unique_id=test.unique_id,
        name=test.name,
        resource_type="unit_test",
        path=test.path,
        fqn=(test.unique_id.package, test.model.name, test.name),
        tags=test.tags,
        config=test.config,
        test_type="unit",
    )


def _cycle_error(graph: Graph, texts: Mapping[NodeId, str]) -> CycleError:
    import networkx as nx  # takes a tenth of a second, and most projects have no cycle

    from sqlmesh_like.render.exposures import place_of_ref

    nodes = graph.nodes
    edges: nx.DiGraph[str] = nx.DiGraph()
    edges.add_nodes_from(sorted(nodes))
    edges.add_edges_from(sorted(graph.edges))
    # Of several cycles the same one is reported each time: the smallest by its sorted ids.
    circles = [sorted(part) for part in nx.strongly_connected_components(edges) if len(part) > 1]
    circles += [[node] for node in nx.nodes_with_selfloops(edges)]
    start = min(circles)[0]
    circle = [start] if edges.has_edge(start, start) else _circle_through(edges, start)
    reading = [nodes[unique_id] for unique_id in (start, *reversed(circle[1:]))]
    names = [node.name for node in reading]
    files = "\n  ".join(f"{node.name}: {node.path}" for node in reading)
    return CycleError(
        f"models read each other in a circle: {' -> '.join([*names, names[0]])}",
        location=place_of_ref(reading[0].path, reading[1 % len(reading)].name, texts.get(reading[0].unique_id, "")),
        hint=f"an arrow means `reads`; break it in one of these files\n  {files}",
    )


def _circle_through(edges: nx.DiGraph[str], start: str) -> list[str]:
    """A shortest cycle through the node, in the direction of the edges; the first by id if there are several."""
    import networkx as nx

    paths = [
        nx.shortest_path(edges, child, start)
        for child in sorted(edges.successors(start))
        if nx.has_path(edges, child, start)
    ]
    shortest = min(paths, key=lambda path: (len(path), path))
    return [start, *shortest[:-1]]
