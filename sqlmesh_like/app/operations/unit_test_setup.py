"""Prepares unit tests for a command. Owns collecting what the project knows about their inputs; needs no lake, and no
JVM unless they run on Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlmesh_like.app.lakes.fixture_lake import FixtureLakes
from sqlmesh_like.app.lakes.lake import spark_engine
from sqlmesh_like.app.lakes.lake_tables import require_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import source_schemas
from sqlmesh_like.compiler import Compiler, declared_schema
from sqlmesh_like.duckdb.duck_units import DuckUnits
from sqlmesh_like.errors import SmlError, SqlError
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.names import Schema
from sqlmesh_like.project.nodes import ParsedProject
from sqlmesh_like.render.rendered import RenderedModel, RenderedProject, RenderedUnitTest
from sqlmesh_like.run.plain_values import flat
from sqlmesh_like.run.unit_cases import Known, UnitCase, prepare
from sqlmesh_like.run.unit_tests import UnitEngine, UnitWork


def unit_work(loaded: Loaded, selected: Collection[str], now: datetime, on: str = "duckdb") -> UnitWork:
    """Return the selected unit tests ready to run `on` DuckDB or the target's Spark.

    The error of an invalid test is kept in the result; it is raised where all selected nodes are invalid tests. Raises
    UsageError for Spark where the target has none.
    """
    tests = [test for test in loaded.rendered.unit_tests if test.unique_id in selected]
    engine: UnitEngine
    if on == "spark":
        require_lake(loaded)
        from sqlmesh_like.spark.spark_units import SparkUnits

        engine = SparkUnits(spark_engine(loaded, LakeHistory()).session)
    else:
        engine = DuckUnits(loaded.target.on_unproven == "warn")
    known, answers = _collect_known(loaded, tests), FixtureLakes(loaded, now)
    cases: dict[str, UnitCase] = {}
    errors: dict[str, SmlError] = {}
    for test in tests:
        try:
            cases[test.unique_id] = prepare(test, known, engine.query, answers, now)
        except SmlError as error:
            errors[test.unique_id] = error
    if errors and len(errors) == len(selected):
        raise next(iter(errors.values()))
    return UnitWork(cases, engine, flat, errors)


def _collect_known(loaded: Loaded, tests: Sequence[RenderedUnitTest]) -> Known:
    tested = {test.model.unique_id for test in tests}
    above = loaded.graph.above(tested)
    seeds = [loaded.read_seed(seed) for seed in loaded.rendered.seeds if seed.unique_id in above]
    # Sources whose columns only a lake knows.
    refs = {ref.unique_id: ref for model in loaded.rendered.models for ref in model.inputs if ref.unique_id in above}
    undeclared = [unique_id for unique_id, ref in refs.items() if ref.kind == "source" and declared_schema(ref) is None]
    schemas: dict[str, Schema | None] = dict(source_schemas(loaded, undeclared))
    schemas |= {seed.seed.unique_id: seed.schema for seed in seeds}
    models: dict[str, RenderedModel] = {
        model.unique_id: model for model in loaded.rendered.models if model.unique_id in above
    }
    compiler = Compiler(schemas)
    derived = {
        unique_id: _model_schema(compiler, models[unique_id]) or _complete_schema(models[unique_id].declared)
        for unique_id in loaded.graph.order(models)
    }
    rows: dict[str, list[tuple[object, ...]]] = {seed.seed.unique_id: list(seed.naive_rows()) for seed in seeds}
    return Known({**schemas, **derived}, table_keys(loaded.project, loaded.rendered), rows)


def _model_schema(compiler: Compiler, model: RenderedModel) -> Schema | None:
    """Return a model's columns; None where its SQL depends on the lake or is invalid, which its own node reports."""
    try:
        return None if model.asks_lake else compiler.compile(model).facts.schema
    except SqlError:
        return None


def _complete_schema(columns: Schema) -> Schema | None:
    return columns if columns and all(column.type for column in columns) else None


def table_keys(project: ParsedProject, rendered: RenderedProject) -> Mapping[str, tuple[str, ...]]:
    """Return keys by unique id: the primary key of ingestion, `unique_key`, else a column with a `unique` data test."""
    keys: dict[str, tuple[str, ...]] = {}
    for test in rendered.tests:
        called = test.metadata
        is_unique = called is not None and (called.namespace, called.name) == (None, "unique")
        if test.attached_to and test.column_name and is_unique and not test.config.get("where"):
            keys.setdefault(test.attached_to, (test.column_name,))
    for source in project.sources:
        keys |= {t.unique_id: t.ingest.primary_key for t in source.tables if t.ingest and t.ingest.primary_key}
    for seed in rendered.seeds:
        given = seed.config.get("unique_key")
        if given:
            keys[seed.unique_id] = tuple(map(str, given)) if isinstance(given, list | tuple) else (str(given),)
    return keys | {model.unique_id: model.config.unique_key for model in rendered.models if model.config.unique_key}
