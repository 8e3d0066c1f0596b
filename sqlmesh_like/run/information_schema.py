"""`information_schema` in queries by templates: a lake has none, so it is built from the project's own relations.

Owns which of its tables exist, and their columns. A model's own query may not read them: their changes are not tracked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from sqlmesh_like.names import Schema, TableName

_TYPES = {"table": "BASE TABLE", "view": "VIEW"}
ColumnsOfTable = Callable[[TableName], Schema | None]
"""Columns of a table or view; None if it does not exist."""


def is_asked(tree: exp.Expr) -> bool:
    """Whether a query reads a supported table of `information_schema`."""
    return any(map(_view_of, tree.find_all(exp.Table)))


def with_relations(tree: exp.Expr, relations: Mapping[TableName, str], columns_of: ColumnsOfTable) -> exp.Expr:
    """Replace `information_schema.tables`, `columns` and `schemata`, of any catalog, in a query by their rows.

    `relations`: the tables and views that exist, each as `table` or `view`.

    >>> import sqlglot
    >>> asked = sqlglot.parse_one("select schema_name from x.information_schema.schemata", dialect="spark")
    >>> with_relations(asked, {TableName("dws", "a"): "view"}, lambda _: ()).sql("spark")
    "SELECT schema_name FROM VALUES ('', 'dws') AS schemata(catalog_name, schema_name)"
    """

    def answer(node: exp.Expr) -> exp.Expr:
        match _view_of(node):
            case "tables":
                kinds = sorted(relations.items())
                return _relation(node, _OF_TABLE, [("", t.schema, t.identifier, _TYPES[kind]) for t, kind in kinds])
            case "columns":
                columns: list[tuple[object, ...]] = [
                    ("", table.schema, table.identifier, column.name, position, column.type or "string")
                    for table in sorted(relations)
                    for position, column in enumerate(columns_of(table) or (), 1)
                ]
                return _relation(node, _OF_COLUMN, columns)
            case "schemata":
                schemas = sorted({table.schema for table in relations})
                return _relation(node, _OF_SCHEMA, [("", schema) for schema in schemas])
        return node

    return tree.transform(answer)


def _view_of(node: exp.Expr) -> str:
    """The supported table of `information_schema` that a node is, empty if it is none."""
    name = node.name.lower() if isinstance(node, exp.Table) and node.db.lower() == "information_schema" else ""
    return name if name in ("tables", "columns", "schemata") else ""


_OF_TABLE = ("table_catalog", "table_schema", "table_name", "table_type")
_OF_SCHEMA = ("catalog_name", "schema_name")
_OF_COLUMN = (
    "table_catalog", "table_schema", "table_name", "column_name", "ordinal_position", "data_type"
)  # fmt: skip


def _relation(node: exp.Expr, names: Sequence[str], rows: list[tuple[object, ...]]) -> exp.Expr:
    alias = node.alias or node.name
    if rows:
        return exp.values(rows, alias=alias, columns=names)
    nothing = exp.select(*(exp.alias_(exp.cast(exp.null(), "string"), name) for name in names)).where(exp.false())
    return nothing.subquery(alias)
