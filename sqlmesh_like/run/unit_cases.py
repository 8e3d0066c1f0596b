"""Unit tests prepared to run. Owns columns of inputs, keys of changes, and that every cell has its type.

Everything that can be wrong with a unit test's YAML is found here, before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from sqlglot.errors import SqlglotError

from sqlmesh_like.analyze.nesting import parse_text
from sqlmesh_like.analyze.query_analysis import parse
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler, declared_schema
from sqlmesh_like.errors import Location, ProjectError, nearest
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.checks.check import refuse_foreign_tables
from sqlmesh_like.project.testing.unit_test_spec import Fixture
from sqlmesh_like.render.rendered import ChangedRows, InputRef, RenderedUnitTest
from sqlmesh_like.render.unit_tests import jinja_call
from sqlmesh_like.run.fixtures import (
    FixtureRow,
    FixtureRows,
    cell_of,
    check_names,
    complete_schema,
    distinct_names,
    plain_rows,
    read_fixture,
    typed_cell,
    typed_fixture,
)
from sqlmesh_like.run.lake_query import only_reads
from sqlmesh_like.run.ports import Rows

TableRows = dict[str, dict[str, tuple[object, ...]]]
"""Typed rows of each input by row key; a row that does not change is the same object in both states."""
InputRows = Mapping[str, Mapping[str, tuple[object, ...]]]
QueryRows = Callable[[str], Rows]
"""The rows of a fixture in SQL. Raises NodeError."""


@dataclass(frozen=True)
class UnitCase:
    """A unit test with typed inputs. `after` is None if it has no changes."""

    test: RenderedUnitTest
    compiled: CompiledModel
    schemas: Mapping[str, Schema]
    before: TableRows
    after: TableRows | None
    expect: FixtureRows
    now: datetime


class TemplateAnswers(Protocol):
    """Renders templates that query the lake, with results from the rows of a unit test. Raises SmlError."""

    def render_over_rows(
        self, test: RenderedUnitTest, schemas: Mapping[str, Schema], rows: InputRows
    ) -> RenderedUnitTest:
        """The test with the SQL that the templates of its model and of views render to over these rows."""
        ...

    def fixture_sql(self, test: RenderedUnitTest, template: str, path: str) -> str:
        """The SQL of a fixture, in which no table may be named."""
        ...


@dataclass(frozen=True)
class Known:
    """What the project knows of its tables, by unique id: columns (None: not known), keys, rows of seeds."""

    schemas: Mapping[str, Schema | None]
    keys: Mapping[str, tuple[str, ...]]
    seeds: Mapping[str, Sequence[tuple[object, ...]]]


def prepare(
    test: RenderedUnitTest, known: Known, query: QueryRows, answers: TemplateAnswers, now: datetime
) -> UnitCase:
    """Type all rows of a unit test. Raises ProjectError with the location of a mistake, SqlError for wrong SQL."""
    return _Preparation(test, known, query, answers).case(now)


@dataclass(frozen=True)
class _Preparation:
    test: RenderedUnitTest
    known: Known
    query: QueryRows
    answers: TemplateAnswers

    def case(self, now: datetime) -> UnitCase:
        test = self.test
        if test.changes and test.model.is_handwritten_incremental:
            hint = "test its two branches with overrides: {macros: {is_incremental: true}} and given this"
            message = f"{test.model.name} follows changes by hand-written SQL, for which changes are not derived"
            raise ProjectError(message, location=test.changes[0].location, hint=hint)
        given = {entry.ref.unique_id: self._rows(entry.fixture) for entry in test.given}
        schemas: dict[str, Schema] = {ref.unique_id: self._schema(ref, given.get(ref.unique_id)) for ref in test.inputs}
        before: TableRows = {
            ref.unique_id: self._given_rows(ref, given.get(ref.unique_id), schemas) for ref in test.inputs
        }
        after = self._after(before, schemas) if test.changes else None
        test = self._render_over_rows(schemas, before, after)
        compiled = self._compile_test(test, schemas)
        expect = self._rows(test.expect)
        if compiled.facts.schema is not None:
            expected_rows(expect, compiled.facts.schema, test.model.name)
        return UnitCase(test, compiled, schemas, before, after, expect, test.now or now)

    def _rows(self, fixture: Fixture) -> FixtureRows:
        if fixture.format != "sql" or fixture.text is None:
            return read_fixture(fixture)
        if fixture.template is not None:
            fixture = replace(fixture, text=self.answers.fixture_sql(self.test, fixture.template, fixture.path))
        _require_one_query(fixture)
        result = self.query(fixture.text or "")
        return plain_rows([column.name for column in result.schema], result.rows, fixture.location)

    def _schema(self, ref: InputRef, fixture_rows: FixtureRows | None) -> Schema:
        """Declared columns, else those the project knows, else those that the rows mention."""
        changed = [entry for entry in self.test.changes if entry.ref.unique_id == ref.unique_id]
        mentioned = list((fixture_rows or FixtureRows((), ())).rows)
        mentioned += [
            row for entry in changed for fixture in (entry.upsert, entry.delete) for row in _fixture_rows(fixture)
        ]
        in_header = fixture_rows.names if fixture_rows is not None and fixture_rows.is_text else ()
        names = distinct_names((*in_header, *(name for row in mentioned for name in row.cells)))
        rows = FixtureRows(names, tuple(mentioned), fixture_rows is not None and fixture_rows.is_text)
        known = declared_schema(ref) or self.known.schemas.get(ref.unique_id)
        schema = complete_schema(known, rows, ref.declared)
        if not schema:
            hint = "declare its columns in YAML, or give a row"
            message = f"no column of {jinja_call(ref)} is known"
            raise ProjectError(message, location=self.test.declared_at, hint=hint)
        return schema

    def _given_rows(
        self, ref: InputRef, fixture: FixtureRows | None, schemas: Mapping[str, Schema]
    ) -> dict[str, tuple[object, ...]]:
        silent = any(entry.ref == ref and entry.fixture.is_silent for entry in self.test.given)
        if silent and ref.kind == "seed":
            rows = [tuple(row) for row in self.known.seeds.get(ref.unique_id, ())]
        else:
            rows = typed_fixture(fixture or FixtureRows((), ()), schemas[ref.unique_id], jinja_call(ref))
        return {_row_key(number): row for number, row in enumerate(rows)}

    def _after(self, before: TableRows, schemas: Mapping[str, Schema]) -> TableRows:
        after = {unique_id: dict(rows) for unique_id, rows in before.items()}
        for change in self.test.changes:
            unique_id = change.ref.unique_id
            _apply(change, self._key(change, schemas[unique_id]), schemas[unique_id], after[unique_id])
        return after

    def _key(self, change: ChangedRows, schema: Schema) -> tuple[str, ...]:
        """The columns that identify the row that an upsert replaces."""
        names = {column.name.lower(): column.name for column in schema}
        for name in change.key:
            if name.lower() not in names:
                hint = nearest(name, names.values())
                raise ProjectError(
                    f"{jinja_call(change.ref)} has no column {name!r}", location=change.location, hint=hint
                )
        key = change.key or self.known.keys.get(change.ref.unique_id) or _columns_of_delete(change.delete)
        columns = tuple(names[name.lower()] for name in key if name.lower() in names)
        if columns or not _fixture_rows(change.upsert):
            return columns
        hint = "add key: [column, …] to this entry, or unique_key to the config of what it names"
        message = f"which row of {jinja_call(change.ref)} an upsert replaces is not known"
        raise ProjectError(message, location=change.location, hint=hint)

    def _render_over_rows(
        self, schemas: Mapping[str, Schema], before: TableRows, after: TableRows | None
    ) -> RenderedUnitTest:
        """The test with templates rendered over the given rows. Raises ProjectError if changes alter their text."""
        test = self.test
        if not any(model.asks_lake for model in (test.model, *test.views)):
            return test
        rendered = self.answers.render_over_rows(test, schemas, before)
        if after is not None and _texts(self.answers.render_over_rows(test, schemas, after)) != _texts(rendered):
            message = f"the template of {test.model.name} gives another text once the changes are done"
            hint = "then a run rebuilds the table: test that text by rows in given"
            raise ProjectError(message, location=test.changes[0].location, hint=hint)
        return rendered

    def _compile_test(self, test: RenderedUnitTest, schemas: Mapping[str, Schema]) -> CompiledModel:
        compiler = Compiler(dict(schemas))
        for view in test.views:
            compiler.compile(view)
            refuse_foreign_tables(view, parse(view))
        compiled = compiler.compile(test.model)
        refuse_foreign_tables(test.model, parse(test.model))
        return compiled


def _texts(test: RenderedUnitTest) -> list[str]:
    return [model.sql for model in (test.model, *test.views)]


def _require_one_query(fixture: Fixture) -> None:
    """Refuse all but one SELECT, since the engine that runs a fixture could also write."""
    try:
        tree = parse_text(fixture.text or "")
    except SqlglotError as error:
        message = f"invalid SQL: {str(error).splitlines()[0]}"
        raise ProjectError(message, location=fixture.location) from None
    if not only_reads(tree):
        raise ProjectError("a fixture in SQL is one SELECT", location=fixture.location)


def expected_rows(expect: FixtureRows, schema: Schema, model: str) -> tuple[Schema, list[tuple[object, ...]]]:
    """The columns to compare, which are those that the expected rows mention, and these rows, typed.

    Raises ProjectError.
    """
    check_names(expect, schema, model)
    mentioned = {name.lower() for name in expect.names}
    shown = tuple(column for column in schema if column.name.lower() in mentioned) or schema
    completed = complete_schema(shown, expect)
    return completed, typed_fixture(expect, completed, model)


def _fixture_rows(fixture: Fixture) -> tuple[FixtureRow, ...]:
    return read_fixture(fixture).rows


def _row_key(number: int) -> str:
    """The key of a row, in the order of rows: among rows that tie, the one given first is the smallest."""
    return f"{number:09d}"


def _columns_of_delete(delete: Fixture) -> tuple[str, ...]:
    rows = _fixture_rows(delete)
    same = {frozenset(name.lower() for name in row.cells) for row in rows}
    return tuple(rows[0].cells) if len(same) == 1 else ()


def _apply(change: ChangedRows, key: tuple[str, ...], schema: Schema, rows: dict[str, tuple[object, ...]]) -> None:
    """Apply deletes, then upserts, to `rows`; columns that an upsert does not mention keep their values."""
    what = jinja_call(change.ref)
    check_names(read_fixture(change.delete), schema, what)
    check_names(read_fixture(change.upsert), schema, what)
    for row in _fixture_rows(change.delete):
        gone = _matching(row, tuple(c.name for c in schema if cell_of(row, c.name)), schema, rows)
        if not gone:
            hint = "name values of a row that given has"
            raise ProjectError(f"no row of {what} is like this one", location=row.location, hint=hint)
        for name in gone:
            del rows[name]
    written: dict[str, Location] = {}
    number = max((int(name) for name in rows), default=-1) + len(_fixture_rows(change.delete)) + 1
    for offset, row in enumerate(_fixture_rows(change.upsert)):
        target = _row_to_replace(row, key, schema, rows, what) or _row_key(number + offset)
        if target in written:
            hint = f"it is written at {written[target]} too"
            raise ProjectError(f"two upserts have the same {', '.join(key)}", location=row.location, hint=hint)
        written[target] = row.location
        old = rows.get(target, (None,) * len(schema))
        rows[target] = tuple(
            typed_cell(cell, column) if (cell := cell_of(row, column.name)) else kept
            for column, kept in zip(schema, old, strict=True)
        )


def _row_to_replace(
    row: FixtureRow, key: tuple[str, ...], schema: Schema, rows: Mapping[str, tuple[object, ...]], what: str
) -> str | None:
    for name in key:
        if cell_of(row, name) is None:
            raise ProjectError(f"an upsert of {what} must give its key, {name!r}", location=row.location)
    matched = _matching(row, key, schema, rows)
    if len(matched) > 1:
        message = f"{len(matched)} rows of {what} have this {', '.join(key)}: it is not a key"
        raise ProjectError(message, location=row.location, hint="add key: [column, …] to this entry of changes")
    return matched[0] if matched else None


def _matching(
    row: FixtureRow, names: tuple[str, ...], schema: Schema, rows: Mapping[str, tuple[object, ...]]
) -> list[str]:
    positions = [(n, typed_cell(cell_of(row, c.name), c)) for n, c in enumerate(schema) if c.name in names]
    return [key for key, values in rows.items() if all(values[n] == value for n, value in positions)]
