"""The documentation site and catalog.json. Owns collecting their contents, and writing them; needs no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import input_schemas
from sqlmesh_like.artifacts.catalog import catalog, write_catalog
from sqlmesh_like.artifacts.files import write_compiled, write_text
from sqlmesh_like.artifacts.manifest import write_manifest
from sqlmesh_like.artifacts.run_history import HISTORY, target_history
from sqlmesh_like.artifacts.state import read_artifact
from sqlmesh_like.docs.columns import column_edges
from sqlmesh_like.docs.content import content
from sqlmesh_like.docs.libraries import site_libraries
from sqlmesh_like.docs.plans import document_models
from sqlmesh_like.docs.server import SITE, STATIC
from sqlmesh_like.docs.site import site_page
from sqlmesh_like.docs.site_data import SiteData
from sqlmesh_like.plan.catalog import Catalog, build_catalog
from sqlmesh_like.plan.lineage import Lineage
from sqlmesh_like.plan.table_facts import TableFacts
from sqlmesh_like.project.nodes import SourceTable
from sqlmesh_like.render.rendered import RenderedModel, RenderedSeed

_NO_LIBRARIES = (
    "this installation has no libraries to draw with, so the site lists its graph: "
    "install the package where npm and its registry are in reach, or run `make site-libraries` in its repository"
)


@dataclass(frozen=True)
class WrittenSite:
    """The files written to the target folder, and the page's size in bytes. `warnings`: what it does not show."""

    files: tuple[str, ...]
    size: int
    warnings: tuple[str, ...]
    is_incomplete: bool
    """Whether the site lacks the plan of a model that cannot be compiled."""


def write_site(loaded: Loaded, *, compiles: bool = True, asks_lake: bool = True, static: bool = False) -> WrittenSite:
    """Write the site, compiled SQL, manifest.json and catalog.json into the target folder; starts no JVM.

    `static`: write the site also under dbt's name. Raises SelectionError where nothing is selected for catalog.json.
    """
    folder = loaded.target_folder
    loaded.reporter.phase("reading the tables' history")
    places, tables = lake_tables(loaded) if asks_lake else (None, {})
    columns = catalog_of(loaded, tables)
    loaded.reporter.phase("compiling the models")
    site_data = site_content(loaded, tables, places, compiles)
    libraries = site_libraries()
    html = site_page(content(site_data), libraries)
    write_compiled(folder, loaded.rendered)
    write_manifest(folder / "manifest.json", loaded.project, loaded.manifest_text())
    write_catalog(folder / "catalog.json", columns)
    files = (SITE, STATIC) if static else (SITE,)
    for name in files:
        write_text(folder / name, html)
    warnings = [facts.problem for facts in tables.values() if facts.problem]
    without_plan = "the site has no plan of this model"
    warnings += [f"{error.location}: {error.message}: {without_plan}" for error in site_data.errors.values()]
    warnings += [] if libraries else [_NO_LIBRARIES]
    return WrittenSite(files, len(html.encode()), tuple(warnings), bool(site_data.errors))


def lake_tables(loaded: Loaded) -> tuple[Catalog | None, dict[str, TableFacts]]:
    """Return the catalog and the tables of the target's lake by unique id; None and no tables without a lake.

    Where the project makes releases: as the current one has them, if there is one.
    """
    if loaded.target.type != "spark":
        return None, {}
    from sqlmesh_like.app.lakes.release_lake import production_lake
    from sqlmesh_like.app.lakes.release_tables import releases_of
    from sqlmesh_like.hudi.history import LakeHistory
    from sqlmesh_like.hudi.table_facts import table_facts

    if loaded.project.release is not None and releases_of(loaded).read().newest is not None:
        places = production_lake(loaded).catalog
    else:
        places = build_catalog(loaded.project, loaded.rendered, loaded.target, LakeHistory())
    return places, {unique_id: table_facts(places, unique_id) for unique_id in places.places}


def site_content(loaded: Loaded, tables: Mapping[str, TableFacts], places: Catalog | None, compiles: bool) -> SiteData:
    """Return the contents of the site; a model that cannot be compiled has no plan, and its error is included."""
    folder, now = loaded.target_folder, datetime.now(UTC)
    calls = read_artifact(folder / HISTORY), read_artifact(folder / "run_results.json")
    history = target_history(calls[0], loaded.target.name, calls[1])
    site_data = SiteData(
        manifest=loaded.manifest,
        project=loaded.project.name,
        target=loaded.target.name,
        now=now,
        graph=loaded.graph,
        tables=tables,
        results=history.results,
        calls=history.calls,
        problems=history.problems,
        freshness=read_artifact(folder / "sources.json"),
    )
    return _add_models(loaded, site_data, places) if compiles else site_data


def _add_models(loaded: Loaded, site_data: SiteData, places: Catalog | None) -> SiteData:
    schemas = input_schemas(loaded, [model.unique_id for model in loaded.rendered.models])
    states = {i: facts.state for i, facts in site_data.tables.items() if facts.problem is None}
    models, errors = document_models(loaded.rendered, loaded.graph, schemas, places, states, site_data.now)
    edges, columns = column_edges(loaded.rendered, Lineage(loaded.rendered, schemas, is_lenient=True))
    known = {i: schema for i, schema in schemas.items() if schema}
    return replace(site_data, models=models, errors=errors, edges=edges, columns={**known, **columns})


def catalog_of(loaded: Loaded, tables: Mapping[str, TableFacts]) -> dict[str, object]:
    """Return the content of catalog.json for the selected nodes, as in dbt. Raises SelectionError."""
    chosen = {node.unique_id for node in loaded.select_nodes()}
    source_tables = (table for source in loaded.project.sources for table in source.tables)
    described: tuple[RenderedModel | RenderedSeed | SourceTable, ...]
    described = (*loaded.rendered.models, *loaded.rendered.seeds, *source_tables)
    return catalog(
        [facts for unique_id, facts in tables.items() if unique_id in chosen],
        {entry.unique_id: entry.table for entry in described},
        {entry.unique_id: entry.column_docs for entry in described},
        {entry.unique_id: entry.description for entry in described},
    )
