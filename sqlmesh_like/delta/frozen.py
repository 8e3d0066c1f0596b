"""Partitions whose rows stay as they are (`frozen_before`). Owns which rows these are, and programs that respect them.

The rows of the other partitions, the live ones, are at each commit those of the query over the inputs as of the
frontier. A program for the whole table keeps that, if only its signed rows of live partitions are applied:

- if it reads inputs alone, its signed rows are the difference of two results of the query, and so are the live ones
  among them the difference of the live rows;
- if it reads the stored rows of groups by their keys, and the keys determine the partition, then a group of a live
  partition meets only its own row, which is up to date. What is derived from the rows of frozen groups is frozen too.

All other programs are replaced by a comparison of the whole query with the live rows. So that a row may be in a frozen
partition and, since it has moved, in a live one, `_sml_key` holds the partition where the query's own keys do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Aggregate, Distinct, Relation, TopK
from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.classify.group_tops import group_top
from sqlmesh_like.classify.rules import Reason, reason
from sqlmesh_like.delta.keys import column, encode, key, weight
from sqlmesh_like.delta.program import DeltaProgram, Moves, ProgramStep, TablePlan
from sqlmesh_like.delta.slices.boundary import boundary_value, order_of
from sqlmesh_like.delta.whole_window import with_rows_below
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import KEY, Schema

_KEYED = "keyed"


@dataclass(frozen=True)
class FrozenPartitions:
    """Rows whose `column` is below `before`, a literal of its type `type`. Rows with NULL there are live."""

    column: str
    before: str
    type: str

    def is_frozen(self, table: str | None = None) -> exp.Expr:
        """The condition for a row. Raises ValueError if the boundary is not a value of the column's type."""
        return exp.LT(this=column(self.column, table), expression=boundary_value(self.type, self.before))

    def is_live(self, table: str | None = None) -> exp.Expr:
        """The condition for a row. Raises ValueError if the boundary is not a value of the column's type."""
        at_or_after = exp.GTE(this=column(self.column, table), expression=boundary_value(self.type, self.before))
        return exp.or_(at_or_after, exp.Is(this=column(self.column, table), expression=exp.null()))

    def keeps(self, other: str) -> bool:
        """Whether all rows before `other`, a boundary of the same column, are frozen. Raises ValueError."""
        return order_of(self.type, other) <= order_of(self.type, self.before)

    def left_out(self, upserts: int, deletes: int) -> tuple[Reason, ...]:
        """What a run says of rows that it has not written; nothing if there are none."""
        parts = [f"{upserts:,} that are new or changed"] * bool(upserts) + [f"{deletes:,} that are gone"] * bool(
            deletes
        )
        if not parts:
            return ()
        words = (
            f"of rows with {self.column} before {self.before}, which are frozen, {' and '.join(parts)} were left out"
        )
        return (reason("FRZ003", words),)


def frozen_rows_lost(table: object) -> NodeError:
    """The error of a table that here can only be replaced as a whole."""
    hint = "columns are added by DuckDB alone, up to 256 MB of rows; or give the model another name (docs/frozen.md)"
    return NodeError(f"{table} would be built anew, and rows of its frozen partitions would be lost", hint=hint)


def with_frozen_partitions(plan: TablePlan, relation: Relation, partition: str, shown: Schema) -> TablePlan:
    """A table's plan with keys that hold the partition, and with a program only if it may be applied to live rows.

    `shown`: the visible columns, of which one is the partition's.
    """
    names = [each.name for each in (*shown, *plan.state)]
    if _keys_determine(relation, partition):
        if not isinstance(relation, Aggregate) or plan.derive is None:
            return replace(plan, rescan=None)
        return replace(plan, rescan=None, derive=_grouped_program(plan.derive, relation, partition))
    assert plan.build is not None
    build = _add_partition_to_key(plan.build.subquery("k"), partition, names)
    is_top = plan.rescan is None and group_top(relation) is not None
    is_over_stored = is_top or isinstance(relation, TopK | Aggregate) or with_rows_below(relation) is not None
    derive = None if plan.derive is None or is_over_stored else _keyed_program(plan.derive, partition, names)
    return TablePlan(build, plan.state, derive, keyed_by=partition)


def _keys_determine(relation: Relation, partition: str) -> bool:
    """Whether rows of one key are always of one partition: it is computed of the keys of groups alone."""
    match relation:
        case Distinct():
            return True
        case Aggregate():
            [item] = [each for each in relation.items if each.name.lower() == partition.lower()]
            read = {each.name.lower() for each in item.expression.find_all(exp.Column)}
            return read <= {each.name.lower() for each in relation.keys} and not clock_calls(item.expression)
    return False


def _grouped_program(
    derive: Callable[[Moves], DeltaProgram], relation: Aggregate, partition: str
) -> Callable[[Moves], DeltaProgram]:
    """The program with the partitions of the groups that it merges.

    What is merged into the stored state of a frozen group, which is not up to date, does not tell whether it changes.
    """
    [item] = [each for each in relation.items if each.name.lower() == partition.lower()]

    def derive_with_partitions(moves: Moves) -> DeltaProgram:
        program = derive(moves)
        if not program.groups:
            return program
        value = exp.alias_(item.expression.copy(), item.name, quoted=True)
        return replace(program, partitions=exp.select(value).from_(exp.table_(program.groups, quoted=True)))

    return derive_with_partitions


def _keyed_program(
    derive: Callable[[Moves], DeltaProgram], partition: str, names: Sequence[str]
) -> Callable[[Moves], DeltaProgram]:
    def derive_with_partition_keys(moves: Moves) -> DeltaProgram:
        program = derive(moves)
        if not program.steps:
            return program
        rows = _add_partition_to_key(exp.table_(program.result, quoted=True), partition, names).select(weight())
        return replace(program, steps=(*program.steps, ProgramStep(_KEYED, rows, unless_empty=program.result)))

    return derive_with_partition_keys


def _add_partition_to_key(source: exp.Expr, partition: str, names: Sequence[str]) -> exp.Select:
    both = encode([key(), column(partition)])
    return exp.select(exp.alias_(both, KEY, quoted=True), *map(column, names)).from_(source)
