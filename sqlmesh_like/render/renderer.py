"""`ParsedProject` → `RenderedProject`. Owns the two passes over all templates; pure and deterministic, no engine.

The first pass learns each model's in-file `config()`, and with it where its table is. The second renders the SQL, with
every `ref()` known.
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from sqlmesh_like.errors import Location, ProjectError, SqlError, as_sql_error, require_sound
from sqlmesh_like.names import TableName
from sqlmesh_like.project.config import HOOKS, build_config, check_setting, merge_config
from sqlmesh_like.project.nodes import ModelConfig, ModelFile, ParsedProject, SeedFile, Target, TestFile
from sqlmesh_like.project.package_reader import refuse_duplicates
from sqlmesh_like.project.reading.file_dependencies import rendering_node
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.settings import DBT_FILE
from sqlmesh_like.project.snapshots import snapshot_config
from sqlmesh_like.project.versions import Version
from sqlmesh_like.render.adapter_functions import LakeQueries
from sqlmesh_like.render.batches import batch_begin
from sqlmesh_like.render.context import ConfigCall, RenderEnvironment, RenderTrace, build_scope
from sqlmesh_like.render.exposures import check_access, render_exposures
from sqlmesh_like.render.library.call import TemplateCall
from sqlmesh_like.render.library.node import Entries
from sqlmesh_like.render.library.node_words import node_words
from sqlmesh_like.render.library.runtime_config import RuntimeConfig
from sqlmesh_like.render.macros import Macros, TemplateScope
from sqlmesh_like.render.naming import table_of
from sqlmesh_like.render.overrides import Overrides
from sqlmesh_like.render.python_calls import PythonText, read_python
from sqlmesh_like.render.python_model import PlacedPython, python_config, render_python
from sqlmesh_like.render.relations import RelationRegistry
from sqlmesh_like.render.rendered import InputRef, RenderedModel, RenderedProject, RenderedSeed, RenderedTest, SourceMap
from sqlmesh_like.render.semantic.names import SemanticNames
from sqlmesh_like.render.semantic.references import render_semantic_layer
from sqlmesh_like.render.templates import Templates
from sqlmesh_like.render.tests import render_test, render_tests
from sqlmesh_like.render.unit_tests import render_unit_tests

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


_KNOWN_OF_BROKEN = frozenset({"materialized", "enabled", "tags", "group", "access", "schema", "alias", "meta"})
"""Settings that say where a node is; with the others nothing is done while its template is broken."""


@dataclass(frozen=True)
class Placed:
    """A model after the first pass. Where its template is broken, `config` and `table` are as far as it was read."""

    file: ModelFile
    config: dict[str, object]
    table: TableName
    python: PythonText | None = None  # of a Python model
    error: SqlError | None = None


def render_project(
    project: ParsedProject,
    target: Target,
    *,
    now: datetime.datetime = EPOCH,
    full_refresh: bool = False,
    broken: bool = False,
) -> RenderedProject:
    """All enabled models, seeds and tests with their templates rendered.

    `now` is `run_started_at` of templates. With `broken` a model, data test or analysis whose template is broken has
    its error. Raises ProjectError with file, line and column.
    """
    rendered = Renderer(project, target, now=now, full_refresh=full_refresh).render()
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
    """A SELECT that is not a file of the project, such as `sml show --inline`, rendered as a view of it.

    `graph`: what its template knows of the project once a `lake` answers.
    """
    renderer = Renderer(project, target, now=now)
    file = ModelFile(f"model.{project.name}.inline", "inline", "<inline>", sql, {}, (), "", Location("<inline>"))
    placed = Placed(file, {"materialized": "view"}, TableName(target.schema, "inline"))
    registry = renderer.registry(renderer.place_all())
    return (renderer.answered_by(lake, graph) if lake is not None else renderer).render_model(placed, registry)


class Renderer:
    """One rendering of one project for one target."""

    def __init__(
        self,
        project: ParsedProject,
        target: Target,
        *,
        now: datetime.datetime = EPOCH,
        full_refresh: bool = False,
    ) -> None:
        self._project = project
        self._target = target
        self._templates = Templates(strict_undefined=project.flags.strict_undefined)
        macros = Macros(project.name, project.macros, self._templates, project.dispatch, project.flags.behavior)
        self._around = RenderEnvironment(
            project.name, target, project.vars, macros, self._templates, now, TemplateCall(full_refresh=full_refresh),
            package_vars=project.package_vars, config=RuntimeConfig(project, target),
            is_dbt=project.settings_file.endswith(DBT_FILE),
        )  # fmt: skip

    def render(self) -> RenderedProject:
        placed = self.place_all()
        registry = self.registry(placed)
        enabled = [entry for entry in placed if is_enabled(entry)]
        disabled = self._disabled(placed)
        models = tuple(self._rendered(entry, registry) for entry in enabled)
        places = {entry.file.name: entry for entry in enabled}

        def render_tested(name: str, overrides: Overrides) -> RenderedModel:
            return self.with_overrides(overrides).render_model(places[name], registry)

        def render_fixture(text: str, path: str, overrides: Overrides) -> RenderedModel:
            return self.with_overrides(overrides).render_text(text, path, registry)

        tests = render_tests(self._project.tests, disabled, registry, self._around, self._templates)
        names = SemanticNames(self._project.semantic, self._project.name)
        exposures = render_exposures(self._project.exposures, registry, names, self._around, self._templates)
        semantic = render_semantic_layer(self._project.semantic, names, registry, self._around, self._templates)
        check_access(self._project.groups, models, tests, exposures, semantic)
        analyses = filter(is_enabled, map(self.place, self._project.analyses))
        return RenderedProject(
            name=self._project.name,
            models=models,
            tests=tests,
            seeds=self._seeds(),
            disabled=tuple(sorted(disabled)),
            unit_tests=render_unit_tests(
                self._project.unit_tests, models, registry, render_tested, render_fixture, self._project.name
            ),
            exposures=exposures,
            semantic=semantic,
            analyses=tuple(self._rendered(entry, registry) for entry in analyses),
            macros=tuple(self._around.macros.declared()),
            broken_macros={path: as_sql_error(error) for path, error in self._around.macros.errors.items()},
        )

    def render_text(self, text: str, path: str, registry: RelationRegistry) -> RenderedModel:
        """A SELECT that is not a node, such as a fixture's. `path` is the file of the project that it stands in."""
        name = f"fixture.{self._project.name}.{path}"
        file = ModelFile(name, path, path, text, {}, (), "", Location(path, 1, 1))
        placed = Placed(file, {"materialized": "view"}, TableName(self._target.schema, "fixture"))
        return self.render_model(placed, registry)

    def with_overrides(self, overrides: Overrides) -> Renderer:
        """One whose templates find something in place of macros, variables and the environment."""
        renderer = copy.copy(self)
        variables = {**self._around.vars, **overrides.vars}
        renderer._around = replace(self._around, vars=variables, overrides=overrides)
        return renderer

    def place_all(self) -> list[Placed]:
        """First pass over the models, in file order. Raises ProjectError where two of them have one name or table."""
        placed = [self.place(file) for file in self._project.models]
        enabled = [entry for entry in placed if is_enabled(entry)]
        named = [(entry.file.name, entry.file.path) for entry in enabled]
        refuse_duplicates([*named, *((seed.name, seed.path) for seed in self._seed_files())])
        _refuse_same_table(enabled)
        _warn_of_packages(enabled)
        return placed

    def place(self, file: ModelFile) -> Placed:
        """First pass over one model."""
        with rendering_node(file.unique_id):
            return self._place(file)

    def _place(self, file: ModelFile) -> Placed:
        unknown = TableName(self._target.schema, file.name)
        outside = merge_config(file.yaml_config, file.root_config)
        if outside.get("enabled") is False:
            return Placed(file, outside, unknown)
        if file.error is not None:
            return Placed(file, outside, unknown, error=file.error)
        if file.is_python:
            return self._place_python(file, unknown)
        findings, error = RenderTrace(is_parsing=True), None
        scope = self._scope(file, file.yaml_config, unknown, None, findings)
        try:
            self._templates.render(file.path, file.raw_sql, scope, is_silent=True)
        except ProjectError as broken:
            error = as_sql_error(broken)
        findings.is_parsing = False
        config = merge_config(merge_config(file.yaml_config, findings.config), file.root_config)
        scope["model"] = node_words(file, config, unknown)
        if file.templates:
            own = {key: text for key, text in file.templates.items() if key not in findings.config}
            file = replace(file, templates=own)
        return Placed(file, config, self._table(file.name, config, scope, file.path), error=error)

    def _place_python(self, file: ModelFile, unknown: TableName) -> Placed:
        try:
            text = read_python(file.path, file.raw_sql)
            config = python_config(file, text)
        except ProjectError as broken:
            config = merge_config(file.yaml_config, file.root_config)
            return Placed(file, config, unknown, error=as_sql_error(broken))
        scope = self._scope(file, config, unknown, None, RenderTrace())
        return Placed(file, config, self._table(file.name, config, scope, file.path), text)

    def _table(self, name: str, config: Mapping[str, object], scope: TemplateScope, path: str) -> TableName:
        if (schema := config.get("target_schema")) and config.get("materialized") == "snapshot":
            return TableName(str(schema), str(config.get("alias") or name))
        effective = build_config({key: config.get(key) for key in ("schema", "alias")})
        is_dbt, templates = self._around.is_dbt, self._templates
        return table_of(name, effective.schema, effective.alias, scope, self._target, is_dbt, templates, path)

    def _scope(
        self,
        file: ModelFile | SeedFile,
        config: Mapping[str, object],
        this: TableName,
        registry: RelationRegistry | None,
        findings: RenderTrace,
        incremental: bool = False,
    ) -> TemplateScope:
        call = ConfigCall(config, findings, check_setting, self._templates.warn)
        return build_scope(self._around, registry, node_words(file, config, this), this, call, findings, incremental)

    def by_id(self, placed: list[Placed]) -> dict[str, Placed]:
        """The models by unique id; of two files of one id the enabled one."""
        return {entry.file.unique_id: entry for entry in sorted(placed, key=is_enabled)}

    def registry(self, placed: list[Placed]) -> RelationRegistry:
        """What `ref` and `source` find."""
        enabled = [entry for entry in placed if is_enabled(entry)]
        models = {
            entry.file.name: InputRef(entry.file.unique_id, entry.table, "model", entry.file.columns)
            for entry in enabled
        }
        seeds = {seed.name: InputRef(seed.unique_id, seed.table, "seed") for seed in self._seeds()}
        tables = [table for source in self._project.sources for table in source.tables]
        return RelationRegistry(
            project=self._project.name,
            nodes={**models, **seeds},
            sources={
                (table.source_name, table.name): InputRef(table.unique_id, table.table, "source", table.shown)
                for table in tables
            },
            disabled={
                **{entry.file.name: entry.file.path for entry in placed if not is_enabled(entry)},
                **{seed.name: seed.path for seed in self._project.seeds if seed.config.get("enabled") is False},
            },
            packages=tuple(self._project.package_vars),
            versions=_versions(entry.file for entry in enabled),
            event_times={
                **{entry.file.unique_id: str(at) for entry in enabled if (at := entry.config.get("event_time"))},
                **{table.unique_id: table.event_time for table in tables if table.event_time},
            },
        )

    def _disabled(self, placed: list[Placed]) -> frozenset[str]:
        """Unique ids of models and seeds; of two files of one id the enabled one is meant."""
        enabled = {entry.file.unique_id for entry in placed if is_enabled(entry)}
        seeds = {seed.unique_id for seed in self._project.seeds}
        seeds -= {seed.unique_id for seed in self._seed_files()}
        return frozenset({entry.file.unique_id for entry in placed} - enabled | seeds)

    def _seed_files(self) -> list[SeedFile]:
        return [seed for seed in self._project.seeds if seed.config.get("enabled") is not False]

    def _seeds(self) -> tuple[RenderedSeed, ...]:
        return tuple(map(self._seed, self._seed_files()))

    def _seed(self, seed: SeedFile) -> RenderedSeed:
        scope = self._scope(seed, seed.config, TableName(self._target.schema, seed.name), None, RenderTrace())
        return RenderedSeed(
            unique_id=seed.unique_id,
            name=seed.name,
            path=seed.path,
            table=self._table(seed.name, seed.config, scope, seed.path),
            column_types=seed.column_types,
            declared_types=seed.declared_types,
            config=seed.config,
            tags=build_config({"tags": seed.config.get("tags")}).tags,
            description=seed.description,
            fqn=seed.fqn,
            column_docs=seed.column_docs,
            error=seed.error,
        )

    def answered_by(self, lake: LakeQueries, graph: Entries | None = None) -> Renderer:
        """One whose templates get answers from a lake, and see the project's graph as manifest.json has it."""
        renderer = copy.copy(self)
        renderer._around = replace(self._around, lake=lake, graph=graph)
        return renderer

    def of_call(self, call: TemplateCall) -> Renderer:
        """One whose templates are told of this call."""
        renderer = copy.copy(self)
        renderer._around = replace(self._around, call=call)
        return renderer

    @property
    def around(self) -> RenderEnvironment:
        """What is the same for every node."""
        return self._around

    @property
    def templates(self) -> Templates:
        return self._templates

    def scope_of(self, placed: Placed, registry: RelationRegistry) -> TemplateScope:
        """The names that templates of a model's hooks know."""
        return self._scope(placed.file, placed.config, placed.table, registry, RenderTrace())

    def render_test(self, test: TestFile, registry: RelationRegistry) -> RenderedTest | None:
        return render_test(test, registry, self._around, self._templates)

    def render_node(self, placed: Placed, registry: RelationRegistry) -> RenderedModel:
        """Second pass over a node of the project: what its template asks of the clock is noted as its own."""
        with rendering_node(placed.file.unique_id):
            return self.render_model(placed, registry)

    def _rendered(self, placed: Placed, registry: RelationRegistry) -> RenderedModel:
        """The node, with its error where its template is broken: that costs the node and its readers alone."""
        try:
            return self.render_node(placed, registry)
        except ProjectError as broken:
            file = placed.file
            config = build_config({key: placed.config[key] for key in _KNOWN_OF_BROKEN & placed.config.keys()})
            return RenderedModel(
                file.unique_id, file.name, file.path, file.raw_sql, "", config, placed.table, (), SourceMap("", ""),
                declared=file.columns, description=file.description, fqn=file.fqn, column_docs=file.column_docs,
                version=file.version, error=as_sql_error(broken),
            )  # fmt: skip

    def render_model(self, placed: Placed, registry: RelationRegistry) -> RenderedModel:
        """Second pass over one model. Hand-written incremental SQL is rendered for both answers."""
        if placed.error is not None:
            raise as_sql_error(placed.error)
        if placed.python is not None:
            is_allowed = placed.file.package in (self._project.name, *self._project.flags.python_model_packages)
            python = PlacedPython(placed.file, placed.python, placed.config, placed.table, is_allowed)
            return render_python(python, self._config(placed, registry), registry)
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
            incremental_sql=incremental.compiled if incremental else None,
            incremental_map=incremental,
            fqn=placed.file.fqn,
            column_docs=placed.file.column_docs,
            asks_lake=findings.asked_lake,
            version=placed.file.version,
            templates=placed.file.templates,
            settings=_other_settings(placed.config),
        )

    def _render(
        self, placed: Placed, registry: RelationRegistry, findings: RenderTrace, incremental: bool
    ) -> SourceMap:
        scope = self._scope(placed.file, placed.config, placed.table, registry, findings, incremental)
        source_map = self._templates.render(placed.file.path, placed.file.raw_sql, scope)
        if not source_map.compiled.strip() and not (findings.asked_lake and self._around.lake is None):
            kind = placed.file.unique_id.partition(".")[0]
            message = f"{kind} {placed.file.name!r} is empty: no SQL is left after Jinja"
            raise ProjectError(message, location=Location(placed.file.path, 1, 1), hint="write one SELECT")
        return source_map

    def _config(self, placed: Placed, registry: RelationRegistry) -> ModelConfig:
        """The effective config; hooks are rendered with the model's own scope.

        Where a lake answers they stay as they are written: what they do is for the moment when they are run.
        """
        config = build_config(placed.config)
        if config.materialized == "snapshot":
            snapshot = snapshot_config(placed.config, placed.file.declared_at, placed.file.name)
            config = replace(config, snapshot=snapshot)
        if self._around.lake is not None or not (config.pre_hook or config.post_hook):
            return config
        scope = self._scope(placed.file, placed.config, placed.table, registry, RenderTrace())

        def rendered(hooks: tuple[str, ...]) -> tuple[str, ...]:
            place = f"{placed.file.path} (hook)"
            return tuple(self._templates.render(place, hook, scope).compiled for hook in hooks)

        return replace(config, pre_hook=rendered(config.pre_hook), post_hook=rendered(config.post_hook))


