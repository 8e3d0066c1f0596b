"""An environment made production without recomputing. Owns the steps of it, and completing them after a crash.

What is to be done is noted in the environment first. Each step moves one table from one whole state to the next, inputs
first, and finds what an interrupted call has done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlmesh_like.app.lakes.environment_lake import find_environment, find_folder
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.lake_tables import LakeTables, open_tables
from sqlmesh_like.app.lakes.table_locks import environment_lock, promotion_locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.environments.promotion_checks import plan_promotion
from sqlmesh_like.app.operations.environments.promotion_release import release_promoted
from sqlmesh_like.environments.environment import Environment, EnvironmentTable, PromotionStep
from sqlmesh_like.environments.environment_file import EnvironmentFolder
from sqlmesh_like.errors import NodeError, RetryableError, UsageError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.catalogs.registration import is_registered, note_registration
from sqlmesh_like.hudi.cloning.fast_forward import fast_forward, put_in_place, withdraw
from sqlmesh_like.hudi.cloning.newer_commits import CannotPromoteError
from sqlmesh_like.hudi.timeline import Timeline

if TYPE_CHECKING:
    from sqlmesh_like.app.lakes.lake import HudiLake
    from sqlmesh_like.plan.planner import Planner


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
    with _lock_environment(loaded, name) as (place, environment), ExitStack() as engines:

        def make_lake(tables: LakeTables) -> HudiLake:
            from sqlmesh_like.app.lakes.lake import with_engine  # most promotions compile no model

            lake = with_engine(tables)
            engines.callback(lake.engine.stop)
            return lake

        def make_planner(tables: LakeTables) -> Planner:
            from sqlmesh_like.app.lakes.lake import clock

            return make_lake(tables).planner(clock(None))

        lake, own = open_tables(loaded), dict[str, Timeline]()
        if not environment.promotion:
            planned = plan_promotion(lake, environment, make_planner)
            environment, own = replace(environment, promotion=planned.steps), {**planned.own}
            place.write(environment)
            fault_point("promotion.begin")
        promoted = _take_steps(loaded, place, environment, own)
        if loaded.target.catalog != "none":
            _register(make_lake(lake), environment, promoted)
        release = release_promoted(lake, environment, promoted)
        fault_point("promotion.released")
        place.remove()
        fault_point("promotion.end")
        return Promotion(environment.name, environment.promotion, release)


def complete_promotions(loaded: Loaded, environments: Sequence[EnvironmentFolder]) -> None:
    """Complete what was interrupted in these environments, before a run of production reads its tables; their removal,
    too.

    One that another call is at is left to it; where production has moved on meanwhile, a warning says so.
    """
    ours = (loaded.project.name, loaded.target.schema)
    for place in environments:
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
def _lock_environment(loaded: Loaded, name: str) -> Iterator[tuple[EnvironmentFolder, Environment]]:
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


def _take_steps(
    loaded: Loaded, place: EnvironmentFolder, environment: Environment, own: Mapping[str, Timeline]
) -> dict[str, Timeline]:
    """Take the steps that are left; return production's tables. `own`: the environment's that this call has read."""
    promoted: dict[str, Timeline] = {}
    for number, step in enumerate(environment.promotion, 1):
        loaded.reporter.phase(f"promoting {number} of {len(environment.promotion)}, {step.table}")
        entry, uri = environment.tables[step.unique_id], production_uri(loaded, step.table)
        try:
            promoted[step.unique_id] = _promote_table(place, entry, step, own.get(step.unique_id), uri)
        except CannotPromoteError as error:
            place.write(replace(environment, promotion=()))
            hint = f"nothing of it was changed; `sml run -e {environment.name}` brings the rest up to date"
            raise UsageError(f"{step.table} cannot be promoted: {error.message}", hint=hint) from error
        fault_point("promotion.table")
    return promoted


def _register(lake: HudiLake, environment: Environment, promoted: Mapping[str, Timeline]) -> None:
    """Tell the target's catalog of new columns and partitions, by Spark. Where it refuses, the next commit does."""
    loaded = lake.loaded
    for step in environment.promotion:
        table, timeline = lake.catalog.places[step.unique_id].table, promoted[step.unique_id]
        try:
            if is_registered(timeline, loaded.target, table, ()):
                note_registration(timeline, loaded.target, table)  # the noted commit may be archived
            else:
                loaded.reporter.phase(f"registering {table}")
                lake.engine.register(table, timeline.uri, next(iter(timeline.partition_fields), None))
        except NodeError as error:
            loaded.reporter.notify(f"warning: {error}", "warn")


def _promote_table(
    place: EnvironmentFolder, entry: EnvironmentTable, step: PromotionStep, own: Timeline | None, uri: str
) -> Timeline:
    """Bring production's table to what the environment's is. Raises CannotPromoteError: then it has nothing of it."""
    source = place.table_uri(step.table, entry.place)
    try:
        if step.way == "link":
            fast_forward(uri, own or Timeline(source))
        else:
            # Raises CannotPromoteError where another writer has committed to a table that is to be replaced.
            current = Timeline(uri)
            is_there = current.exists and current.frontier is not None
            if is_there and current.frontier != step.commit and current.newest_commit != entry.newest:
                raise CannotPromoteError(
                    f"{uri} is at {current.frontier}, not at {entry.newest}: another writer was there"
                )
            put_in_place(uri, source, step.commit)
        timeline = Timeline(uri)
        if timeline.frontier != step.commit:
            raise CannotPromoteError(f"{uri} is at {timeline.frontier}, not at {step.commit}: another writer was there")
    except CannotPromoteError:
        if step.way == "link":
            withdraw(uri, source, entry.newest or "")
        raise
    return timeline
