"""An environment made production without recomputing. Owns the steps of it, and completing them after a crash.

What is to be done is noted in the environment first. Each step moves one table from one whole state to the next, inputs
first, and finds what an interrupted call has done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlmesh_like.app.lakes.environment_lake import environment_folder, find_environment
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.lake_tables import LakeTables, open_tables
from sqlmesh_like.app.lakes.table_locks import promotion_locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.environments.promotion_checks import plan_promotion
from sqlmesh_like.app.operations.environments.promotion_release import release_promoted
from sqlmesh_like.environments.environment import Environment, PromotionStep
from sqlmesh_like.environments.environment_file import EnvironmentFolder, environment_folders
from sqlmesh_like.errors import RetryableError, UsageError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.cloning.fast_forward import fast_forward
from sqlmesh_like.hudi.recovery.table_swap import take_place
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline

if TYPE_CHECKING:
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
    with _locked(loaded, name) as environment, ExitStack() as engines:

        def make_planner(tables: LakeTables) -> Planner:
            from sqlmesh_like.app.lakes.lake import clock, with_engine  # most promotions compile no model

            lake = with_engine(tables)
            engines.callback(lake.engine.stop)
            return lake.planner(clock(None))

        lake, own = open_tables(loaded), dict[str, Timeline]()
        if not environment.promotion:
            planned = plan_promotion(lake, environment, make_planner)
            environment, own = replace(environment, promotion=planned.steps), {**planned.own}
            environment_folder(loaded, name).write(environment)
            fault_point("promotion.begin")
        return _complete(lake, environment, own)


def complete_promotions(loaded: Loaded) -> None:
    """Complete what was interrupted, before a run of production reads its tables.

    One that another call is at is left to it; where production has moved on meanwhile, a warning says so.
    """
    ours = (loaded.project.name, loaded.target.schema)
    for place in environment_folders(loaded.target.warehouse):
        environment = place.read()
        if environment is None or not environment.promotion or (environment.project, environment.schema) != ours:
            continue
        loaded.reporter.notify(f"completing the promotion of the environment {environment.name}")
        try:
            with suppress(RetryableError):
                promote_environment(loaded, environment.name)
        except UsageError as error:
            loaded.reporter.notify(f"warning: {error}", "warn")


@contextmanager
def _locked(loaded: Loaded, name: str) -> Iterator[Environment]:
    """The environment, while nobody else uses its tables and those of production in whose place they are put."""
    before = find_environment(loaded, name)
    tables = frozenset(entry.table for entry in before.tables.values())
    uris = [production_uri(loaded, table) for table in tables]
    with lake_lock(loaded, "promote", promotion_locks(loaded, name, uris)):
        environment = find_environment(loaded, name)
        if {entry.table for entry in environment.tables.values()} != tables:
            raise RetryableError(f"another call has changed the environment {name!r}", hint="run the same again")
        yield environment


def production_uri(loaded: Loaded, table: str) -> str:
    """Where production's table of this name, `schema.identifier`, is."""
    schema, _, identifier = table.partition(".")
    return f"{loaded.target.warehouse.rstrip('/')}/{schema}/{identifier}"


def _complete(lake: LakeTables, environment: Environment, own: Mapping[str, Timeline]) -> Promotion:
    """Take the steps that are left; `own`: those of the environment's tables that this call has read."""
    loaded, promoted = lake.loaded, dict[str, Timeline]()
    place = environment_folder(loaded, environment.name)
    for number, step in enumerate(environment.promotion, 1):
        loaded.reporter.phase(f"promoting {number} of {len(environment.promotion)}, {step.table}")
        try:
            uri = production_uri(loaded, step.table)
            promoted[step.unique_id] = _promoted(place, step, own.get(step.unique_id), uri)
        except RetryableError as error:
            place.write(replace(environment, promotion=()))
            hint = f"nothing of it was changed; `sml run -e {environment.name}` brings the rest up to date"
            raise UsageError(f"{step.table} cannot be promoted: {error.message}", hint=hint) from error
        fault_point("promotion.table")
    release = release_promoted(lake, environment, promoted)
    fault_point("promotion.released")
    place.remove()
    fault_point("promotion.end")
    return Promotion(environment.name, environment.promotion, release)


def _promoted(place: EnvironmentFolder, step: PromotionStep, own: Timeline | None, uri: str) -> Timeline:
    """Bring production's table to what the environment's is. Raises RetryableError where another writer was there."""
    source = place.table_uri(step.table)
    if step.way == "link":
        fast_forward(uri, own or Timeline(source))
    elif folder(source).exists() or Timeline(uri).frontier == step.commit:
        take_place(source, uri)
    timeline = Timeline(uri)
    if timeline.frontier != step.commit:
        raise RetryableError(f"{uri} is at {timeline.frontier}, not at {step.commit}: another writer was there")
    return timeline
