"""Random cases: 1 to 4 operators over three tables, and batches of changes to the tables that are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.levels import IS_DEEP
from tests.properties import chains, groups, joins, limits, rowwise
from tests.properties.case import Batch, Case
from tests.properties.expressions import of
from tests.properties.query import Builder, Built, Maker
from tests.properties.values import batches, tables

MAKERS: dict[str, Maker] = {**rowwise.MAKERS, **joins.MAKERS, **groups.MAKERS, **chains.MAKERS}
TOPMOST: dict[str, Maker] = limits.MAKERS
"""What is maintained only where nothing is above it."""
CONSTRUCTS = (*MAKERS, *TOPMOST)
REBUILT: dict[str, Maker] = {"overlapping sets": groups.overlapping_sets}
"""What is a full refresh by design."""
_SIZES = (1, 1, 2, 2, 3, 4) if IS_DEEP else (1, 1, 1, 1, 2, 2, 3, 4)
_CLOCKS = tuple(datetime(*day, 12) for day in ((2023, 12, 31), (2024, 1, 1), (2024, 1, 2), (2024, 2, 29), (2024, 3, 1)))


@dataclass(frozen=True)
class Drawn:
    """A case and the constructs that its query has."""

    case: Case
    constructs: frozenset[str]


def examples(count: int, *, shrink: bool = True) -> settings:
    """Settings of so many cases: the same ones at each run, others each time where `SML_DEEP=1`."""
    return settings(
        max_examples=count, report_multiple_bugs=False, deadline=None, derandomize=not IS_DEEP, database=None,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,), suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@st.composite
def cases(draw: DrawFn, wanted: str = "", largest: int = 4, *, partitioned: bool = False) -> Drawn:
    """A case of up to so many operators whose top one has the wanted construct; partitioned for sure, or sometimes."""
    schemas = {name: draw(tables()) for name in "tuw"}
    size = min(draw(st.sampled_from(_SIZES)), largest)
    further = {name: maker for name, maker in {**TOPMOST, **REBUILT}.items() if name == wanted}
    built = Builder(draw, schemas, {**MAKERS, **further}).query(size, wanted)
    read = {name: columns for name, columns in schemas.items() if re.search(rf"\bods\.{name}\b", built.sql)}
    written = draw(batches(read))
    assume(_has_different_rows(written))  # not so in the simplest case, which each test draws first
    clocks = [draw(st.sampled_from(_CLOCKS)) for _ in written[1:]] if "clock filter" in built.constructs else []
    case = Case(built.sql, read, written, draw(_partition_by(built, partitioned)), clocks)
    return Drawn(case, built.constructs)


def _has_different_rows(written: Sequence[Batch]) -> bool:
    return len({repr(row) for batch in written for rows in batch.values() for row in rows.values() if row}) > 1


@st.composite
def _partition_by(draw: DrawFn, built: Built, always: bool) -> tuple[str, ...]:
    """Mostly none; else a column, preferably one that may be proven to split the query."""
    possible = of(built.columns, "int", "string", "date", "boolean")
    copied = [column for column in possible if column.copied]
    if not possible or (not always and draw(st.integers(0, 2))):
        return ()
    return (draw(st.sampled_from(copied or possible)).name.strip("`"),)
