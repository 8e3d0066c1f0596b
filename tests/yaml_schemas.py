"""Whether the YAML of a project is valid by what `sml schema` prints. Owns which files of a project are which kind."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from jsonschema import Draft7Validator

from sqlmesh_like.app.setup.file_schemas import SCHEMA_FILES, file_json_schema
from sqlmesh_like.errors import SmlError
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.nodes import ParsedProject
from sqlmesh_like.project.profile import load_target
from sqlmesh_like.project.reading.project_warnings import LOGGER
from sqlmesh_like.project.reading.yaml_node import parse_yaml
from sqlmesh_like.project.selectors import load_selectors
from sqlmesh_like.project.settings import load_settings
from sqlmesh_like.report.chart import read_report


@cache
def validator(kind: str) -> Draft7Validator:
    """That of one of `SCHEMA_FILES`; the schema itself is valid."""
    assert kind in SCHEMA_FILES
    schema = file_json_schema(kind)
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def faults(root: Path) -> list[str]:
    """What the schemas say against the YAML of a project that loads without a warning; nothing of another."""
    with recorded_warnings() as warnings:
        try:
            project = load_project(root, {})
        except SmlError:
            return []
    has_doubts = any(" is ignored" in text or "occurs twice" in text for text in warnings)
    files = [] if has_doubts else list(_files(root, project))
    return [f"{path}: {fault}" for kind, path in files for fault in _faults(kind, path)]


@contextmanager
def recorded_warnings() -> Iterator[list[str]]:
    """What loading warns of, whether or not an earlier call has taken the logger."""
    texts: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger(LOGGER).addHandler(handler)
    try:
        yield texts
    finally:
        logging.getLogger(LOGGER).removeHandler(handler)


def files_of(root: Path) -> list[tuple[str, Path]]:
    """The files of a project that loads, each with its kind."""
    return list(_files(root, load_project(root, {})))


def yaml_value(text: str, path: str) -> object:
    """The value of a file, as the loader reads it."""
    if path.endswith(".toml"):
        value: object = tomllib.loads(text)["tool"]["sqlmesh_like"]
        return value
    return parse_yaml(text, path).value


def _faults(kind: str, path: Path) -> list[str]:
    value = yaml_value(path.read_text("utf-8"), path.name)
    return [f"{error.json_path}: {error.message[:300]}" for error in validator(kind).iter_errors(value)]


def _files(root: Path, project: ParsedProject) -> Iterator[tuple[str, Path]]:
    """Files that the loader has read and found right, each with its kind."""
    if project.settings_file == "dbt_project.yml" or "[tool.sqlmesh_like" in _text(root / "pyproject.toml"):
        yield "project", root / project.settings_file
    if not any(node.error for node in (*project.models, *project.seeds)):
        settings = load_settings(root, {})
        folders = (*settings.model_paths, *settings.seed_paths, *settings.snapshot_paths, *settings.test_paths)
        for folder in folders:
            yield from (("properties", path) for path in sorted((root / folder).rglob("*.y*ml")))
    if (root / "selectors.yml").is_file() and _selectors_load(root, project):
        yield "selectors", root / "selectors.yml"
    if (root / "packages.yml").is_file():  # a project that loads has read it
        yield "packages", root / "packages.yml"
    if (root / "profiles.yml").is_file() and _profiles_load(root, project):
        yield "profiles", root / "profiles.yml"
    if (root / "report.yml").is_file() and read_report(root) is not None:
        yield "report", root / "report.yml"


def _selectors_load(root: Path, project: ParsedProject) -> bool:
    try:
        load_selectors(root, project.vars)
    except SmlError:
        return False
    return True


def _profiles_load(root: Path, project: ParsedProject) -> bool:
    profiles = parse_yaml(_text(root / "profiles.yml"), "profiles.yml").children
    try:
        for name, profile in profiles.items():
            for output in profile.mapping("a profile").children["outputs"].children if name != "config" else ():
                load_target(project, root, name, output, {})
    except (SmlError, KeyError):
        return False
    return True


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.is_file() else ""
