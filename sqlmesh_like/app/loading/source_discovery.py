"""Tables that ingestion discovered, for commands that name any table of the lake. Owns adding them to declared ones.

Models read only what is declared, so nobody else asks for them.
"""

from __future__ import annotations

from dataclasses import replace

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.cdc.sources.discover import is_discovered, with_discovered
from sqlmesh_like.cdc.sources.source_paths import SourcePaths


def with_discovered_tables(loaded: Loaded) -> Loaded:
    """The same with the tables that sources with `discover: true` have brought into the target's lake."""
    if not any(source.ingest and source.ingest.discover for source in loaded.project.sources):
        return loaded
    sources = tuple(with_discovered(SourcePaths(loaded.target, source)).source for source in loaded.project.sources)
    return replace(loaded, project=replace(loaded.project, sources=sources))


def discovered_tables(loaded: Loaded) -> frozenset[str]:
    """The discovered tables (by unique id) among a project's that nobody reads; none where something was selected."""
    if loaded.invocation.is_selecting:
        return frozenset()
    tables = [table for source in loaded.project.sources for table in source.tables]
    # Whoever reads one has declared it, without `ingest`: its history is what they have not read yet.
    declared = {table.table for table in tables if not is_discovered(table)}
    return frozenset(table.unique_id for table in tables if is_discovered(table) and table.table not in declared)
