"""The steps of a plan as temporary tables in memory, and a table that its actions are applied to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import duckdb
from sqlglot import exp

from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.delta.actions import ACTIONS
from sqlmesh_like.delta.machine import Actions, ReadyStep
from sqlmesh_like.delta.program import TARGET, Prune, RescanProgram, split_relation
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_types import duck_quoted, without_zone
from sqlmesh_like.names import IS_DELETED, KEY, WEIGHT

STORED = f"target.{TARGET}"
_TYPED = "_sml_typed"


@dataclass(frozen=True)
class RowActions:
    """What a run did to the target: rows written and keys deleted, after netting. `notes`: what it says of its work."""

    upserts: int
    deletes: int
    notes: tuple[Reason, ...] = field(default=(), compare=False)


class MemorySteps:
    """Steps as temporary tables. The text of a query that is kept by `PreparedQueries` is generated once."""

    nets_by: Literal["group", "join"] = "join"

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self.db = db
        self._empty = frozenset[str]()
        self._texts: dict[int, tuple[exp.Query, str]] = {}

    def begin(self, empty: frozenset[str]) -> None:
        """Begin a run in which these outside relations have no rows."""
        self._empty = empty

    def empty_relations(self) -> Iterable[str]:
        return self._empty

    def create_step(self, step: ReadyStep) -> bool:
        text = self._text(step.query, step.prunes, is_proven=step.is_proven)
        return not self.create(step.name, f"SELECT * FROM ({text}) LIMIT 0" if step.is_empty else text)

    def create(self, name: str, query: str) -> int:
        """Create a step from a query. Returns how many rows it has."""
        (count,) = self.db.execute(f"CREATE OR REPLACE TEMP TABLE {duck_quoted(name)} AS {query}").fetchall()[0]
        return int(count)

    def columns(self, name: str) -> Sequence[str]:
        return [column for column, _ in describe_columns(self.db, name)]

    def first_row(self, query: exp.Query) -> tuple[object, ...]:
        row: tuple[object, ...] = self.db.execute(self._text(query, is_proven=True)).fetchall()[0]
        return row

    def _text(self, query: exp.Query, prunes: Sequence[Prune] = (), *, is_proven: bool) -> str:
        if id(query) not in self._texts:
            text = duck_text(query.copy(), is_exact=True) if is_proven else bind_text(query.copy(), prunes)
            self._texts[id(query)] = (query, text)  # the key is valid while the query lives
        return self._texts[id(query)][1]


@dataclass
class MemoryWriter:
    """Applies actions to the table in memory. `build_again` builds it from scratch."""

    steps: MemorySteps
    build_again: Callable[[], None]
    overwrites_partitions: bool = False

    def stored_form(self, signed: str) -> str:
        columns = describe_columns(self.steps.db, STORED)
        items = ", ".join(f"CAST({duck_quoted(name)} AS {type_}) AS {duck_quoted(name)}" for name, type_ in columns)
        self.steps.create(_TYPED, f"SELECT {items}, {WEIGHT} FROM {duck_quoted(signed)}")
        return _TYPED

    def apply_actions(self, done: Actions) -> RowActions:
        names = ", ".join(duck_quoted(name) for name, _ in describe_columns(self.steps.db, STORED))
        self.steps.db.execute(f"DELETE FROM {STORED} WHERE {KEY} IN (SELECT {KEY} FROM {ACTIONS})")
        entering = f"SELECT {names} FROM {ACTIONS} WHERE NOT {IS_DELETED}"
        self.steps.db.execute(f"INSERT INTO {STORED} ({names}) {entering}")
        return RowActions(done.upserts, done.deletes, done.notes)

    def keep(self, notes: tuple[Reason, ...] = ()) -> RowActions:
        return RowActions(0, 0, notes)

    def overwrite_partitions(self, rescan: RescanProgram) -> RowActions:
        raise AssertionError(f"partitions by {rescan.partition_by} are merged row by row")

    def apply_author_strategy(self) -> RowActions:
        return self.rebuild()

    def rebuild(self) -> RowActions:
        self.build_again()
        row = self.steps.db.execute(f"SELECT count(*) FROM {STORED}").fetchall()[0]
        return RowActions(int(row[0]), 0)


def describe_columns(db: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str]]:
    """Names of columns and DuckDB's types."""
    return [(row[0], row[1]) for row in db.execute(f"DESCRIBE {table}").fetchall()]


def bind_text(query: exp.Query, prunes: Sequence[Prune] = ()) -> str:
    """The text of a query over the relations in memory; changes the query in place."""

    def bind(node: exp.Expr) -> exp.Expr:
        outside = split_relation(node) if isinstance(node, exp.Table) else None
        return without_zone(node) if outside is None else _prune_partitions(node, outside[1], prunes)

    return duck_text(query.transform(bind, copy=False))


def _prune_partitions(table: exp.Expr, name: str, prunes: Sequence[Prune]) -> exp.Expr:
    """An outside relation as a step sees it: only the partitions that its prunes leave."""
    assert isinstance(table, exp.Table)
    # As in the Spark engine, the last of two bounds on one column wins.
    bounds = [(prune.step, list(dict(prune.columns.get(name, ())).items())) for prune in prunes]
    matching = [_matching("_sml_t", step, pairs) for step, pairs in bounds if pairs]
    if not matching:
        return table
    rows = exp.select("*").from_(exp.alias_(table.copy(), "_sml_t", table=True))
    return rows.where(*matching, dialect="duckdb").subquery(table.alias or "_sml_narrowed")


def _matching(alias: str, step: str, pairs: Sequence[tuple[str, str]]) -> str:
    """SQL condition: some row of a step has the values of the aliased table's columns."""
    equal = [f"{alias}.{duck_quoted(own)} IS NOT DISTINCT FROM _sml_s.{duck_quoted(theirs)}" for own, theirs in pairs]
    return f"EXISTS (SELECT 1 FROM {step} AS _sml_s WHERE {' AND '.join(equal)})"
