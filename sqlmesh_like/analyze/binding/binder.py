"""SQL text → relational algebra. Owns whole queries: CTEs, set operations, SELECT lists, windows.

`from_clause` reads FROM and joins, `grouping` GROUP BY, `scope` resolves names. `Unsupported` is raised for every form
that is not known. Source: Spark SQL reference, "SELECT".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Filter,
    JoinKind,
    Named,
    OneRow,
    Projection,
    Relation,
    UnionAll,
    Windowed,
    columns,
)
from sqlmesh_like.analyze.binding.differences import counted_difference, distinct_difference
from sqlmesh_like.analyze.binding.distinct_rows import distinct_rows
from sqlmesh_like.analyze.binding.from_clause import FromReader, Lookup, with_columns
from sqlmesh_like.analyze.binding.generators import in_select, selected_generator
from sqlmesh_like.analyze.binding.grouping import aggregate_calls, read_aggregate
from sqlmesh_like.analyze.binding.lateral_aliases import with_lateral_aliases
from sqlmesh_like.analyze.binding.limits import apply_limit, read_limit
from sqlmesh_like.analyze.binding.scope import (
    Scope,
    UnknownName,
    Unsupported,
    offset_of,
    quoted_alias,
    with_names,
)
from sqlmesh_like.analyze.binding.set_types import cast_to_schema, common_schema
from sqlmesh_like.analyze.binding.shorthands import expand_group_by_all, expand_shorthands, with_plain_values
from sqlmesh_like.analyze.binding.subqueries.asking_groups import RowQuestions, asking_groups
from sqlmesh_like.analyze.binding.subqueries.predicate_subqueries import Subqueries
from sqlmesh_like.analyze.binding.subqueries.row_queries import move_on_subqueries_to_where
from sqlmesh_like.analyze.binding.ties import over_peers, window_fault
from sqlmesh_like.analyze.binding.time_windows import by_start, with_time_window
from sqlmesh_like.analyze.binding.windows_over_groups import SplitItems
from sqlmesh_like.analyze.expressions import types
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import Schema, is_hidden

_SELECT_PARTS = {
    "expressions", "from_", "from", "joins", "where", "group", "having", "distinct", "order", "with_", "with", "kind",
    "qualify", "laterals", "hint", "limit", "offset",
}  # fmt: skip
_KEYWORDS = {"joins": "JOIN", "windows": "WINDOW"}
_PARENTHESES_PARTS = {"this", "alias", "with_", "with", "order", "limit", "offset"}
_QUALIFY = "_sml_qualify"


def read_query(query: exp.Expr, lookup: Lookup, ctes: Mapping[str, Relation] | None = None) -> Relation:
    """The algebra of a query. Raises `Unsupported` for forms outside it, `UnknownName` for the author's mistakes."""
    ctes = dict(ctes or {})
    with_ = query.args.get("with_") or query.args.get("with")
    if with_ is not None:
        if with_.args.get("recursive"):
            raise Unsupported("QRY009", "a recursive CTE", query)
        for cte in with_.expressions:
            names = [name.name for name in cte.args["alias"].columns]
            relation = read_query(with_names(cte.this) if names else cte.this, lookup, ctes)
            ctes[cte.alias.lower()] = with_columns(relation, names, cte) if names else relation
    match query:
        case exp.Subquery():
            for part, value in query.args.items():
                if value and part not in _PARENTHESES_PARTS:
                    raise _unsupported_part(part, query)
            return apply_limit(query, read_query(query.this, lookup, ctes))
        case exp.Union():
            return apply_limit(query, _read_union(query, lookup, ctes))
        case exp.Select():
            return _read_select(query, FromReader(lookup, ctes, read_query, _join_condition_subqueries))
        case exp.Intersect() | exp.Except():
            return apply_limit(query, _read_difference(query, lookup, ctes))
    raise Unsupported("QRY009", f"{query.key.upper()} as a query", query)


