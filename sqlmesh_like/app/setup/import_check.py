"""Assesses how the models of an existing dbt project work here. Owns the kinds of models; needs no lake and no JVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import checked_project, input_schemas
from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.errors import SmlError, SqlError
from sqlmesh_like.render.rendered import RenderedModel


@dataclass(frozen=True)
class ImportedModel:
    """A model or snapshot and how it works here.

    `kind`: the strategy of its runs, derived or its author's (`append`, `merge` …), `view`, `snapshot`, `asks` (its SQL
    is known only in a run) or `broken`. `reasons` say why a strategy rescans or rebuilds; `readers`: the number of
    nodes downstream.
    """

    name: str
    path: str
    kind: str
    reasons: tuple[Reason, ...] = ()
    error: SmlError | None = None
    readers: int = 0


@dataclass(frozen=True)
class ImportReport:
    """The selected nodes by type, and their models in dependency order."""

    nodes: Mapping[str, int]
    models: tuple[ImportedModel, ...]

    def of(self, *kinds: str) -> tuple[ImportedModel, ...]:
        """Return the models of these kinds, those with the most readers first."""
        return tuple(sorted((model for model in self.models if model.kind in kinds), key=lambda m: -m.readers))


def import_report(loaded: Loaded) -> ImportReport:
    """Assess the selected models. Raises SelectionError where nothing is selected."""
    nodes = loaded.select_nodes()
    selected = {node.unique_id for node in nodes}
    errors = checked_project(loaded, selected).errors
    compiler = Compiler(input_schemas(loaded, selected))
    models: dict[str, RenderedModel] = {model.unique_id: model for model in loaded.rendered.models}
    imported: list[ImportedModel] = []
    for unique_id in loaded.graph.order(loaded.graph.above(selected) & models.keys()):
        readers = len(loaded.graph.descendants(unique_id))
        model = _classify_model(models[unique_id], compiler, errors.get(unique_id), readers)
        if unique_id in selected:
            imported.append(model)
    return ImportReport(Counter(node.resource_type for node in nodes), tuple(imported))


def _classify_model(model: RenderedModel, compiler: Compiler, error: SqlError | None, readers: int) -> ImportedModel:
    kind, reasons = "asks", tuple[Reason, ...]()
    if error is None and not model.asks_lake:
        try:
            kind, reasons = _import_kind(compiler.compile(model))
        except SqlError as broken:
            error = broken
    return ImportedModel(model.name, model.path, "broken" if error else kind, reasons, error, readers)


def _import_kind(compiled: CompiledModel) -> tuple[str, tuple[Reason, ...]]:
    config = compiled.model.config
    if config.snapshot is not None:
        return "snapshot", ()
    if config.materialized in ("view", "ephemeral"):
        return "view", ()
    return compiled.classification.strategy, compiled.advised.reasons
