"""The first pass over a project's templates: each model's in-file `config()`, and with it where its table is.

Owns that names and tables of models are unique, and what `ref` and `source` find afterwards. `renderer` does the second
pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlmesh_like.errors import Location, ProjectError, SqlError, as_sql_error
from sqlmesh_like.names import TableName
from sqlmesh_like.project.config import build_config, check_setting, merge_config
from sqlmesh_like.project.nodes import ModelFile, ParsedProject, SeedFile, Target
from sqlmesh_like.project.package_reader import refuse_duplicates
from sqlmesh_like.project.reading.file_dependencies import rendering_node
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.versions import Version
from sqlmesh_like.render.context import ConfigCall, RenderEnvironment, RenderTrace, build_scope
from sqlmesh_like.render.library.node_words import node_words
from sqlmesh_like.render.macros import TemplateScope
from sqlmesh_like.render.naming import table_of
from sqlmesh_like.render.python_calls import PythonText, read_python
from sqlmesh_like.render.python_model import python_config
from sqlmesh_like.render.relations import RelationRegistry
from sqlmesh_like.render.rendered import InputRef, RenderedSeed


@dataclass(frozen=True)
class Placed:
    """A model after the first pass. If its template is broken, `config` and `table` are as far as it was read."""

    file: ModelFile
    config: dict[str, object]
    table: TableName
    python: PythonText | None = None  # of a Python model
    error: SqlError | None = None


@dataclass(frozen=True)
class Placement:
    """The first pass over one project for one target."""

    project: ParsedProject
    target: Target
    around: RenderEnvironment

    def place_all(self) -> list[Placed]:
        """First pass over the models, in file order. Raises ProjectError if two nodes share a name or a table."""
        placed = [self.place(file) for file in self.project.models]
        enabled = [entry for entry in placed if is_enabled(entry)]
        named = [(entry.file.name, entry.file.path) for entry in enabled]
        refuse_duplicates([*named, *((seed.name, seed.path) for seed in self._seed_files())])
        tables = [(entry.file.path, entry.table) for entry in enabled if entry.error is None]
        _refuse_same_table([*tables, *((seed.path, seed.table) for seed in self.seeds())])
        self._refuse_tables_of_sources([(path, table) for path, table in tables])
        _warn_of_packages(enabled)
        return placed

    def _refuse_tables_of_sources(self, tables: list[tuple[str, TableName]]) -> None:
        """Refuse a model that would overwrite a table that is ingested; warn if its readers would not wait for it."""
        by_name = {str(table.table).lower(): table for source in self.project.sources for table in source.tables}
        for path, table in tables:
            source = by_name.get(str(table).lower())
            if source is None or source.location is not None:
                continue
            name, place = f"source({source.source_name!r}, {source.name!r})", Location(path, 1, 1)
            if source.ingest is not None:
                message = f"table {table} is written by ingestion too: it is {name} ({source.declared_at})"
                raise ProjectError(message, location=place, hint="give the model another alias or schema")
            warn(place, f"table {table} is that of {name}, whose readers do not wait for it", "read it by ref()")

    def place(self, file: ModelFile) -> Placed:
        """First pass over one model."""
        with rendering_node(file.unique_id):
            return self._place(file)

    def _place(self, file: ModelFile) -> Placed:
        unknown = TableName(self.target.schema, file.name)
        outside = merge_config(file.yaml_config, file.root_config)
        if outside.get("enabled") is False:
            return Placed(file, outside, unknown)
        if file.error is not None:
            return Placed(file, outside, unknown, error=file.error)
        if file.is_python:
            return self._place_python(file, unknown)
        findings, error = RenderTrace(is_parsing=True), None
        scope = self.scope(file, file.yaml_config, unknown, None, findings)
        try:
            self.around.templates.render(file.path, file.raw_sql, scope, is_silent=True)
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
        scope = self.scope(file, config, unknown, None, RenderTrace())
        return Placed(file, config, self._table(file.name, config, scope, file.path), text)

    def _table(self, name: str, config: Mapping[str, object], scope: TemplateScope, path: str) -> TableName:
        if (schema := config.get("target_schema")) and config.get("materialized") == "snapshot":
            return TableName(str(schema), str(config.get("alias") or name))
        effective = build_config({key: config.get(key) for key in ("schema", "alias")})
        return table_of(
            name, effective.schema, effective.alias, scope, self.target, self.around.is_dbt, self.around.templates, path
        )

    def scope(
        self,
        file: ModelFile | SeedFile,
        config: Mapping[str, object],
        this: TableName,
        registry: RelationRegistry | None,
        findings: RenderTrace,
        incremental: bool = False,
    ) -> TemplateScope:
        call = ConfigCall(config, findings, check_setting, self.around.templates.warn)
        return build_scope(self.around, registry, node_words(file, config, this), this, call, findings, incremental)

    def registry(self, placed: list[Placed]) -> RelationRegistry:
        """The names that `ref` and `source` resolve."""
        enabled = [entry for entry in placed if is_enabled(entry)]
        models = {
            entry.file.name: InputRef(entry.file.unique_id, entry.table, "model", entry.file.columns)
            for entry in enabled
        }
        seeds = {seed.name: InputRef(seed.unique_id, seed.table, "seed") for seed in self.seeds()}
        tables = [table for source in self.project.sources for table in source.tables]
        return RelationRegistry(
            project=self.project.name,
            nodes={**models, **seeds},
            sources={
                (table.source_name, table.name): InputRef(table.unique_id, table.table, "source", table.shown)
                for table in tables
            },
            disabled={
                **{entry.file.name: entry.file.path for entry in placed if not is_enabled(entry)},
                **{seed.name: seed.path for seed in self.project.seeds if seed.config.get("enabled") is False},
            },
            packages=tuple(self.project.package_vars),
            versions=_versions(entry.file for entry in enabled),
            event_times={
                **{entry.file.unique_id: str(at) for entry in enabled if (at := entry.config.get("event_time"))},
                **{table.unique_id: table.event_time for table in tables if table.event_time},
            },
        )

    def disabled_ids(self, placed: list[Placed]) -> frozenset[str]:
        """Unique ids of disabled models and seeds; not an id that another, enabled file has too."""
        enabled = {entry.file.unique_id for entry in placed if is_enabled(entry)}
        seeds = {seed.unique_id for seed in self.project.seeds}
        seeds -= {seed.unique_id for seed in self._seed_files()}
        return frozenset({entry.file.unique_id for entry in placed} - enabled | seeds)

    def _seed_files(self) -> list[SeedFile]:
        return [seed for seed in self.project.seeds if seed.config.get("enabled") is not False]

    def seeds(self) -> tuple[RenderedSeed, ...]:
        return tuple(map(self._seed, self._seed_files()))

    def _seed(self, seed: SeedFile) -> RenderedSeed:
        scope = self.scope(seed, seed.config, TableName(self.target.schema, seed.name), None, RenderTrace())
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
            described_in=seed.described_in,
            error=seed.error,
        )


def by_id(placed: Iterable[Placed]) -> dict[str, Placed]:
    """The models by unique id; if two files have the same id, the enabled one."""
    return {entry.file.unique_id: entry for entry in sorted(placed, key=is_enabled)}


def _versions(files: Iterable[ModelFile]) -> dict[str, tuple[Version, ...]]:
    versions: dict[str, tuple[Version, ...]] = {}
    for file in files:
        if (version := file.version) is not None:
            versions[version.of] = (*versions.get(version.of, ()), version)
    return versions


def is_enabled(placed: Placed) -> bool:
    """Whether the model's config does not disable it."""
    return placed.config.get("enabled") is not False


def _warn_of_packages(placed: list[Placed]) -> None:
    """Warn, once per project, that `packages` of Python models are not installed: dbt's adapters for clouds do that."""
    for entry in placed:
        if entry.python is not None and entry.config.get("packages"):
            call = next((call for call in entry.python.of("config") if "packages" in call.places), None)
            place = call.places["packages"] if call else Location(entry.file.path, 1, 1)
            hint = "install them beside sml, and on the executors where functions of theirs run there"
            warn(place, "packages of Python models are those of the environment: none is installed", hint)
            return


def _refuse_same_table(tables: list[tuple[str, TableName]]) -> None:
    """Raise ProjectError if two files, models, snapshots or seeds, write the same table; Spark ignores case."""
    seen: dict[str, tuple[str, TableName]] = {}
    for path, table in tables:
        if (name := str(table).lower()) in seen:
            before, twin = seen[name]
            message, hint = f"table {table} is written by {before} too", "give one of them another alias or schema"
            if twin != table:
                message = f"table {table} and {twin} of {before} differ in case only, which Spark ignores"
                hint = f"rename one, or {hint}"
            raise ProjectError(message, location=Location(path, 1, 1), hint=hint)
        seen[name] = path, table