def _read_union(union: exp.Union, lookup: Lookup, ctes: Mapping[str, Relation]) -> Relation:
    if any(union.args.get(part) for part in ("by_name", "side", "kind", "on")):
        raise Unsupported("QRY009", "UNION BY NAME", union.expression, "UNION")
    left, right = read_query(union.this, lookup, ctes), read_query(with_names(union.expression), lookup, ctes)
    if len(columns(left)) != len(columns(right)):
        schemas = [columns(left), columns(right)]
        raise _different_widths(f"the branches of {_operator(union)}", union.expression, schemas)
    schema = _common_schema(left, right, union)
    sides = (*(left.branches if isinstance(left, UnionAll) else (left,)), right)
    whole = UnionAll(tuple(cast_to_schema(side, schema) for side in sides), schema)
    return distinct_rows(whole, offset_of(union)) if union.args.get("distinct") else whole


def _name_alias(unknown: UnknownName, select: exp.Select) -> None:
    """Say what to write in WHERE in place of an alias of the same SELECT."""
    for item in select.expressions:
        if item.alias and unknown.message == f"unknown column {item.alias!r}":
            unknown.hint = f"WHERE does not know aliases of SELECT: write {item.unalias().sql(SPARK)}"


def _different_widths(what: str, second: exp.Expr, schemas: Sequence[Sequence[object]]) -> UnknownName:
    counts = " and ".join(str(len(schema)) for schema in schemas)
    hint = "they are matched by position: add what is missing, as `null as name` if need be"
    return UnknownName(f"{what} have different numbers of columns: {counts}", second, hint)


def _read_difference(query: exp.Intersect | exp.Except, lookup: Lookup, ctes: Mapping[str, Relation]) -> Relation:
    """INTERSECT and EXCEPT of two queries with columns of the same types."""
    if any(query.args.get(part) for part in ("by_name", "side", "kind", "on")):
        raise Unsupported("QRY004", f"{query.key.upper()} BY NAME", query.expression, query.key.upper())
    left, right = read_query(query.this, lookup, ctes), read_query(with_names(query.expression), lookup, ctes)
    schemas = [columns(left), columns(right)]
    if len(schemas[0]) != len(schemas[1]):
        raise _different_widths(f"the two queries of {_operator(query)}", query.expression, schemas)
    schema = _common_schema(left, right, query)
    left, right = cast_to_schema(left, schema), cast_to_schema(right, schema)
    kind: JoinKind = "semi" if isinstance(query, exp.Intersect) else "anti"
    if query.args.get("distinct"):
        return distinct_difference(left, right, kind, offset_of(query))
    if inexact := next((column for column in columns(left) if not types.is_exact_key(column.type)), None):
        message = f"{inexact.name} of {_operator(query)} has type {inexact.type}"
        raise Unsupported("KEY002", message, query.expression, query.key.upper())
    return counted_difference(left, right, kind, offset_of(query))


def _common_schema(left: Relation, right: Relation, query: exp.SetOperation) -> Schema:
    schema, unproven = common_schema(left, right)
    if unproven is not None:
        message = f"{_operator(query)} column {unproven!r} has no one proven type in all branches"
        raise Unsupported("TYP001", message, query)
    return schema


def _operator(query: exp.SetOperation) -> str:
    """The operator of a set operation for messages: UNION, UNION ALL …"""
    return query.key.upper() if query.args.get("distinct") else f"{query.key.upper()} ALL"


def _read_select(select: exp.Select, tables: FromReader) -> Relation:
    select = move_on_subqueries_to_where(with_plain_values(expand_shorthands(select)))
    for part, value in select.args.items():
        if value and part not in _SELECT_PARTS:
            raise _unsupported_part(part, select)
    if within := next((one for one in select.find_all(exp.WithinGroup) if one.parent_select is select), None):
        raise Unsupported("QRY009", f"{within.this.sql_name()} WITHIN GROUP", within)
    scope = tables.scope(select)
    subqueries = Subqueries(tables)
    if where := select.args.get("where"):
        try:
            scope = subqueries.filter_scope(scope, where.this)
        except UnknownName as unknown:
            _name_alias(unknown, select)
            raise
    select, scope = with_time_window(select, scope)
    _require_plain_generators(select)
    selected, scope = in_select(select.expressions, scope)
    items = _expand_stars(selected, scope)
    items = with_lateral_aliases(items, scope)
    _require_unique(items)
    select = by_start(expand_group_by_all(select, items), items, scope)
    relation = _read_items(select, items, scope, subqueries)
    limit = read_limit(select, relation, items, scope)
    if limit is None:
        return relation
    if limit.added:
        try:
            relation = _read_items(select, [*items, *limit.added], scope, subqueries)
        except UnknownName as unknown:
            raise Unsupported("QRY003", f"ORDER BY with LIMIT: {unknown.message}", limit.node, "LIMIT") from None
    return limit.of(relation)


