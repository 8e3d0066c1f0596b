"""`unit_tests:` of properties YAML. Owns reading them; what `input:` names and rows hold is resolved later.

Format: https://docs.getdbt.com/reference/resource-properties/unit-tests; `changes`, `key` and `overrides.now` are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import cast

from sqlmesh_like.errors import ProjectError, nearest
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.keys.unit_test_keys import (
    CHANGE,
    EXPECT,
    GIVEN,
    OVERRIDES,
    UNIT_CONFIG,
    UNIT_TEST,
    UNIT_VERSIONS,
)
from sqlmesh_like.project.reading.values import ValueRenderer, YamlWords
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.project.sources import required_text
from sqlmesh_like.project.testing.unit_test_spec import ChangedInput, Fixture, FixtureFormat, GivenInput, UnitTestFile
from sqlmesh_like.project.versions import Version


@dataclass(frozen=True)
class FixtureFile:
    """A file of `<test-path>/fixtures`: `fixture:` refers to it by its name without suffix."""

    path: str
    text: str


def parse_unit_test(
    node: YamlNode, project: str, fixtures: Mapping[str, FixtureFile], values: ValueRenderer
) -> UnitTestFile | None:
    """One entry of `unit_tests:`, None if it is disabled. Raises ProjectError at the first wrong key or value."""
    UNIT_TEST.check(node)
    name, model = required_text(node, "name", "a unit test"), required_text(node, "model", "a unit test")
    config = _config(node, values)
    if config.get("enabled") is False:
        return None
    overrides = node.get("overrides")
    if overrides is not None:
        overrides = values.render(overrides)
        OVERRIDES.check(overrides)
    expect = node.get("expect")
    if expect is None:
        raise node.error(f"unit test {name!r} needs 'expect'", "add expect: {rows: […]}")
    return UnitTestFile(
        unique_id=NodeId("unit_test", project, model, name),
        name=name,
        model=model,
        path=node.location.path,
        description=node.text_of("description") or "",
        given=tuple(_read_given(entry, fixtures) for entry in node.elements_of("given")),
        expect=_read_expect(expect, fixtures),
        declared_at=node.location,
        model_at=node.children["model"].location,
        changes=tuple(_read_change(entry) for entry in node.elements_of("changes")),
        overrides=_overrides(overrides),
        now=None if overrides is None else _now(overrides),
        tags=tuple(dict.fromkeys((*node.texts_of("tags"), *_tags(config)))),
        config=config,
    )


def unit_tests_of(
    nodes: Iterable[YamlNode],
    project: str,
    models: Iterable[str],
    versions: Iterable[Version],
    fixtures: Iterable[FixtureFile],
    words: YamlWords,
) -> tuple[UnitTestFile, ...]:
    """All enabled unit tests. Raises ProjectError for wrong entries, unknown models and a name given twice."""
    known, values, versioned = tuple(models), words.values(), tuple(versions)
    by_name = {PurePosixPath(file.path).name: file for file in fixtures}
    seen: dict[str, UnitTestFile] = {}
    for node in nodes:
        unit_test = parse_unit_test(node, project, by_name, values)
        for test in () if unit_test is None else _of_versions(node, unit_test, versioned):
            _check(test, known, seen)
            seen[test.unique_id] = test
    return tuple(seen.values())


def _of_versions(node: YamlNode, test: UnitTestFile, versions: Iterable[Version]) -> list[UnitTestFile]:
    """The tests of one entry: as in dbt one per version of its model, or per version that its `versions` choose."""
    known = [version for version in versions if version.of == test.model]
    chosen = node.get("versions")
    if chosen is not None:
        UNIT_VERSIONS.check(chosen)
        include, exclude = chosen.texts_of("include"), chosen.texts_of("exclude")
        for v in (*include, *exclude):
            if v not in [version.v for version in known]:
                raise chosen.error(f"model {test.model!r} has no version {v}")
        known = [version for version in known if (not include or version.v in include) and version.v not in exclude]
    if not known:
        return [test]
    return [
        replace(
            test,
            model=version.name,
            unique_id=NodeId.parse(f"{test.unique_id}_v{version.v}"),
            name=f"{test.name}_v{version.v}",
        )
        for version in known
    ]


def _check(test: UnitTestFile, known: tuple[str, ...], seen: Mapping[str, UnitTestFile]) -> None:
    if test.model not in known:
        hint = nearest(test.model, known) or f"known: {', '.join(sorted(known)[:20]) or 'none'}"
        message = f"unit test {test.name!r} names the model {test.model!r}, which does not exist"
        raise ProjectError(message, location=test.model_at, hint=hint)
    if test.unique_id in seen:
        hint = f"the first is declared at {seen[test.unique_id].declared_at}"
        raise ProjectError(f"unit test {test.name!r} is declared twice", location=test.declared_at, hint=hint)


def _read_given(node: YamlNode, fixtures: Mapping[str, FixtureFile]) -> GivenInput:
    GIVEN.check(node)
    return GivenInput(
        required_text(node, "input", "an entry of given"), node.children["input"].location, _fixture(node, fixtures)
    )


def _read_expect(node: YamlNode, fixtures: Mapping[str, FixtureFile]) -> Fixture:
    EXPECT.check(node)
    fixture = _fixture(node, fixtures)
    if fixture.is_silent:
        raise node.error("expect needs 'rows'", "write rows: [] where no row is expected")
    return fixture


def _read_change(node: YamlNode) -> ChangedInput:
    CHANGE.check(node)
    name = required_text(node, "input", "an entry of changes")
    if node.get("upsert") is None and node.get("delete") is None:
        raise node.error(f"the change of {name} is empty", "add upsert: [{…}] or delete: [{…}]")
    return ChangedInput(
        name, node.children["input"].location, _rows(node, "upsert"), _rows(node, "delete"), node.texts_of("key")
    )


def _rows(node: YamlNode, key: str) -> Fixture:
    child = node.get(key)
    if child is None:
        return Fixture("dict", node.location)
    return Fixture("dict", child.location, _mappings(child, key))


def _mappings(node: YamlNode, key: str) -> YamlNode:
    for row in node.sequence(key):
        row.mapping(f"a row of {key}")
    return node


def _fixture(node: YamlNode, fixtures: Mapping[str, FixtureFile]) -> Fixture:
    format_ = cast(FixtureFormat, EXPECT.value(node, "format"))
    rows, file = node.get("rows"), node.get("fixture")
    if rows is not None and file is not None:
        raise file.error("rows and fixture are both given", "keep one of them")
    if file is not None:
        file_found = _fixture_file(file, format_, fixtures)
        return Fixture(format_, file.location, text=file_found.text, text_path=file_found.path)
    if rows is None:
        return Fixture(format_, node.location)
    if format_ == "dict":
        hint = "set format: csv or format: sql where rows is text" if isinstance(rows.value, str) else None
        if hint:
            raise rows.error("rows must be a list of mappings", hint)
        return Fixture(format_, rows.location, _mappings(rows, "rows"))
    if not isinstance(rows.value, str):
        raise rows.error(f"with format: {format_} rows must be text", "write rows: | and the text below it")
    return Fixture(format_, rows.location, text=rows.value)


def _fixture_file(node: YamlNode, format_: FixtureFormat, fixtures: Mapping[str, FixtureFile]) -> FixtureFile:
    if format_ == "dict":
        raise node.error("a fixture file is CSV or SQL", "add format: csv or format: sql")
    name = node.text("fixture")
    fixture = fixtures.get(f"{name}.{format_}")
    if fixture is None:
        same = [known.removesuffix(f".{format_}") for known in fixtures if known.endswith(f".{format_}")]
        hint = nearest(name, same) or f"it is looked for as <test-path>/fixtures/{name}.{format_}"
        raise node.error(f"there is no {format_} fixture {name!r}", hint)
    return fixture


def _config(node: YamlNode, values: ValueRenderer) -> dict[str, object]:
    config = node.get("config")
    if config is None:
        return {}
    config = values.render(config)
    UNIT_CONFIG.check(config)
    return {key: child.value for key, child in config.items()}


def _tags(config: Mapping[str, object]) -> tuple[str, ...]:
    given = config.get("tags")
    return tuple(map(str, given)) if isinstance(given, list) else () if given is None else (str(given),)


def _overrides(node: YamlNode | None) -> dict[str, Mapping[str, object]]:
    if node is None:
        return {}
    kinds = {kind: child for kind in ("macros", "vars", "env_vars") if (child := node.get(kind))}
    return {kind: {key: value.value for key, value in child.mapping(kind).items()} for kind, child in kinds.items()}


def _now(node: YamlNode) -> str | None:
    child = node.get("now")
    return None if child is None else str(child.value)
