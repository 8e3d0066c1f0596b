"""Declarations of a project by the names that templates use. Owns collecting them from a loaded project; no JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import input_schemas
from sqlmesh_like.docs.plans import DocumentedModel, document_models
from sqlmesh_like.errors import Location
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.project.nodes import MacroFile, SourceTable
from sqlmesh_like.render.rendered import RenderedModel, RenderedSeed

_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)\s*\(([^)]{0,2000})\)")


@dataclass(frozen=True)
class Declaration:
    """Something that a template can name. `strategy` None: it is not a model, or its SQL is invalid or not known."""

    name: str
    kind: str  # model, snapshot, seed, source table, macro
    place: Location
    columns: Schema = ()
    strategy: str | None = None
    description: str = ""


@dataclass(frozen=True)
class ProjectIndex:
    """Declarations by name: of ref(), of source() and of macros. `inputs`: those that a model reads, by its path."""

    nodes: Mapping[str, Declaration] = field(default_factory=dict)
    sources: Mapping[tuple[str, str], Declaration] = field(default_factory=dict)
    macros: Mapping[str, Declaration] = field(default_factory=dict)
    inputs: Mapping[str, tuple[Declaration, ...]] = field(default_factory=dict)


def build_index(loaded: Loaded) -> ProjectIndex:
    """Build the index of a project; nodes that are invalid have no strategy, and only their declared columns."""
    models = [model.unique_id for model in loaded.rendered.models]
    schemas = input_schemas(loaded, models)
    compiled, _errors = document_models(loaded.rendered, loaded.graph, schemas, None, {}, datetime.now(UTC))
    by_id = {
        **{seed.unique_id: _seed(seed, schemas) for seed in loaded.rendered.seeds},
        **{table.unique_id: _source(table, schemas) for table in _source_tables(loaded)},
        **{model.unique_id: _model(model, compiled.get(model.unique_id)) for model in loaded.rendered.models},
    }
    tables = {(table.source_name, table.name): by_id[table.unique_id] for table in _source_tables(loaded)}
    inputs = {
        model.path: tuple(by_id[ref.unique_id] for ref in model.inputs if ref.unique_id in by_id)
        for model in loaded.rendered.models
    }
    nodes = {one.name: one for one in by_id.values() if one.kind != "source table"}
    macros = {macro.name: macro for file in loaded.project.macros for macro in _macros(file)}
    return ProjectIndex(nodes, tables, macros, inputs)


def _model(model: RenderedModel, compiled: DocumentedModel | None) -> Declaration:
    columns = model.declared if compiled is None else compiled.compiled.facts.schema or ()
    strategy = None if compiled is None else compiled.compiled.classification.strategy
    kind = model.unique_id.kind
    return Declaration(model.name, kind, Location(model.path, 1, 1), columns, strategy, model.description)


def _seed(seed: RenderedSeed, schemas: Mapping[str, Schema | None]) -> Declaration:
    columns = schemas.get(seed.unique_id) or tuple(Column(name, kind) for name, kind in seed.column_types.items())
    return Declaration(seed.name, "seed", Location(seed.path, 1, 1), columns, None, seed.description)


def _source(table: SourceTable, schemas: Mapping[str, Schema | None]) -> Declaration:
    columns = schemas.get(table.unique_id) or table.shown
    name = f"{table.source_name}.{table.name}"
    return Declaration(name, "source table", table.declared_at, columns, None, table.description)


def _source_tables(loaded: Loaded) -> Iterator[SourceTable]:
    return (table for source in loaded.project.sources for table in source.tables)


def _macros(file: MacroFile) -> Iterator[Declaration]:
    for match in _MACRO.finditer(file.raw):
        call = f"{match[1]}({' '.join(match[2].split())})"
        name = match[1] if file.package is None else f"{file.package}.{match[1]}"
        yield Declaration(name, "macro", Location.at(file.path, file.raw, match.start(1)), description=f"`{call}`")
