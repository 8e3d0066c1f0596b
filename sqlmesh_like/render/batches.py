"""Microbatch models of dbt. Owns from when on their inputs are read; that no batch is run is `CFG006`.

Source: https://docs.getdbt.com/docs/build/incremental-microbatch
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.project.nodes import ModelFile

_NEEDED = ("event_time", "batch_size", "begin")


def batch_begin(config: Mapping[str, object], file: ModelFile) -> str | None:
    """When the first batch begins, in UTC; None of a model that is none of batches.

    Raises ProjectError where a setting that dbt asks for is not there, or `begin` is not a moment.
    """
    if config.get("materialized") != "incremental" or config.get("incremental_strategy") != "microbatch":
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
