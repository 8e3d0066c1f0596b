"""`ParsedProject` → `RenderedProject`. Owns the two passes over all templates; pure and deterministic, no engine.

The first pass learns each model's in-file `config()`, and with it where its table is. The second renders the SQL, with
every `ref()` known.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

from sqlmesh_like.errors import Location, ProjectError, as_sql_error, require_sound
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.project.config import HOOKS, build_config, check_setting
from sqlmesh_like.project.nodes import ModelConfig, ModelFile, ParsedProject, Target, TestFile
from sqlmesh_like.project.reading.file_dependencies import rendering_node
from sqlmesh_like.project.reading.session_settings import value_settings
from sqlmesh_like.project.settings import DBT_FILE
from sqlmesh_like.project.snapshots import snapshot_config
from sqlmesh_like.render.adapter_functions import LakeQueries
from sqlmesh_like.render.batches import batch_begin
from sqlmesh_like.render.context import RenderEnvironment, RenderTrace
from sqlmesh_like.render.exposures import check_access, render_exposures
from sqlmesh_like.render.jinja.templates import Templates
from sqlmesh_like.render.library.call import TemplateCall
from sqlmesh_like.render.library.node import Entries
from sqlmesh_like.render.library.runtime_config import RuntimeConfig
from sqlmesh_like.render.macros import Macros, TemplateScope
from sqlmesh_like.render.overrides import Overrides
from sqlmesh_like.render.placement import Placed, Placement, is_enabled
from sqlmesh_like.render.python_model import PlacedPython, render_python
from sqlmesh_like.render.relations import RelationRegistry
from sqlmesh_like.render.rendered import EPOCH, RenderedModel, RenderedProject, RenderedSeed, RenderedTest, SourceMap
from sqlmesh_like.render.semantic.names import SemanticNames
from sqlmesh_like.render.semantic.references import render_semantic_layer
from sqlmesh_like.render.tests import render_test, render_tests
from sqlmesh_like.render.unit_tests import render_unit_tests

_KNOWN_OF_BROKEN = frozenset({"materialized", "enabled", "tags", "group", "access", "schema", "alias", "meta"})
"""Settings that locate or select a node; the others are ignored while its template is broken."""


def render_project(
    project: ParsedProject,
    target: Target,
    *,
    now: datetime.datetime = EPOCH,
    full_refresh: bool = False,
    broken: bool = False,
) -> RenderedProject:
    """All enabled models, seeds and tests with their templates rendered.

    `now` is `run_started_at` of templates. With `broken`, a model, data test or analysis whose template is broken
    carries its error; otherwise that is raised. Raises ProjectError with file, line and column.
    """
    rendered = Renderer.of(project, target, now=now, full_refresh=full_refresh).render()
    if not broken:
        require_sound(rendered.errors)
    return rendered


def render_inline(
    project: ParsedProject,
    target: Target,
    sql: str,
    lake: LakeQueries | None = None,
    *,
    now: datetime.datetime = EPOCH,
    graph: Entries | None = None,
) -> RenderedModel:
    """A SELECT that is not a file of the project, such as that of `sml show --inline`, rendered as a view.

    `graph`: what its template knows of the project, if there is a `lake`.
    """
    renderer = Renderer.of(project, target, now=now)
    file = ModelFile(
        NodeId("model", project.name, "inline"), "inline", "<inline>", sql, {}, (), "", Location("<inline>")
    )
    placed = Placed(file, {"materialized": "view"}, TableName(target.schema, "inline"))
    registry = renderer.placement.registry(renderer.placement.place_all())
    return (renderer.with_lake(lake, graph) if lake is not None else renderer).render_model(placed, registry)


@dataclass(frozen=True)
class Renderer:
    """One rendering of one project for one target; `around` is what is the same for every node."""

    project: ParsedProject
    target: Target
    around: RenderEnvironment

    @classmethod
    def of(
        cls,
        project: ParsedProject,
        target: Target,
        *,
        now: datetime.datetime = EPOCH,
        full_refresh: bool = False,
    ) -> Self:
        """A renderer without a lake that answers queries."""
        templates = Templates(strict_undefined=project.flags.strict_undefined)
        macros = Macros(project.name, project.macros, templates, project.dispatch, project.flags.behavior)
        call, config = TemplateCall(full_refresh=full_refresh), RuntimeConfig(project, target)
        around = RenderEnvironment(
            project.name, target, project.vars, macros, templates, now, call,
            package_vars=project.package_vars, config=config, is_dbt=project.settings_file.endswith(DBT_FILE),
        )  # fmt: skip
        return cls(project, target, _with_functions(around, project))

    def render(self) -> RenderedProject:
        functions = self.around.functions
        if functions is not None:
            functions.require_sound()
        placement = self.placement
        placed = placement.place_all()
        registry = placement.registry(placed)
        enabled = [entry for entry in placed if is_enabled(entry)]
        disabled = placement.disabled_ids(placed)
        models = tuple(self._try_render_node(entry, registry) for entry in enabled)
        places = {entry.file.name: entry for entry in enabled}

        def render_tested(name: str, overrides: Overrides) -> RenderedModel:
            return self.with_overrides(overrides).render_model(places[name], registry)

        def render_fixture(text: str, path: str, overrides: Overrides) -> RenderedModel:
            return self.with_overrides(overrides).render_text(text, path, registry)

        tests = render_tests(self.project.tests, disabled, registry, self.around)
        names = SemanticNames(self.project.semantic, self.project.name)
        exposures = render_exposures(self.project.exposures, registry, names, self.around)
        semantic = render_semantic_layer(self.project.semantic, names, registry, self.around)
        check_access(self.project.groups, models, tests, exposures, semantic)
        analyses = filter(is_enabled, map(placement.place, self.project.analyses))
        return RenderedProject(
            name=self.project.name,
            models=models,
            tests=tests,
            seeds=tuple(self._with_sound_hooks(seed, registry) for seed in placement.seeds()),
            disabled=tuple(sorted(disabled)),
            unit_tests=render_unit_tests(
                self.project.unit_tests, models, registry, render_tested, render_fixture, self.project.name
            ),
            exposures=exposures,
            semantic=semantic,
            analyses=tuple(self._try_render_node(entry, registry) for entry in analyses),
            macros=tuple(self.around.macros.declarations()),
            functions=() if functions is None else tuple(functions.rendered_functions()),
            broken_macros={path: as_sql_error(error) for path, error in self.around.macros.errors.items()},
        )

    def render_text(self, text: str, path: str, registry: RelationRegistry) -> RenderedModel:
        """A SELECT that is not a node, such as a fixture's. `path` is the file of the project that contains it."""
        unique_id = NodeId("fixture", self.project.name, path)
        file = ModelFile(unique_id, path, path, text, {}, (), "", Location(path, 1, 1))
        placed = Placed(file, {"materialized": "view"}, TableName(self.target.schema, "fixture"))
        return self.render_model(placed, registry)

    def with_overrides(self, overrides: Overrides) -> Renderer:
        """A renderer whose templates see these overrides of macros, variables and the environment."""
        variables = {**self.around.vars, **overrides.vars}
        around = replace(self.around, vars=variables, overrides=overrides)
        return replace(self, around=_with_functions(around, self.project))

    def with_lake(self, lake: LakeQueries, graph: Entries | None = None) -> Renderer:
        """A renderer whose templates can query a lake, and see the project's graph as in manifest.json."""
        return replace(self, around=replace(self.around, lake=lake, graph=graph))

    def of_call(self, call: TemplateCall) -> Renderer:
        """A renderer whose templates see this call."""
        return replace(self, around=replace(self.around, call=call))

    @property
    def placement(self) -> Placement:
        """The first pass, with templates as this renderer renders them."""
        return Placement(self.project, self.target, self.around)

    def scope_of(self, placed: Placed, registry: RelationRegistry) -> TemplateScope:
        """The names in scope of a model's hooks."""
        return self.placement.scope(placed.file, placed.config, placed.table, registry, RenderTrace())

    def _with_sound_hooks(self, seed: RenderedSeed, registry: RelationRegistry) -> RenderedSeed:
        """The seed, with an error if a hook is broken or reads other nodes: as in dbt a seed is built first."""
        if seed.error is not None or not any(seed.config.get(moment) for moment in ("pre_hook", "post_hook")):
            return seed
        file = next(file for file in self.project.seeds if file.unique_id == seed.unique_id)
        findings = RenderTrace()
        scope = self.placement.scope(file, file.config, seed.table, registry, findings)
        try:
            for moment in ("pre_hook", "post_hook"):
                hooks = check_setting(moment, file.config.get(moment) or ())
                for hook in hooks if isinstance(hooks, tuple) else ():
                    self.around.templates.render(f"{seed.path} ({moment})", hook, scope, is_silent=True)
                    if findings.inputs:
                        read = ", ".join(str(unique_id) for unique_id in findings.inputs)
                        message = f"a seed cannot depend on other nodes, its {moment} reads {read}"
                        hint = "move the statement to a hook of a model that reads the seed, or to on-run-end"
                        raise ProjectError(message, location=Location(seed.path), hint=hint)
        except ProjectError as broken:
            return replace(seed, error=as_sql_error(broken))
        return seed

    def render_test(self, test: TestFile, registry: RelationRegistry) -> RenderedTest | None:
        return render_test(test, registry, self.around)

    def render_node(self, placed: Placed, registry: RelationRegistry) -> RenderedModel:
        """Second pass over a node of the project; if its template reads the clock, that is recorded for the node."""
        with rendering_node(placed.file.unique_id):
            return self.render_model(placed, registry)

    def _try_render_node(self, placed: Placed, registry: RelationRegistry) -> RenderedModel:
        """The rendered node, with the error of a broken template: only the node and its readers fail then."""
        try:
            return self.render_node(placed, registry)
        except ProjectError as broken:
            file = placed.file
            config = build_config({key: placed.config[key] for key in _KNOWN_OF_BROKEN & placed.config.keys()})
            return RenderedModel(
                file.unique_id, file.name, file.path, file.raw_sql, "", config, placed.table, (), SourceMap("", ""),
                declared=file.columns, description=file.description, fqn=file.fqn, column_docs=file.column_docs,
                described_in=file.described_in, version=file.version, error=as_sql_error(broken),
            )  # fmt: skip

    def render_model(self, placed: Placed, registry: RelationRegistry) -> RenderedModel:
        """Second pass over one model. Hand-written incremental SQL is rendered for both values of is_incremental()."""
        if placed.error is not None:
            raise as_sql_error(placed.error)
        if placed.python is not None:
            is_allowed = placed.file.package in (self.project.name, *self.project.flags.python_model_packages)
            python = PlacedPython(placed.file, placed.python, placed.config, placed.table, is_allowed)
            rendered = render_python(python, self._config(placed, registry), registry)
            return replace(rendered, session=value_settings(self.target.spark))
        findings = RenderTrace(begin=batch_begin(placed.config, placed.file))
        source_map = self._render(placed, registry, findings, incremental=False)
        incremental = None
        if findings.asked_incremental:
            incremental = self._render(placed, registry, findings, incremental=True)
        return RenderedModel(
            unique_id=placed.file.unique_id,
            name=placed.file.name,
            path=placed.file.path,
            raw_sql=placed.file.raw_sql,
            sql=source_map.compiled,
            config=self._config(placed, registry),
            table=placed.table,
            inputs=tuple(findings.inputs.values()),
            source_map=source_map,
            declared=placed.file.columns,
            description=placed.file.description,
            is_handwritten_incremental=findings.asked_incremental,
            macros=tuple(sorted(findings.macros)),
            functions=tuple(sorted(findings.functions)),
            incremental_sql=incremental.compiled if incremental else None,
            incremental_map=incremental,
            fqn=placed.file.fqn,
            column_docs=placed.file.column_docs,
            described_in=placed.file.described_in,
            asks_lake=findings.asked_lake,
            version=placed.file.version,
            templates=placed.file.templates,
            settings=_other_settings(placed.config),
            config_places=placed.file.config_places,
            column_places=placed.file.column_places,
            session=value_settings(self.target.spark),
        )

    def _render(
        self, placed: Placed, registry: RelationRegistry, findings: RenderTrace, incremental: bool
    ) -> SourceMap:
        scope = self.placement.scope(placed.file, placed.config, placed.table, registry, findings, incremental)
        source_map = self.around.templates.render(placed.file.path, placed.file.raw_sql, scope)
        if not source_map.compiled.strip() and not (findings.asked_lake and self.around.lake is None):
            kind = placed.file.unique_id.kind
            message = f"{kind} {placed.file.name!r} is empty: no SQL is left after Jinja"
            raise ProjectError(message, location=Location(placed.file.path, 1, 1), hint="write one SELECT")
        return self.around.with_expressions(source_map, placed.file.path, findings)

    def _config(self, placed: Placed, registry: RelationRegistry) -> ModelConfig:
        """The effective config; hooks are rendered with the model's own scope.

        With a lake, hooks stay as written, since they are rendered when they run.
        """
        config = build_config(placed.config)
        if config.materialized == "snapshot":
            snapshot = snapshot_config(placed.config, placed.file.declared_at, placed.file.name)
            config = replace(config, snapshot=snapshot)
        if self.around.lake is not None or not (config.pre_hook or config.post_hook):
            return config
        scope = self.placement.scope(placed.file, placed.config, placed.table, registry, RenderTrace())

        def render_hooks(hooks: tuple[str, ...]) -> tuple[str, ...]:
            place = f"{placed.file.path} (hook)"
            return tuple(self.around.templates.render(place, hook, scope).compiled for hook in hooks)

        return replace(config, pre_hook=render_hooks(config.pre_hook), post_hook=render_hooks(config.post_hook))


def _with_functions(around: RenderEnvironment, project: ParsedProject) -> RenderEnvironment:
    """The environment with the project's functions as their templates render in it. Raises JinjaError."""
    if not project.functions:
        return around
    from sqlmesh_like.render.functions.bodies import with_functions

    return with_functions(around, project.functions)


def _other_settings(config: Mapping[str, object]) -> dict[str, object]:
    known = {field.name for field in fields(ModelConfig)} - HOOKS
    return {key: value for key, value in config.items() if key not in known}
