"""Unit tests behind a command. Owns gathering what the project knows of their inputs; starts no JVM, needs no lake."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from sqlmesh_like.app.lakes.lake import require_lake, spark_engine
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import source_schemas
from sqlmesh_like.compiler import Compiler, declared_schema
from sqlmesh_like.duckdb.duck_units import DuckUnits
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.names import Schema
from sqlmesh_like.render.rendered import RenderedUnitTest
from sqlmesh_like.run.plain_values import flat
from sqlmesh_like.run.seeds import SeedTable, read_seed
from sqlmesh_like.run.table_keys import table_keys
from sqlmesh_like.run.unit_cases import Known, prepare
from sqlmesh_like.run.unit_tests import UnitEngine, UnitWork


def unit_work(loaded: Loaded, selected: Collection[str], now: datetime, on: str = "duckdb") -> UnitWork:
    """The selected unit tests ready to run `on` DuckDB or Spark. Raises ProjectError at what is wrong.

    Spark is that of the target. Raises UsageError where it has none.
    """
    tests = [test for test in loaded.rendered.unit_tests if test.unique_id in selected]
    engine = _on_spark(loaded) if on == "spark" else DuckUnits()
    known = _known(loaded, tests)
    return UnitWork({test.unique_id: prepare(test, known, engine.query, now) for test in tests}, engine, flat)


def _on_spark(loaded: Loaded) -> UnitEngine:
    require_lake(loaded)
    from sqlmesh_like.spark.spark_units import SparkUnits

    return SparkUnits(spark_engine(loaded, LakeHistory()).session)


def _known(loaded: Loaded, tests: Sequence[RenderedUnitTest]) -> Known:
    tested = {test.model.unique_id for test in tests}
    above = loaded.graph.above(tested)
    seeds = [read_seed(seed, loaded.project.root) for seed in loaded.rendered.seeds if seed.unique_id in above]
    schemas: dict[str, Schema | None] = dict(source_schemas(loaded, _undeclared(loaded, above)))
    schemas |= {seed.seed.unique_id: seed.schema for seed in seeds}
    models = {model.unique_id: model for model in loaded.rendered.models if model.unique_id in above}
    compiler = Compiler(schemas)
    derived = {
        unique_id: (None if model.asks_lake else compiler.compile(model).facts.schema) or _declared(model.declared)
        for unique_id, model in ((unique_id, models[unique_id]) for unique_id in loaded.graph.order(models))
    }
    rows = {seed.seed.unique_id: _naive(seed) for seed in seeds}
    return Known({**schemas, **derived}, table_keys(loaded.project, loaded.rendered), rows)


def _undeclared(loaded: Loaded, above: Collection[str]) -> list[str]:
    """Sources whose columns only a lake knows."""
    refs = {ref.unique_id: ref for model in loaded.rendered.models for ref in model.inputs if ref.unique_id in above}
    return [unique_id for unique_id, ref in refs.items() if ref.kind == "source" and declared_schema(ref) is None]


def _declared(columns: Schema) -> Schema | None:
    return columns if columns and all(column.type for column in columns) else None


def _naive(seed: SeedTable) -> list[tuple[object, ...]]:
    """Rows with times as DuckDB takes them: in UTC, without a zone."""
    return [
        tuple(v.astimezone(UTC).replace(tzinfo=None) if isinstance(v, datetime) else v for v in row)
        for row in seed.rows
    ]
