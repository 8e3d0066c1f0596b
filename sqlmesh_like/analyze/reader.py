"""SQL text → relational algebra. Owns name resolution; raises `Unsupported` for every form it does not know.

Resolution follows Spark: a column of the FROM clause wins over an alias of the SELECT list; GROUP BY may name an alias
or a position. Source: Spark SQL reference, "GROUP BY clause" and "Identifiers".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze import types
from sqlmesh_like.analyze.functions import first_impure
from sqlmesh_like.analyze.relation import (
    Aggregate,
    Call,
    Distinct,
    Filter,
    Named,
    Project,
    Relation,
    Scan,
    UnionAll,
    Windowed,
    columns,
)
from sqlmesh_like.errors import nearest
from sqlmesh_like.names import Column, Schema, is_hidden

_SELECT_PARTS = {"expressions", "from_", "from", "where", "group", "distinct", "order", "with_", "with", "kind"}
_KEYWORDS = {"joins": "JOIN", "laterals": "LATERAL", "windows": "WINDOW"}
_PARENTHESES_PARTS = {"this", "alias", "with_", "with", "order"}
_AGGREGATES = {exp.Sum: "SUM", exp.Count: "COUNT", exp.Avg: "AVG", exp.Min: "MIN", exp.Max: "MAX"}
TIE_SENSITIVE = (exp.RowNumber, exp.Lag, exp.Lead, exp.Ntile)


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
class InputSchema:
    """What a table name in the SQL stands for. `schema` None: its columns are not known yet."""

    input_id: str
    schema: Schema | None


Lookup = Callable[[exp.Table], InputSchema | Relation | None]


@dataclass(frozen=True)
class _Scope:
    """One FROM item: its alias and relation, and the CTEs visible here."""

    alias: str
    relation: Relation
    ctes: Mapping[str, Relation]

    @property
    def known(self) -> dict[str, str | None]:
        return {column.name.lower(): column.type for column in columns(self.relation)}


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
        raise Unsupported("TYP001", f"UNION ALL column {position[0].name!r} has no one proven type in all branches", union)
    return position[0]


def _read_select(select: exp.Select, lookup: Lookup, ctes: Mapping[str, Relation]) -> Relation:
    for part, value in select.args.items():
        if value and part not in _SELECT_PARTS:
            raise _unsupported_part(part, select)
    scope = _read_from(select, lookup, ctes)
    relation = scope.relation
    if where := select.args.get("where"):
        condition = _resolved(where.this, scope)
        _require_pure(condition)
        relation = Filter(relation, condition)
    items = _expand_stars(select, scope)
    group = select.args.get("group")
    if group or any(_aggregate_calls(item.this) for item in items):
        relation = _read_aggregate(select, relation, items, scope)
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


def _read_from(select: exp.Select, lookup: Lookup, ctes: Mapping[str, Relation]) -> _Scope:
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
    return _Scope((item.alias or item.name).lower(), relation, ctes)


def _read_table(table: exp.Table, lookup: Lookup) -> Relation:
    found = lookup(table)
    if found is None:
        raise Unsupported("QRY008", f"{table.sql('spark')} is no ref() or source()", table)
    if not isinstance(found, InputSchema):
        return found
    if found.schema is None:
        raise Unsupported("INP001", f"the columns of {found.input_id} are not known before it is built", table)
    return Scan(found.input_id, found.schema)


def _expand_stars(select: exp.Select, scope: _Scope) -> list[exp.Alias]:
    items: list[exp.Alias] = []
    for item in select.expressions:
        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if isinstance(star, exp.Star):
            _require_alias(item, scope)
            if any(star.args.values()):
                raise Unsupported("QRY009", "a star with modifiers", item)
            items += [exp.alias_(exp.column(c.name, quoted=True), c.name, quoted=True) for c in columns(scope.relation)]
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


def _require_alias(column: exp.Expr, scope: _Scope) -> None:
    qualifier = column.text("table")
    if qualifier and qualifier.lower() != scope.alias:
        hint = nearest(qualifier, [scope.alias])
        raise UnknownName(f"unknown table or alias {qualifier!r} in {column.sql('spark')}", column, hint)


def _aliased(column: exp.Column) -> exp.Alias:
    return exp.alias_(column.copy(), column.name, quoted=True, copy=False)


def _resolved(expression: exp.Expr, scope: _Scope) -> exp.Expr:
    """The expression with each column as a bare name of the scope's relation."""
    if found := expression.find(exp.Query):
        raise Unsupported("QRY005", "a subquery in an expression", found, "SELECT")
    known = {column.name.lower(): column.name for column in columns(scope.relation)}

    def resolve(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        return _resolve_column(node, scope, known)

    return expression.copy().transform(resolve, copy=False)


def _resolve_column(column: exp.Column, scope: _Scope, known: Mapping[str, str]) -> exp.Expr:
    if isinstance(column.this, exp.Star):
        raise Unsupported("QRY009", f"{column.sql('spark')} inside an expression", column)
    if column.table.lower() in known and column.table.lower() != scope.alias:
        raise Unsupported("QRY009", f"the nested field {column.sql('spark')}", column)
    _require_alias(column, scope)
    if column.name.lower() not in known:
        hint = nearest(column.name, known.values())
        raise UnknownName(f"unknown column {column.name!r}", column, hint or f"known: {', '.join(known.values())}")
    bare = exp.column(known[column.name.lower()], quoted=True)
    bare.meta.update({key: value for part in column.walk() for key, value in part.meta.items()})
    return bare


def _require_pure(expression: exp.Expr, *, in_window: bool = False) -> None:
    found = first_impure(expression, in_window=in_window)
    if found is None:
        return
    node, verdict = found
    if any(isinstance(node, kind) for kind in _AGGREGATES):
        raise UnknownName(f"the aggregate {node.sql('spark')} cannot stand here", node)
    rules = {"clock": ("CLK001", "depends on the clock"), "random": ("FUN002", "is not deterministic")}
    rule, what = rules.get(verdict, ("FUN001", "is not known to be a pure function of its row"))
    raise Unsupported(rule, f"{node.sql('spark')} {what}", node, node.sql("spark").split("(")[0])


def _lateral_aliases(items: list[exp.Alias], scope: _Scope) -> None:
    """Spark lets an item name an alias to its left; that is not resolved here."""
    known = scope.known
    aliases: set[str] = set()
    for item in items:
        for column in item.this.find_all(exp.Column):
            name = column.name.lower()
            if not column.table and name in aliases and name not in known:
                raise Unsupported("QRY009", f"the lateral alias {column.name!r}", column)
        aliases.add(item.alias.lower())


def _read_projection(relation: Relation, items: list[exp.Alias], scope: _Scope) -> Relation:
    _lateral_aliases(items, scope)
    windows = [window for item in items for window in item.this.find_all(exp.Window)]
    named = tuple(_named(item, scope, in_window=bool(windows)) for item in items)
    _require_unique([item.alias for item in items], items)
    if not windows:
        return Project(relation, named)
    return Windowed(relation, named, tuple(_partition_list(window, scope) for window in windows))


def _partition_list(window: exp.Window, scope: _Scope) -> tuple[exp.Expr, ...]:
    spec = window.args.get("spec")
    if spec is not None and str(spec.args.get("kind")).upper() == "ROWS" and not isinstance(window.this, TIE_SENSITIVE):
        raise Unsupported("QRY006", "a window frame by ROWS, whose result depends on tied order", window)
    if isinstance(window.this, TIE_SENSITIVE) and not window.args.get("order"):
        raise Unsupported("QRY006", "a window function whose result depends on an order that is not given", window)
    return tuple(_resolved(part, scope) for part in window.args.get("partition_by") or [])


def _named(item: exp.Alias, scope: _Scope, *, in_window: bool = False) -> Named:
    expression = _resolved(item.this, scope)
    _require_pure(expression, in_window=in_window)
    type_ = None if in_window and expression.find(exp.Window) else types.infer(expression, scope.known)
    return Named(item.alias, expression, type_)


def _require_unique(names: list[str], items: list[exp.Alias]) -> None:
    seen: set[str] = set()
    for name, item in zip(names, items, strict=True):
        if name.lower() in seen:
            raise UnknownName(f"two columns are named {name!r}", item, "give one of them another alias")
        seen.add(name.lower())


def _aggregate_calls(expression: exp.Expr) -> list[exp.Expr]:
    """Outermost aggregate calls (with their FILTER) that are not window functions."""
    found: list[exp.Expr] = []

    def visit(node: exp.Expr) -> None:
        if isinstance(node, exp.Window | exp.Query):
            return
        if isinstance(node, exp.AggFunc | exp.Filter):
            found.append(node)
            return
        for child in node.iter_expressions():
            visit(child)

    visit(expression)
    return found


def _read_aggregate(select: exp.Select, child: Relation, items: list[exp.Alias], scope: _Scope) -> Relation:
    _lateral_aliases(items, scope)
    keys = _group_keys(select, items, scope)
    if window := next((found for item in items for found in item.this.find_all(exp.Window)), None):
        raise Unsupported("QRY006", "a window function over aggregates", window)
    calls: dict[str, Call] = {}
    outputs = tuple(_aggregate_item(item, keys, calls, scope) for item in items)
    _require_unique([item.alias for item in items], items)
    return Aggregate(child, keys, tuple(calls.values()), outputs)


def _group_keys(select: exp.Select, items: list[exp.Alias], scope: _Scope) -> tuple[Named, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    if any(value for part, value in group.args.items() if part != "expressions"):
        raise Unsupported("QRY010", "GROUPING SETS, ROLLUP, CUBE or GROUP BY ALL", group)
    keys: dict[str, Named] = {}
    for position, expression in enumerate(group.expressions):
        if isinstance(expression, exp.Cube | exp.Rollup | exp.GroupingSets):
            raise Unsupported("QRY010", "GROUPING SETS, ROLLUP or CUBE", expression)
        resolved = _resolved(_key_expression(expression, items, scope), scope)
        _require_pure(resolved)
        text = _canonical(resolved)
        keys.setdefault(text, Named(f"_sml_k{position}", resolved, types.infer(resolved, scope.known)))
    return tuple(keys.values())


def _key_expression(expression: exp.Expr, items: list[exp.Alias], scope: _Scope) -> exp.Expr:
    if isinstance(expression, exp.Literal) and not expression.is_string:
        position = int(expression.name) if expression.name.isdigit() else 0
        if not 1 <= position <= len(items):
            raise UnknownName(f"GROUP BY position {position} is not in the SELECT list", expression)
        return items[position - 1].this
    is_bare = isinstance(expression, exp.Column) and not expression.table
    if is_bare and expression.name.lower() not in scope.known:
        for item in items:
            if item.alias.lower() == expression.name.lower():
                return item.this
    return expression


def _canonical(expression: exp.Expr) -> str:
    """Text that is equal for equal expressions. Parentheses are no part of an expression: the tree says what binds."""
    root = exp.Paren(this=expression.copy())
    for paren in list(root.find_all(exp.Paren)):
        if paren is not root:
            paren.replace(paren.this)
    return repr(root.this)


def _aggregate_item(item: exp.Alias, keys: tuple[Named, ...], calls: dict[str, Call], scope: _Scope) -> Named:
    """The item over key and call names; a column that is neither is an error, as in Spark."""
    by_text = {_canonical(key.expression): key.name for key in keys}
    known: dict[str, str | None] = {key.name: key.type for key in keys}
    nodes = {id(node) for node in _aggregate_calls(item.this)}

    def rewrite(node: exp.Expr) -> exp.Expr:
        if id(node) in nodes:
            call = _read_call(node, calls, scope)
            known[call.name] = _call_type(call)
            return exp.column(call.name)
        name = by_text.get(_canonical(_resolved(node, scope))) if not _aggregate_calls(node) else None
        if name:
            return exp.column(name)
        if isinstance(node, exp.Column):
            _require_no_key_holds(node, keys, scope)
            raise UnknownName(
                f"column {node.sql('spark')!r} is neither in GROUP BY nor in an aggregate", node,
                "add it to GROUP BY or aggregate it",
            )  # fmt: skip
        copy = node.copy()
        for child, original in zip(list(copy.iter_expressions()), list(node.iter_expressions()), strict=True):
            child.replace(rewrite(original))
        return copy

    expression = rewrite(item.this)
    _require_pure(expression)
    return Named(item.alias, expression, types.infer(expression, known))


def _require_no_key_holds(column: exp.Column, keys: tuple[Named, ...], scope: _Scope) -> None:
    """Spark may know the expression around this column for a key that is written otherwise (`b + a` for `a + b`)."""
    name = _resolved(column, scope).name
    for key in keys:
        if any(inner.name == name for inner in key.expression.find_all(exp.Column)):
            raise Unsupported("QRY009", f"{column.sql('spark')}, which is only part of a GROUP BY expression", column)


def _read_call(node: exp.Expr, calls: dict[str, Call], scope: _Scope) -> Call:
    text = _canonical(_resolved(node, scope))
    if text not in calls:
        calls[text] = _new_call(node, f"_sml_c{len(calls)}", scope)
    return calls[text]


def _new_call(node: exp.Expr, name: str, scope: _Scope) -> Call:
    condition = _resolved(node.expression.this, scope) if isinstance(node, exp.Filter) else None
    function = node.this if isinstance(node, exp.Filter) else node
    label = _AGGREGATES.get(type(function), "")
    argument = function.this if label else None
    distinct = isinstance(argument, exp.Distinct)
    whole = _resolved(node, scope)
    sql, offset = node.sql("spark", comments=False), offset_of(node)
    if distinct or not label or _has_more_arguments(function):
        for part in [*function.iter_expressions(), *([condition] if condition is not None else [])]:
            _require_pure_arguments(part)
        type_ = _distinct_type(argument, scope) if isinstance(argument, exp.Distinct) else None
        return Call(name, label or function.sql_name(), None, type_, distinct, whole, sql, offset)
    resolved = _resolved(argument, scope) if not isinstance(argument, exp.Star) else None
    for part in (resolved, condition):
        if part is not None:
            _require_pure(part)
    folded = _fold(resolved, condition)
    if label == "COUNT" and isinstance(folded, exp.Literal):
        folded = None
    type_ = types.infer(resolved, scope.known) if resolved is not None else None
    return Call(name, label, folded, type_, False, whole, sql, offset)


def _distinct_type(distinct: exp.Distinct, scope: _Scope) -> str | None:
    values = distinct.expressions
    return types.infer(_resolved(values[0], scope), scope.known) if len(values) == 1 else None


def _require_pure_arguments(part: exp.Expr) -> None:
    for argument in part.expressions if isinstance(part, exp.Distinct) else [part]:
        _require_pure(argument)


def _has_more_arguments(function: exp.Expr) -> bool:
    return any(value for part, value in function.args.items() if part not in ("this", "big_int"))


def _fold(argument: exp.Expr | None, condition: exp.Expr | None) -> exp.Expr | None:
    """FILTER (WHERE c) as an argument that is NULL where c is not true: these aggregates ignore NULL."""
    if condition is None:
        return argument
    value = argument if argument is not None else exp.Literal.number(1)
    return exp.Case().when(condition.copy(), value.copy())


def _call_type(call: Call) -> str | None:
    match call.function:
        case "COUNT":
            return "bigint"
        case "SUM":
            return types.sum_type(call.argument_type)
        case "AVG":
            return types.avg_type(call.argument_type)
        case "MIN" | "MAX":
            return call.argument_type
    return None
