"""PIVOT and UNPIVOT. Owns turning them into groups with an aggregate for each value, and into exploded rows.

Source: Spark 3.5 `PivotTransformer` and `UnpivotTransformer`. Groups of PIVOT are all columns that it does not name;
where a group lacks a value, numbers and booleans are NULL there, counts too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Named, Projection, Relation, columns
from sqlmesh_like.analyze.binding.expression_copies import replace_nodes
from sqlmesh_like.analyze.binding.generators import with_view
from sqlmesh_like.analyze.binding.grouping import aggregate_calls, read_aggregate
from sqlmesh_like.analyze.binding.joining import filter_rows
from sqlmesh_like.analyze.binding.scope import Scope, ScopeSource, UnknownName, Unsupported, quoted_alias
from sqlmesh_like.analyze.expressions import types
from sqlmesh_like.dialects import SPARK

_NULL_FOR_NO_ROWS = (exp.Sum, exp.Min, exp.Max, exp.Avg)
_INTEGERS = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}
_NUMBER, _DATE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII), re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_PLAIN = {*_INTEGERS, "float", "double", "boolean"}
"""Types for which, like decimals, Spark looks values up among the groups; it aggregates others under a condition."""
_VIEW = "_sml_unpivot"


def apply_pivot(relation: Relation, alias: str, pivot: exp.Pivot) -> Relation:
    """The relation with one PIVOT or UNPIVOT upon it; its columns may be qualified by `alias` there.

    Raises Unsupported and UnknownName.
    """
    scope = Scope(relation, (ScopeSource(alias, tuple((c.name, c.name) for c in columns(relation))),))
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not fields[0].expressions:
        raise Unsupported("QRY009", "PIVOT of several columns", pivot, "PIVOT")
    field = fields[0]
    if pivot.args.get("unpivot"):
        return _unpivot(scope, pivot, field)
    if pivot.args.get("alias") or pivot.args.get("group"):
        raise Unsupported("QRY009", "PIVOT with an alias or GROUP BY", pivot, "PIVOT")
    return _pivot(scope, pivot, field)


def _pivot(scope: Scope, pivot: exp.Pivot, field: exp.In) -> Relation:
    written = _parts(field.this)
    keys = [_key(scope, one) for one in written]
    values = list(_values(field, [type_ for _, type_ in keys]))
    aggregates = [(each.unalias(), each.alias) for each in pivot.expressions]
    if len(aggregates) > 1 and not all(name for _, name in aggregates):
        raise Unsupported("QRY009", "aggregates of PIVOT without names", pivot.expressions[0])
    named_here = {column.name.lower() for each, _ in aggregates for column in scope.resolve(each).find_all(exp.Column)}
    rest = [c.name for c in columns(scope.relation) if c.name.lower() not in {*named_here, *(name for name, _ in keys)}]
    groups = [exp.column(name, quoted=True) for name in rest]
    select = exp.Select(group=exp.Group(expressions=groups) if groups else None)
    of_rows = read_aggregate(select, scope, [quoted_alias(each, f"_sml_{n}") for n, (each, _) in enumerate(aggregates)])
    is_plain = all(_is_plain(column.type, pivot) for column in columns(of_rows))
    items = [quoted_alias(column, name) for column, name in zip(groups, rest, strict=True)]
    for value, label in values:
        pairs = zip(written, keys, value, strict=True)
        condition = exp.and_(
            *(exp.NullSafeEQ(this=one.copy(), expression=_of_type(part, key[1])) for one, key, part in pairs)
        )
        for each, name in aggregates:
            output = f"{label}_{name}" if len(aggregates) > 1 else label
            items.append(quoted_alias(_of_value(each, condition, is_plain=is_plain), output))
    return read_aggregate(select, scope, items)


def _parts(node: exp.Expr) -> list[exp.Expr]:
    """The columns of FOR, or the parts of one of its values."""
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _key(scope: Scope, written: exp.Expr) -> tuple[str, str]:
    """Name (lower case) and type of a column that is pivoted."""
    key = scope.resolve(written)
    type_ = types.infer(key, scope.known)
    if not isinstance(key, exp.Column) or type_ is None or not types.is_exact_key(type_):
        raise Unsupported("QRY009", f"PIVOT by {written.sql(SPARK)} of the type {type_}", written)
    return key.name.lower(), type_


def _values(field: exp.In, key_types: Sequence[str]) -> Iterator[tuple[list[exp.Expr], str]]:
    """The values of PIVOT, part by part, and the names of their columns: for several parts, the text of a struct.

    Of equal ones Spark would leave all but the last empty.
    """
    seen: set[tuple[str, ...]] = set()
    for each in field.expressions:
        value = each.this if isinstance(each, exp.PivotAlias | exp.Alias) else each
        parts = _parts(value)
        names = tuple(part.name for part in parts)
        if len(parts) != len(key_types) or names in seen or not all(map(_is_distinct, parts, key_types)):
            raise Unsupported("QRY009", f"{value.sql(SPARK)} as a value of PIVOT", each)
        seen.add(names)
        yield parts, each.alias or (names[0] if len(names) == 1 else f"{{{', '.join(names)}}}")


def _is_distinct(value: exp.Expr, type_: str) -> bool:
    """Whether a value is a literal, and no other text of one is the same value of this type."""
    if not isinstance(value, exp.Literal):
        return False
    if type_ == "string":
        return bool(value.name) and (value.is_string or _NUMBER.fullmatch(value.name) is not None)
    if type_ in _INTEGERS:
        return _NUMBER.fullmatch(value.name) is not None and int(value.name) < _INTEGERS[type_]
    return type_ == "date" and value.is_string and _DATE.fullmatch(value.name) is not None


def _is_plain(type_: str | None, pivot: exp.Pivot) -> bool:
    if type_ is None:
        raise Unsupported("TYP001", "the type of an aggregate of PIVOT is not proven", pivot.expressions[0])
    return type_ in _PLAIN or type_.startswith("decimal")


def _of_type(value: exp.Expr, type_: str) -> exp.Expr:
    """A value as one of the column that is pivoted."""
    assert isinstance(value, exp.Literal)
    has_type = type_ == "string" if value.is_string else type_ in _INTEGERS
    return value.copy() if has_type else exp.cast(value.copy(), type_, dialect="spark")


def _of_value(aggregate: exp.Expr, condition: exp.Expr, *, is_plain: bool) -> exp.Expr:
    """An aggregate over the rows of one value."""
    calls = aggregate_calls(aggregate)
    for call in calls:
        if isinstance(call, exp.Filter) or not (is_plain or isinstance(call, (*_NULL_FOR_NO_ROWS, exp.Count))):
            raise Unsupported("QRY009", f"{call.sql(SPARK)} in PIVOT", call)
    known = {id(call) for call in calls}

    def filter_call(call: exp.Expr) -> exp.Expr:
        return exp.Filter(this=call.copy(), expression=exp.Where(this=condition.copy()))

    value = replace_nodes(aggregate, lambda node: filter_call(node) if id(node) in known else node)
    if not is_plain or isinstance(aggregate, _NULL_FOR_NO_ROWS):
        return value
    rows = filter_call(exp.Count(this=exp.Star()))
    return exp.Case().when(exp.GT(this=rows, expression=exp.Literal.number(0)), value)


@dataclass(frozen=True)
class _Rows:
    """What UNPIVOT makes of each row: the columns of each new row, in the order of `names`, and its label."""

    names: Sequence[str]
    label: str
    parts: Sequence[tuple[str, Sequence[exp.Expr]]]


def _unpivot(scope: Scope, pivot: exp.Pivot, field: exp.In) -> Relation:
    rows = _rows(scope, pivot, field)
    taken = {column.name.lower() for _, values in rows.parts for column in values}
    known = [[scope.known[column.name.lower()] for column in values] for _, values in rows.parts]
    if any(each != known[0] for each in known) or None in known[0]:
        raise Unsupported("TYP001", "UNPIVOT of columns without one proven type", pivot, "UNPIVOT")
    kept = [column for column in columns(scope.relation) if column.name.lower() not in taken]
    names = [rows.label, *rows.names]
    if len({name.lower() for name in [*names, *(c.name for c in kept)]}) != len(names) + len(kept):
        raise UnknownName("UNPIVOT gives two columns one name", pivot, "choose other names")
    structs = [
        exp.Struct(
            expressions=[
                exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=value.copy())
                for name, value in zip(names, [exp.Literal.string(label), *values], strict=True)
            ]
        )
        for label, values in rows.parts
    ]
    view = exp.Lateral(this=exp.Inline(this=exp.Array(expressions=structs)), view=True)
    view.set("alias", exp.TableAlias(this=exp.to_identifier(_VIEW), columns=[exp.to_identifier(n) for n in names]))
    made = with_view(scope, view, 0, is_outer=False)
    outputs = dict(made.sources[-1].outputs)
    relation = made.relation
    if not pivot.args.get("include_nulls"):
        some = [exp.Not(this=exp.Is(this=_column(outputs[name]), expression=exp.Null())) for name in rows.names]
        relation = filter_rows(relation, [exp.or_(*some)])
    own = {column.name: column.type for column in columns(relation)}
    items = [Named(column.name, _column(column.name), column.type) for column in kept]
    items += [Named(name, _column(outputs[name]), own[outputs[name]]) for name in names]
    return Projection(relation, tuple(items))


def _rows(scope: Scope, pivot: exp.Pivot, field: exp.In) -> _Rows:
    (written,) = pivot.expressions if len(pivot.expressions) == 1 else (exp.Tuple(expressions=pivot.expressions),)
    names = [each.name for each in written.expressions] if isinstance(written, exp.Tuple) else [written.name]
    parts: list[tuple[str, Sequence[exp.Expr]]] = []
    for each in field.expressions:
        inner = each.this if isinstance(each, exp.PivotAlias | exp.Alias) else each
        columns_ = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
        resolved = [scope.resolve(column) for column in columns_]
        if len(resolved) != len(names) or not all(isinstance(column, exp.Column) for column in resolved):
            raise Unsupported("QRY009", f"{inner.sql(SPARK)} in UNPIVOT", each)
        parts.append((each.alias or "_".join(column.name for column in columns_), resolved))
    return _Rows(names, field.this.name, parts)


def _column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)
