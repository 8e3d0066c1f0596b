"""An environment made production without recomputing. Owns the steps of it, and completing them after a crash.

What is to be done is noted in the environment first. Each step moves one table from one whole state to the next, inputs
first, and finds what an interrupted call has done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from sqlmesh_like.app.lakes.environment_lake import find_environment, find_folder
from sqlmesh_like.app.lakes.lake import HudiLake, open_lake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.table_locks import environment_lock, promotion_locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.environments.members import newest_commit
from sqlmesh_like.app.operations.environments.promotion_checks import planned_steps
from sqlmesh_like.app.operations.environments.promotion_release import release_promoted
from sqlmesh_like.environments.environment import Environment, EnvironmentTable, PromotionStep
from sqlmesh_like.environments.environment_file import EnvironmentFolder, environment_folders
from sqlmesh_like.errors import NodeError, RetryableError, UsageError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.catalogs.registration import is_registered, note_registration
from sqlmesh_like.hudi.cloning.fast_forward import CannotPromoteError, fast_forward, put_in_place, withdraw
from sqlmesh_like.hudi.timeline import Timeline


@dataclass(frozen=True)
class Promotion:
    """What was done with each table, and the release that was made, if any."""

    environment: str
    steps: tuple[PromotionStep, ...]
    release: int | None


def promote_environment(loaded: Loaded, name: str) -> Promotion:
    """Make an environment's tables those of production, and remove it. What was interrupted is completed.

    Raises UsageError, before anything is changed, where the environment is not up to date; MovedError (a UsageError)
    where production has moved on; RetryableError where another call uses one of the tables.
    """
    with _locked(loaded, name) as (place, environment):
        lake = open_lake(loaded)
        try:
            if not environment.promotion:
                environment = replace(environment, promotion=planned_steps(lake, environment))
                place.write(environment)
                fault_point("promotion.begin")
            return _complete(lake, place, environment)
        finally:
            lake.engine.stop()


def complete_promotions(loaded: Loaded) -> None:
    """Complete what was interrupted, before a run of production reads its tables; removals of environments, too.

    One that another call is at is left to it; where production has moved on meanwhile, a warning says so.
    """
    ours = (loaded.project.name, loaded.target.schema)
    for place in environment_folders(loaded.target.warehouse):
        environment = place.read()
        if environment is None:
            with suppress(RetryableError), lake_lock(loaded, "env drop", environment_lock(place.name)):
                place.remove_remains()
            continue
        if not environment.promotion or (environment.project, environment.schema) != ours:
            continue
        loaded.reporter.notify(f"completing the promotion of the environment {environment.name}")
        try:
            with suppress(RetryableError):
                promote_environment(loaded, environment.name)
        except UsageError as error:
            loaded.reporter.notify(f"warning: {error}", "warn")


@contextmanager
def _locked(loaded: Loaded, name: str) -> Iterator[tuple[EnvironmentFolder, Environment]]:
    """The environment, while nobody else uses its tables and those of production in whose place they are put."""
    before = find_environment(loaded, name)
    tables = frozenset(entry.table for entry in before.tables.values())
    uris = [production_uri(loaded, table) for table in tables]
    with lake_lock(loaded, "promote", promotion_locks(loaded, name, uris)):
        place, environment = find_folder(loaded, name)
        if {entry.table for entry in environment.tables.values()} != tables:
            raise RetryableError(f"another call has changed the environment {name!r}", hint="run the same again")
        yield place, environment


def production_uri(loaded: Loaded, table: str) -> str:
    """Where production's table of this name, `schema.identifier`, is."""
    schema, _, identifier = table.partition(".")
    return f"{loaded.target.warehouse.rstrip('/')}/{schema}/{identifier}"


def _complete(lake: HudiLake, place: EnvironmentFolder, environment: Environment) -> Promotion:
    loaded = lake.loaded
    for number, step in enumerate(environment.promotion, 1):
        loaded.reporter.phase(f"promoting {number} of {len(environment.promotion)}, {step.table}")
        try:
            _take(place, environment.tables[step.unique_id], step, production_uri(loaded, step.table))
        except CannotPromoteError as error:
            place.write(replace(environment, promotion=()))
            hint = f"nothing of it was changed; `sml run -e {environment.name}` brings the rest up to date"
            raise UsageError(f"{step.table} cannot be promoted: {error.message}", hint=hint) from error
        fault_point("promotion.table")
    lake.catalog.history.renew()
    _register(lake, environment)
    release = release_promoted(lake, environment)
    fault_point("promotion.released")
    place.remove()
    fault_point("promotion.end")
    return Promotion(environment.name, environment.promotion, release)


def _register(lake: HudiLake, environment: Environment) -> None:
    """Tell the target's catalog of new columns and partitions, by Spark. Where it refuses, the next commit does."""
    loaded = lake.loaded
    for step in environment.promotion if loaded.target.catalog != "none" else ():
        table = lake.catalog.places[step.unique_id].table
        timeline = Timeline(production_uri(loaded, step.table))
        try:
            if is_registered(timeline, loaded.target, table, ()):
                note_registration(timeline, loaded.target, table)  # the noted commit may be archived
            else:
                loaded.reporter.phase(f"registering {table}")
                lake.engine.register(table, timeline.uri, next(iter(timeline.partition_fields), None))
        except NodeError as error:
            loaded.reporter.notify(f"warning: {error}", "warn")


def _take(place: EnvironmentFolder, entry: EnvironmentTable, step: PromotionStep, uri: str) -> None:
    """Bring production's table to what the environment's is. Raises CannotPromoteError: then it has nothing of it."""
    own = place.table_uri(step.table, entry.place)
    try:
        if step.way == "link":
            fast_forward(uri, own)
        else:
            _require_unmoved(uri, entry, step)
            put_in_place(uri, own, step.commit)
        if (frontier := Timeline(uri).frontier) != step.commit:
            raise CannotPromoteError(f"{uri} is at {frontier}, not at {step.commit}: another writer was there")
    except CannotPromoteError:
        if step.way == "link":
            withdraw(uri, own, entry.newest or "")
        raise


def _require_unmoved(uri: str, entry: EnvironmentTable, step: PromotionStep) -> None:
    """Raises CannotPromoteError where another writer has committed to a table that is to be replaced."""
    timeline = Timeline(uri)
    is_there = timeline.exists and timeline.frontier is not None
    if is_there and timeline.frontier != step.commit and newest_commit(timeline) != entry.newest:
        raise CannotPromoteError(f"{uri} is at {timeline.frontier}, not at {entry.newest}: another writer was there")
