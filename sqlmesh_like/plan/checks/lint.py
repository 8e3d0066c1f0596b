"""Likely mistakes in queries that run. Owns the rules of `sml lint`; `check` reports what cannot run.

A rule uses only types that are certain: those of sources, seeds and models that are declared or derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.query_analysis import locate, parse
from sqlmesh_like.classify.rules import RULES
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import Location, nearest
from sqlmesh_like.names import Schema
from sqlmesh_like.render.rendered import RenderedModel


@dataclass(frozen=True)
class Suspicion:
    """One finding of one rule."""

    rule: str
    message: str
    location: Location


@dataclass(frozen=True)
class LintRule:
    id: str
    title: str
    find: Callable[[_Query], Iterator[tuple[str, exp.Expr | Location]]]


@dataclass(frozen=True)
class _Query:
    model: RenderedModel
    tree: exp.Expr  # as written
    typed: exp.Expr | None  # with qualified names and types; None: these are not known
    shown: Schema | None


def lint(
    model: RenderedModel,
    schemas: Mapping[str, Schema | None],
    off: frozenset[str],
    shown: Schema | None = None,
) -> list[Suspicion]:
    """Return the findings of all rules that are not `off`.

    `schemas`: columns of inputs by unique id; `shown`: those of the query, None where they are not known.

    Raises SqlError if the text is not a query.
    """
    tree = parse(model)
    query = _Query(model, tree, with_types(tree, model, schemas), shown)
    return [
        Suspicion(rule.id, message, node if isinstance(node, Location) else locate(model, offset_of(node)))
        for rule in LINT_RULES
        if rule.id not in off
        for message, node in rule.find(query)
    ]


def with_types(tree: exp.Expr, model: RenderedModel, schemas: Mapping[str, Schema | None]) -> exp.Expr | None:
    """The query with qualified names and types; None if the columns of an input are not known."""
    known: dict[str, object] = {}
    for ref in model.inputs:
        columns = schemas.get(ref.unique_id)
        if columns is None:
            return None
        tables = known.setdefault(ref.table.schema, {})
        assert isinstance(tables, dict)
        tables[ref.table.identifier] = {column.name: column.type or "unknown" for column in columns}
    try:
        qualified = qualify(tree.copy(), schema=known, dialect="spark", validate_qualify_columns=False)
        return annotate_types(qualified, schema=known, dialect="spark")
    except (SqlglotError, ValueError, KeyError):
        return None


@dataclass(frozen=True)
class Meeting:
    """Two kinds of types that are compared or united at one node."""

    message: str
    node: exp.Expr
    kinds: frozenset[str]


def join_type_mismatches(tree: exp.Expr) -> Iterator[Meeting]:
    """Comparisons of two kinds of types in the joins of a typed query."""
    for join in tree.find_all(exp.Join):
        on = join.args.get("on")
        for equal in on.find_all(exp.EQ, exp.NullSafeEQ) if on is not None else ():
            left, right = _family(equal.left), _family(equal.right)
            if left and right and left != right:
                text = f"this join compares {left} with {right}: {equal.sql(SPARK, comments=False)}"
                yield Meeting(text, equal, frozenset({left, right}))


def set_operation_type_mismatches(tree: exp.Expr) -> Iterator[Meeting]:
    """Columns of set operations in a typed query whose sides are of two kinds."""
    for union in tree.find_all(exp.SetOperation):
        left, right = union.left, union.right
        if not isinstance(left, exp.Select) or not isinstance(right, exp.Select):
            continue
        for one, other in zip(left.selects, right.selects, strict=False):
            first, second = _family(one), _family(other)
            if first and second and first != second:
                text = f"the column {one.alias_or_name!r} is {first} above and {second} here"
                yield Meeting(text, other, frozenset({first, second}))


def _join_types(query: _Query) -> Iterator[tuple[str, exp.Expr]]:
    for met in join_type_mismatches(query.typed) if query.typed is not None else ():
        yield met.message, met.node


def _union_types(query: _Query) -> Iterator[tuple[str, exp.Expr]]:
    for met in set_operation_type_mismatches(query.typed) if query.typed is not None else ():
        yield met.message, met.node


def _unread_ctes(query: _Query) -> Iterator[tuple[str, exp.Expr]]:
    read = {table.name.lower() for table in query.tree.find_all(exp.Table) if not table.db}
    for cte in query.tree.find_all(exp.CTE):
        if cte.alias.lower() not in read:
            yield f"nothing reads {cte.alias!r}", cte


def _unread_columns(query: _Query) -> Iterator[tuple[str, exp.Expr]]:
    """Columns that a CTE computes and nothing reads."""
    if query.typed is None:
        return
    scopes = list(traverse_scope(query.typed))
    read = {table.name.lower() for table in query.tree.find_all(exp.Table) if not table.db}
    named = {
        (id(source), column.name.lower())
        for scope in scopes
        for column in scope.columns
        if isinstance(source := scope.sources.get(column.table), Scope)
    }
    for scope in scopes:
        if not isinstance(scope.expression, exp.Select) or not isinstance(scope.expression.parent, exp.CTE):
            continue
        if scope.expression.args.get("distinct") or scope.expression.parent.alias.lower() not in read:
            continue  # with DISTINCT, a column that nothing reads still decides which rows there are
        for item in scope.expression.selects:
            if (id(scope), item.alias_or_name.lower()) not in named and offset_of(item) is not None:
                yield f"nothing reads the column {item.alias_or_name!r} of {scope.expression.parent.alias!r}", item


def _watermark(query: _Query) -> Iterator[tuple[str, Location]]:
    """What a run warns of: the author's own incremental SQL."""
    if query.model.is_handwritten_incremental:
        rule = "CFG004" if query.model.author_strategy is None else "CFG005"
        yield f"{RULES[rule].meaning} ({RULES[rule].advice})", query.model.place_of("is_incremental")


def _missing_described_columns(query: _Query) -> Iterator[tuple[str, Location]]:
    """Columns that the YAML describes and the query does not have; a snapshot adds columns of its own."""
    names = [column.name for column in query.shown or ()]
    for name, place in query.model.column_places.items() if names and query.model.config.snapshot is None else ():
        if name not in map(str.lower, names):
            hint = nearest(name, names) or f"its columns: {', '.join(names)}"
            yield f"the query has no column {name!r}, which is described here ({hint})", place


def _family(node: exp.Expr) -> str | None:
    kind = node.type
    if kind is None or kind.is_type(exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL):
        return None
    if kind.is_type(*exp.DataType.TEXT_TYPES):
        return "text"
    if kind.is_type(*exp.DataType.NUMERIC_TYPES):
        return "a number"
    if kind.is_type(*exp.DataType.TEMPORAL_TYPES):
        return "a time"
    return "a boolean" if kind.is_type(exp.DataType.Type.BOOLEAN) else None


LINT_RULES = (
    LintRule("LNT001", "a join compares different kinds of types", _join_types),
    LintRule("LNT002", "a union mixes different kinds of types", _union_types),
    LintRule("LNT003", "a CTE that nothing reads", _unread_ctes),
    LintRule("LNT004", "a column of a CTE that nothing reads", _unread_columns),
    LintRule("LNT005", "a watermark of the author's, by is_incremental()", _watermark),
    LintRule("LNT006", "a column that is described and that the query does not have", _missing_described_columns),
)