def _join_condition_subqueries(
    tables: FromReader, scope: Scope, condition: exp.Expr, name: str
) -> tuple[Scope, exp.Expr]:
    """A side of a join with what a condition of ON asks of queries, and the condition over it."""
    subqueries = Subqueries(tables)
    scope, condition = subqueries.join_predicates(scope, condition, name)
    return subqueries.scalars.join_values(scope, condition, f"{name}_s")


def _read_items(select: exp.Select, items: list[exp.Alias], scope: Scope, subqueries: Subqueries) -> Relation:
    if select.args.get("group") or select.args.get("having") or any(aggregate_calls(item.this) for item in items):
        relation = _read_groups(select, items, scope, subqueries)
    else:
        scope, items = _with_scalars(items, scope, subqueries)
        relation = _read_projection(select, items, scope)
    if distinct := select.args.get("distinct"):
        if distinct.args.get("on"):
            raise Unsupported("QRY009", "DISTINCT ON", distinct)
        relation = distinct_rows(relation, offset_of(items[0]))
    return relation


def _read_groups(select: exp.Select, items: list[exp.Alias], scope: Scope, subqueries: Subqueries) -> Relation:
    questions = RowQuestions(scope, subqueries)
    select, items = questions.answer_group_by(select, items), questions.items(items)
    scope = questions.scope
    qualify = select.args.get("qualify")
    if (asking := asking_groups(select, items, scope, subqueries)) is not None:
        if qualify:
            raise Unsupported("QRY006", "QUALIFY beside HAVING of a query", qualify, "QUALIFY")
        return asking
    asked = [quoted_alias(_with_aliases(qualify.this, items, scope), _QUALIFY)] if qualify else []
    if not any(item.this.find(exp.Window) for item in (*items, *asked)):
        if qualify:
            raise UnknownName("QUALIFY needs a window function", qualify)
        return read_aggregate(select, scope, items)
    split = SplitItems([*items, *asked], select.args.get("group"))
    above, shown = exp.Select(), split.outer[: len(items)]
    if asked:
        above.set("qualify", exp.Qualify(this=split.outer[-1].this))
    return _read_projection(above, shown, split.scope(read_aggregate(select, scope, split.inner)))


def _with_scalars(items: list[exp.Alias], scope: Scope, subqueries: Subqueries) -> tuple[Scope, list[exp.Alias]]:
    """The SELECT list with subqueries replaced by columns that the scope now has."""
    replaced: list[exp.Alias] = []
    for number, item in enumerate(items):
        if item.this.find(exp.Query):
            scope, value = subqueries.join_predicates(scope, item.this, f"_sml_g{number}")
            scope, value = subqueries.scalars.join_values(scope, value, f"_sml_i{number}")
            item = quoted_alias(value, item.alias)
        replaced.append(item)
    return scope, replaced


def _unsupported_part(part: str, select: exp.Query) -> Unsupported:
    value = select.args[part]
    node = value[0] if isinstance(value, list) else value if isinstance(value, exp.Expr) else select
    known = {
        "limit": ("QRY003", "LIMIT"), "offset": ("QRY003", "OFFSET"),
    }  # fmt: skip
    rule, name = known.get(part, ("QRY009", f"the clause {part.rstrip('_').upper()}"))
    return Unsupported(rule, name, node, _KEYWORDS.get(part, part.upper()))


def _require_plain_generators(select: exp.Select) -> None:
    """Raise Unsupported for a generator beside anything for which the order of evaluation matters."""
    generator = next((item for item in select.expressions if selected_generator(item) is not None), None)
    if generator is None:
        return
    windows = any(item.find(exp.Window) for item in select.expressions)
    is_grouped = select.args.get("group") or select.args.get("having")
    if is_grouped or windows or select.args.get("qualify") or any(map(aggregate_calls, select.expressions)):
        raise Unsupported("QRY007", "a generator beside aggregates or window functions", generator)


