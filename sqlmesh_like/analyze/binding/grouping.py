"""GROUP BY and aggregate calls. Owns reading them into the algebra: keys, calls, and items over both.

GROUP BY may name an alias or a position. Source: Spark SQL reference, "GROUP BY clause".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Aggregate, Call, Filter, Named, Projection, Relation
from sqlmesh_like.analyze.binding.expression_copies import replace_nodes
from sqlmesh_like.analyze.binding.grouping_sets import GroupingSets, has_sets, read_sets
from sqlmesh_like.analyze.binding.scope import (
    Scope,
    UnknownName,
    Unsupported,
    offset_of,
    quoted_alias,
    require_pure,
)
from sqlmesh_like.analyze.binding.ties import core, is_decided, order_of_choice
from sqlmesh_like.analyze.expressions import types
from sqlmesh_like.analyze.functions.aggregates import AggregateFunction, aggregate_of
from sqlmesh_like.analyze.spark_types.one_zero import with_one_zero
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import KEY

_CALLS = (exp.AggFunc, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
_QUANTILES = (exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc)
HAVING = "_sml_having"
"""Item of an aggregate that holds its HAVING condition."""
_HIVE_ID = "grouping__id"


def aggregate_calls(expression: exp.Expr) -> list[exp.Expr]:
    """Outermost aggregate calls (with their FILTER) that are not window functions."""
    if expression.find(*_CALLS) is None:
        return []
    calls: list[exp.Expr] = []

    def visit(node: exp.Expr) -> None:
        if isinstance(node, exp.Window | exp.Query):
            return
        if isinstance(node, _CALLS):
            calls.append(node)
            return
        for child in node.iter_expressions():
            visit(child)

    visit(expression)
    return calls


def read_aggregate(select: exp.Select, scope: Scope, items: list[exp.Alias]) -> Relation:
    """The aggregate of a SELECT, with or without GROUP BY; HAVING is a filter above it on an additional item."""
    grouping = _read_grouping(select, items, scope)
    if window := next((window_call for item in items for window_call in item.this.find_all(exp.Window)), None):
        raise Unsupported("QRY006", "a window function over aggregates", window)
    having = select.args.get("having")
    condition = [having_item(having.this, items, scope)] if having else []
    calls: dict[str, Call] = {}
    outputs = tuple(_aggregate_item(item, grouping, calls) for item in [*items, *condition])
    aggregate = Aggregate(grouping.scope.relation, grouping.keys, tuple(calls.values()), outputs)
    if not having:
        return aggregate
    kept = Filter(aggregate, exp.column(HAVING, quoted=True))
    shown = outputs[: len(items)]
    return Projection(kept, tuple(Named(o.name, exp.column(o.name, quoted=True), o.type) for o in shown))


def having_item(condition: exp.Expr, items: list[exp.Alias], scope: Scope) -> exp.Alias:
    """A HAVING condition with aliases of the SELECT list replaced by their expressions, aggregates included.

    Subqueries are left as they are.
    """
    aliases = {item.alias.lower(): item.this for item in items}

    def replace(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node.copy()
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in aliases:
            if node.name.lower() in scope.bare and not _is_same(aliases[node.name.lower()], node):
                raise Unsupported("QRY002", f"{node.name} in HAVING, which is a column and an alias", node)
            return exp.Paren(this=aliases[node.name.lower()].copy())
        return node

    return quoted_alias(replace_nodes(condition, replace), HAVING)


def _is_same(expression: exp.Expr, column: exp.Column) -> bool:
    return isinstance(expression, exp.Column) and expression.name.lower() == column.name.lower()


@dataclass(frozen=True)
class _Grouping:
    """What an aggregate groups: the scope of its calls, its keys, and the keys by canonical text."""

    scope: Scope
    keys: tuple[Named, ...]
    written: dict[str, Named]
    sets: GroupingSets | None = None

    def key_of(self, node: exp.Expr) -> str | None:
        """Name of the key that an expression equals; None if there is none."""
        key = self.written.get(canonical(self.scope.resolve(node)))
        return key.name if key else None

    def function(self, node: exp.Expr) -> exp.Expr | None:
        """The value of GROUPING, GROUPING_ID or Hive's `grouping__id` by grouping set; None for any other node."""
        is_number = isinstance(node, exp.Column) and node.name.lower() == _HIVE_ID and _HIVE_ID not in self.scope.bare
        if self.sets is None or not (is_number or isinstance(node, exp.Grouping | exp.GroupingId)):
            return None
        texts = [canonical(self.scope.resolve(one)) for one in node.args.get("expressions") or []]
        if isinstance(node, exp.Grouping) and len(texts) == 1 and texts[0] in self.sets.keys:
            return self.sets.is_left_out(texts[0])
        if isinstance(node, exp.Grouping) or (texts and texts != list(self.sets.keys)):
            raise Unsupported("QRY010", f"{node.sql(SPARK)} of other columns than those of GROUP BY", node)
        return self.sets.number()


