"""SELECTs over rows of Python. Owns projection, joins, groups and generators; `expressions` computes their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sqlmesh_like.cdc.in_process.expressions import Compiled, Scope, compile_expression
from sqlmesh_like.cdc.in_process.parser import parsed_query
from sqlmesh_like.cdc.in_process.syntax import (
    Call,
    Case,
    Cast,
    Expression,
    Item,
    Join,
    Lambda,
    Literal,
    Member,
    Path,
    Query,
    Relation,
    Select,
)
from sqlmesh_like.cdc.in_process.values import NotProvenError, Value, certain, group_of, order_of

Columns = list[tuple[str | None, str]]
"""Each column's relation and name."""
Rows = Sequence[Sequence[Value]]
_GENERATORS = {"explode": 1, "posexplode": 2}
"""The number of columns that each makes."""


def query_rows(text: str, frames: Mapping[str, tuple[Sequence[str], Rows]]) -> tuple[list[str], Rows]:
    """Columns and rows of a query over named frames. Raises NotProvenError for what is not certain."""
    return _query(parsed_query(text), frames)


def _query(query: Query, frames: Mapping[str, tuple[Sequence[str], Rows]]) -> tuple[list[str], Rows]:
    known = dict(frames)
    for name, named in query.named:
        known[name] = _query(named, known)
    results = [_select(select, known) for select in query.selects]
    names, _ = results[0]
    if any(len(columns) != len(names) for columns, _ in results):
        raise NotProvenError("a union of other columns")
    return names, [row for _, rows in results for row in rows]


def _select(select: Select, frames: Mapping[str, tuple[Sequence[str], Rows]]) -> tuple[list[str], Rows]:
    columns, rows = _relation(select.relation, frames)
    for join in select.joins:
        columns, rows = _join(columns, rows, join, frames)
    if select.where is not None:
        scope = Scope(columns)
        test = compile_expression(select.where, scope)
        rows = [row for row in rows if test(_with_places(row, scope))]
    if select.groups or any(item.expression is not None and _aggregates(item.expression) for item in select.items):
        return _group(select, columns, rows)
    return project(select.items, columns, rows)


def _relation(relation: Relation | None, frames: Mapping[str, tuple[Sequence[str], Rows]]) -> tuple[Columns, Rows]:
    if relation is None:
        return [], [()]
    if isinstance(relation.source, Query):
        names, rows = _query(relation.source, frames)
    elif relation.source in frames:
        names, rows = list(frames[relation.source][0]), frames[relation.source][1]
    else:
        raise NotProvenError(f"the table {relation.source}")
    return [(relation.alias, name) for name in names], rows


def _with_places(row: Sequence[Value], scope: Scope) -> list[Value]:
    """The row with places for the names that are given meanwhile."""
    return [*row, *[None] * (scope.size - len(row))]


def project(items: Sequence[Item], columns: Columns, rows: Rows) -> tuple[list[str], Rows]:
    """The entries of a SELECT of each row; an entry may use the names of those before it, if no column has them."""
    scope = Scope(list(columns))
    width = len(columns)
    names: list[str] = []
    taken: list[int] = []  # where the result finds each of its columns
    steps: list[tuple[int, Compiled]] = []
    generator: tuple[str, Compiled, list[int]] | None = None
    for item in items:
        if item.expression is None:
            names += [name for _, name in columns]
            taken += range(width)
            continue
        if isinstance(item.expression, Call) and item.expression.name in _GENERATORS:
            if generator is not None or len(item.names) != _GENERATORS[item.expression.name]:
                raise NotProvenError("two generators in a SELECT")
            source = compile_expression(item.expression.arguments[0], scope)
            generator = (item.expression.name, source, [scope.give(name) for name in item.names])
            taken += generator[2]
        else:
            value = compile_expression(item.expression, scope)
            steps.append((scope.give(item.names[0]), value))
            taken.append(steps[-1][0])
        names += item.names
    result = []
    for row in rows:
        wide = _with_places(row, scope)
        if generator is None:
            for place, value in steps:
                wide[place] = value(wide)
            result.append([wide[place] for place in taken])
            continue
        name, source, made = generator
        for number, each in enumerate(source(wide) or ()):
            for place, value in zip(made, (number, each) if name == "posexplode" else (each,), strict=True):
                wide[place] = value
            for place, own in steps:
                wide[place] = own(wide)
            result.append([wide[place] for place in taken])
    return names, result


def _join(
    columns: Columns, rows: Rows, join: Join, frames: Mapping[str, tuple[Sequence[str], Rows]]
) -> tuple[Columns, Rows]:
    others, other_rows = _relation(join.relation, frames)
    if join.using:
        own = [compile_expression(Path((name,)), Scope(columns)) for name in join.using]
        keys = [compile_expression(Path((name,)), Scope(others)) for name in join.using]
        known = {_key(keys, row) for row in other_rows}
        return columns, [row for row in rows if (key := _key(own, row)) is not None and key in known]
    if not isinstance(join.on, Call) or join.on.name != "=":
        raise NotProvenError("a join by other than one equality")
    left, right = (_side(tree, columns, others) for tree in join.on.arguments)
    if left[0] == right[0]:
        raise NotProvenError("a join by one side")
    (_, own_key), (_, other_key) = sorted((left, right), key=lambda side: side[0])
    matches: dict[Value, list[Sequence[Value]]] = {}
    for row in other_rows:
        matches.setdefault(_key([other_key], row), []).append(row)
    nothing: list[Sequence[Value]] = [[None] * len(others)]
    result = []
    for row in rows:
        key = _key([own_key], row)
        result += [[*row, *other] for other in (matches.get(key, nothing) if key is not None else nothing)]
    return columns + others, result


