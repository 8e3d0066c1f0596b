"""Microbatch models of dbt. Owns the time from which their inputs are read; `CFG006` reports that batches are not run.

Source: https://docs.getdbt.com/docs/build/incremental-microbatch
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.project.nodes import ModelFile
from sqlmesh_like.project.reading.project_warnings import warn

_NEEDED = ("event_time", "batch_size", "begin")


def batch_begin(config: Mapping[str, object], file: ModelFile) -> str | None:
    """When the first batch begins, in UTC; None if the model is not a microbatch model.

    Raises ProjectError if a setting that dbt requires is missing, or `begin` is not a date or time. Warns about a
    `begin` without effect.
    """
    if config.get("materialized") != "incremental" or config.get("incremental_strategy") != "microbatch":
        if config.get("begin"):
            hint = "it is that of incremental_strategy='microbatch'"
            warn(Location(file.path, 1, 1), "config 'begin' has no effect here", hint, once=True)
        return None
    place = Location(file.path, 1, 1)
    for key in _NEEDED:
        if not config.get(key):
            message = f"a microbatch model needs {key!r}"
            raise ProjectError(message, location=place, hint="event_time, batch_size and begin, as in dbt")
    begin = config["begin"]
    try:
        moment = datetime.datetime.fromisoformat(str(begin))
    except ValueError as error:
        raise ProjectError(f"begin is not a date or time: {begin!r}", location=place, hint="e.g. 2024-01-01") from error
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    is_date = moment.time() == datetime.time()
    return str(moment.date() if is_date else moment)
