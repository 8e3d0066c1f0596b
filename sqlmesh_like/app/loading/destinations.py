"""Where models are published. Owns which of the target's destinations a model's config refers to."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import Location, ProjectError, nearest
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.render.rendered import RenderedModel

DEFAULT = "serving"
"""Name of the destination, a DuckDB file, of a target that declares none."""


def check_destinations(loaded: Loaded, selected: Collection[str]) -> None:
    """Raises ProjectError where a selected model names a destination that the target does not have."""
    published = (m for m in loaded.rendered.models if m.unique_id in selected and m.config.publish is not None)
    for model in published if loaded.target.type == "spark" else ():
        destinations(model, loaded)


def destinations(model: RenderedModel, loaded: Loaded) -> tuple[Destination, ...]:
    """Return where a model is published. Raises ProjectError for an unknown name, and for a view."""
    config, known = model.config, _target_destinations(loaded.target, str(loaded.project.root))
    assert config.publish is not None
    where = Location(model.path)
    if config.materialized in ("view", "ephemeral"):
        hint = "set materialized='incremental', or publish a model that reads it"
        raise ProjectError(f"{model.name} is published but is not a table", location=where, hint=hint)
    if not config.publish.to and len(known) > 1:
        hint = f"config(publish=…) one of: {', '.join(known)}"
        raise ProjectError(f"{model.name} does not say where it is published", location=where, hint=hint)
    names = config.publish.to or tuple(known)
    for name in names:
        if name not in known:
            hint = (
                nearest(name, known) or f"known: {', '.join(known)}; add it to publish: of the output in profiles.yml"
            )
            message = f"{model.name} is published to {name!r}, which target {loaded.target.name!r} does not have"
            raise ProjectError(message, location=where, hint=hint)
    return tuple(known[name] for name in names)


def _target_destinations(target: Target, root: str) -> Mapping[str, Destination]:
    if target.publish:
        return target.publish
    place = root if "://" in target.warehouse else target.warehouse
    return {DEFAULT: Destination(DEFAULT, "duckdb", f"{place}/serving.duckdb")}
