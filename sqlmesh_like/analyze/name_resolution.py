"""Names in a query that cannot be resolved. Owns resolution for queries that the binder does not turn into algebra.

Reports nothing if it is not sure: a valid query is never refused, a doubtful one is left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.scope import Scope, traverse_scope

from sqlmesh_like.analyze.cte_scopes import is_cte
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import nearest

ColumnsOf = Callable[[str, str], tuple[str, ...] | None]
"""Columns of a table by schema and identifier; None where they are not known."""

_PSEUDO = frozenset(
    "window session_window _metadata second minute hour day week month quarter year microsecond millisecond "
    "dayofyear current_date current_timestamp current_user input_file_name".split()
)
"""Bare words that are parsed as columns but are units, functions, or columns that Spark adds."""
_STRUCTS = frozenset({"window", "session_window", "_metadata"})
"""Those of which fields are named: `window.start`."""


_FILE_FORMATS = frozenset({"parquet", "csv", "json", "orc", "avro", "text", "delta", "hudi", "binaryfile"})
"""A table whose schema is one of these is a path from which Spark reads files."""


@dataclass(frozen=True)
class Unresolved:
    """A column that cannot be resolved in its scope."""

    message: str
    node: exp.Expr
    hint: str | None


def first_unresolved(tree: exp.Expr, columns_of: ColumnsOf) -> Unresolved | None:
    """The first column, in the order of scopes, that cannot be resolved."""
    outputs: dict[int, tuple[str, ...] | None] = {}
    for scope in scopes(tree):
        if misnamed := _incomplete_alias(scope, columns_of):
            return misnamed
        known = _sources(scope, columns_of, outputs)
        outputs[id(scope)] = _outputs(scope, known, outputs)
        own = [column for column in scope.columns if column.parent_select is scope.expression]
        visible = {**_outside(scope, columns_of, outputs), **known}
        unresolved = next((unresolved for column in own if (unresolved := _judge(column, scope, visible))), None)
        if unresolved:
            return unresolved
    return None


def _incomplete_alias(scope: Scope, columns_of: ColumnsOf) -> Unresolved | None:
    """A table whose alias does not name all of its columns."""
    for table in scope.sources.values():
        if not isinstance(table, exp.Table) or is_cte(table):
            continue
        alias, columns = table.args.get("alias"), columns_of(table.db, table.name)
        if isinstance(alias, exp.TableAlias) and alias.columns and columns and len(columns) != len(alias.columns):
            message = f"{table.sql(SPARK)} names {len(alias.columns)} columns of {len(columns)}"
            return Unresolved(message, alias.columns[0], f"its columns: {', '.join(columns)}")
    return None


def foreign_tables(tree: exp.Expr, known: Collection[tuple[str, str]]) -> Iterator[exp.Table]:
    """Tables by name that are neither known (schema and identifier in lower case) nor a CTE that is visible there."""
    for table in tree.find_all(exp.Table):
        is_named = isinstance(table.this, exp.Identifier) and table.db.lower() not in _FILE_FORMATS
        if is_named and not is_cte(table) and (table.db.lower(), table.name.lower()) not in known:
            yield table


def output_names(tree: exp.Expr, columns_of: ColumnsOf) -> tuple[str, ...] | None:
    """Names of the query's columns; None where a star hides them."""
    outputs: dict[int, tuple[str, ...] | None] = {}
    names = None
    for scope in scopes(tree):
        names = outputs[id(scope)] = _outputs(scope, _sources(scope, columns_of, outputs), outputs)
    return names


def scopes(tree: exp.Expr) -> list[Scope]:
    """Scopes, inner ones first; empty if two items of one FROM have the same name, which Spark allows."""
    try:
        traversed = traverse_scope(tree)
        for scope in traversed:
            _ = scope.selected_sources  # raises for a duplicate name
    except OptimizeError:
        return []
    return traversed


_Known = dict[str, tuple[str, ...] | None]


