"""SQL text → relational algebra. Owns the clauses; raises `Unsupported` for every form it does not know.

What names mean is `scope`'s, aggregates are `grouping`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze import types
from sqlmesh_like.analyze.grouping import aggregate_calls, read_aggregate
from sqlmesh_like.analyze.relation import Distinct, Filter, Named, Project, Relation, Scan, UnionAll, Windowed, columns
from sqlmesh_like.analyze.scope import (
    Scope,
    UnknownName,
    Unsupported,
    in_scope,
    offset_of,
    refuse_lateral_aliases,
    require_alias,
    require_pure,
    require_unique,
)
from sqlmesh_like.names import Column, Schema, is_hidden

_SELECT_PARTS = {"expressions", "from_", "from", "where", "group", "distinct", "order", "with_", "with", "kind"}
_KEYWORDS = {"joins": "JOIN", "laterals": "LATERAL", "windows": "WINDOW"}
_PARENTHESES_PARTS = {"this", "alias", "with_", "with", "order"}
TIE_SENSITIVE = (exp.RowNumber, exp.Lag, exp.Lead, exp.Ntile)


@dataclass(frozen=True)
class InputSchema:
    """What a table name in the SQL stands for. `schema` None: its columns are not known yet."""

    input_id: str
    schema: Schema | None


Lookup = Callable[[exp.Table], InputSchema | Relation | None]


def read(query: exp.Expr, lookup: Lookup, ctes: Mapping[str, Relation] | None = None) -> Relation:
    """The algebra of a query. Raises `Unsupported` for forms that are not maintained, `UnknownName` for mistakes."""
    ctes = dict(ctes or {})
    with_ = query.args.get("with_") or query.args.get("with")
    if with_ is not None:
        if with_.args.get("recursive"):
            raise Unsupported("QRY009", "a recursive CTE", query)
        for cte in with_.expressions:
            if cte.args["alias"].columns:
                raise Unsupported("QRY009", "a CTE with a column list", cte)
            ctes[cte.alias.lower()] = read(cte.this, lookup, ctes)
    match query:
        case exp.Subquery():
            for part, value in query.args.items():
                if value and part not in _PARENTHESES_PARTS:
                    raise _unsupported_part(part, query)
            return read(query.this, lookup, ctes)
        case exp.Union():
            return _read_union(query, lookup, ctes)
        case exp.Select():
            return _read_select(query, lookup, ctes)
    second = query.expression if isinstance(query, exp.SetOperation) else query
    raise Unsupported("QRY004", f"{query.key.upper()} of two queries", second, query.key.upper())


def _read_union(union: exp.Union, lookup: Lookup, ctes: Mapping[str, Relation]) -> Relation:
    if union.args.get("distinct"):
        raise Unsupported("QRY004", "UNION without ALL", union.expression, "UNION")
    for part in ("limit", "offset"):
        if limit := union.args.get(part):
            raise Unsupported("QRY003", f"{part.upper()} of a union", limit, part.upper())
    if any(union.args.get(part) for part in ("by_name", "side", "kind", "on")):
        raise Unsupported("QRY009", "UNION BY NAME", union.expression, "UNION")
    left, right = read(union.this, lookup, ctes), read(union.expression, lookup, ctes)
    branches = (*(left.branches if isinstance(left, UnionAll) else (left,)), right)
    schemas = [columns(branch) for branch in branches]
    if len({len(schema) for schema in schemas}) != 1:
        raise UnknownName("the branches of UNION ALL have different numbers of columns", union)
    by_position = zip(*schemas, strict=True)
    merged = tuple(_merged_column(position, union) for position in by_position)
    return UnionAll(branches, merged)


def _merged_column(position: tuple[Column, ...], union: exp.Expr) -> Column:
    if len({column.type for column in position}) != 1 or position[0].type is None:
        raise Unsupported(
            "TYP001", f"UNION ALL column {position[0].name!r} has no one proven type in all branches", union
        )
    return position[0]


def _read_select(select: exp.Select, lookup: Lookup, ctes: Mapping[str, Relation]) -> Relation:
    for part, value in select.args.items():
        if value and part not in _SELECT_PARTS:
            raise _unsupported_part(part, select)
    scope = _read_from(select, lookup, ctes)
    relation = scope.relation
    if where := select.args.get("where"):
        condition = in_scope(where.this, scope)
        require_pure(condition)
        relation = Filter(relation, condition)
    items = _expand_stars(select, scope)
    group = select.args.get("group")
    if group or any(aggregate_calls(item.this) for item in items):
        relation = read_aggregate(select, relation, items, scope)
    else:
        relation = _read_projection(relation, items, scope)
    if distinct := select.args.get("distinct"):
        if distinct.args.get("on"):
            raise Unsupported("QRY009", "DISTINCT ON", distinct)
        relation = Distinct(relation, offset_of(items[0]))
    return relation


def _unsupported_part(part: str, select: exp.Query) -> Unsupported:
    value = select.args[part]
    node = value[0] if isinstance(value, list) else value if isinstance(value, exp.Expr) else select
    known = {
        "joins": ("QRY001", "a JOIN"), "having": ("QRY002", "HAVING"), "limit": ("QRY003", "LIMIT"),
        "offset": ("QRY003", "OFFSET"), "laterals": ("QRY007", "LATERAL VIEW"), "qualify": ("QRY006", "QUALIFY"),
    }  # fmt: skip
    rule, name = known.get(part, ("QRY009", f"the clause {part.rstrip('_').upper()}"))
    return Unsupported(rule, name, node, _KEYWORDS.get(part, part.upper()))


def _read_from(select: exp.Select, lookup: Lookup, ctes: Mapping[str, Relation]) -> Scope:
    from_ = select.args.get("from_") or select.args.get("from")
    if from_ is None:
        raise Unsupported("QRY008", "a SELECT without FROM", select)
    item = from_.this
    if any(item.args.get(part) for part in ("joins", "laterals", "pivots", "sample", "version", "when")):
        raise Unsupported("QRY001", "a JOIN or a table modifier in FROM", item)
    match item:
        case exp.Table() if not item.db and item.name.lower() in ctes:
            relation: Relation = ctes[item.name.lower()]
        case exp.Table():
            relation = _read_table(item, lookup)
        case exp.Subquery():
            if item.args.get("alias") and item.args["alias"].columns:
                raise Unsupported("QRY009", "a derived table with a column list", item)
            relation = read(item, lookup, ctes)
        case _:
            raise Unsupported("QRY009", f"{item.key.upper()} in FROM", item)
    return Scope((item.alias or item.name).lower(), relation, ctes)


def _read_table(table: exp.Table, lookup: Lookup) -> Relation:
    found = lookup(table)
    if found is None:
        raise Unsupported("QRY008", f"{table.sql('spark')} is no ref() or source()", table)
    if not isinstance(found, InputSchema):
        return found
    if found.schema is None:
        raise Unsupported("INP001", f"the columns of {found.input_id} are not known before it is built", table)
    return Scan(found.input_id, found.schema)


def _expand_stars(select: exp.Select, scope: Scope) -> list[exp.Alias]:
    items: list[exp.Alias] = []
    for item in select.expressions:
        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if isinstance(star, exp.Star):
            require_alias(item, scope)
            if any(star.args.values()):
                raise Unsupported("QRY009", "a star with modifiers", item)
            items += [_aliased(exp.column(c.name, quoted=True)) for c in columns(scope.relation)]
        elif isinstance(item, exp.Alias):
            items.append(item)
        elif isinstance(item, exp.Column):
            items.append(_aliased(item))
        else:
            raise UnknownName(f"the column {item.sql('spark')!r} has no name", item, "add an alias: … AS name")
    for item in items:
        if is_hidden(item.alias):
            raise UnknownName(f"the alias {item.alias!r} is reserved", item, "choose one that does not start so")
    return items


def _aliased(column: exp.Column) -> exp.Alias:
    return exp.Alias(this=column.copy(), alias=exp.to_identifier(column.name, quoted=True))


def _read_projection(relation: Relation, items: list[exp.Alias], scope: Scope) -> Relation:
    refuse_lateral_aliases(items, scope)
    windows = [window for item in items for window in item.this.find_all(exp.Window)]
    named = tuple(_named(item, scope, in_window=bool(windows)) for item in items)
    require_unique([item.alias for item in items], items)
    if not windows:
        return Project(relation, named)
    return Windowed(relation, named, tuple(_partition_list(window, scope) for window in windows))


def _partition_list(window: exp.Window, scope: Scope) -> tuple[exp.Expr, ...]:
    spec = window.args.get("spec")
    if spec is not None and str(spec.args.get("kind")).upper() == "ROWS" and not isinstance(window.this, TIE_SENSITIVE):
        raise Unsupported("QRY006", "a window frame by ROWS, whose result depends on tied order", window)
    if isinstance(window.this, TIE_SENSITIVE) and not window.args.get("order"):
        raise Unsupported("QRY006", "a window function whose result depends on an order that is not given", window)
    return tuple(in_scope(part, scope) for part in window.args.get("partition_by") or [])


def _named(item: exp.Alias, scope: Scope, *, in_window: bool = False) -> Named:
    expression = in_scope(item.this, scope)
    require_pure(expression, in_window=in_window)
    type_ = None if in_window and expression.find(exp.Window) else types.infer(expression, scope.known)
    return Named(item.alias, expression, type_)
