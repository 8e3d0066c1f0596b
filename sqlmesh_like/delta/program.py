"""The output of the delta compiler. Owns the form of a program; `spark` runs it, and tests run it on DuckDB.

A program's SQL reads these relations (written `<role>.<name>`):

- `changes.<input>`: the netted change between two frontiers. Grain: one row per row key and sign. Columns: the input's
  visible columns, `_sml_key`, `_sml_weight` (-1: before image, +1: after image);
- `current.<input>`: the input as of the newer frontier, with `_sml_key`;
- `target.this`: the maintained table before the run, hidden columns included;
- any earlier step by its name.

Every program yields *signed target rows*: rows that leave the table with weight -1 and rows that enter it with +1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Filter, Relation, Scan, walk
from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.names import Schema

STATE_VERSION = 1
"""Version of the layout of hidden state columns; part of every fingerprint."""

RelationRole = Literal["changes", "current", "target"]
TARGET = "this"


@dataclass(frozen=True)
class Moves:
    """What a program is compiled for: the inputs (by id) that have moved since the last run, None for all.

    Inputs in `small` that have not moved are read whole.
    """

    inputs: frozenset[str] | None = None
    small: frozenset[str] = frozenset()

    def can_change(self, relation: Relation) -> bool:
        """Whether rows of a relation may enter or leave, because an input moved or a filter reads the clock."""
        return any(
            (self.inputs is None or node.input_id in self.inputs)
            if isinstance(node, Scan)
            else isinstance(node, Filter) and bool(clock_calls(node.condition))
            for node in walk(relation)
        )


@dataclass(frozen=True)
class Prune:
    """Partition pruning: only rows with partition values that a step holds are read.

    `columns` maps a relation (an input's id, or `this` for the target) to pairs of its column and the step's column.
    """

    step: str
    columns: Mapping[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class ProgramStep:
    """One SELECT. If `unless_empty` names an earlier step that has no rows, this step has none and is not run.

    All of `prunes` apply. `is_rare`: it seldom has rows, so what an estimate expects of a run leaves it out.
    """

    name: str
    query: exp.Query
    unless_empty: str | None = None
    prunes: tuple[Prune, ...] = ()
    is_rare: bool = False


@dataclass(frozen=True)
class DeltaProgram:
    """Steps in order; the last one yields the signed target rows (columns: key, visible, state, weight).

    No steps: the table cannot change. `notes`: what a run says if a step has rows. `groups`: the step with a row for
    each group that changes, where stored states are merged. `partitions`: the partition of each of them, as a query.
    """

    steps: tuple[ProgramStep, ...]
    notes: tuple[tuple[str, Reason], ...] = ()
    groups: str = ""
    partitions: exp.Query | None = None

    @property
    def result(self) -> str:
        return self.steps[-1].name


@dataclass(frozen=True)
class RescanProgram:
    """Recompute of whole target partitions.

    `affected` yields the partition values (columns `_sml_p0`, `_sml_p1`, …) that a change can touch; `query` yields
    the target rows of exactly these. `prune` None: the partitions are those of a range, and `affected` reads the rows
    of `query`.
    """

    affected: exp.Query
    query: exp.Query
    partition_by: tuple[str, ...]
    prune: Prune | None


@dataclass(frozen=True)
class TablePlan:
    """Everything derived from a model's query. `build` yields the whole table: `_sml_key`, visible and state columns.

    If `build` is None, the query is run as written and rows are keyed by their content. `derive` compiles the program
    for a change of certain inputs. If there is a `rescan` too, both produce the same rows, keys and state. `keyed_by`:
    the column whose value keys hold beside those of the query, see `delta.frozen`.
    """

    build: exp.Query | None
    state: Schema = ()
    derive: Callable[[Moves], DeltaProgram] | None = None
    rescan: RescanProgram | None = None
    keyed_by: str = ""
    _programs: dict[Moves, DeltaProgram] = field(default_factory=dict, compare=False, repr=False)

    @property
    def program(self) -> DeltaProgram | None:
        """The program for a change of any input; None if the table has none."""
        return self.program_for(Moves())

    def program_for(self, moves: Moves) -> DeltaProgram | None:
        if self.derive is not None and moves not in self._programs:
            self._programs[moves] = self.derive(moves)
        return self._programs.get(moves)

    @property
    def queries(self) -> tuple[exp.Query, ...]:
        """All SQL by which the table follows changes."""
        merged = tuple(step.query for step in self.program.steps) if self.program else ()
        return merged + ((self.rescan.affected, self.rescan.query) if self.rescan else ())


def relation(role: RelationRole, name: str) -> exp.Table:
    """The table expression of an outside relation.

    >>> relation("changes", "source.shop.user").sql("spark")
    '`changes`.`source.shop.user`'
    """
    return exp.table_(name, db=role, quoted=True)


def steps_of(query: exp.Expr) -> list[str]:
    """Names of the steps that a query reads, one entry per reference.

    >>> import sqlglot
    >>> steps_of(sqlglot.parse_one("select * from a join a as b join changes.c"))
    ['a', 'a']
    """
    return [table.name for table in query.find_all(exp.Table) if split_relation(table) is None]


def name_of(table: exp.Table) -> str:
    """The name of a step, or `<role>.<name>` of an outside relation."""
    return f"{table.db}.{table.name}" if table.db else table.name


def split_relation(table: exp.Table) -> tuple[RelationRole, str] | None:
    """Role and name of an outside relation; None for a step."""
    match table.db:
        case "changes":
            return "changes", table.name
        case "current":
            return "current", table.name
        case "target":
            return "target", table.name
    return None
