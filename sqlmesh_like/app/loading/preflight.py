"""Checks of models before anything is read or written. Owns which columns a command knows; `plan.checks` checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlmesh_like.app.loading.check_cache import cached_warnings, check_key, store_warnings
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.catalog import Catalog, build_catalog
from sqlmesh_like.plan.checks.checked_models import CheckedModels
from sqlmesh_like.plan.checks.type_warning import TypeWarning
from sqlmesh_like.project.reading.session_settings import EXTENSIONS
from sqlmesh_like.render.rendered import RenderedModel, RenderedSeed, RenderedTest
from sqlmesh_like.run.seeds import SeedTable
from sqlmesh_like.run.source_fixtures import source_fixture
from sqlmesh_like.run.tests import as_model


def check_project(loaded: Loaded, selected: Collection[str]) -> tuple[TypeWarning, ...]:
    """Return warnings: SQL that runs but is likely a mistake. Raises ProjectError, with file, line and column, for
    errors."""
    checked = checked_project(loaded, selected)
    checked.require_sound()
    return checked.warnings


def checked_project(loaded: Loaded, selected: Collection[str]) -> CheckedModels:
    """Check models without a run: columns of seeds are those of the CSV files, of sources those of a local lake.

    Raises ProjectError where a destination is wrong.
    """
    if any(model.config.publish for model in loaded.rendered.models):
        from sqlmesh_like.app.loading.destinations import check_destinations  # few projects have one

        check_destinations(loaded, selected)
    above = loaded.graph.above(selected)
    tests = [
        (test, as_model(test)) for test in loaded.rendered.tests if all(ref.unique_id in above for ref in test.inputs)
    ]
    return _check(loaded, above, input_schemas(loaded, selected), tests)


def input_schemas(loaded: Loaded, selected: Collection[str]) -> dict[str, Schema | None]:
    """Return columns of sources, and of the seeds above the selected models, by unique id. Raises ProjectError."""
    above = loaded.graph.above(selected)
    seeds = [seed for seed in loaded.rendered.seeds if seed.unique_id in above]
    return {**source_schemas(loaded), **{seed.unique_id: loaded.read_seed(seed).schema for seed in seeds}}


def check_before_run(
    loaded: Loaded, catalog: Catalog, selected: Collection[str], seeds: Iterable[SeedTable] = ()
) -> CheckedModels:
    """Check the models that a run builds, with the columns that the lake has; `seeds` are loaded by the same run."""
    above = loaded.graph.above(selected)
    schemas = {unique_id: state.schema for unique_id, state in catalog.states(above).items()}
    schemas |= {seed.seed.unique_id: seed.schema for seed in seeds}
    unbuilt = [unique_id for unique_id in above if unique_id in selected or schemas.get(unique_id) is None]
    return _check(loaded, unbuilt, schemas)


def source_schemas(loaded: Loaded, wanted: Collection[str] | None = None) -> dict[str, Schema | None]:
    """Return columns of the wanted sources (None: of all) that a local lake or a fixture has, by unique id.

    A remote lake is not read: compiling needs no lake.
    """
    if loaded.target.type == "duckdb":
        return fixture_schemas(loaded, wanted)
    if "://" in loaded.target.warehouse or wanted == []:
        return {}
    from sqlmesh_like.hudi.history import LakeHistory

    catalog = build_catalog(loaded.project, loaded.rendered, loaded.target, LakeHistory())
    sources = [table.unique_id for source in loaded.project.sources for table in source.tables]
    sources = [unique_id for unique_id in sources if wanted is None or unique_id in wanted]
    schemas = {unique_id: state.schema for unique_id, state in catalog.states(sources).items()}
    return schemas | _seed_schemas(loaded, [unique_id for unique_id in sources if schemas[unique_id] is None])


def fixture_schemas(loaded: Loaded, wanted: Collection[str] | None = None) -> dict[str, Schema | None]:
    """Return columns of the sources that have a fixture, or are a seed's table, by unique id. Raises ProjectError."""
    tables = [t for source in loaded.project.sources for t in source.tables if wanted is None or t.unique_id in wanted]
    fixtures = {table.unique_id: source_fixture(loaded.project.root, table) for table in tables}
    schemas = {unique_id: fixture.schema for unique_id, fixture in fixtures.items() if fixture is not None}
    return schemas | _seed_schemas(loaded, fixtures.keys() - schemas.keys())


def seeds_of_sources(loaded: Loaded) -> dict[str, RenderedSeed]:
    """Return seeds whose table is that of a source, by the source's unique id: projects load sample data that way."""
    seeds = {seed.table: seed for seed in loaded.rendered.seeds}
    tables = (table for source in loaded.project.sources for table in source.tables)
    return {table.unique_id: seeds[table.table] for table in tables if table.table in seeds}


def _seed_schemas(loaded: Loaded, wanted: Collection[str]) -> dict[str, Schema | None]:
    seeds = {unique_id: seed for unique_id, seed in seeds_of_sources(loaded).items() if unique_id in wanted}
    tables, _errors = loaded.read_seeds([seed.unique_id for seed in seeds.values()])  # seeds report their own
    known = {source: tables.get(seed.unique_id) for source, seed in seeds.items()}
    return {unique_id: table.schema for unique_id, table in known.items() if table is not None}


def _check(
    loaded: Loaded,
    unique_ids: Iterable[str],
    schemas: dict[str, Schema | None],
    tests: Sequence[tuple[RenderedTest, RenderedModel]] = (),
) -> CheckedModels:
    models: dict[str, RenderedModel] = {model.unique_id: model for model in loaded.rendered.models}
    order = loaded.graph.order(unique_id for unique_id in unique_ids if unique_id in models)
    target, chosen = loaded.target, [models[unique_id] for unique_id in order]
    has_catalog, has_functions = target.catalog != "none", EXTENSIONS in target.spark
    for_spark = target.on_unproven == "error"
    key = check_key(chosen, sorted(schemas.items()), has_catalog, has_functions, for_spark, tests)
    known = cached_warnings(loaded.target_folder, key)
    if known is not None:
        return CheckedModels({}, known)
    from sqlmesh_like.plan.checks.check import check_models

    loaded.reporter.phase(f"checking the SQL of {len(chosen)} models")
    checked = check_models(
        chosen, schemas, has_catalog=has_catalog, has_functions=has_functions, for_spark=for_spark, tests=tests
    )
    for error in checked.harmless.values():
        loaded.reporter.notify(f"warning: {error}\n  it is ephemeral, and nothing that is built reads it", "warn")
    if not checked.errors and not checked.harmless:
        store_warnings(loaded.target_folder, key, checked.warnings)
    return checked
