"""A case: tables, a query over them and batches of changes. Owns its text, which can be pasted into a test.

The row key of a table is no column of it. A batch maps a table to the rows that it writes (by row key; None deletes);
the first batch is the start. A row that a batch writes again as it was is an update that changes nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pprint import pformat
from typing import TypeVar

from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, MemoryLake, RowActions
from sqlmesh_like.names import Column, NodeId, Schema, TableName
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import InputRef, RenderedModel, SourceMap
from tests.properties.lake import mismatches

AGAIN = "To have it again:"
X = TypeVar("X")
Row = tuple[object, ...]
Batch = Mapping[str, Mapping[str, Row | None]]


@dataclass(frozen=True)
class Case:
    """What a property is tried on. `tables`: columns (name, Spark type) by the identifier of a table in `ods`.

    `clocks`: what the clock of the run shows that finds each batch after the start (empty: it stands still).
    """

    sql: str
    tables: Mapping[str, Sequence[tuple[str, str]]]
    batches: Sequence[Batch]
    partition_by: Sequence[str] = ()
    clocks: Sequence[datetime.datetime] = ()
    frozen_before: str | None = None

    def __str__(self) -> str:
        imports = "import datetime\nfrom decimal import Decimal\nfrom math import nan\n\n"
        return imports + pformat(self, width=118, sort_dicts=False)

    @cached_property
    def schemas(self) -> dict[str, Schema]:
        """Columns by input id."""
        return {_id(t): tuple(Column(name, type_) for name, type_ in columns) for t, columns in self.tables.items()}

    @cached_property
    def plan(self) -> CompiledModel:
        """The model, compiled by the compiler as it is at the first use."""
        refs = tuple(InputRef(_id(t), TableName("ods", t), "source") for t in self.tables)
        model = RenderedModel(
            NodeId("model", "shop", "m"), "m", "models/m.sql", self.sql, self.sql,
            ModelConfig(partition_by=tuple(self.partition_by), frozen_before=self.frozen_before),
            TableName("dws", "m"), refs, SourceMap(self.sql, self.sql),
        )  # fmt: skip
        return Compiler(self.schemas).compile(model)

    @cached_property
    def path(self) -> list[LakeSnapshot]:
        """States of the inputs, each a batch after the one before."""
        rows: dict[str, dict[str, Row]] = {_id(t): {} for t in self.tables}
        snapshots: list[LakeSnapshot] = []
        for batch in self.batches:
            rows = {_id(t): _after(rows[_id(t)], batch.get(t, {})) for t in self.tables}
            snapshots.append(rows)
        return snapshots

    def lake(self, threads: int = 1) -> closing[MemoryLake]:
        """An empty lake of this case's tables, to be closed."""
        return closing(MemoryLake(self.schemas, threads=threads))

    def follow(self, *turns: Strategy | None) -> int:
        """Maintain the table: equal to a recompute after each batch, hidden state too. How many batches changed it.

        `turns`: the ways of the batches, over and over (None: the plan's own). A run may choose anew, and ways that are
        sound leave what another can go on from: without them, the plan's own and its alternative take turns.
        """
        ways = turns or (None, self.plan.classification.alternative)
        return self.run_check(lambda: self._follow(ways))

    def run_check(self, check: Callable[[], X]) -> X:
        """A check's result; what it raises says how to have it again."""
        try:
            return check()
        except Exception as error:
            error.add_note(f"{AGAIN}\n{self}")
            raise

    def _follow(self, ways: Sequence[Strategy | None]) -> int:
        with self.lake() as lake:
            lake.build(self.plan, self.path[0])
            require_equal(lake, self.plan, "the first build")
            moved = 0
            for number, (before, after) in enumerate(pairwise(self.path), 1):
                now = self.clocks[number - 1] if self.clocks else None
                actions = lake.apply(self.plan, before, after, now, ways[(number - 1) % len(ways)])
                require_equal(lake, self.plan, f"batch {number}")
                moved += actions != RowActions(0, 0)
            return moved


def travelled(case: Case, path: Sequence[LakeSnapshot], threads: int = 1) -> list[tuple[object, ...]]:
    """All of the table, sorted, built from the first state and maintained through the others."""
    with case.lake(threads) as lake:
        lake.build(case.plan, path[0])
        for before, after in pairwise(path):
            lake.apply(case.plan, before, after)
        return sorted(lake.stored_rows(), key=repr)


def require_equal(lake: MemoryLake, plan: CompiledModel, when: str) -> None:
    """The table is what a recompute gives: visible rows as the query is written, and all of it as a fresh build."""
    for kind, mismatch in mismatches(lake, plan):
        assert not mismatch, f"{kind} after {when} of {plan.model.sql}\n{mismatch}"


def _after(rows: Mapping[str, Row], batch: Mapping[str, Row | None]) -> dict[str, Row]:
    written = {key: None if row is None else (*row[:1], *row[1:]) for key, row in batch.items()}
    return {key: row for key, row in {**rows, **written}.items() if row is not None}


def _id(table: str) -> str:
    return f"source.shop.{table}"
