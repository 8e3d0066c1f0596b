"""The key of a comparison of a table with its model's text: anything that the answer follows from gives another key."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from sqlmesh_like.app.lakes.lake_tables import LakeTables
from sqlmesh_like.app.operations.environments.text_comparison import TextComparison
from sqlmesh_like.names import Column, NodeId, TableName
from sqlmesh_like.plan.history import TableRecord, TableState
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import InputRef, RenderedModel, RenderedProject, SourceMap
from sqlmesh_like.render.table_inputs import TableInputs

SOURCE, VIEW, MODEL = (NodeId(kind, "p", name) for kind, name in (("source", "t"), ("model", "v"), ("model", "m")))


def model(unique_id: NodeId, sql: str, reads: NodeId, materialized: str) -> RenderedModel:
    name = unique_id.short_name
    ref = InputRef(reads, TableName("s", reads.short_name), "source" if reads == SOURCE else "model")
    config = ModelConfig(materialized=materialized)  # type: ignore[arg-type]
    return RenderedModel(
        unique_id, name, f"models/{name}.sql", sql, sql, config, TableName("s", name), (ref,), SourceMap(sql, sql)
    )


READ = model(VIEW, "select a from s.t", SOURCE, "view")
READER = model(MODEL, "select a from s.v", VIEW, "table")
RECORD = TableRecord(MODEL, "print", {SOURCE: "1_2"}, "2024-05-01T00:00:00+00:00", "row_based", query="q", meaning="m")
STATE = TableState("/lake/t", "cow", "1_2", schema=(Column("a", "int"),))


def key(
    reader: RenderedModel = READER, view: RenderedModel = READ, record: TableRecord = RECORD, state: TableState = STATE
) -> str | None:
    reads = TableInputs(RenderedProject("p", (view, reader)), {SOURCE, MODEL})
    lake = cast(LakeTables, SimpleNamespace(reads=reads))
    return TextComparison(lake, {}, lambda: pytest.fail("nothing is compiled for a key")).key(
        reader, record, {SOURCE: state}
    )


@pytest.mark.parametrize(
    "other",
    [
        key(replace(READER, sql="select a + 1 as a from s.v")),
        key(replace(READER, config=replace(READER.config, unique_key=("a",)))),
        key(view=replace(READ, sql="select a from s.t where a > 1")),
        key(record=replace(RECORD, fingerprint="another")),
        key(record=replace(RECORD, meaning="another")),
        key(record=replace(RECORD, query="another")),
        key(state=replace(STATE, schema=(Column("a", "bigint"),))),
    ],
)
def test_what_an_answer_follows_from_is_in_its_key(other: str | None) -> None:
    assert other is not None and other != key()


def test_what_no_answer_follows_from_is_not_in_its_key() -> None:
    assert key() == key(record=replace(RECORD, frontier={}), state=replace(STATE, frontier="3_4")) is not None


@pytest.mark.parametrize("none", [key(view=replace(READ, asks_lake=True)), key(state=TableState("/lake/t", "missing"))])
def test_where_the_lake_decides_there_is_no_key(none: str | None) -> None:
    assert none is None


def test_only_a_known_key_is_an_answer_without_a_planner() -> None:
    made: list[Planner] = []
    reads = TableInputs(RenderedProject("p", (READ, READER)), {SOURCE, MODEL})
    lake = cast(LakeTables, SimpleNamespace(reads=reads))

    def texts(known: str) -> TextComparison:
        return TextComparison(lake, {MODEL: known}, lambda: cast(Planner, made.append(_PLANNER) or _PLANNER))

    inputs = {SOURCE: STATE}
    assert texts(key() or "").is_of_text(READER, RECORD, inputs) and not made
    with pytest.raises(NotImplementedError):
        texts("another").is_of_text(READER, RECORD, inputs)


class _Planner:
    def compile(self, *_: object) -> None:
        raise NotImplementedError


_PLANNER = cast(Planner, _Planner())
