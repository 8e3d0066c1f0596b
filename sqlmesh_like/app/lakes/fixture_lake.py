"""Queries in the template of a unit-tested model, answered from the rows that the test gives. Owns wiring that lake.

As in dbt, `execute` is true there. A query of a table without given rows is an error that names the table: a unit test
must not depend on the current content of the warehouse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from sqlglot.errors import SqlglotError

from sqlmesh_like.analyze.name_resolution import foreign_tables
from sqlmesh_like.analyze.nesting import parse_text
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.duck_engine import DuckEngine
from sqlmesh_like.duckdb.duck_history import DuckHistory
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import Schema, TableName
from sqlmesh_like.plan.catalog import Catalog, TablePlace
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.render.adapter_functions import QueryResult
from sqlmesh_like.render.overrides import overrides_of
from sqlmesh_like.render.rendered import RenderedUnitTest
from sqlmesh_like.render.renderer import Renderer
from sqlmesh_like.render.rerender import Rerenderer
from sqlmesh_like.run.lake_query import LakeQuery
from sqlmesh_like.run.unit_cases import InputRows

_HINT = "add -- depends_on: {{ ref('…') }} and its rows in given, or a result of the macro that asks: overrides"


@dataclass(frozen=True)
class FixtureQueries:
    """The `LakeQueries` of one unit test, over the tables that it gives rows for and views of them."""

    test: RenderedUnitTest
    lake: LakeQuery

    def columns(self, table: TableName) -> Schema | None:
        """Return the columns of an input as the test has them; None for the tested model unless its rows are given.

        Raises NodeError for other tables.
        """
        own = self.test.model.table
        if _key(table) not in {*self._known_tables(), _key(own)}:
            raise self._unknown(str(table))
        return self.lake.columns(table)

    def query(self, sql: str) -> QueryResult:
        try:
            tree = parse_text(sql)
        except SqlglotError:
            return self.lake.query(sql)  # it raises the error
        for table in foreign_tables(tree, self._known_tables()):
            raise self._unknown(table.sql(SPARK, comments=False))
        return self.lake.query(sql)

    def relations(self, *, there: bool = False) -> Mapping[TableName, str]:
        return self.lake.relations(there=there)

    def drop(self, table: TableName) -> None:
        self.lake.drop(table)

    def _known_tables(self) -> set[tuple[str, str]]:
        places = self.lake.planner.catalog.places.values()
        return {_key(place.table) for place in places} | {_key(view.table) for view in self.test.views}

    def _unknown(self, table: str) -> NodeError:
        return NodeError(
            f"unit test {self.test.name!r} has no rows for {table}, which the template asks about", hint=_HINT
        )


class FixtureLakes:
    """Renders the unit tests of one call with queries answered; the renderer is created once, at the first use."""

    def __init__(self, loaded: Loaded, now: datetime) -> None:
        self._loaded, self._now = loaded, now

    def render_over_rows(
        self, test: RenderedUnitTest, schemas: Mapping[str, Schema], rows: InputRows
    ) -> RenderedUnitTest:
        """Return the test with its model and views rendered over these rows.

        Raises JinjaError, and NodeError where a query fails.
        """
        with self._rows_of(test, schemas, rows) as lake:
            views = self._unanswered.asking(lake)
            overridden = views.asking(lambda _own: lake(views), overrides_of(test.overrides))
            model = replace(overridden.model(test.model), inputs=test.model.inputs)
            return replace(test, model=model, views=tuple(map(views.model, test.views)))

    def fixture_sql(self, test: RenderedUnitTest, template: str, path: str) -> str:
        """Return the rendered SQL of a fixture. Raises JinjaError, also where it queries a table: it has no tables."""
        with self._rows_of(replace(test, inputs=(), views=()), {}, {}) as lake:
            return self._unanswered.asking(lake, overrides_of(test.overrides)).text(template, path)

    @contextmanager
    def _rows_of(
        self, test: RenderedUnitTest, schemas: Mapping[str, Schema], rows: InputRows
    ) -> Iterator[Callable[[Rerenderer], FixtureQueries]]:
        """Yield a function from the renderer of views, which may query in turn, to queries over these rows."""
        now, history = test.now or self._now, DuckHistory()
        warns = self._loaded.target.on_unproven == "warn"
        engine = DuckEngine(history, lambda _model, _schema: None, now, warn=self._warn if warns else None)
        places: dict[str, TablePlace] = {
            ref.unique_id: TablePlace(ref.unique_id, ref.table, ref.unique_id) for ref in test.inputs
        }
        try:
            for unique_id, place in places.items():
                engine.put(place.table, place.uri, schemas[unique_id], list(rows[unique_id].values()))
            planner = Planner(replace(self._loaded.rendered, models=test.views), Catalog(places, history), now)
            yield lambda views: FixtureQueries(test, LakeQuery(replace(planner, rerender=views), engine))
        finally:
            engine.stop()

    @cached_property
    def _unanswered(self) -> Rerenderer:
        loaded = self._loaded
        full_refresh = loaded.invocation.full_refresh
        renderer = Renderer.of(loaded.project, loaded.target, now=loaded.now, full_refresh=full_refresh)
        return Rerenderer(renderer, loaded.project, None, loaded.graph_of_templates)

    def _warn(self, doubt: str) -> None:
        self._loaded.reporter.notify(f"warning: {doubt}", "warn")


def _key(table: TableName) -> tuple[str, str]:
    return table.schema.lower(), table.identifier.lower()
