"""GROUPING SETS, ROLLUP and CUBE. Owns turning them into an ordinary GROUP BY over one copy of each row per set.

Keys that a set leaves out are NULL in its copy, and the set's number is a further key: so equal sets remain distinct,
as in Spark, and a NULL that means "all" is not a NULL in the data. Aggregates read the row itself, never these keys.
Source: Spark 3.5 `ResolveGroupingAnalytics` and `GroupingAnalytics.scala`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Explode, Named, Projection, Relation, columns
from sqlmesh_like.analyze.binding.scope import Unsupported
from sqlmesh_like.analyze.expressions.grouping_bits import PARTS_OF_DATES
from sqlmesh_like.analyze.expressions.types import is_exact_key
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import Column

_SET, _UNUSED = "_sml_set", "_sml_set_element"
_MOST_SETS = 64
"""With more copies of each row than this, incremental maintenance costs more than it saves."""

ReadKey = Callable[[exp.Expr], tuple[str, Named]]
"""A key as written → text that is equal for equal keys, and the key over the rows that are grouped."""


@dataclass(frozen=True)
class GroupingSets:
    """Keys by their text in the order in which Spark numbers them, and for each set the texts of its keys."""

    keys: dict[str, Named]
    sets: tuple[frozenset[str], ...]

    def expand(self, relation: Relation) -> Relation:
        """The relation's rows once per set, with the keys as columns; keys that the set leaves out are NULL."""
        numbers = exp.Array(expressions=[exp.Literal.number(number) for number in range(len(self.sets))])
        copies = Explode(relation, numbers, _SET, Column(_UNUSED, "int"))
        kept = [Named(c.name, exp.column(c.name, quoted=True), c.type) for c in columns(relation)]
        made = [Named(key.name, self._in_its_sets(text, key), key.type) for text, key in self.keys.items()]
        return Projection(copies, (*kept, *made, Named(_SET, exp.column(_SET, quoted=True), "int")))

    def columns(self) -> tuple[Named, ...]:
        """The columns by which the expanded rows are grouped."""
        named = [(key.name, key.type) for key in self.keys.values()] + [(_SET, "int")]
        return tuple(Named(name, exp.column(name, quoted=True), type_) for name, type_ in named)

    def is_left_out(self, text: str) -> exp.Expr:
        """GROUPING of a key: 1 in the sets without it, else 0."""
        return exp.cast(self._one_where(text, 1), "tinyint", dialect="spark")

    def number(self) -> exp.Expr:
        """GROUPING_ID: one bit per key, that of the first key highest."""
        total: exp.Expr = exp.Literal.number(0)
        for place, text in enumerate(reversed(list(self.keys))):
            total = exp.Add(this=total, expression=self._one_where(text, 2**place))
        return exp.cast(exp.Paren(this=total), "bigint", dialect="spark")

    def _one_where(self, text: str, value: int) -> exp.Expr:
        without = [number for number, keys in enumerate(self.sets) if text not in keys]
        if not without:
            return exp.Literal.number(0)
        return exp.Case().when(_is_one_of(without), exp.Literal.number(value)).else_(exp.Literal.number(0))

    def _in_its_sets(self, text: str, key: Named) -> exp.Expr:
        within = [number for number, keys in enumerate(self.sets) if text in keys]
        if len(within) == len(self.sets):
            return key.expression.copy()
        if not within:  # only GROUP BY names it
            return exp.Cast(this=exp.Null(), to=exp.DataType.build(key.type or "", dialect="spark"))
        return exp.Case().when(_is_one_of(within), key.expression.copy())


def _is_one_of(numbers: Sequence[int]) -> exp.Expr:
    return exp.In(this=exp.column(_SET, quoted=True), expressions=[exp.Literal.number(number) for number in numbers])


def has_sets(group: exp.Group) -> bool:
    """Whether a GROUP BY is more than a list of keys."""
    is_suffixed = any(group.args.get(part) for part in ("rollup", "cube", "grouping_sets"))
    return is_suffixed or any(isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets) for part in group.expressions)


def read_sets(group: exp.Group, read_key: ReadKey) -> GroupingSets:
    """The sets of a GROUP BY for which `has_sets` holds. Raises Unsupported."""
    keys: dict[str, Named] = {}

    def text_of(expression: exp.Expr) -> str:
        text, key = read_key(expression)
        keys.setdefault(text, Named(f"_sml_k{len(keys)}", key.expression, key.type))
        return text

    written = _sets_of_group(group)
    for expression in group.expressions if group.args.get("grouping_sets") else []:
        text_of(expression)
    listed = set(keys)
    sets = tuple(frozenset(text_of(expression) for expression in one) for one in written)
    if listed and not set().union(*sets) <= listed:
        raise Unsupported("QRY010", "GROUPING SETS of other keys than those of GROUP BY", group)
    _require_apart(keys, group)
    return GroupingSets(keys, sets)


