"""Removes history that no model needs any more after a run. Owns who may clean what; `run.retention` owns the rule."""

from __future__ import annotations

from collections.abc import Iterable

from sqlmesh_like.app.lakes.lake import HudiLake
from sqlmesh_like.app.lakes.lake_lock import HeldLocks
from sqlmesh_like.app.lakes.release_tables import release_locks, released_frontiers
from sqlmesh_like.app.lakes.table_locks import upkeep_locks
from sqlmesh_like.app.reporter import Notify
from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.run.retention import SLACK, Cleaning, due, horizon


def clean(lake: HudiLake, held: HeldLocks, notify: Notify) -> None:
    """Clean all tables of the project that no other call reads or writes."""
    with lake.catalog.keep(lake.catalog.places):
        clean_built(lake, held, notify)
        clean_ingested(lake, held, notify)


def clean_built(lake: HudiLake, held: HeldLocks, notify: Notify) -> None:
    """Clean the tables that runs build."""
    built = [place.unique_id for place in lake.catalog.places.values() if place.unique_id.kind != "source"]
    _clean_tables(lake, built, held, notify)


def clean_ingested(lake: HudiLake, held: HeldLocks, notify: Notify) -> None:
    """Clean ingested tables. Where this process ingests too, the caller makes sure that it writes nothing meanwhile."""
    _clean_tables(lake, lake.loaded.project.ingested, held, notify)


def cleanings_due(lake: HudiLake, owned: Iterable[str], slack: int = SLACK) -> tuple[Cleaning, ...]:
    """The cleanings of `owned` that are due by the target's `retention_days`, and its releases (`retention.due`)."""
    owned = tuple(owned)
    if not owned:  # to ask what is released is a request on a store
        return ()
    since = horizon(lake.loaded.target.retention_days)
    return due(lake.catalog, owned, since, slack, released_frontiers(lake.loaded))


def _clean_tables(lake: HudiLake, owned: Iterable[str], held: HeldLocks, notify: Notify) -> None:
    """Clean what is due; a failure is only a warning, because the rows are correct."""
    places = {place.uri: place for place in map(lake.catalog.places.__getitem__, owned)}
    for uri in [cleaning.uri for cleaning in cleanings_due(lake, [place.unique_id for place in places.values()])]:
        place = places[uri]
        try:
            with held.also({**upkeep_locks(lake, [place], "clean"), **release_locks(lake.loaded)}):
                # Only now does nobody else write to it. Who begins to read it pins commits that are kept.
                lake.catalog.history.renew()
                for cleaning in cleanings_due(lake, [place.unique_id]):
                    lake.engine.clean(cleaning.uri, cleaning.retain)
        except RetryableError as error:
            notify(f"the history of {place.table} is left to a later run: {error.message}")
        except NodeError as error:
            notify(f"warning: {error}", "warn")
