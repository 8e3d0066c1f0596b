"""A table's commits, and its DDL for other engines, both from its timeline. Needs no JVM."""

from __future__ import annotations

from dataclasses import replace

from sqlmesh_like.app.lakes.lake import open_lake
from sqlmesh_like.app.lakes.release_lake import newest_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.source_discovery import with_dead_letters, with_discovered_tables
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.external_table import DdlDialect, external_ddl
from sqlmesh_like.hudi.recovery.savepoints import savepoints
from sqlmesh_like.hudi.table_facts import commit_facts
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName
from sqlmesh_like.plan.table_facts import CommitFacts


def table_commits(loaded: Loaded, name: str, limit: int) -> tuple[TableName, tuple[CommitFacts, ...]]:
    """Return a table's name and its newest commits (`limit` -1: all), oldest first. Raises ProjectError, NodeError."""
    place = newest_lake(with_dead_letters(with_discovered_tables(loaded))).catalog.find(name)
    timeline = Timeline(place.uri)
    if not timeline.commits:
        raise NodeError(f"the table {place.table} has no commits", hint="run `sml ingest` or `sml run` first")
    commits = timeline.commits if limit < 0 else timeline.commits[max(0, len(timeline.commits) - limit) :]
    kept = {each.instant: each.comment or f"by {each.user or 'unknown'}" for each in savepoints(timeline)}
    return place.table, tuple(
        replace(commit_facts(commit), savepoint=kept.get(commit.instant.requested)) for commit in commits
    )


def table_ddl(loaded: Loaded, name: str, dialect: DdlDialect) -> tuple[str, ...]:
    """Return statements that declare a Hudi table in another engine. Raises ProjectError, NodeError."""
    lake = open_lake(loaded)
    place = lake.catalog.find(name)
    state = lake.catalog.state(place.unique_id)
    if state.kind not in ("cow", "mor"):
        raise NodeError(f"{place.table} is not a Hudi table yet", hint="run `sml ingest` or `sml run` first")
    return tuple(external_ddl(place.table, state, dialect))
