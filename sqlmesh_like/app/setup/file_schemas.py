"""JSON Schema of a project's files, generated from the declarations that the loader checks."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.project.keys.json_schema import json_schema
from sqlmesh_like.project.keys.package_keys import PACKAGES
from sqlmesh_like.project.keys.profile_keys import PROFILES
from sqlmesh_like.project.keys.property_keys import PROPERTIES
from sqlmesh_like.project.keys.selector_keys import SELECTORS
from sqlmesh_like.project.keys.settings_keys import PROJECT_SETTINGS
from sqlmesh_like.project.keys.shape import Shape
from sqlmesh_like.report.chart import REPORT

SCHEMA_FILES: Mapping[str, tuple[Shape, str]] = {
    "project": (PROJECT_SETTINGS, "dbt_project.yml, and [tool.sqlmesh_like] of pyproject.toml"),
    "properties": (PROPERTIES, "Properties: models, sources, tests and the like"),
    "profiles": (PROFILES, "profiles.yml"),
    "report": (REPORT, "report.yml"),
    "selectors": (SELECTORS, "selectors.yml"),
    "packages": (PACKAGES, "packages.yml"),
}
"""The shape and the title of each kind of file."""


def file_json_schema(kind: str) -> dict[str, object]:
    """Return the JSON Schema of a kind of `SCHEMA_FILES`."""
    shape, title = SCHEMA_FILES[kind]
    return json_schema(shape, title)
