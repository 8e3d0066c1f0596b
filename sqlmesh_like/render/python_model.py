"""A Python model's calls → its config and inputs. Owns what they mean; `python_calls` finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.names import TableName
from sqlmesh_like.project.config import canonical, check_setting, merge_config
from sqlmesh_like.project.keys.config_values import ConfigFault, UnknownSetting
from sqlmesh_like.project.nodes import ModelConfig, ModelFile
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.render.jinja.template_errors import TemplateFault
from sqlmesh_like.render.python_calls import PythonCall, PythonText
from sqlmesh_like.render.relations import RelationRegistry
from sqlmesh_like.render.rendered import InputRef, PythonCode, RenderedModel, SourceMap, reference_key

_STORED = ("table", "incremental")


def python_config(file: ModelFile, text: PythonText) -> dict[str, object]:
    """The effective config of a Python model. Raises ProjectError at a wrong key or value."""
    own: dict[str, object] = {}
    places: dict[str, Location] = {}
    for call in text.of("config"):
        given = call.args[0] if call.args else call.kwargs
        assert isinstance(given, Mapping)
        for key, value in given.items():
            name = canonical(str(key))
            places[name] = call.places.get(str(key), call.location)
            own = merge_config(own, {name: _check_setting_at(name, value, places[name])})
    config = merge_config(merge_config(file.yaml_config, own), file.root_config)
    materialized = config.get("materialized")
    if materialized not in _STORED and config.get("enabled") is not False:
        hint = "set materialized: table for it, by dbt.config(materialized='table') or in YAML"
        place = places.get("materialized", Location(file.path, 1, 1))
        message = f"a Python model is a table or incremental, it cannot be {materialized!r}"
        raise ProjectError(message, location=place, hint=hint)
    return config


def _check_setting_at(name: str, value: object, place: Location) -> object:
    try:
        return check_setting(name, value)
    except UnknownSetting as unknown:
        warn(place, unknown.message, unknown.hint, once=unknown.once)
        return value
    except ConfigFault as fault:
        raise ProjectError(fault.message, location=place, hint=fault.hint) from fault


@dataclass(frozen=True)
class PlacedPython:
    """A Python model after the first pass. `is_allowed`: the root project allows its code to run."""

    file: ModelFile
    text: PythonText
    settings: Mapping[str, object]  # the effective config, unchecked keys included
    table: TableName
    is_allowed: bool


def render_python(placed: PlacedPython, config: ModelConfig, registry: RelationRegistry) -> RenderedModel:
    """The model with its inputs. Raises ProjectError if it reads a node that does not exist."""
    file, text = placed.file, placed.text
    named = [(call, _input(call, registry)) for call in text.of("ref", "source")]
    return RenderedModel(
        unique_id=file.unique_id,
        name=file.name,
        path=file.path,
        raw_sql=file.raw_sql,
        sql=file.raw_sql,
        config=config,
        table=placed.table,
        inputs=tuple({ref.unique_id: ref for _, ref in named}.values()),
        source_map=SourceMap(file.raw_sql, file.raw_sql),
        declared=file.columns,
        description=file.description,
        fqn=file.fqn,
        column_docs=file.column_docs,
        described_in=file.described_in,
        version=file.version,
        python=PythonCode(
            references={reference_key(call.asked, call.args, call.kwargs): ref.unique_id for call, ref in named},
            settings=_config_reads(text, placed.settings),
            function=text.function,
            is_allowed=placed.is_allowed,
        ),
    )


def _input(call: PythonCall, registry: RelationRegistry) -> InputRef:
    names = [str(name) for name in call.args]
    try:
        if call.asked == "source":
            return registry.source(*names)
        version = call.kwargs.get("v")
        return registry.ref(*names, version=call.kwargs.get("version") if version is None else version)
    except TemplateFault as fault:
        raise ProjectError(fault.message, location=call.location, hint=fault.hint) from fault


def _config_reads(text: PythonText, settings: Mapping[str, object]) -> dict[str, object]:
    """The settings that the text reads, by key; those of `meta` as `meta.<key>`."""
    meta = settings.get("meta")
    known = {f"meta.{key}": value for key, value in meta.items()} if isinstance(meta, Mapping) else {}
    keys = {str(call.args[0]) for call in text.of("config.get")}
    values = {key: settings[canonical(key)] for key in keys if settings.get(canonical(key)) is not None}
    keys = {f"meta.{call.args[0]}" for call in text.of("config.meta_get")}
    return values | {key: known[key] for key in keys if key in known}
