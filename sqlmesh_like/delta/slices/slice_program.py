"""Facts and a range → the program of the rows of that range. Owns how these rows are computed and replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import columns
from sqlmesh_like.analyze.query_analysis import QueryFacts
from sqlmesh_like.analyze.spark_types.type_names import stored_type
from sqlmesh_like.classify.strategy import Classification
from sqlmesh_like.delta.affected_keys import affected_keys
from sqlmesh_like.delta.compile import plan_of_relation
from sqlmesh_like.delta.keys import column
from sqlmesh_like.delta.machine import FRESH
from sqlmesh_like.delta.program import TARGET, RescanProgram, TablePlan
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.slices.partition_range import PartitionRange
from sqlmesh_like.delta.slices.restriction import Restriction, ScannedValue, UnsplitError


@dataclass(frozen=True)
class SliceProgram:
    """The plan of the rows of a range: `build` yields them, `rescan` replaces the partitions that have them.

    `values`: of the inputs that are restricted to what the range needs; others are read as a whole.
    """

    table: TablePlan
    values: tuple[ScannedValue, ...]


def partition_type(facts: QueryFacts, classification: Classification) -> str:
    """The type of the first partition column. Raises UnsplitError where no range of it can be computed alone."""
    if not facts.model.config.partition_by:
        raise UnsplitError("the table has no partitions")
    if facts.relation is None or classification.strategy == "full_refresh" or facts.model.author_strategy is not None:
        first = classification.reasons[0]
        raise UnsplitError(f"the query is run as a whole: {first.rule} {first.message}")
    name = facts.model.config.partition_by[0]
    found = next((each for each in columns(facts.relation) if each.name.lower() == name.lower()), None)
    if found is None:
        raise UnsplitError(f"the query has no column {name!r}")
    return stored_type(found.type) or ""


def compile_slice(
    facts: QueryFacts, classification: Classification, part: PartitionRange, *, replaces: bool = True
) -> SliceProgram:
    """The program of the rows of a range. `replaces`: the table may have rows of it.

    Raises UnsplitError, and ValueError for a bound that is not a value of the column.
    """
    partition_by, restriction = facts.model.config.partition_by, Restriction(part)
    assert facts.pruned is not None  # `partition_type` has been asked
    restricted = restriction.of(facts.pruned, partition_by[0])
    plan = plan_of_relation(facts, classification, restricted)
    assert plan.build is not None
    rescan = RescanProgram(_partitions(part, partition_by, replaces=replaces), plan.build, partition_by, None)
    table = replace(plan, derive=None, rescan=rescan)
    return SliceProgram(table, tuple(dict.fromkeys(restriction.values)))


def _partitions(part: PartitionRange, partition_by: Sequence[str], *, replaces: bool) -> exp.Query:
    """The partitions of the new rows, and of those that the table has."""
    own = [column(name) for name in partition_by]
    if not replaces:
        return affected_keys([(own, FRESH)])
    stored = exp.select(*own).from_(outside("target", TARGET)).where(part.holds(own[0])).subquery("t")
    return affected_keys([(own, FRESH), (own, stored)])
