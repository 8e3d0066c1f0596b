"""Data tests after Jinja. Owns their config (`severity`, `enabled` …); `project` reads their declarations."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlmesh_like.errors import JinjaError, Location, ProjectError, as_sql_error
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import TestFile
from sqlmesh_like.project.paths import within_package
from sqlmesh_like.project.reading.file_dependencies import rendering_node
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.testing.data_test_config import check_test_setting, merge_settings
from sqlmesh_like.render.context import ConfigCall, RenderEnvironment, RenderTrace, build_scope
from sqlmesh_like.render.jinja.template_errors import MAY_BE_PACKAGE
from sqlmesh_like.render.macros import TemplateScope
from sqlmesh_like.render.naming import schema_of_failures
from sqlmesh_like.render.relations import DisabledNode, RelationRegistry
from sqlmesh_like.render.rendered import RenderedTest, SourceMap


def render_tests(
    tests: tuple[TestFile, ...],
    disabled: frozenset[str],
    registry: RelationRegistry,
    around: RenderEnvironment,
) -> tuple[RenderedTest, ...]:
    """The enabled tests of enabled nodes; one whose template is broken carries its error."""
    wanted = [test for test in tests if test.attached_to not in disabled]
    rendered = [_try_render_test(test, registry, around) for test in wanted]
    return tuple(test for test in rendered if test is not None)


def render_test(test: TestFile, registry: RelationRegistry, around: RenderEnvironment) -> RenderedTest | None:
    """One test, None if it is disabled. Raises ProjectError if its template is broken."""
    with rendering_node(test.unique_id):
        return _render_test(test, registry, around)


def _try_render_test(test: TestFile, registry: RelationRegistry, around: RenderEnvironment) -> RenderedTest | None:
    try:
        return render_test(test, registry, around)
    except ProjectError as broken:
        return RenderedTest(
            test.unique_id, test.name, test.path, "", "error", (), test.attached_to, test.raw_sql,
            tags=_tags(test.config.get("tags")), column_name=test.column_name, test_type=test.test_type,
            config=merge_settings(test.weaker, test.config), declared_at=test.declared_at, fqn=test.fqn,
            description=test.description, short_name=test.short_name, metadata=test.metadata, entry=test.config,
            described_in=test.described_in, schema=f"{around.target.schema}_dbt_test__audit",
            error=as_sql_error(broken),
        )  # fmt: skip


def _render_test(test: TestFile, registry: RelationRegistry, around: RenderEnvironment) -> RenderedTest | None:
    if _is_disabled(test, around):
        return None
    findings = RenderTrace()
    scope = _scope(test, registry, around, findings)
    try:
        if test.test_type == "generic":
            source_map = _at_declaration(test, around, scope)
        else:
            source_map = around.templates.render(test.path, test.raw_sql, scope)
    except JinjaError as error:
        is_own = test.unique_id.package == around.project
        if findings.missing is None or (is_own and not isinstance(findings.missing, DisabledNode)):
            raise
        # As in dbt, the tested node may be disabled while the test is not. A name that does not exist is a typo.
        place, hint = error.location or test.declared_at or Location(test.path), error.hint
        warn(place, f"data test {test.name} is left out: {error.message}", hint)
        return None
    effective = _effective(test, findings)
    if effective.get("enabled") is False:
        return None
    source_map = _with_expressions(source_map, test, around, findings)
    audit = effective.get("schema", "dbt_test__audit")
    schema = schema_of_failures(audit, scope, around.target, around.templates, test.path)
    return RenderedTest(
        unique_id=test.unique_id,
        name=test.name,
        path=test.path,
        sql=source_map.compiled.strip(),
        severity="warn" if effective.get("severity") == "warn" else "error",
        inputs=tuple(findings.inputs.values()),
        attached_to=test.attached_to,
        raw_sql=test.raw_sql,
        source_map=source_map,
        tags=_tags(effective.get("tags")),
        column_name=test.column_name,
        test_type=test.test_type,
        config=effective,
        macros=tuple(sorted(findings.macros)),
        functions=tuple(sorted(findings.functions)),
        asks_lake=findings.asked_lake,
        declared_at=test.declared_at,
        table=_table(test, effective, schema),
        schema=schema,
        fqn=test.fqn,
        description=test.description,
        short_name=test.short_name,
        metadata=test.metadata,
        described_in=test.described_in,
        entry=test.config,
    )


def _is_disabled(test: TestFile, around: RenderEnvironment) -> bool:
    """Whether the test's own config disables it: then the nodes that it refers to need not exist."""
    if test.test_type == "generic":
        return test.config.get("enabled") is False
    findings = RenderTrace(is_parsing=True)
    scope = _scope(test, None, replace(around, lake=None), findings)
    around.templates.render(test.path, test.raw_sql, scope, is_silent=True)
    return _effective(test, findings).get("enabled") is False


