"""Where a model's config sets a key, for errors."""

from __future__ import annotations

import re

from sqlmesh_like.errors import Location
from sqlmesh_like.render.rendered import RenderedModel


def config_place(model: RenderedModel, key: str) -> Location:
    """Where the model's own file or its properties set a config key; its first line if settings by folder do."""
    match = re.search(rf"\b{key}\s*=", model.raw_sql)
    if match is None:
        return model.config_places.get(key, Location(model.path, 1, 1))
    before = model.raw_sql[: match.start()]
    return Location(model.path, before.count("\n") + 1, match.start() - before.rfind("\n"))
