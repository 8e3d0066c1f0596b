"""Likely mistakes in queries that are valid. Owns which models are checked; `plan.checks.lint` owns the rules."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import input_schemas
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.checks.lint import Suspicion, lint
from sqlmesh_like.project.reading.values import texts_of
from sqlmesh_like.render.rendered import RenderedModel


@dataclass(frozen=True)
class Linted:
    """The number of models that were linted, and the likely mistakes in them."""

    models: int
    warnings: tuple[Suspicion, ...]


def lint_models(loaded: Loaded, off: Collection[str] = ()) -> Linted:
    """Lint the selected models, without the rules that are `off` or that a model's `meta.lint_off` names.

    A model whose template queries the lake, or that is written in Python, is not linted.
    """
    loaded.reporter.phase("compiling the models")
    chosen = {node.unique_id for node in loaded.select_nodes("model", "snapshot")}
    compiler = Compiler(input_schemas(loaded, chosen))
    models: dict[str, RenderedModel] = {model.unique_id: model for model in loaded.rendered.models}
    count, warnings = 0, list[Suspicion]()
    for unique_id in loaded.graph.order(loaded.graph.above(chosen) & models.keys()):
        model = models[unique_id]
        if model.asks_lake:
            continue
        compiled = compiler.compile(model)
        if unique_id in chosen and model.python is None:
            schemas: dict[str, Schema | None] = {ref.unique_id: compiler.columns(ref) for ref in model.inputs}
            left_out = frozenset({*off, *texts_of(model.config.meta.get("lint_off"))})
            warnings += lint(model, schemas, left_out, compiled.facts.schema)
            count += 1
    return Linted(count, tuple(warnings))