def _read_grouping(select: exp.Select, items: list[exp.Alias], scope: Scope) -> _Grouping:
    def read_key(expression: exp.Expr) -> tuple[str, Named]:
        resolved = scope.resolve(key_expression(expression, items, scope))
        if resolved is not expression and (calls := aggregate_calls(resolved)):
            of = calls[0].sql(SPARK, comments=False)
            message = f"GROUP BY {expression.sql(SPARK)} is the aggregate {of.replace('`', '')}"
            raise UnknownName(message, expression, "leave it out: an aggregate is computed for each group")
        require_pure(resolved)
        return canonical(resolved), Named("", resolved, types.infer(resolved, scope.known))

    group = select.args.get("group")
    if group is None:
        return _Grouping(scope, (), {})
    if group.args.get("all") is not None:
        raise Unsupported("QRY010", "GROUP BY ALL", group)
    if has_sets(group):
        sets = read_sets(group, read_key)
        return _Grouping(replace(scope, relation=sets.expand(scope.relation)), sets.columns(), sets.keys, sets)
    keys: dict[str, Named] = {}
    for position, expression in enumerate(group.expressions):
        text, key = read_key(expression)
        grouped = with_one_zero(key.expression, key.type)
        keys.setdefault(text, Named(f"_sml_k{position}", grouped, key.type))
    return _Grouping(scope, tuple(keys.values()), keys)


def key_expression(expression: exp.Expr, items: list[exp.Alias], scope: Scope) -> exp.Expr:
    """What an expression of GROUP BY stands for: an item by its position or alias, or itself."""
    if isinstance(expression, exp.Literal) and not expression.is_string:
        position = int(expression.name) if expression.name.isdigit() else 0
        if not 1 <= position <= len(items):
            raise UnknownName(f"GROUP BY position {position} is not in the SELECT list", expression)
        chosen: exp.Expr = items[position - 1].this
        return chosen
    is_bare = isinstance(expression, exp.Column) and not expression.table
    if is_bare and expression.name.lower() not in scope.bare:
        aliased: dict[str, exp.Expr] = {item.alias.lower(): item.this for item in reversed(items)}
        return aliased.get(expression.name.lower(), expression)
    return expression


def canonical(expression: exp.Expr) -> str:
    """Text that is equal for equal expressions. Parentheses are dropped: the tree itself shows precedence."""
    root = exp.Paren(this=expression.copy())
    for paren in list(root.find_all(exp.Paren)):
        if paren is not root:
            paren.replace(paren.this)
    return repr(root.this)


def _aggregate_item(item: exp.Alias, grouping: _Grouping, calls: dict[str, Call]) -> Named:
    """The item over names of keys and calls. Raises UnknownName for a column that is neither, as Spark does."""
    known: dict[str, str | None] = {key.name: key.type for key in grouping.keys}
    nodes = {id(node) for node in aggregate_calls(item.this)}

    def rewrite(node: exp.Expr) -> exp.Expr:
        made = grouping.function(node)
        if made is not None:
            return made
        if id(node) in nodes:
            call = _read_call(node, calls, grouping.scope)
            known[call.name] = call.type
            return exp.column(call.name)
        name = grouping.key_of(node) if not aggregate_calls(node) and not node.find(exp.Grouping) else None
        if name:
            return exp.column(name)
        if isinstance(node, exp.Column):
            _require_no_key_holds(node, grouping)
            raise UnknownName(
                f"column {node.sql(SPARK)!r} is neither in GROUP BY nor in an aggregate", node,
                "add it to GROUP BY or aggregate it",
            )  # fmt: skip
        copy = node.copy()
        for child, original in zip(list(copy.iter_expressions()), list(node.iter_expressions()), strict=True):
            child.replace(rewrite(original))
        return copy

    expression = rewrite(item.this)
    require_pure(expression)
    return Named(item.alias, expression, types.infer(expression, known))


