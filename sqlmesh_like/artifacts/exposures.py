"""Exposures and groups of `manifest.json`, in the shape of dbt's schema v12. Owns the shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlmesh_like.project.nodes import ModelGroup
from sqlmesh_like.project.paths import within_package
from sqlmesh_like.render.rendered import RenderedExposure, RenderedProject

_NOBODY: Mapping[str, object] = {"email": None, "name": None}


def exposure_entry(rendered: RenderedExposure, refs: Mapping[str, object]) -> dict[str, object]:
    """Return an entry of the manifest's `exposures`; `refs` are its inputs as dbt spells them."""
    declared = rendered.exposure
    path = within_package(declared.declared_at.path, declared.fqn[0])
    return {
        "unique_id": declared.unique_id,
        "name": declared.name,
        "resource_type": "exposure",
        "package_name": declared.unique_id.package,
        "path": path.partition("/")[2],
        "original_file_path": path,
        "fqn": list(declared.fqn),
        "type": declared.type,
        "owner": {**_NOBODY, **declared.owner},
        "description": declared.description,
        "label": declared.label,
        "maturity": declared.maturity,
        "url": declared.url,
        "meta": dict(declared.meta),
        "tags": list(declared.tags),
        "config": {"enabled": True, "tags": list(declared.tags), "meta": dict(declared.meta)},
        "depends_on": {
            "macros": [],
            "nodes": [*(ref.unique_id for ref in rendered.inputs), *dict.fromkeys(rendered.metrics.values())],
        },
        "metrics": [list(call) for call in rendered.metrics],
        **refs,
    }


def group_entry(group: ModelGroup) -> dict[str, object]:
    """Return an entry of the manifest's `groups`."""
    package = group.unique_id.package
    path = within_package(group.declared_at.path, package)
    return {
        "unique_id": group.unique_id,
        "name": group.name,
        "resource_type": "group",
        "package_name": package,
        "path": path.partition("/")[2],
        "original_file_path": path,
        "owner": {**_NOBODY, **group.owner},
        "config": {"meta": {}},
        "description": group.description or None,
    }


def group_map(groups: Iterable[ModelGroup], rendered: RenderedProject) -> dict[str, list[str]]:
    """Return the unique ids of the members of each group, by its name."""
    members: dict[str, list[str]] = {group.name: [] for group in groups}
    named = [(model.config.group, model.unique_id) for model in rendered.models]
    for group, unique_id in (*named, *((one.declared.group, one.unique_id) for one in rendered.semantic)):
        if group in members:
            members[group].append(unique_id)
    return members