def _expand_stars(selected: Sequence[exp.Expr], scope: Scope) -> list[exp.Alias]:
    items: list[exp.Alias] = []
    for item in selected:
        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if isinstance(star, exp.Star):
            scope.require_alias(item)
            if any(star.args.values()):
                raise Unsupported("QRY009", "a star with modifiers", item)
            if isinstance(item, exp.Column) and not scope.orders_star(item.table.lower()):
                raise Unsupported("QRY009", f"{item.sql(SPARK)} beside several USING", item)
            items += [_star_item(name, output, scope) for name, output in scope.star(item.text("table").lower())]
        elif isinstance(item, exp.Alias):
            items.append(item)
        elif isinstance(item.unnest(), exp.Column):
            items.append(quoted_alias(item.unnest(), item.unnest().name))
        elif isinstance(scope.relation, OneRow):  # Spark names them by their text
            raise Unsupported("QRY008", "a SELECT without FROM of columns without names", item)
        else:
            raise UnknownName(f"the column {item.sql(SPARK)!r} has no name", item, "add an alias: … AS name")
    for item in items:
        if is_hidden(item.alias):
            raise UnknownName(f"the alias {item.alias!r} is reserved", item, "choose one that does not start so")
    return items


def _star_item(name: str, output: str, scope: Scope) -> exp.Alias:
    alias = next((s.alias for s in scope.sources if (name, output) in s.outputs), "")
    return quoted_alias(exp.column(name, table=alias or None, quoted=True), name)


def _read_projection(select: exp.Select, items: list[exp.Alias], scope: Scope) -> Relation:
    qualify = select.args.get("qualify")
    condition = [quoted_alias(_with_aliases(qualify.this, items, scope), _QUALIFY)] if qualify else []
    everything = [quoted_alias(over_peers(item.this), item.alias) for item in (*items, *condition)]
    windows = [window for item in everything for window in item.this.find_all(exp.Window)]
    outputs = tuple(scope.resolve_item(item, in_window=bool(windows)) for item in everything)
    if not windows:
        if qualify:
            raise UnknownName("QUALIFY needs a window function", qualify)
        return scope.relation if _shows_all(outputs, scope.relation) else Projection(scope.relation, outputs)
    whole = Windowed(scope.relation, outputs, tuple(_partition_list(window, scope) for window in windows))
    if not qualify:
        return whole
    kept = Filter(whole, exp.column(_QUALIFY, quoted=True))
    return Projection(
        kept, tuple(replace(n, expression=exp.column(n.name, quoted=True)) for n in outputs[: len(items)])
    )


def _with_aliases(condition: exp.Expr, items: list[exp.Alias], scope: Scope) -> exp.Expr:
    """A QUALIFY condition with aliases of the SELECT list replaced by their expressions."""
    aliases = {item.alias.lower(): item.this for item in items}

    def substitute(node: exp.Expr) -> exp.Expr:
        is_alias = isinstance(node, exp.Column) and not node.table and node.name.lower() in aliases
        if is_alias and node.name.lower() not in scope.bare:
            return exp.Paren(this=aliases[node.name.lower()].copy())
        return node

    return condition.copy().transform(substitute)


def _shows_all(outputs: Sequence[Named], relation: Relation) -> bool:
    """Whether a SELECT list is all columns of groups as they are: then nothing is computed above these."""
    shown = [(one.name, one.expression.name) for one in outputs if isinstance(one.expression, exp.Column)]
    is_whole = len(shown) == len(outputs) and isinstance(relation, Aggregate)
    return is_whole and shown == [(column.name, column.name) for column in columns(relation)]


def _partition_list(window: exp.Window, scope: Scope) -> tuple[exp.Expr, ...]:
    if fault := window_fault(window):
        raise Unsupported("QRY006", fault, window)
    return tuple(scope.resolve(part) for part in window.args.get("partition_by") or [])


def _require_unique(items: list[exp.Alias]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.alias.lower() in seen:
            raise UnknownName(f"two columns are named {item.alias!r}", item, "give one of them another alias")
        seen.add(item.alias.lower())
