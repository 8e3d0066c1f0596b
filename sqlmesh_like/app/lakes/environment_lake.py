"""A lake as an environment shows it: its own tables, and production's for all others. Owns finding an environment.

Where it cannot be had is said before anything starts.
"""

from __future__ import annotations

from dataclasses import replace

from sqlmesh_like.app.lakes.lake_tables import TablesT, require_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.environments.environment import Environment
from sqlmesh_like.environments.environment_file import (
    EnvironmentFolder,
    environment_at,
    environment_folders,
    nearest_environment,
)
from sqlmesh_like.errors import UsageError
from sqlmesh_like.names import is_local, is_s3
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.secrets import scrub_text


def require_environments(loaded: Loaded) -> None:
    """Raises UsageError where the target's lake cannot have environments."""
    require_lake(loaded)
    target = loaded.target
    if not (is_local(target.warehouse) or is_s3(target.warehouse)):
        hint = "choose a target whose warehouse is a folder of this machine, or on S3, with -t"
        raise UsageError(f"{scrub_text(target.warehouse)}: environments are kept on local disks and S3 only", hint=hint)
    if target.store.single_writer and not is_local(target.warehouse):
        hint = "a store with conditional writes needs no `single_writer`"
        raise UsageError(f"{scrub_text(target.warehouse)}: environments need its locks (`single_writer`)", hint=hint)
    if loaded.invocation.defer:
        raise UsageError("an environment reads production's tables: --defer has no meaning there", hint="leave it out")


def environment_folder(loaded: Loaded, name: str) -> EnvironmentFolder:
    """Return where an environment is. Raises UsageError for an invalid name, and where there can be none."""
    require_environments(loaded)
    return environment_at(loaded.target.warehouse, name)


def find_environment(loaded: Loaded, name: str) -> Environment:
    """Return an environment. Raises UsageError where there is none, or where it is of another project or schema."""
    return find_folder(loaded, name)[1]


def find_folder(loaded: Loaded, name: str) -> tuple[EnvironmentFolder, Environment]:
    """The same with its folder, whose object may be replaced as it was read."""
    place = environment_folder(loaded, name)
    environment = place.read()
    if environment is None:
        hint = nearest_environment(loaded.target.warehouse, name) or f"`sml run -e {name}` makes it"
        raise UsageError(f"there is no environment {name!r}", hint=hint)
    require_own(loaded, environment)
    return place, environment


def require_own(loaded: Loaded, environment: Environment) -> None:
    """Raises UsageError where an environment is of another project, or of another schema of this one."""
    ours = (loaded.project.name, loaded.target.schema)
    if (environment.project, environment.schema) != ours:
        whose = f"of project {environment.project!r} with schema {environment.schema!r}"
        message = f"the environment {environment.name!r} is {whose}, not of {ours[0]!r} with {ours[1]!r}"
        raise UsageError(message, hint="choose another name")


def require_settled(environment: Environment) -> None:
    """Raises UsageError where a promotion of the environment was interrupted."""
    if environment.promotion:
        hint = f"`sml promote {environment.name}` completes it"
        raise UsageError(f"the promotion of {environment.name!r} was interrupted", hint=hint)


def require_no_environments(loaded: Loaded) -> None:
    """Raises UsageError where the warehouse has environments: their tables share files with production's."""
    if names := [each.name for each in environment_folders(loaded.target.warehouse)]:
        hint = f"drop them first: sml env drop {names[0]}"
        raise UsageError(f"environments hold copies of the lake's rows: {', '.join(names)}", hint=hint)


def in_environment(lake: TablesT, environment: Environment) -> TablesT:
    """Return a lake with the environment's tables in the place of production's, and its own for failing rows."""
    folder = environment_at(lake.loaded.target.warehouse, environment.name)
    moved: dict[str, TablePlace] = {}
    for unique_id, place in lake.catalog.places.items():
        entry = environment.tables.get(place.unique_id)
        if place.unique_id.kind == "test" or (entry is not None and entry.table == str(place.table)):
            uri = folder.table_uri(str(place.table), entry.place if entry is not None else "")
            moved[unique_id] = replace(place, uri=uri)
    return replace(lake, catalog=replace(lake.catalog, places={**lake.catalog.places, **moved}))
