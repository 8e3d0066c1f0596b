"""Compiling a SELECT over two small tables, and the check that every property uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

from sqlmesh_like.classify.rules import TIED
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.delta.rows import rows
from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, MemoryLake, RowActions, StateMismatch
from sqlmesh_like.names import Column, NodeId, Schema, TableName
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import InputRef, RenderedModel, SourceMap

T, U = NodeId("source", "shop", "t"), NodeId("source", "shop", "u")
_TABLES = {T: TableName("ods", "t"), U: TableName("ods", "u")}


def schema(**types: str) -> Schema:
    """Columns by keyword: `schema(a="int")`."""
    return tuple(Column(name, type_) for name, type_ in types.items())


def model(sql: str, partition_by: Sequence[str] = (), name: str = "m") -> RenderedModel:
    refs = tuple(InputRef(input_id, table, "source") for input_id, table in _TABLES.items() if table.identifier in sql)
    return RenderedModel(
        NodeId("model", "shop", name), name, f"models/{name}.sql", sql, sql,
        ModelConfig(partition_by=tuple(partition_by)), TableName("dws", name), refs, SourceMap(sql, sql),
    )  # fmt: skip


def compiled(sql: str, columns: Schema, partition_by: Sequence[str] = ()) -> CompiledModel:
    return Compiler({T: columns, U: columns}).compile(model(sql, partition_by))


def check(compiled_model: CompiledModel, columns: Schema, snapshots: Sequence[LakeSnapshot]) -> list[RowActions]:
    """Maintain the table through the states of its inputs; after each it equals a full recompute, hidden state too."""
    with closing(MemoryLake({T: columns, U: columns})) as lake:
        lake.build(compiled_model, snapshots[0])
        compare(lake, compiled_model, snapshots[:1])
        done = []
        for number, (before, after) in enumerate(pairwise(snapshots), 2):
            done.append(lake.apply(compiled_model, before, after))
            compare(lake, compiled_model, snapshots[:number])
        return done


def compare(lake: MemoryLake, compiled_model: CompiledModel, past: Sequence[LakeSnapshot]) -> None:
    for kind, mismatch in mismatches(lake, compiled_model):
        message = f"{kind} after {len(past) - 1} batches of {compiled_model.model.sql}\n{mismatch}\n{list(past[-2:])}"
        assert not mismatch, message


def mismatches(lake: MemoryLake, plan: CompiledModel) -> Iterator[tuple[str, StateMismatch]]:
    """How the table differs from a recompute, by visible rows and as a whole.

    Of plans whose result the row key decides, the rows are those of the plan's own build. Where that keeps states, they
    are compared with what it would be without them as well.
    """
    yield "rows", lake.verify(plan)
    if plan.classification.strategy == "aggregate_merge" and any(r.rule in TIED for r in plan.classification.reasons):
        yield "rows", lake.verify(_without_states(plan))
    yield "state", lake.verify_state(plan)


def _without_states(plan: CompiledModel) -> CompiledModel:
    """The plan as if its groups were recomputed; one for each plan, since a lake knows queries by their identity."""
    if "without_states" not in vars(plan):
        assert plan.facts.relation is not None
        other = replace(plan)
        vars(other)["table"] = replace(plan.table, build=rows(plan.facts.relation))
        vars(plan)["without_states"] = other
    known: CompiledModel = vars(plan)["without_states"]
    return known


def states(*batches: Mapping[str, Sequence[object] | None]) -> list[LakeSnapshot]:
    """Snapshots of table `t` from batches of changes: a row by its key, None for a delete. The first is the start."""
    current: dict[str, Sequence[object]] = {}
    snapshots: list[LakeSnapshot] = []
    for batch in batches:
        current = {key: row for key, row in {**current, **batch}.items() if row is not None}
        snapshots.append({T: dict(current)})
    return snapshots


def final_rows(
    compiled_model: CompiledModel, columns: Schema, snapshots: Iterable[LakeSnapshot]
) -> list[tuple[object, ...]]:
    """Visible rows after going through the snapshots."""
    path = list(snapshots)
    with closing(MemoryLake({T: columns, U: columns})) as lake:
        lake.build(compiled_model, path[0])
        for before, after in pairwise(path):
            lake.apply(compiled_model, before, after)
        return sorted(lake.rows(), key=repr)