def _scope(
    test: TestFile, registry: RelationRegistry | None, around: RenderEnvironment, findings: RenderTrace
) -> TemplateScope:
    settings = merge_settings(test.weaker, test.config)
    config = ConfigCall(settings, findings, check_test_setting, around.templates.warn)
    this = TableName(around.target.schema, test.name)
    package = test.unique_id.package
    path = within_package(test.path, package)
    node: Mapping[str, object] = {
        "unique_id": test.unique_id,
        "name": test.name,
        "resource_type": "test",
        "package_name": package,
        "original_file_path": path,
        "path": f"{test.short_name}.sql" if test.test_type == "generic" else path.partition("/")[2] or path,
        "fqn": list(test.fqn),
        "tags": list(_tags(settings.get("tags"))),
        "config": copy.deepcopy({"enabled": True, "severity": "ERROR", "tags": [], "meta": {}, **settings}),
        "description": test.description,
        "database": None,
        "schema": around.target.schema,
        "raw_code": test.raw_sql,
        "language": "sql",
        "column_name": test.column_name,
        "attached_node": test.attached_to,
    }
    return build_scope(around, registry, node, this, config, findings)


def _effective(test: TestFile, findings: RenderTrace) -> dict[str, object]:
    """The effective config. A generic test's macro sets it for all tests of its kind; a test's entry overrides that."""
    if test.test_type == "generic":
        return merge_settings(test.weaker, findings.config, test.config)
    return merge_settings(test.weaker, test.config, findings.config)


def storing_failures(tests: Iterable[RenderedTest]) -> tuple[RenderedTest, ...]:
    """The tests with `--store-failures`: each has a table for its failures, unless its config forbids it."""
    wanted = ((test, {"store_failures": True, **test.config}) for test in tests)
    return tuple(replace(test, table=_table(test, config, test.schema)) for test, config in wanted)


def _table(test: TestFile | RenderedTest, config: Mapping[str, object], schema: str) -> TableName | None:
    """The table for failures, as in dbt in a schema of their own, under the test's name; None: they are not stored."""
    if not config.get("store_failures") and config.get("store_failures_as") not in ("table", "view"):
        return None
    name = str(config.get("alias") or test.short_name or test.name)
    table = TableName(schema, name)
    if not table.is_path_safe():
        hint = "give schema and alias of letters, digits, _ and - only"
        raise ProjectError(f"{table} cannot be a table's name", location=test.declared_at, hint=hint)
    return table


def _at_declaration(test: TestFile, around: RenderEnvironment, scope: TemplateScope) -> SourceMap:
    """Render a generic test, whose text is a generated call: an error in it is located at the test's YAML entry."""
    place = f"data test {test.name}"
    try:
        return around.templates.render(place, test.raw_sql, scope)
    except JinjaError as error:
        if error.location is not None and error.location.path != place:
            raise
        if test.metadata and error.message.startswith(f"'test_{test.metadata.name}' is not defined"):
            hint = "write it as {% test NAME(model, column_name) %}, or install its package by `sml deps`"
            if error.hint and error.hint != MAY_BE_PACKAGE:
                hint = error.hint.replace("'test_", "'")
            message = f"no data test is named {test.metadata.name!r}"
            raise JinjaError(message, location=test.declared_at, hint=hint) from error
        raise JinjaError(error.message, location=test.declared_at, hint=error.hint) from error


def _with_expressions(text: SourceMap, test: TestFile, around: RenderEnvironment, findings: RenderTrace) -> SourceMap:
    """The text with functions' expressions; a wrong call in a generic test is located at the test's YAML entry."""
    try:
        return around.with_expressions(text, test.path, findings)
    except ProjectError as error:
        if test.test_type != "generic":
            raise
        raise ProjectError(error.message, location=test.declared_at, hint=error.hint) from error


def _tags(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()
