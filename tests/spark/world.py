"""Random lakes for Spark and Hudi: a few tables, several models over them, and batches of changes.

The generator is that of the property tests; here each write is shared by many models. Row keys and partitions are
columns of their own that no model sees.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from sqlmesh_like.compiled_model import CompiledModel
from tests.properties.case import Batch, Case, Row
from tests.properties.cases import CONSTRUCTS, MAKERS
from tests.properties.query import Builder, Built
from tests.properties.values import Columns, batches, tables

NAMES = "tuw"
_DRAWN = 6
_SIZES = (1, 1, 1, 2, 2, 3)


@dataclass(frozen=True)
class World:
    """Tables, queries over them, and the batches of changes to them; the first batch is the start."""

    tables: Mapping[str, Columns]
    models: Mapping[str, Case]
    batches: Sequence[Batch]

    def plan(self, name: str) -> CompiledModel:
        return self.models[name].plan

    def states(self) -> Iterator[tuple[Mapping[str, Mapping[str, Row]], Mapping[str, Mapping[str, Row]]]]:
        """Rows of all tables by row key, before and after each batch."""
        before: Mapping[str, Mapping[str, Row]] = {name: {} for name in self.tables}
        for batch in self.batches:
            after = {
                name: {key: row for key, row in {**rows, **batch.get(name, {})}.items() if row is not None}
                for name, rows in before.items()
            }
            yield before, after
            before = after


def world(number: int, models: int, changes: int) -> World:
    """The world of a number: always the same one, with so many models (one may be rebuilt each time) and batches."""
    constructs = random.Random(number).sample(CONSTRUCTS, models)
    worlds: list[World] = []

    @seed(number)
    @settings(
        max_examples=_DRAWN, database=None, deadline=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(drawn=_worlds(constructs, changes))
    def collect(drawn: World) -> None:
        worlds.append(drawn)

    collect()
    return max(worlds[1:], key=_worth)  # the first one is the simplest there is


def _worth(drawn: World) -> int:
    """Prefers models that are followed, by different strategies, over different tables."""
    strategies = [drawn.plan(name).classification.strategy for name in drawn.models]
    followed = sum(strategy != "full_refresh" for strategy in strategies)
    return 3 * followed + len(set(strategies)) + len({tuple(case.tables) for case in drawn.models.values()})


@st.composite
def _worlds(draw: DrawFn, constructs: Sequence[str], changes: int) -> World:
    schemas = {name: tuple((_storable(column), type_) for column, type_ in draw(tables())) for name in NAMES}
    builder = Builder(draw, schemas, MAKERS)
    queries = [builder.query(draw(st.sampled_from(_SIZES)), construct) for construct in constructs]
    drawn = draw(batches(schemas))[: changes + 1]
    partitions = [_partition_by(draw, query) for query in queries]
    cases = {
        f"m{number}": _case(query, schemas, drawn, partition_by)
        for number, (query, partition_by) in enumerate(zip(queries, partitions, strict=True))
    }
    return World(schemas, cases, drawn)


def _case(query: Built, schemas: Mapping[str, Columns], drawn: Sequence[Batch], partition_by: Sequence[str]) -> Case:
    sql = _storable(query.sql)
    read = {name: columns for name, columns in schemas.items() if re.search(rf"\bods\.{name}\b", sql)}
    return Case(sql, read, drawn, partition_by)


def _partition_by(draw: DrawFn, query: Built) -> tuple[str, ...]:
    copied = [column for column in query.columns if column.copied and column.type in ("int", "string", "date")]
    if not copied or draw(st.booleans()):
        return ()
    return (_storable(draw(st.sampled_from(copied)).name.strip("`")),)


def _storable(text: str) -> str:
    """Hudi's columns have plain names."""
    return text.replace("Ü 1", "u_1")
