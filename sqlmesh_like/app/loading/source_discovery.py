"""Tables that ingestion creates without a declaration, for commands that accept any table of the lake: discovered
tables and dead letters. Owns adding them to declared ones.

Models read only declared tables, so nothing else needs them.
"""

from __future__ import annotations

from dataclasses import replace

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.cdc.sources.discover import is_discovered, with_discovered
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import NodeId
from sqlmesh_like.plan.graph import build_graph
from sqlmesh_like.project.nodes import Source, SourceTable


def with_discovered_tables(loaded: Loaded) -> Loaded:
    """Return the project with the tables that sources with `discover: true` have created in the target's lake."""
    if not any(source.ingest and source.ingest.discover for source in loaded.project.sources):
        return loaded
    sources = tuple(with_discovered(SourcePaths(loaded.target, source)).source for source in loaded.project.sources)
    return replace(loaded, project=replace(loaded.project, sources=sources))


def discovered_tables(loaded: Loaded) -> frozenset[str]:
    """Return unique ids of the discovered tables that no project declares; none where something was selected."""
    if loaded.invocation.is_selecting:
        return frozenset()
    tables = [table for source in loaded.project.sources for table in source.tables]
    # A discovered table that models read is declared too, without `ingest`: they may still need its history.
    declared = {table.table for table in tables if not is_discovered(table)}
    return frozenset(table.unique_id for table in tables if is_discovered(table) and table.table not in declared)


def with_dead_letters(loaded: Loaded) -> Loaded:
    """Return the project with the dead-letter tables of the target's lake, under the names that warnings print."""
    project = loaded.project
    undeclared = {
        source.name: table for source in project.sources if (table := _dead_letters(loaded, source)) is not None
    }
    if not undeclared:
        return loaded
    sources = tuple(
        replace(source, tables=(*source.tables, undeclared[source.name])) if source.name in undeclared else source
        for source in project.sources
    )
    project = replace(project, sources=sources)
    return replace(loaded, project=project, graph=build_graph(project, loaded.rendered), cache_path=None)


def _dead_letters(loaded: Loaded, source: Source) -> SourceTable | None:
    """Return the dead-letter table of a source, where it exists and is not declared."""
    place = SourcePaths(loaded.target, source)
    is_declared = any(table.table == place.dead_letters for table in source.tables)
    if loaded.target.type != "spark" or source.ingest is None or is_declared:
        return None
    if not Timeline(place.dead_letters_uri).exists:
        return None
    package, name = loaded.project.name, place.dead_letters.identifier
    return SourceTable(
        unique_id=NodeId("source", package, source.name, name),
        source_name=source.name,
        name=name,
        table=place.dead_letters,
        location=None,
        format="hudi",
        ingest=None,
        columns=(),
        description="Lines that could not be ingested, with file, position and reason.",
        tags=(),
        meta={},
        declared_at=source.declared_at,
        fqn=(package, source.name, name),
    )
