"""JSON Schema of the project's YAML is that of the keys that the loader checks."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft7Validator

from sqlmesh_like.app.setup.file_schemas import SCHEMA_FILES
from sqlmesh_like.cli.app import build_app
from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.project.keys.config_keys import FolderTree
from sqlmesh_like.project.keys.json_schema import json_schema, shapes_of
from sqlmesh_like.project.keys.profile_keys import OUTPUT
from sqlmesh_like.project.keys.shape import Shape
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.reading.yaml_node import plain_node
from tests.yaml_schemas import faults, files_of, recorded_warnings, validator, yaml_value

ROOT = Path(__file__).parents[3]
SHAPES = list({id(shape): shape for file, _ in SCHEMA_FILES.values() for shape in shapes_of(file)}.values())
CLOSED = [shape for shape in SHAPES if shape.others != "take"]
HERE = Location("some.yml", 1, 1)


def entry(shape: Shape) -> dict[str, object]:
    """The least that an entry must say."""
    return {name: key.shown for name, key in shape.keys.items() if key.is_required}


def schema_of(shape: Shape) -> Draft7Validator:
    return Draft7Validator(json_schema(shape, shape.name))


@pytest.mark.parametrize("folder", [".", "demo/estate", "demo/retail"])
def test_what_the_demos_say_is_valid(folder: str) -> None:
    with recorded_warnings() as warnings:
        load_project(ROOT / folder, {})
    assert warnings == []
    assert len(list(files_of(ROOT / folder))) >= 4
    assert faults(ROOT / folder) == []


@pytest.mark.parametrize(
    ("kind", "path", "right", "wrong"),
    [
        ("project", "pyproject.toml", '"+schema"', '"+shcema"'),
        ("properties", "models/schema.yml", "data_tests:", "data_test:"),
        ("properties", "models/ods/sources.yml", "primary_key:", "primery_key:"),
        ("profiles", "profiles.yml", "warehouse:", "warehuose:"),
        ("report", "report.yml", "title:", "titel:"),
    ],
)
def test_a_misspelt_key_is_not(kind: str, path: str, right: str, wrong: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    assert right in text
    assert validator(kind).is_valid(yaml_value(text, path))
    assert not validator(kind).is_valid(yaml_value(text.replace(right, wrong), path))


@pytest.mark.parametrize("shape", CLOSED, ids=lambda shape: shape.what)
def test_loader_and_schema_take_the_same_keys(shape: Shape) -> None:
    said, refuses, schema = entry(shape), shape.others == "refuse", schema_of(shape)
    with recorded_warnings() as warnings:
        shape.check_keys(plain_node(said, HERE))
    assert schema.is_valid(said)
    assert warnings == []
    for name in shape.keys:
        slip = f"{name}x"
        assert not schema.is_valid({**said, slip: None}), slip
        with recorded_warnings() as warnings, pytest.raises(ProjectError, match=slip) if refuses else nullcontext():
            shape.check_keys(plain_node({**said, slip: None}, HERE))
        assert refuses or slip in warnings[0]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.what)
def test_examples_are_what_loader_and_schema_take(shape: Shape) -> None:
    schema = schema_of(shape)
    for name, key in shape.keys.items():
        if key.shown is not None and not isinstance(shape, FolderTree):
            said = {**entry(shape), name: key.shown}
            assert [error.message for error in schema.iter_errors(said)] == [], name
            shape.check(plain_node(said, HERE))


def test_an_output_may_have_keys_of_other_adapters_but_no_slip() -> None:
    schema = schema_of(OUTPUT)
    assert schema.is_valid({"type": "spark", "host": "db.example.com", "method": "thrift", "token": "x"})
    for slip in ("warehous", "warehousee", "wareh0use", "warehuose", "schem", "theads", "delta_engin", "on_unprovenn"):
        assert not schema.is_valid({"type": "spark", slip: "x"}), slip
        with pytest.raises(ProjectError, match="unknown key"):
            OUTPUT.check(plain_node({"type": "spark", slip: "x"}, HERE))


@pytest.mark.parametrize(
    ("config", "is_valid"),
    [
        ({"materialized": "view", "pre-hook": "select 1", "+tags": None}, False),
        ({"materialized": "view", "pre-hook": [{"sql": "select 1", "transaction": False}]}, True),
        ({"materialized": "viev"}, False),
        ({"materialized": "{{ var('kind') }}", "enabled": "{{ var('on') }}"}, True),
        ({"enabled": "True", "publish": True, "partition_by": {"field": "day"}}, True),
        ({"enabled": "perhaps"}, False),
        ({"hudi": {"a": [1]}}, False),
    ],
)
def test_settings_of_a_model(config: dict[str, object], is_valid: bool) -> None:
    properties = {"version": 2, "models": [{"name": "a", "config": config}]}
    assert validator("properties").is_valid(properties) is is_valid


@pytest.mark.parametrize(
    ("tree", "is_valid"),
    [
        ({"shop": {"dws": {"+schema": "dws", "+pre-hook": "select 1", "tags": ["a"]}}}, True),
        ({"shop": {"dws": {"+shcema": "dws"}}}, False),
        ({"shop": {"dws": {"shcema": "dws"}}}, False),
        ({"+enabled": "no"}, False),
    ],
)
def test_settings_by_folder(tree: dict[str, object], is_valid: bool) -> None:
    assert validator("project").is_valid({"name": "shop", "models": tree}) is is_valid


@pytest.mark.parametrize(
    ("definition", "is_valid"),
    [
        ("tag:a+ model_b", True),
        ({"tag": "nightly"}, True),
        ({"config.materialized": "view"}, True),
        ({"tga": "nightly"}, False),
        ({"union": [{"method": "tag", "value": "a", "children": True}, {"exclude": ["tag:b"]}]}, True),
        ({"union": [{"method": "tag", "value": "a", "childern": True}]}, False),
    ],
)
def test_selectors(definition: object, is_valid: bool) -> None:
    selectors = {"selectors": [{"name": "nightly", "definition": definition}]}
    assert validator("selectors").is_valid(selectors) is is_valid


@pytest.mark.parametrize("kind", SCHEMA_FILES)
def test_the_command_prints_it(kind: str) -> None:
    result = CliRunner().invoke(build_app(), ["schema", kind])
    assert result.exit_code == 0
    assert Draft7Validator(json.loads(result.output)).schema == validator(kind).schema


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.what)
def test_each_key_has_its_type_and_an_example(shape: Shape) -> None:
    assert [name for name, key in shape.keys.items() if not key.form.words or key.shown is None] == []
