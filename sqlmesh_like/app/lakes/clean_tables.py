"""Removes history that no model needs any more after a run. Owns who may clean what; `run.retention` owns the rule."""

from __future__ import annotations

from collections.abc import Iterable

from sqlmesh_like.app.lakes.lake import HudiLake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.reporter import Notify
from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.run.retention import SLACK, Cleaning, due, horizon


def clean(lake: HudiLake, notify: Notify) -> None:
    """Clean all tables of the project. A failure is only a warning: their rows are correct."""
    clean_built(lake, notify)
    if cleanings_due(lake, lake.loaded.project.ingested):
        try:
            with lake_lock(lake.loaded, "ingest"):
                clean_ingested(lake, notify)
        except RetryableError:
            notify("the history of source tables is left to the next run: an ingestion is writing")


def clean_built(lake: HudiLake, notify: Notify) -> None:
    """Clean the tables that runs build."""
    built = [place.unique_id for place in lake.catalog.places.values() if place.unique_id.kind != "source"]
    _clean_tables(lake, cleanings_due(lake, built), notify)


def clean_ingested(lake: HudiLake, notify: Notify) -> None:
    """Clean ingested tables. The caller makes sure that nothing writes to them meanwhile."""
    _clean_tables(lake, cleanings_due(lake, lake.loaded.project.ingested), notify)


def cleanings_due(lake: HudiLake, owned: Iterable[str], slack: int = SLACK) -> tuple[Cleaning, ...]:
    """The cleanings of `owned` that are due by the target's `retention_days` (`retention.due`)."""
    return due(lake.catalog, owned, horizon(lake.loaded.target.retention_days), slack)


def _clean_tables(lake: HudiLake, cleanings: Iterable[Cleaning], notify: Notify) -> None:
    for cleaning in cleanings:
        try:
            lake.engine.clean(cleaning.uri, cleaning.retain)
        except NodeError as error:
            notify(f"warning: {error}", "warn")
