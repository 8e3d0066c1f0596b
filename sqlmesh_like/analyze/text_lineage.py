"""Column lineage of queries outside the algebra: names traced through the text. Owns the use of sqlglot's lineage.

Only values are traced, not the conditions that select rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage

from sqlmesh_like.analyze.algebra.column_lineage import ColumnLineage, ColumnOrigin, How, stronger
from sqlmesh_like.analyze.name_resolution import ColumnsOf, output_names, scopes
from sqlmesh_like.analyze.query_analysis import parse
from sqlmesh_like.names import Schema
from sqlmesh_like.render.rendered import RenderedModel

_Tables = dict[str, dict[str, dict[str, str]]]


def trace_text(model: RenderedModel, schemas: Mapping[str, Schema | None]) -> tuple[ColumnLineage, ...] | None:
    """Lineage of all output columns in their order; None if a star hides them.

    `schemas`: columns of inputs by unique id, as far as they are known. Raises SqlError.
    """
    tree = parse(model)
    by_table = {(ref.table.schema.lower(), ref.table.identifier.lower()): ref.unique_id for ref in model.inputs}

    def columns_of(schema: str, identifier: str) -> tuple[str, ...] | None:
        known = schemas.get(by_table.get((schema.lower(), identifier.lower()), ""))
        return tuple(column.name for column in known) if known else None

    names = output_names(tree, columns_of)
    if names is None:
        return None
    known = _tables(tree, by_table, columns_of)
    return tuple(_column(name, tree, known, by_table) for name in names)


def _tables(tree: exp.Expr, by_table: Mapping[tuple[str, str], str], columns_of: ColumnsOf) -> _Tables:
    """Columns of each table; for one whose columns are not known, those that the query can only take from it."""
    tables: _Tables = {}
    for schema, identifier in by_table:
        columns = columns_of(schema, identifier) or ()
        tables.setdefault(schema, {})[identifier] = dict.fromkeys(columns, "unknown")
    for scope in scopes(tree):
        sources = {alias: t for alias, t in scope.sources.items() if isinstance(t, exp.Table)}
        unknown = {alias: t for alias, t in sources.items() if columns_of(t.db, t.name) is None}
        is_sure = len(unknown) == 1 and len(sources) == len(scope.sources)
        elsewhere = {name for t in sources.values() for name in columns_of(t.db, t.name) or ()}
        for column in scope.columns:
            bare = next(iter(unknown)) if is_sure and not column.table and column.name not in elsewhere else ""
            table = unknown.get(column.table or bare)
            if table is not None and (table.db.lower(), table.name.lower()) in by_table:
                tables[table.db.lower()][table.name.lower()][column.name] = "unknown"
    shown = {
        schema: {name: columns for name, columns in by_name.items() if columns} for schema, by_name in tables.items()
    }
    return {schema: by_name for schema, by_name in shown.items() if by_name}


def _column(name: str, tree: exp.Expr, known: _Tables, by_table: Mapping[tuple[str, str], str]) -> ColumnLineage:
    try:
        root = lineage(name, tree, known, dialect="spark", validate_qualify_columns=False)
    except (SqlglotError, ValueError):  # sqlglot cannot qualify it either
        return ColumnLineage(name, None, {}, {}, is_complete=False)
    origins: dict[ColumnOrigin, How] = {}
    is_complete = True
    for node, how in _leaves(root, "copied"):
        table = node.expression
        input_id = by_table.get((table.db.lower(), table.name.lower())) if isinstance(table, exp.Table) else None
        if input_id is None:
            is_complete &= not isinstance(table, exp.Table | exp.Placeholder)
            continue
        origin = ColumnOrigin(input_id, node.name.rpartition(".")[2])
        origins[origin] = stronger(origins.get(origin, how), how)
    return ColumnLineage(name, None, dict(sorted(origins.items())), {}, is_complete)


def _leaves(node: Node, how: How) -> Iterator[tuple[Node, How]]:
    """The leaves below a node, each with how its value is transformed on the way up."""
    below = how if isinstance(node.expression, exp.Table) else stronger(how, _how(node.expression))
    if not node.downstream:
        yield node, how
    for child in node.downstream:
        yield from _leaves(child, below)


def _how(item: exp.Expr) -> How:
    expression = item.unalias()
    if isinstance(expression, exp.Column | exp.Query):
        return "copied"
    return "aggregated" if expression.find(exp.AggFunc) else "computed"