def _sets_of_group(group: exp.Group) -> list[list[exp.Expr]]:
    suffixes = [part for name in ("rollup", "cube", "grouping_sets") for part in group.args.get(name) or []]
    if not suffixes:
        return _product([_sets(part) for part in group.expressions], group)
    if len(suffixes) > 1 or has_sets(exp.Group(expressions=group.expressions)):
        raise Unsupported("QRY010", "several forms of GROUPING SETS, ROLLUP and CUBE in one GROUP BY", group)
    suffix = suffixes[0]
    is_whole = isinstance(suffix, exp.GroupingSets)
    return _product([_sets(suffix if is_whole else type(suffix)(expressions=group.expressions))], group)


def _sets(part: exp.Expr) -> list[list[exp.Expr]]:
    match part:
        case exp.Rollup():
            units = [_unit(one) for one in part.expressions]
            return [_flat(units[:length]) for length in range(len(units), -1, -1)]
        case exp.Cube():
            units = [_unit(one) for one in part.expressions]
            if len(units) > _MOST_SETS.bit_length():
                raise Unsupported("QRY010", f"CUBE of {len(units)} keys", part.expressions[0], "CUBE")
            return [_flat(chosen) for n in range(len(units), -1, -1) for chosen in combinations(units, n)]
        case exp.GroupingSets():
            return [grouping_set for one in part.expressions for grouping_set in _member(one)]
    return [[part]]


def _member(part: exp.Expr) -> list[list[exp.Expr]]:
    """The sets of one member of GROUPING SETS: those of a nested form, or one set of keys."""
    return _sets(part) if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets) else [_unit(part)]


def _unit(part: exp.Expr) -> list[exp.Expr]:
    """Keys in one pair of parentheses, which a set has all or none of."""
    if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets):
        raise Unsupported("QRY010", f"{part.key.upper()} in ROLLUP or CUBE", part)
    if isinstance(part, exp.Paren):
        return [part.this]
    return list(part.expressions) if isinstance(part, exp.Tuple) else [part]


def _product(parts: list[list[list[exp.Expr]]], group: exp.Group) -> list[list[exp.Expr]]:
    """Several forms side by side: each set of one combined with each set of the others."""
    count = prod(len(part) for part in parts)
    if count > _MOST_SETS:
        raise Unsupported("QRY010", f"{count} grouping sets", group, "GROUP BY")
    return [_flat(one) for one in product(*parts)]


def _flat(lists: Sequence[list[exp.Expr]]) -> list[exp.Expr]:
    return [one for part in lists for one in part]


def _require_apart(keys: dict[str, Named], group: exp.Group) -> None:
    """Raise Unsupported for inexact and constant keys, and for keys that share a column, but for parts of its date.

    Spark may match an expression over that column to either key, which may be NULL where the other is not.
    """
    seen: dict[str, list[exp.Expr]] = {}
    for key in keys.values():
        if not is_exact_key(key.type):
            message = f"group key {key.expression.sql(SPARK)} has type {key.type or 'not proven'}"
            raise Unsupported("KEY002", message, key.expression)
        names = {column.name.lower() for column in key.expression.find_all(exp.Column)}
        if not names:
            raise Unsupported("QRY010", "a constant as key of GROUPING SETS, ROLLUP or CUBE", group, "GROUP BY")
        if shared := [name for name in names if name in seen and not _are_parts(key.expression, seen[name])]:
            raise Unsupported("QRY010", f"two keys of GROUPING SETS, ROLLUP or CUBE over {shared[0]}", key.expression)
        seen |= {name: [*seen.get(name, ()), key.expression] for name in names}


def _are_parts(key: exp.Expr, others: Sequence[exp.Expr]) -> bool:
    """Whether keys are different parts of the date in one column: an expression over it has but one of them."""
    keys = [key, *others]
    are_parts = all(isinstance(each, PARTS_OF_DATES) and isinstance(_dated(each), exp.Column) for each in keys)
    return are_parts and len({type(each) for each in keys}) == len(keys)


def _dated(part: exp.Expr) -> exp.Expr:
    """Of what it is a part, without the cast to a date that sqlglot writes out."""
    value: exp.Expr = part.this
    return value.this if isinstance(value, exp.TsOrDsToDate) and not value.args.get("format") else value
