"""Fixture files → typed rows of tables. Owns where the files are, and the partition column that ingestion would add.

`fixtures/<source>/<table>.csv|yml` holds the rows of a source, `fixtures/ref/<model>.csv|yml` those of a model that the
engine of a `duckdb` target cannot compute. YAML is a list of mappings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from sqlmesh_like.errors import Location, ProjectError, nearest
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.project.nodes import PartitionBy, SourceTable
from sqlmesh_like.project.reading.files import read_text
from sqlmesh_like.project.reading.yaml_node import parse_yaml
from sqlmesh_like.project.testing.unit_test_spec import Fixture
from sqlmesh_like.render.rendered import InputRef, RenderedModel
from sqlmesh_like.run.fixtures import FixtureRows, complete_schema, read_fixture, typed_fixture

FIXTURES_FOLDER = "fixtures"
MODELS = "ref"
_SUFFIXES = (".csv", ".yml", ".yaml")
_PATTERN = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H"}


@dataclass(frozen=True)
class FixtureTable:
    """A table's rows in the columns' order; times are naive and in UTC."""

    schema: Schema
    rows: tuple[tuple[object, ...], ...]
    path: str


def source_fixture(root: Path, table: SourceTable) -> FixtureTable | None:
    """The rows of a source's fixture, None if it has none. Raises ProjectError with file, line and column."""
    from sqlmesh_like.compiler import declared_schema

    path = _find(root, table.source_name, table.name)
    if path is None:
        return None
    fixture = _read_fixture_file(root, path)
    ref = InputRef(table.unique_id, table.table, "source", table.columns)
    by = table.ingest.partition_by if table.ingest else None
    named = {name.lower() for name in fixture.names}
    is_derived = by is not None and by.field.lower() not in {*named, *(c.name.lower() for c in table.columns)}
    known = declared_schema(ref if is_derived else replace(ref, declared=table.shown))
    made = _table(path, fixture, known, table.columns, f"{table.source_name}.{table.name}")
    return _add_partition_column(made, by) if by is not None and is_derived else made


def model_fixture(root: Path, model: RenderedModel, known: Schema | None) -> FixtureTable | None:
    """The rows of a model's fixture, None if it has none; `known`: its columns, if known. Raises ProjectError."""
    path = _find(root, MODELS, model.name)
    return None if path is None else _table(path, _read_fixture_file(root, path), known, model.declared, model.name)


def expected_path(table: SourceTable) -> str:
    """The path at which a source's fixture is expected."""
    return f"{FIXTURES_FOLDER}/{table.source_name}/{table.name}.csv"


def unused_fixtures(
    root: Path, sources: Iterable[tuple[str, str]], models: Iterable[str]
) -> list[tuple[str, str | None]]:
    """Fixture files that belong to no source or model of the project, each with the nearest name that does."""
    known = [f"{source}/{table}" for source, table in sources] + [f"{MODELS}/{name}" for name in models]
    files = (path for path in sorted((root / FIXTURES_FOLDER).glob("*/*")) if path.suffix in _SUFFIXES)
    names = {path.relative_to(root).as_posix(): f"{path.parent.name}/{path.stem}" for path in files}
    return [(path, nearest(name, known)) for path, name in names.items() if name not in known]


def _find(root: Path, folder: str, name: str) -> str | None:
    paths = [f"{FIXTURES_FOLDER}/{folder}/{name}{suffix}" for suffix in _SUFFIXES]
    existing = [path for path in paths if (root / path).is_file()]
    if len(existing) > 1:
        raise ProjectError(
            f"{existing[0]} holds the same table", location=Location(existing[1]), hint="remove one of them"
        )
    return existing[0] if existing else None


def _read_fixture_file(root: Path, path: str) -> FixtureRows:
    text = read_text(root / path, root)
    if path.endswith(".csv"):
        return read_fixture(Fixture("csv", Location(path, 1, 1), text=text, text_path=path))
    node = parse_yaml(text, path)
    if node.value == {}:  # an empty file
        return FixtureRows((), ())
    node.sequence("a fixture")
    return read_fixture(Fixture("dict", node.location, rows=node))


def _table(path: str, fixture: FixtureRows, known: Schema | None, declared: Schema, what: str) -> FixtureTable:
    schema = complete_schema(known, fixture, declared)
    if not schema:
        hint = "declare its columns in YAML, or give a row"
        raise ProjectError(f"no column of {what} is known", location=Location(path), hint=hint)
    return FixtureTable(schema, tuple(typed_fixture(fixture, schema, what)), path)


def _add_partition_column(table: FixtureTable, by: PartitionBy) -> FixtureTable:
    """Add the partition column that ingestion would derive, since the fixture leaves it out."""
    names = [column.name.lower() for column in table.schema]
    at = names.index(by.column.lower()) if by.column.lower() in names else None
    rows = tuple((*row, None if at is None else _partition_value(row[at], by, table.path)) for row in table.rows)
    return replace(table, schema=(*table.schema, Column(by.field, "string")), rows=rows)


def _partition_value(value: object, by: PartitionBy, path: str) -> str | None:
    if value is None or by.format is None:
        return None if value is None else str(value)
    pattern = re.sub("|".join(_PATTERN), lambda directive: _PATTERN[directive[0]], by.format)
    if not isinstance(value, date | datetime) or re.search("[A-Za-z]", re.sub("%[YmdH]", "", pattern)):
        hint = f"give the column {by.field!r} in the fixture"
        message = f"{by.field!r} cannot be derived from {value!r} by {by.format!r} here"
        raise ProjectError(message, location=Location(path), hint=hint)
    return value.strftime(pattern)
