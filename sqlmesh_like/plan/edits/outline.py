"""Edits whose new rows follow from the stored ones alone. Owns which these are, and the query over the table.

An edit is one if the query keeps its source (`analyze.algebra.canonical_form.Outline`): rows may leave by further
conditions on stored columns, and columns may go, change name and place, or be computed of stored ones. The commit of a
table holds digests of the outline of its query, and no text of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.canonical_expressions import over_columns
from sqlmesh_like.analyze.algebra.canonical_form import Outline
from sqlmesh_like.analyze.spark_types.type_names import is_stored
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.keys import key
from sqlmesh_like.delta.program import (
    STATE_VERSION,
    TARGET,
    DeltaProgram,
    RelationRole,
    TablePlan,
    relation,
    split_relation,
)
from sqlmesh_like.delta.whole_window import keeps_rows_below
from sqlmesh_like.names import Schema

_MOST_PARTS = 400
"""Columns and conditions of an outline that is stored: each commit has it."""


@dataclass(frozen=True)
class Edit:
    """What an edit is, in words, and the query that yields the new rows, over `target.this` and inputs.

    `program`: that of the rows that leave and enter, where the others stay as they are; then there are no such `rows`.
    """

    words: str
    rows: exp.Query | None
    program: DeltaProgram | None = None

    @property
    def inputs(self) -> frozenset[str]:
        """The inputs that are read, by their ids."""
        return frozenset(name for role, name in self._read if role == "current")

    @property
    def reads_table(self) -> bool:
        """Whether the stored rows are read."""
        return any(role == "target" for role, _ in self._read)

    @property
    def _read(self) -> list[tuple[RelationRole, str]]:
        queries = (
            [self.rows] if self.rows is not None else [s.query for s in self.program.steps] if self.program else []
        )
        tables = (split_relation(table) for query in queries for table in query.find_all(exp.Table))
        return [outside for outside in tables if outside is not None]

    def table(self, plan: TablePlan) -> TablePlan:
        """What a run executes, given the plan of the edited query."""
        if self.program is not None:
            program = self.program
            return TablePlan(plan.build, plan.state, derive=lambda _: program)
        return replace(plan, build=self.rows)


def stored_outline(compiled: CompiledModel) -> Mapping[str, str]:
    """The outline of a query as its table's commits hold it; empty if there is none.

    Digests by `source`, `where` (of all conditions) and `column.<name>`.
    """
    shape = _outline(compiled)
    if shape is None:
        return {}
    columns = {f"column.{name}": _digest(text) for text, name, _ in shape.columns}
    if len(columns) + len(shape.conditions) > _MOST_PARTS:
        return {}
    conditions = " ".join(sorted(map(_digest, shape.conditions)))
    return {"source": _source(shape, compiled), "where": conditions, **columns}


def edit_of(before: Mapping[str, str], compiled: CompiledModel, stored: Schema) -> Edit | None:
    """The edit from the query of a stored outline to this one; None if the inputs have to be read for it.

    `stored`: the visible columns of the table.
    """
    shape, types = _outline(compiled), {column.type for column in compiled.facts.schema or ()}
    if shape is None or not all(map(is_stored, types)) or before.get("source") != _source(shape, compiled):
        return None
    names = {before.get(f"column.{column.name}"): column.name for column in stored}
    columns = {text: names[_digest(text)] for text, _, _ in shape.columns if _digest(text) in names}
    items = [(over_columns(value, columns), name) for _, name, value in shape.columns]
    shown = [(value, name) for value, name in items if value is not None]
    conditions = _added_conditions(before, shape, columns)
    if len(shown) < len(items) or conditions is None:
        return None
    hidden = [(exp.column(column.name, quoted=True), column.name) for column in compiled.table.state]
    return Edit(_words(shown, [column.name for column in stored], conditions), _rows([*shown, *hidden], conditions))


def _source(shape: Outline, compiled: CompiledModel) -> str:
    """A digest of the source and of the hidden state, which follows from it: a query that keeps both keeps it."""
    state = [(column.name, column.type) for column in compiled.table.state]
    return _digest(f"{STATE_VERSION} {state} {shape.source}")


def _outline(compiled: CompiledModel) -> Outline | None:
    facts = compiled.facts
    if facts.relation is None or compiled.table.build is None or keeps_rows_below(compiled.table.state):
        return None
    return facts.forms.outline


def _added_conditions(before: Mapping[str, str], shape: Outline, columns: Mapping[str, str]) -> list[exp.Expr] | None:
    """Conditions that the stored rows need not meet yet, over their `columns` (by text); None if there are others."""
    old = set(before.get("where", "").split())
    if not old <= set(map(_digest, shape.conditions)):
        return None
    added = [over_columns(tree, columns) for text, tree in shape.conditions.items() if _digest(text) not in old]
    conditions = [condition for condition in added if condition is not None]
    return conditions if len(conditions) == len(added) else None


def _rows(items: Iterable[tuple[exp.Expr, str]], conditions: Iterable[exp.Expr]) -> exp.Query:
    shown = [exp.alias_(value, name, quoted=True) for value, name in items]
    query = exp.select(*shown, key()).from_(relation("target", TARGET))
    return query.where(*conditions) if conditions else query


def _words(items: list[tuple[exp.Expr, str]], before: list[str], conditions: list[exp.Expr]) -> str:
    copied = [(value.name, name) for value, name in items if isinstance(value, exp.Column)]
    kept = [own for own, _ in copied]
    renamed = [f"{own} → {name}" for own, name in copied if own != name]
    computed = [name for value, name in items if not isinstance(value, exp.Column)]
    gone = [name for name in before if name not in kept]
    words = ["a narrower filter"] * bool(conditions)
    words += [f"{' and '.join(computed)} computed of stored columns"] * bool(computed)
    words += [f"renamed {', '.join(renamed)}"] * bool(renamed) + [f"without {', '.join(gone)}"] * bool(gone)
    if kept != [name for name in before if name in kept]:
        words.append("columns in another order")
    return "; ".join(words)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