def _side(tree: Expression, columns: Columns, others: Columns) -> tuple[int, Compiled]:
    """The side (0 or 1) that an operand of a join's condition is of, and its function."""
    for side, own in enumerate((columns, others)):
        try:
            return side, compile_expression(tree, Scope(own))
        except NotProvenError:
            continue
    raise NotProvenError("a join's condition over both sides")


def _key(values: Sequence[Compiled], row: Sequence[Value]) -> Value:
    """The key of a row; None where a part of it is NULL, which equals nothing."""
    key = [value(list(row)) for value in values]
    return None if None in key else group_of(tuple(key))


# Groups.
def _aggregates(tree: Expression) -> list[Call]:
    match tree:
        case Call(name, arguments) if name in _AGGREGATES:
            return [tree]
        case Call(_, arguments):
            return [each for argument in arguments for each in _aggregates(argument)]
        case Cast(value, _) | Member(value, _):
            return _aggregates(value)
        case Case():
            parts = [part for when in tree.whens for part in when] + [tree.otherwise]
            return [each for part in parts for each in _aggregates(part)]
        case Lambda(_, body):
            return _aggregates(body)
        case Literal() | Path():
            return []


def _with_columns(tree: Expression, names: Mapping[Expression, str]) -> Expression:
    """The tree with a column in the place of each aggregate or key of a group."""
    if tree in names:
        return Path((names[tree],))
    match tree:
        case Call(name, arguments):
            return Call(name, tuple(_with_columns(argument, names) for argument in arguments))
        case Cast(value, _):
            return replace(tree, value=_with_columns(value, names))
        case Member(value, _):
            return replace(tree, value=_with_columns(value, names))
        case Lambda(_, body):
            return replace(tree, body=_with_columns(body, names))
        case Case():
            whens = tuple((_with_columns(when, names), _with_columns(then, names)) for when, then in tree.whens)
            return replace(tree, whens=whens, otherwise=_with_columns(tree.otherwise, names))
        case Literal() | Path():
            return tree


def _group(select: Select, columns: Columns, rows: Rows) -> tuple[list[str], Rows]:
    scope = Scope(columns)
    keys = [compile_expression(tree, scope) for tree in select.groups]
    calls = list(
        dict.fromkeys(call for item in select.items if item.expression for call in _aggregates(item.expression))
    )
    arguments = [[compile_expression(tree, scope) for tree in call.arguments] for call in calls]
    groups: dict[Value, tuple[list[Value], list[list[Value]]]] = {} if keys else {(): ([], [])}
    for row in rows:
        wide = _with_places(row, scope)
        values = [key(wide) for key in keys]
        groups.setdefault(group_of(tuple(values)), (values, []))[1].append(wide)
    made = [f"_key_{place}" for place in range(len(keys))] + [f"_aggregate_{place}" for place in range(len(calls))]
    names = dict(zip([*select.groups, *calls], made, strict=True))
    items = [
        replace(item, expression=item.expression and _with_columns(item.expression, names)) for item in select.items
    ]
    computed = []
    for values, members in groups.values():
        results = []
        for call, own in zip(calls, arguments, strict=True):
            results.append(_AGGREGATES[call.name]([[value(row) for value in own] for row in members]))
        computed.append([*values, *results])
    return project(items, [(None, name) for name in made], computed)


def _extreme(rows: Iterable[Sequence[Value]], choose: Callable[..., Value]) -> Value:
    return choose((row[0] for row in rows if row[0] is not None), key=order_of, default=None)


def _max_by(rows: Iterable[Sequence[Value]]) -> Value:
    """Of several, Spark's choice is any of them: such rows are equal, as each version of a key has its position."""
    known = [row for row in rows if row[1] is not None]
    return max(known, key=lambda row: order_of(row[1]))[0] if known else None


def _sum(rows: Iterable[Sequence[Value]]) -> Value:
    values = [row[0] for row in rows if row[0] is not None]
    if not all(type(value) is int for value in values):
        raise NotProvenError("a sum of other than whole numbers")
    return sum(values) if values else None


_AGGREGATES: Mapping[str, Callable[[Sequence[Sequence[Value]]], Value]] = {
    "count": lambda rows: sum(row[0] is not None for row in rows),
    "count_if": lambda rows: sum(row[0] is True for row in rows),
    "sum": _sum,
    "max": lambda rows: _extreme(rows, max),
    "min": lambda rows: _extreme(rows, min),
    "max_by": _max_by,
    "first": lambda rows: next((row[0] for row in rows if row[0] is not None), None),
    "collect_list": lambda rows: [row[0] for row in rows if row[0] is not None],
    "collect_set": lambda rows: list(
        {group_of(row[0]): certain(row[0]) for row in rows if row[0] is not None}.values()
    ),
}