def visible_columns(tree: exp.Expr, columns_of: ColumnsOf) -> Iterator[tuple[Scope, _Known]]:
    """Each scope, inner ones first, with the columns of each FROM item by lower-case alias."""
    outputs: dict[int, tuple[str, ...] | None] = {}
    for scope in scopes(tree):
        known = _sources(scope, columns_of, outputs)
        yield scope, known
        outputs[id(scope)] = _outputs(scope, known, outputs)  # of what the caller has made of it


def _sources(scope: Scope, columns_of: ColumnsOf, outputs: dict[int, tuple[str, ...] | None]) -> _Known:
    """Columns of each FROM item by its lower-case alias."""
    known: _Known = {}
    for alias, source in scope.sources.items():
        if isinstance(source, Scope):
            known[alias.lower()] = outputs.get(id(source))
        elif isinstance(source, exp.Table):
            known[alias.lower()] = _aliased_columns(source, columns_of(source.db, source.name))
        else:
            known[alias.lower()] = None
    return known


def _aliased_columns(table: exp.Table, columns: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The columns of a table as its alias names them; None where these are not as many."""
    alias = table.args.get("alias")
    names = tuple(name.name for name in alias.columns) if isinstance(alias, exp.TableAlias) else ()
    if not names or columns is None:
        return None if names else columns
    return names if len(names) == len(columns) else None


def _outside(scope: Scope, columns_of: ColumnsOf, outputs: dict[int, tuple[str, ...] | None]) -> _Known:
    """Columns of the enclosing queries that a query may refer to, by lower-case alias.

    A subquery in an expression sees the FROM around it; derived tables and the queries of a set operation see what the
    query that they stand in sees, but not its FROM. In a set operation of EXISTS and IN Spark allows no outer column.
    """
    if scope.parent is None or (scope.is_set_operation and _is_membership(scope.parent)):
        return {}
    if not scope.is_subquery:
        return _outside(scope.parent, columns_of, outputs)
    around = _sources(scope.parent, columns_of, outputs)
    if scope.parent.expression.args.get("laterals"):
        around[""] = None
    return {**_outside(scope.parent, columns_of, outputs), **around}


def _is_membership(scope: Scope) -> bool:
    """Whether a set operation is, with others around it or not, the whole query of EXISTS or IN."""
    while scope.is_set_operation and scope.parent is not None:
        scope = scope.parent
    query = scope.expression
    around = query.parent.parent if isinstance(query.parent, exp.Subquery) else query.parent
    return isinstance(query.parent, exp.Exists | exp.In) or isinstance(around, exp.Exists | exp.In)


def _outputs(scope: Scope, known: _Known, outputs: dict[int, tuple[str, ...] | None]) -> tuple[str, ...] | None:
    query = scope.expression
    alias = query.parent.args.get("alias") if isinstance(query.parent, exp.Subquery | exp.CTE) else None
    if isinstance(query, exp.SetOperation) and scope.set_operation_scopes:
        return None if alias and alias.columns else outputs.get(id(scope.set_operation_scopes[0]))
    if not isinstance(query, exp.Select) or (alias and alias.columns) or is_open(scope):
        return None
    names: list[str] = []
    for item in query.expressions:
        item_names = _names_of(item, known, [table.lower() for table in scope.selected_sources])
        if item_names is None:
            return None
        names += item_names
    return tuple(names)


def _names_of(item: exp.Expr, known: _Known, tables: list[str]) -> tuple[str, ...] | None:
    star = item.this if isinstance(item, exp.Column) else item
    if not isinstance(star, exp.Star):
        return (item.alias_or_name,) if item.alias_or_name else None
    if any(star.args.values()):
        return None
    wanted = [item.table.lower()] if isinstance(item, exp.Column) else tables
    parts = [known.get(table) for table in wanted]
    return None if None in parts else tuple(name for part in parts for name in part or ())


def is_open(scope: Scope) -> bool:
    """Whether a scope has LATERAL VIEW, PIVOT, USING or NATURAL, whose columns are not determined here."""
    query = scope.expression
    joins = query.args.get("joins") or []
    return bool(
        query.args.get("laterals")
        or query.args.get("pivots")
        or any(join.args.get("using") or join.args.get("method") for join in joins)
        or _has_pivot(scope)
    )


def _has_pivot(scope: Scope) -> bool:
    start, joins = scope.expression.args.get("from_"), scope.expression.args.get("joins") or []
    return any(each.this.args.get("pivots") for each in (*([start] if start is not None else []), *joins))


def _judge(column: exp.Column, scope: Scope, known: _Known) -> Unresolved | None:
    in_lambda = column.find_ancestor(exp.Lambda, exp.Select)
    if isinstance(column.this, exp.Star) or isinstance(in_lambda, exp.Lambda) or scope.expression.args.get("laterals"):
        return None
    if not isinstance(scope.expression, exp.Select) or _has_pivot(scope):
        return None
    return _judge_qualified(column, known) if column.table else _judge_bare(column, scope, known)


def _judge_qualified(column: exp.Column, known: _Known) -> Unresolved | None:
    table = column.parts[0].name.lower()
    if table not in known:
        structs = {*_STRUCTS, *(name.lower() for names in known.values() for name in names or ())}
        has_schema = any(part.name.lower() in known for part in column.parts[1:-1])
        if None in known.values() or table in structs or has_schema:
            return None
        hint = nearest(column.table, known) or f"known: {', '.join(known)}"
        return Unresolved(f"unknown table or alias {column.table!r} in {column.sql(SPARK)}", column, hint)
    names, name = known[table], column.parts[1].name
    if names is None or name.lower() in map(str.lower, names):
        return None
    return Unresolved(f"unknown column {name!r} of {column.parts[0].name!r}", column, _hint(name, names))


def _judge_bare(column: exp.Column, scope: Scope, known: _Known) -> Unresolved | None:
    has_sources = bool(scope.selected_sources) or scope.is_subquery
    if not has_sources or None in known.values() or column.name.lower() in _PSEUDO:
        return None
    names = [name for part in known.values() for name in part or ()]
    if places := _ambiguous(column, scope, known):
        hint = f"write {' or '.join(f'{place}.{column.name}' for place in places)}"
        return Unresolved(f"the column {column.name!r} is ambiguous", column, hint)
    if column.name.lower() in map(str.lower, names):
        return None
    if column.name.lower() in map(str.lower, _aliases(scope)):
        return _judge_alias(column, scope)
    return Unresolved(f"unknown column {column.name!r}", column, _hint(column.name, names))


def _judge_alias(column: exp.Column, scope: Scope) -> Unresolved | None:
    """Spark does not resolve an alias of the same SELECT in a window function; only some are expanded there."""
    part: exp.Expr = column
    is_in_window = False
    while part.parent is not None and part.parent is not scope.expression:
        part = part.parent
        is_in_window = is_in_window or isinstance(part, exp.Window)
    if not is_in_window or part.arg_key != "expressions":
        return None
    message = f"the alias {column.name!r} of the same SELECT cannot be used within a window function"
    return Unresolved(message, column, "write its expression in its place, or compute it in a CTE")


def _ambiguous(column: exp.Column, scope: Scope, known: _Known) -> list[str]:
    """Aliases of FROM items that all have the column; empty if it is not ambiguous or may be a SELECT alias."""
    joins = scope.expression.args.get("joins") or []
    is_merged = any(j.args.get("using") or j.args.get("method") or j.kind in ("SEMI", "ANTI") for j in joins)
    by_alias = column.find_ancestor(exp.Group, exp.Order, exp.Having, exp.Qualify, exp.Select)
    if is_merged or is_open(scope) or not isinstance(by_alias, exp.Select):
        return []
    own = [alias.lower() for alias in scope.selected_sources]
    places = [alias for alias in own if column.name.lower() in map(str.lower, known.get(alias) or ())]
    return places if len(places) > 1 else []


def _aliases(scope: Scope) -> Iterator[str]:
    """Aliases of the SELECT list: GROUP BY, ORDER BY, HAVING and items to the right may refer to them."""
    return (item.alias for item in scope.expression.expressions if item.alias)


def _hint(name: str, names: tuple[str, ...] | list[str]) -> str:
    return nearest(name, names) or f"known: {', '.join(names)}"
