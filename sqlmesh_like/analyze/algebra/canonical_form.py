"""What a relation means, without how it is written: equal forms have equal rows, row keys and state on all inputs.

Owns the equalities that are used. They are those of three-valued logic and of projections: names inside a query,
subqueries and CTEs that only pass columns on, the order and place of conditions of inner joins and filters, mirrored
comparisons. What decides keys, state or the order of columns is kept: the order of joins, of branches, of GROUP BY.
`rows_form` says less: which rows there are, whatever their keys.

A relation has no form if an expression has a node that is not listed: it may read names (`struct(a)`), fail, or be
evaluated a different number of times; of a filter by the clock, the place decides the row key (`delta.join_graph`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from sqlglot import exp

from sqlmesh_like.analyze.algebra.canonical_expressions import (
    NoFormError,
    canonical,
    conditions_of,
    spelling,
    text_of,
    tree_text,
)
from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    Named,
    OneRow,
    Projection,
    Relation,
    ScalarValue,
    Scan,
    TopK,
    UnionAll,
    Windowed,
    columns,
)


@dataclass(frozen=True)
class _Block:
    """Rows of `source` that meet all of `conditions`; `values`: each column (lower case) over those of `source`."""

    source: object
    values: Mapping[str, exp.Expr]
    conditions: Mapping[str, exp.Expr] = field(default_factory=dict)

    @property
    def form(self) -> object:
        return [self.source, sorted(self.conditions)]


@dataclass(frozen=True)
class Outline:
    """The outermost projections and filters of a relation over its source, whose rows have the relation's keys.

    `columns`: text, name and value of each column, in their order. `conditions`: what rows must meet, by text.
    """

    source: str
    columns: tuple[tuple[str, str, exp.Expr], ...]
    conditions: Mapping[str, exp.Expr]


@dataclass(frozen=True)
class Forms:
    """What a relation means. `form`: a value of lists and texts, with its columns in their order, without their names.

    `outline`: the same as far as the columns are read apart. None if there is none.
    """

    form: object | None = None
    outline: Outline | None = None


def canonical_forms(relation: Relation) -> Forms:
    """What a relation means, without how it is written."""
    try:
        block = _Former().block(relation)
        values = [spelling(block.values[column.name.lower()]) for column in columns(relation)]
        texts = list(map(tree_text, values))
    except (NoFormError, RecursionError):  # an OR of thousands of terms
        return Forms()
    names = (column.name for column in columns(relation))
    listed = tuple(zip(texts, names, values, strict=True))
    return Forms([block.form, texts], Outline(repr(block.source), listed, block.conditions))


def rows_form(relation: Relation, is_by_key: Callable[[exp.Expr], bool]) -> object | None:
    """The same for the rows without their keys: also inner joins and branches of UNION ALL are in one order.

    Where keys decide between rows that are tied, the form of the rows below, with their keys, is part of it.
    `is_by_key`: whether they decide the result of a window or of a call of an aggregate.
    """
    try:
        return _RowsFormer(is_by_key).form(relation)
    except (NoFormError, RecursionError):
        return None


@dataclass
class _Former:
    """Forms the nodes of one relation. Columns of a source are named by its number and their place in it."""

    _sources: list[object] = field(default_factory=list, init=False)

    def form(self, relation: Relation) -> object:
        with self._scope():
            block = self.block(relation)
            return [block.form, self.column_texts(block, relation)]

    def _scope(self) -> AbstractContextManager[None]:
        """Around the nodes below one that shows none of their sources."""
        return nullcontext()

    def block(self, relation: Relation) -> _Block:
        match relation:
            case Scan():
                tokens = {column.name.lower(): f"{column.name.lower()}:{column.type}" for column in relation.schema}
                return self._source(["scan", relation.input_id], tokens)
            case OneRow():
                return self._source(["one row"], {})
            case Filter():
                block = self.block(relation.child)
                conditions = conditions_of(canonical(relation.condition, block.values))
                return _Block(block.source, block.values, {**block.conditions, **conditions})
            case Projection():
                block = self.block(relation.child)
                return _Block(block.source, _values(relation.items, block.values), block.conditions)
            case Join():
                return self._join(relation)
            case Windowed():
                return self._window_block(relation)
            case Aggregate():
                return self._aggregate(relation)
            case UnionAll():
                branches = [self.form(branch) for branch in relation.branches]
                return self._opaque(["union", self._in_order(branches)], relation)
            case Distinct() | ScalarValue():
                block = self._without_keys(relation.child)
                name = type(relation).__name__
                return self._opaque([name, block.form, self.column_texts(block, relation.child)], relation)
            case TopK():
                return self._top(relation)
            case Explode():
                return self._explode_block(relation)

    def column_texts(self, block: _Block, relation: Relation) -> list[str]:
        """The columns of a relation as texts, in their order."""
        return [text_of(block.values[column.name.lower()]) for column in columns(relation)]

    def _source(self, source: object, tokens: Mapping[str, str]) -> _Block:
        """A source whose columns are named by tokens, by their names in lower case."""
        own = self._name(source)
        self._sources.append(source)
        values: dict[str, exp.Expr] = {n: exp.column(f"{own}.{token}", quoted=True) for n, token in tokens.items()}
        return _Block([own, source], values)

    def _name(self, source: object) -> int | str:  # noqa: ARG002 - the other former names it by what it is
        """What tells the columns of a source from those of others."""
        return len(self._sources)

    def _in_order(self, parts: list[object]) -> list[object]:
        """Parts of a source whose order decides nothing but keys."""
        return parts

    def _join_source(self, left: object, right: object) -> list[object]:
        return ["join", left, right]

    def _without_keys(self, relation: Relation) -> _Block:
        """The block of rows of whose keys nothing above is made."""
        return self.block(relation)

    def _is_by_key(self, call: exp.Expr) -> bool:  # noqa: ARG002 - as above
        """Whether keys decide the result of a window or a call, where that is asked."""
        return False

    def _ties(self, below: Relation, *, are_decided: bool) -> list[object]:  # noqa: ARG002 - as above
        """What decides between rows that are tied, beside the form of the rows below."""
        return []

    def _opaque(self, source: object, relation: Relation) -> _Block:
        names = [column.name.lower() for column in columns(relation)]
        return self._source(source, {name: str(place) for place, name in enumerate(names)})

    def _join(self, join: Join) -> _Block:
        with nullcontext() if join.kind == "inner" else self._scope():
            left, right = self.block(join.left), self.block(join.right)
        values = {**left.values, **right.values}
        matched = conditions_of(canonical(join.condition, values)) if join.condition is not None else {}
        if join.kind == "inner":
            conditions = {**left.conditions, **right.conditions, **matched}
            return _Block(self._join_source(left.source, right.source), values, conditions)
        sides = [[side.form, self.column_texts(side, of)] for side, of in ((left, join.left), (right, join.right))]
        return self._opaque([join.kind, *sides, sorted(matched)], join)

    def _explode_block(self, relation: Explode) -> _Block:
        """An element and its position are beside the columns of the rows below, and part of their keys."""
        block = self.block(relation.child)
        added = self._source(
            ["exploded", block.form, text_of(canonical(relation.array, block.values)), relation.element.type],
            {relation.position.lower(): "0", relation.element.name.lower(): "1"},
        )
        return _Block(added.source, {**block.values, **added.values})

    def _window_block(self, relation: Windowed) -> _Block:
        """Windows are computed over the rows that the conditions below leave; they add columns to these."""
        block = self.block(relation.child)
        values = _values(relation.items, block.values)
        windows = [window for value in values.values() for window in value.find_all(exp.Window)]
        texts = sorted(set(map(text_of, windows)))
        source = [
            "windowed",
            block.form,
            texts,
            *self._ties(relation.child, are_decided=any(map(self._is_by_key, windows))),
        ]
        added = self._source(source, {text: str(n) for n, text in enumerate(texts)})

        def token(node: exp.Expr) -> exp.Expr:
            return added.values[text_of(node)].copy() if isinstance(node, exp.Window) else node

        return _Block(added.source, {name: value.transform(token) for name, value in values.items()})

    def _aggregate(self, relation: Aggregate) -> _Block:
        block = self._without_keys(relation.child)
        keys = [text_of(canonical(key.expression, block.values)) for key in relation.keys]
        calls = [text_of(canonical(call.call, block.values)) for call in relation.calls]
        names = [*(key.name for key in relation.keys), *(call.name for call in relation.calls)]
        tokens = {name.lower(): str(place) for place, name in enumerate(names)}
        ties = self._ties(relation.child, are_decided=any(self._is_by_key(call.call) for call in relation.calls))
        grouped = self._source(["aggregate", block.form, keys, calls, *ties], tokens)
        return _Block(grouped.source, _values(relation.items, grouped.values))

    def _top(self, relation: TopK) -> _Block:
        with self._scope():
            block = self.block(relation.child)
        order = [
            [text_of(block.values[term.column.lower()]), term.is_descending, term.is_null_first]
            for term in relation.order
        ]
        source = ["top", block.form, order, relation.count, relation.skipped, self.column_texts(block, relation)]
        return self._opaque([*source, *self._ties(relation.child, are_decided=True)], relation)


@dataclass
class _RowsFormer(_Former):
    """Forms without keys, or with those that groups and distinct rows are not named by (`has_keys`).

    A source is named by what it is, and by its number among those which are the same and joined with it.
    """

    is_by_key: Callable[[exp.Expr], bool]
    has_keys: bool = False

    def _is_by_key(self, call: exp.Expr) -> bool:
        return self.is_by_key(call)

    def _name(self, source: object) -> str:
        same = sum(each == source for each in self._sources)
        return f"{hashlib.sha256(repr(source).encode()).hexdigest()[:16]}.{same}"

    def _in_order(self, parts: list[object]) -> list[object]:
        return parts if self.has_keys else sorted(parts, key=repr)

    def _join_source(self, left: object, right: object) -> list[object]:
        sides = (side for side in (left, right) if isinstance(side, list))
        parts = [part for side in sides for part in (side[1:] if side[0] == "join" else [side])]
        return ["join", *self._in_order(parts)]

    @contextmanager
    def _scope(self) -> Iterator[None]:
        sources, self._sources = self._sources, []
        yield
        self._sources = sources

    def _without_keys(self, relation: Relation) -> _Block:
        has_keys, self.has_keys = self.has_keys, False
        with self._scope():
            block = self.block(relation)
        self.has_keys = has_keys
        return block

    def _ties(self, below: Relation, *, are_decided: bool) -> list[object]:
        return [_RowsFormer(self.is_by_key, has_keys=True).form(below)] if are_decided and not self.has_keys else []


def _values(items: Iterable[Named], over: Mapping[str, exp.Expr]) -> dict[str, exp.Expr]:
    return {item.name.lower(): canonical(item.expression, over) for item in items}
