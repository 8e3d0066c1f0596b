"""Queries outside of models, with tables by name besides ref() and source(). Owns which table a name refers to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.author_text import carry_author_text
from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.query_analysis import locate, parse
from sqlmesh_like.app.lakes.lake import Lake, clock, require_built
from sqlmesh_like.app.lakes.read_session import read_session
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.source_discovery import with_dead_letters
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import SqlError, nearest
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.plan.checks.check import check_models
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.project.reading.session_settings import EXTENSIONS
from sqlmesh_like.render.rendered import InputRef, RenderedModel
from sqlmesh_like.render.renderer import render_inline
from sqlmesh_like.run.lake_query import LakeQuery
from sqlmesh_like.run.ports import Rows


def query_rows(loaded: Loaded, sql: str, limit: int, at: str | None = None) -> Rows:
    """Return rows of a SELECT over the project's tables and views (`limit` -1: all), `at` a release: `read_session`.

    Raises SqlError, NodeError, UsageError.
    """
    loaded = with_dead_letters(loaded)
    with read_session(loaded, lambda lake: [ref.unique_id for ref in adhoc_model(lake, sql).inputs], at) as lake:
        return run_query(lake, adhoc_model(lake, sql), limit)


def adhoc_model(lake: Lake, sql: str) -> RenderedModel:
    """Return a query as a model. It names tables and views as `schema.table`, by a unique bare name, or with ref().

    Raises SqlError with line and column for an unknown or ambiguous name.
    """
    loaded = lake.loaded
    model = render_inline(loaded.project, loaded.target, sql, now=loaded.now)
    if model.asks_lake:
        answers = LakeQuery(lake.planner(clock(None)), lake.engine)
        model = render_inline(
            loaded.project, loaded.target, sql, answers, now=loaded.now, graph=loaded.graph_of_templates
        )
    places = lake.catalog.places
    known = [InputRef(place.unique_id, place.table, "model") for place in places.values()]
    known += [
        InputRef(view.unique_id, view.table, "model")
        for view in lake.loaded.rendered.models
        if view.unique_id not in places
    ]
    meant = {ref.table: ref for ref in model.inputs}
    for node in _tables(parse(model)):
        ref = _resolve_table(node, known, model)
        meant.setdefault(ref.table, ref)
    return replace(model, unique_id=NodeId("question", loaded.project.name, model.name), inputs=tuple(meant.values()))


def run_query(lake: Lake, model: RenderedModel, limit: int) -> Rows:
    """Return rows of the query (`limit` -1: all), read by DuckDB where its result equals Spark's.

    Raises SqlError, NodeError.
    """
    planner = lake.planner(clock(None))
    inputs = planner.inputs(model)
    states = lake.catalog.states(inputs)
    for unique_id, state in states.items():
        require_built(lake.catalog.places[unique_id], state)
    views = [planner.rendered.model(unique_id) for unique_id in lake.loaded.graph.order(_views(planner, model))]
    target = lake.loaded.target
    has_functions = EXTENSIONS in target.spark
    schemas = {unique_id: state.schema for unique_id, state in states.items()}
    check_models([*views, model], schemas, has_catalog=False, has_functions=has_functions).require_sound()
    facts = planner.compile(model, states).facts
    tree, places = facts.tree.copy(), {ref.table: lake.catalog.places[ref.unique_id] for ref in facts.inputs}
    bare = {ref: place.table for ref, place in places.items() if not ref.schema}
    if bare:
        _qualify(tree, bare)
        tree = carry_author_text(tree, facts.tree, {ref.identifier.lower(): table for ref, table in bare.items()})
    states |= lake.catalog.states(place.unique_id for place in places.values() if place.unique_id not in states)
    tables = {place.table: states[place.unique_id] for place in places.values()}
    return lake.engine.query(tree, tables, limit, facts.schema or ())


def _views(planner: Planner, model: RenderedModel) -> set[str]:
    """Return unique ids of the views that a query reads, directly or through other views."""
    by_id = {m.unique_id: m for m in planner.rendered.models if m.unique_id not in planner.catalog.places}
    view_ids: set[str] = set()
    waiting = [ref.unique_id for ref in model.inputs]
    while waiting:
        unique_id = waiting.pop()
        if unique_id in by_id and unique_id not in view_ids:
            view_ids.add(unique_id)
            waiting += [ref.unique_id for ref in by_id[unique_id].inputs]
    return view_ids


def _qualify(tree: exp.Expr, names: Mapping[TableName, TableName]) -> None:
    """Replace bare names of tables by their full names; the alias keeps columns qualified by the bare one valid."""
    whole = {bare.identifier.lower(): name for bare, name in names.items()}
    for table in list(_tables(tree)):
        name = whole.get(table.name.lower())
        if name is not None and not table.db:
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
            table.set("db", exp.to_identifier(name.schema, quoted=True))
            table.set("this", exp.to_identifier(name.identifier, quoted=True))
            table.set("alias", alias)


def _tables(tree: exp.Expr) -> Iterator[exp.Table]:
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and (table.db or table.name.lower() not in ctes):
            yield table


def _resolve_table(node: exp.Table, known: list[InputRef], model: RenderedModel) -> InputRef:
    schema, name = node.db.lower(), node.name.lower()
    matches = [
        ref
        for ref in known
        if ref.table.identifier.lower() == name and (not schema or ref.table.schema.lower() == schema)
    ]
    if len(matches) == 1 and not node.catalog:
        return replace(matches[0], table=TableName(node.db, node.name))
    written = node.sql(SPARK, comments=False)
    where = locate(model, offset_of(node))
    if matches:
        names = " or ".join(str(ref.table) for ref in matches)
        raise SqlError(f"{written} may be {names}", location=where, hint="name its schema too")
    spelt = {str(ref.table) for ref in known} | {ref.table.identifier for ref in known}
    hint = nearest(node.name if not schema else f"{node.db}.{node.name}", sorted(spelt))
    raise SqlError(f"no table {written} in this project", location=where, hint=hint or "`sml ls` lists them")
