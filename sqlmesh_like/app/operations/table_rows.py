"""Rows of one table, view or SELECT of a project. Owns who reads them: without a JVM where the table allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from sqlmesh_like.app.arrow_rows import arrow_schema, arrow_table
from sqlmesh_like.app.lakes.lake import Lake, built_table, clock
from sqlmesh_like.app.lakes.lake_tables import require_lake
from sqlmesh_like.app.lakes.read_session import read_session
from sqlmesh_like.app.lakes.release_lake import reading_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.source_discovery import with_dead_letters
from sqlmesh_like.errors import UsageError
from sqlmesh_like.names import visible
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.releases.released_history import LATEST
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.render.renderer import render_inline
from sqlmesh_like.run.lake_query import LakeQuery
from sqlmesh_like.run.ports import Rows


def table_rows(loaded: Loaded, name: str, limit: int, as_of: str | None = None, at: str | None = None) -> Rows:
    """Return rows of a model, a seed or a source table without hidden columns; `limit` -1: all.

    `as_of`: a commit or an ISO 8601 time to read the table at; `at`: a release, see `reading_lake`. Raises UsageError
    where the table has no history, ProjectError for an unknown name, NodeError where it is not built.
    """
    view, at = _view(loaded, name), _release_unless(loaded, as_of, at)
    if as_of is not None and (view is not None or loaded.target.type != "spark"):
        raise _no_past()
    with read_session(_with_unlisted(loaded, name), lambda lake: _input_ids(lake, view, name), at) as lake:
        if view is not None:
            return _query(lake, view, limit)
        place, state = built_table(lake, name)
        from sqlmesh_like.hudi.table_reader import read_table_rows

        state = _state_at(state, as_of)
        if rows := read_table_rows(state, limit):
            return rows
        whole = exp.select("*").from_(exp.table_(place.table.identifier, db=place.table.schema, quoted=True))
        return lake.engine.query(whole, {place.table: state}, limit, visible(state.schema or ()))


def table_arrow(loaded: Loaded, name: str, limit: int, as_of: str | None = None, at: str | None = None) -> Any:
    """Return the same as a `pyarrow.Table`: columns have the types of `arrow_rows`, whichever engine read them."""
    view = _view(loaded, name)
    if view is None and loaded.target.type == "spark":
        from sqlmesh_like.hudi.table_reader import read_arrow_table

        lake = reading_lake(_with_unlisted(loaded, name), _release_unless(loaded, as_of, at))
        state = _state_at(built_table(lake, name)[1], as_of)
        table = read_arrow_table(state, limit)  # without a detour through Python values
        if table is not None:
            return table.cast(arrow_schema(visible(state.schema or ())))
    return arrow_table(table_rows(loaded, name, limit, as_of, at))


def changed_rows(loaded: Loaded, name: str, since: str, until: str | None, limit: int, at: str | None = None) -> Rows:
    """Return the changes of a table between two commits or times: see `ChangeReader.changes`.

    `until` None: up to the newest commit, or that of the release `at` (`reading_lake`). Raises UsageError where the
    target has no lake, or `until` is before `since`.
    """
    loaded.reporter.phase(f"comparing the commits of {name}")
    require_lake(loaded)
    lake = reading_lake(with_dead_letters(loaded), _release_unless(loaded, until, at))
    _, state = built_table(lake, name)
    start, end = _state_at(state, since), _state_at(state, until)
    assert start.frontier is not None and end.frontier is not None
    if start.frontier > end.frontier:
        if until is None:
            hint = f"--at {LATEST} compares with the newest commit"
            raise UsageError(f"the release names a commit of {name} before --since {since}", hint=hint)
        raise UsageError(f"--until {until} lies before --since {since}", hint="exchange the two")
    try:
        return lake.engine.changes(end, start.frontier, limit)
    finally:
        lake.engine.stop()


def inline_rows(loaded: Loaded, sql: str, limit: int, as_of: str | None = None, at: str | None = None) -> Rows:
    """Return rows of a SELECT with `ref()` and `source()`; `limit` -1: all. Raises UsageError for `as_of`."""
    view = render_inline(loaded.project, loaded.target, sql, now=loaded.now)
    if as_of is not None:
        raise _no_past()
    with read_session(loaded, lambda _lake: [ref.unique_id for ref in view.inputs], at) as lake:
        asked = view
        if view.asks_lake:
            answers = LakeQuery(lake.planner(clock(None)), lake.engine)
            asked = render_inline(
                loaded.project, loaded.target, sql, answers, now=loaded.now, graph=loaded.graph_of_templates
            )
        return _query(lake, asked, limit)


def state_of_table(loaded: Loaded, name: str) -> TableState:
    """Return a table's current commit, or that of the release, kind and columns; of a view only columns.

    Raises ProjectError for an unknown name.
    """
    view = _view(loaded, name)
    with read_session(_with_unlisted(loaded, name), lambda lake: _input_ids(lake, view, name)) as lake:
        if view is None:
            return lake.catalog.state(lake.catalog.find(name).unique_id)
        # The columns of a view; the engine is used only where they do not follow from its query.
        planner = lake.planner(clock(None))
        live = planner.live(view)
        facts = planner.compile(live, lake.catalog.states(planner.inputs(live))).facts
        return TableState("", "missing", schema=facts.schema or _query(lake, view, 0).schema)


def _release_unless(loaded: Loaded, moment: str | None, at: str | None) -> str | None:
    """What is read: a moment of one table lies outside of releases."""
    if moment is None:
        return at
    if at is not None:
        raise UsageError("a release is a moment of its own: give a time, or --at", hint="leave one of them out")
    return LATEST if loaded.project.release is not None and loaded.target.type == "spark" else None


def _no_past() -> UsageError:
    hint = "e.g. sml show user_agg --as-of 2024-05-01T00:00:00Z"
    return UsageError("--as-of is for one table of a lake", hint=hint)


def _state_at(state: TableState, as_of: str | None) -> TableState:
    from sqlmesh_like.hudi.time_travel import state_at

    return state if as_of is None else state_at(state, as_of)


def _with_unlisted(loaded: Loaded, name: str) -> Loaded:
    """Add tables that belong to no node: dead letters and, if `name` is the full name of one, stored test failures."""
    loaded = with_dead_letters(loaded)
    stored = loaded.storing_failures() if "." in name else loaded
    return stored if any(str(test.table) == name for test in stored.rendered.tests) else loaded


def _view(loaded: Loaded, name: str) -> RenderedModel | None:
    for model in loaded.rendered.models:
        is_named = name in (model.name, model.unique_id, str(model.table))
        if is_named and model.config.materialized in ("view", "ephemeral"):
            return model
    return None


def _input_ids(lake: Lake, view: RenderedModel | None, name: str) -> Sequence[str]:
    return [lake.catalog.find(name).unique_id] if view is None else [ref.unique_id for ref in view.inputs]


def _query(lake: Lake, model: RenderedModel, limit: int) -> Rows:
    planner = lake.planner(clock(None))
    model = planner.live(model)
    states = lake.catalog.states(planner.inputs(model))
    facts = planner.compile(model, states).facts
    return lake.engine.query(facts.tree, planner.tables(facts, states), limit, facts.schema)
