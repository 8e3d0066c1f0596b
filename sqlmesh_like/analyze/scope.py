"""What names mean inside one SELECT. Owns resolution and the two ways in which reading ends early.

Resolution follows Spark: a column of the FROM clause wins over an alias of the SELECT list, names have no case. Source:
Spark SQL reference, "Identifiers".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze.functions import first_impure
from sqlmesh_like.analyze.relation import Relation, columns
from sqlmesh_like.errors import nearest

AGGREGATES = {exp.Sum: "SUM", exp.Count: "COUNT", exp.Avg: "AVG", exp.Min: "MIN", exp.Max: "MAX"}


class Unsupported(Exception):
    """A form the reader does not turn into algebra: the model is rebuilt in full, for this reason."""

    def __init__(self, rule: str, message: str, node: exp.Expr | None = None, keyword: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.offset = offset_of(node) if node is not None else None
        self.keyword = keyword  # the construct starts at the last one before `offset`: trees do not know it


class UnknownName(Exception):
    """A column that no relation in scope has: the author's mistake."""

    def __init__(self, message: str, node: exp.Expr, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset_of(node)
        self.hint = hint


def offset_of(node: exp.Expr) -> int | None:
    """0-based offset of a construct's start in the SQL text; None for generated nodes."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts) if starts else None


@dataclass(frozen=True)
class Scope:
    """One FROM item: its alias and relation, and the CTEs visible here."""

    alias: str
    relation: Relation
    ctes: Mapping[str, Relation]

    @property
    def known(self) -> dict[str, str | None]:
        return {column.name.lower(): column.type for column in columns(self.relation)}


def require_alias(column: exp.Expr, scope: Scope) -> None:
    qualifier = column.text("table")
    if qualifier and qualifier.lower() != scope.alias:
        hint = nearest(qualifier, [scope.alias])
        raise UnknownName(f"unknown table or alias {qualifier!r} in {column.sql('spark')}", column, hint)


def in_scope(expression: exp.Expr, scope: Scope) -> exp.Expr:
    """The expression with each column as a bare name of the scope's relation."""
    if found := expression.find(exp.Query):
        raise Unsupported("QRY005", "a subquery in an expression", found, "SELECT")
    known = {column.name.lower(): column.name for column in columns(scope.relation)}

    def resolve(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        return _resolve_column(node, scope, known)

    return expression.copy().transform(resolve, copy=False)


def _resolve_column(column: exp.Column, scope: Scope, known: Mapping[str, str]) -> exp.Expr:
    if isinstance(column.this, exp.Star):
        raise Unsupported("QRY009", f"{column.sql('spark')} inside an expression", column)
    if column.table.lower() in known and column.table.lower() != scope.alias:
        raise Unsupported("QRY009", f"the nested field {column.sql('spark')}", column)
    require_alias(column, scope)
    if column.name.lower() not in known:
        hint = nearest(column.name, known.values())
        raise UnknownName(f"unknown column {column.name!r}", column, hint or f"known: {', '.join(known.values())}")
    bare = exp.column(known[column.name.lower()], quoted=True)
    bare.meta.update({key: value for part in column.walk() for key, value in part.meta.items()})
    return bare


def require_pure(expression: exp.Expr, *, in_window: bool = False) -> None:
    found = first_impure(expression, in_window=in_window)
    if found is None:
        return
    node, verdict = found
    if any(isinstance(node, kind) for kind in AGGREGATES):
        raise UnknownName(f"the aggregate {node.sql('spark')} cannot stand here", node)
    rules = {"clock": ("CLK001", "depends on the clock"), "random": ("FUN002", "is not deterministic")}
    rule, what = rules.get(verdict, ("FUN001", "is not known to be a pure function of its row"))
    raise Unsupported(rule, f"{node.sql('spark')} {what}", node, node.sql("spark").split("(")[0])


def refuse_lateral_aliases(items: list[exp.Alias], scope: Scope) -> None:
    """Spark lets an item name an alias to its left; that is not resolved here."""
    known = scope.known
    aliases: set[str] = set()
    for item in items:
        for column in item.this.find_all(exp.Column):
            name = column.name.lower()
            if not column.table and name in aliases and name not in known:
                raise Unsupported("QRY009", f"the lateral alias {column.name!r}", column)
        aliases.add(item.alias.lower())


def require_unique(names: list[str], items: list[exp.Alias]) -> None:
    seen: set[str] = set()
    for name, item in zip(names, items, strict=True):
        if name.lower() in seen:
            raise UnknownName(f"two columns are named {name!r}", item, "give one of them another alias")
        seen.add(name.lower())