def _require_no_key_holds(column: exp.Column, grouping: _Grouping) -> None:
    """Raise Unsupported for a column of a key: Spark may match a differently written expression (`b + a`) to it."""
    name = grouping.scope.resolve(column).name
    for key in grouping.written.values():
        if any(inner.name == name for inner in key.expression.find_all(exp.Column)):
            raise Unsupported("QRY009", f"{column.sql(SPARK)}, which is only part of a GROUP BY expression", column)


def _read_call(node: exp.Expr, calls: dict[str, Call], scope: Scope) -> Call:
    text = canonical(scope.resolve(node))
    if text not in calls:
        calls[text] = _new_call(node, f"_sml_c{len(calls)}", scope)
    return calls[text]


def _new_call(node: exp.Expr, name: str, scope: Scope) -> Call:
    condition = scope.resolve(node.expression.this) if isinstance(node, exp.Filter) else None
    function = core(node)
    assert isinstance(function, exp.Func)
    record, argument = _mergeable_aggregate(function), None
    if record is not None:
        argument = function.this
    distinct = isinstance(argument, exp.Distinct)
    whole = scope.resolve(node)
    sql, offset, result = node.sql(SPARK, comments=False), offset_of(node), types.infer(whole, scope.known)
    if is_decided(function) and record is not None:
        _require_pure_parts(function, condition)
        order = order_of_choice(whole, exp.column(KEY, quoted=True))
        type_ = types.infer(order, {**scope.known, KEY: "string"})
        return Call(name, record.merged_name, order, type_, False, whole, sql, offset, result)
    same = record.same_as if record is not None else None
    if distinct or argument is None or (same is None and _has_more_arguments(function)):
        _require_pure_parts(function, condition)
        if isinstance(argument, exp.Distinct):
            values = argument.expressions
            type_ = types.infer(scope.resolve(values[0]), scope.known) if len(values) == 1 else None
        else:
            type_ = types.infer(scope.resolve(function.this), scope.known) if _has_value(function) else None
        called = function.sql_name() if record is None else record.merged_name
        return Call(name, called, None, type_, distinct, whole, sql, offset, result)
    resolved = None if isinstance(argument, exp.Star) else scope.resolve(argument)
    if same is not None:
        resolved = same.argument(core(whole))
    for checked in (resolved, condition):
        if checked is not None:
            require_pure(checked)
    assert record is not None and record.merge is not None
    folded = _fold(resolved, condition)
    if record.merge.counts_rows and isinstance(folded, exp.Literal):
        folded = None
    type_ = types.infer(resolved, scope.known) if resolved is not None else None
    return Call(name, record.merged_name, folded, type_, False, whole, sql, offset, result)


def _mergeable_aggregate(function: exp.Func) -> AggregateFunction | None:
    """What is known of an aggregate that is merged over some arguments; None for any other."""
    record = aggregate_of(function)
    if record is None or record.merge is None or (record.merge.chooses and not is_decided(function)):
        return None
    return record


def _has_value(function: exp.Expr) -> bool:
    """Whether the first argument of a call is a value whose type tells about its result."""
    return is_decided(function) or isinstance(function, _QUANTILES)


def _require_pure_parts(function: exp.Expr, condition: exp.Expr | None) -> None:
    """Raise for an argument of a call, or its condition in FILTER, that is not pure."""
    for part in [*function.iter_expressions(), *([condition] if condition is not None else [])]:
        for argument in part.expressions if isinstance(part, exp.Distinct) else [part]:
            require_pure(argument)


def _has_more_arguments(function: exp.Expr) -> bool:
    return any(value for part, value in function.args.items() if part not in ("this", "big_int"))


def _fold(argument: exp.Expr | None, condition: exp.Expr | None) -> exp.Expr | None:
    """FILTER (WHERE c) as an argument that is NULL where c is not true: these aggregates ignore NULL."""
    if condition is None:
        return argument
    value = argument if argument is not None else exp.Literal.number(1)
    return exp.Case().when(condition.copy(), value.copy())