def _versions(files: Iterable[ModelFile]) -> dict[str, tuple[Version, ...]]:
    versions: dict[str, tuple[Version, ...]] = {}
    for file in files:
        if (version := file.version) is not None:
            versions[version.of] = (*versions.get(version.of, ()), version)
    return versions


def _other_settings(config: Mapping[str, object]) -> dict[str, object]:
    known = {field.name for field in fields(ModelConfig)} - HOOKS
    return {key: value for key, value in config.items() if key not in known}


def is_enabled(placed: Placed) -> bool:
    """Whether the model is one of the project."""
    return placed.config.get("enabled") is not False


def _warn_of_packages(placed: list[Placed]) -> None:
    """dbt's adapters for clouds install what a Python model asks for. Said once, whatever the number of models."""
    for entry in placed:
        if entry.python is not None and entry.config.get("packages"):
            call = next((call for call in entry.python.of("config") if "packages" in call.places), None)
            place = call.places["packages"] if call else Location(entry.file.path, 1, 1)
            hint = "install them beside sml, and on the executors where functions of theirs run there"
            warn(place, "packages of Python models are those of the environment: none is installed", hint)
            return


def _refuse_same_table(placed: list[Placed]) -> None:
    seen: dict[TableName, str] = {}
    for entry in placed:
        if entry.error is not None:
            continue
        if entry.table in seen:
            hint = "give one of them another alias or schema"
            message = f"table {entry.table} is written by {seen[entry.table]} too"
            raise ProjectError(message, location=Location(entry.file.path, 1, 1), hint=hint)
        seen[entry.table] = entry.file.path
