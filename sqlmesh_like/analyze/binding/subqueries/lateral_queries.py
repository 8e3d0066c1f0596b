"""LATERAL of a query: its rows for each row to the left. Owns the forms that are joins.

- Rows of FROM and WHERE are a join, whose condition is WHERE.
- Aggregates without GROUP BY are one row: each is a scalar subquery.
- Window functions over rows chosen by equalities with the left side are those of a query without these: its windows
  are partitioned by the inner sides as well, by which it is joined.
- Any query that reads nothing to its left is a derived table. Spark refuses LIMIT in one that does.

Source: Spark 3.5 `DecorrelateInnerQuery`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import JoinKind, Named, Projection, Relation, columns
from sqlmesh_like.analyze.binding.grouping import aggregate_calls
from sqlmesh_like.analyze.binding.joining import conjuncts, filter_rows, make_join
from sqlmesh_like.analyze.binding.scope import Scope, ScopeSource, UnknownName, Unsupported, require_pure
from sqlmesh_like.analyze.binding.subqueries.correlation import prefix_outputs, resolve_inside_out
from sqlmesh_like.analyze.expressions.types import infer
from sqlmesh_like.analyze.spark_types.exactness import is_one_key
from sqlmesh_like.dialects import SPARK

_PARTS = {"expressions", "from_", "from", "where", "joins", "kind", "order"}
ScopeOf = Callable[[exp.Select], Scope]
Read = Callable[[exp.Expr], Relation]
Ask = Callable[[Scope, exp.Expr, str], tuple[Scope, exp.Expr]]


@dataclass(frozen=True)
class LateralQuery:
    """A query to the right of `left`, under an alias; `own` is the scope of its FROM, None if it has none.

    Its outputs have the alias before them, its own columns `prefix`.
    """

    left: Scope
    select: exp.Select
    alias: str
    names: Sequence[str]
    own: Scope | None

    @property
    def prefix(self) -> str:
        return f"_sml_l{len(self.left.sources)}"

    def join(self, kind: JoinKind, on: exp.Expr | None) -> Scope:
        """The scope of both. Raises Unsupported and UnknownName."""
        items = self._items()
        where = self.select.args.get("where")
        parts = [self._resolve(part) for part in conjuncts(where.this)] if where else []
        if self.own is None and (kind == "inner" or not parts):
            return self._with_items(filter_rows(self.left.relation, parts), items, on)
        if self.own is None:
            raise Unsupported("QRY009", "LEFT JOIN LATERAL of a condition on the rows to the left", self.select)
        inner = self._inner.relation
        if all(self._is_inner(item.expression) for item in items):
            kept = [Named(c.name, exp.column(c.name, quoted=True), c.type) for c in columns(inner)]
            right = Projection(inner, (*kept, *items))
            scope = self._scope(make_join(self.left.relation, right, "inner", None), items)
            wanted = [*parts, *([scope.resolve(on)] if on is not None else [])]
            condition = exp.and_(*wanted) if wanted else None
            return self._scope(make_join(self.left.relation, right, kind, condition), items)
        if kind != "inner":
            raise Unsupported("QRY009", "LEFT JOIN LATERAL of values computed from those to the left", self.select)
        condition = exp.and_(*parts) if parts else None
        return self._with_items(make_join(self.left.relation, inner, "inner", condition), items, on)

    @property
    def _inner(self) -> Scope:
        assert self.own is not None
        return prefix_outputs(self.own, self.prefix)

    def _resolve(self, part: exp.Expr) -> exp.Expr:
        resolved = resolve_inside_out(part, self._inner, self.left) if self.own is not None else self.left.resolve(part)
        require_pure(resolved)
        return resolved

    def _items(self) -> list[Named]:
        written: list[tuple[str, exp.Expr]] = []
        for item in self.select.expressions:
            if isinstance(item, exp.Star) and self.own is not None and not any(item.args.values()):
                written += [(name, exp.column(output, quoted=True)) for name, output in self._inner.star()]
            elif item.is_star:
                raise Unsupported("QRY009", f"{item.sql(SPARK)} in LATERAL", item)
            else:
                written.append((item.alias_or_name, self._resolve(item.unalias())))
        if self.names and len(self.names) != len(written):
            counts = f"{len(self.names)} columns of {len(written)}"
            raise UnknownName(f"the list names {counts}", self.select, "name each column once")
        named = list(self.names) or [name for name, _ in written]
        if not all(named) or len({name.lower() for name in named}) != len(named):
            raise Unsupported("QRY009", "LATERAL of columns without a name, or with one name", self.select, "LATERAL")
        known = {**self.left.known, **(self._inner.known if self.own is not None else {})}
        return [
            Named(f"{self.alias}.{name}", value, infer(value, known))
            for name, (_, value) in zip(named, written, strict=True)
        ]

    def _is_inner(self, resolved: exp.Expr) -> bool:
        return self.left.outputs_of(resolved) <= set(self._inner.known)

    def _scope(self, relation: Relation, items: Sequence[Named]) -> Scope:
        outputs = tuple((item.name.removeprefix(f"{self.alias}."), item.name) for item in items)
        return replace(self.left, relation=relation, sources=(*self.left.sources, ScopeSource(self.alias, outputs)))

    def _with_items(self, relation: Relation, items: Sequence[Named], on: exp.Expr | None) -> Scope:
        """The scope of rows with the items computed on them."""
        kept = [Named(c.name, exp.column(c.name, quoted=True), c.type) for c in columns(self.left.relation)]
        scope = self._scope(Projection(relation, (*kept, *items)), items)
        return scope if on is None else replace(scope, relation=filter_rows(scope.relation, [scope.resolve(on)]))


def join_lateral(left: Scope, join: exp.Join, kind: JoinKind, scope_of: ScopeOf, ask: Ask, read: Read) -> Scope:
    """The scope with the rows of a lateral query for each row to the left.

    `scope_of` reads the FROM of a SELECT, `ask` joins a scope with what an expression asks of subqueries, `read` reads
    a query that names nothing around it. Raises Unsupported, and UnknownName for what Spark refuses.
    """
    select, alias = join.this.this.unnest(), join.this.args.get("alias")
    name = alias.name.lower() if alias else ""
    if kind not in ("inner", "left") or join.args.get("using") or name in {one.alias for one in left.sources}:
        raise Unsupported("QRY009", "LATERAL of a query without a name of its own", join.this, "LATERAL")
    names = [column.name for column in alias.columns] if alias else []
    on = join.args.get("on")
    on = None if isinstance(on, exp.Boolean) and on.this else on
    try:
        if _is_one_row(select) and on is None:
            return _with_one_row(left, select, name, names, ask)
        if _is_plain(select):
            has_from = select.args.get("from_") or select.args.get("from")
            return LateralQuery(left, select, name, names, scope_of(select) if has_from else None).join(kind, on)
        if _has_windows_alone(select):
            inner, pairs = _without_correlation(select, scope_of(select), left)
            return _beside(left, read(inner), name, names, kind, on, pairs)
    except UnknownName as unknown:
        raise Unsupported("QRY009", f"LATERAL of a query: {unknown.message}", join.this, "LATERAL") from None
    try:
        return _beside(left, read(select), name, names, kind, on)
    except UnknownName:
        if select.args.get("limit") is not None:
            hint = "join a query whose rows are numbered: row_number() over (partition by … order by …)"
            raise UnknownName("LIMIT in LATERAL of a query that reads the rows to its left", select, hint) from None
    raise Unsupported("QRY009", "LATERAL of a query with groups, windows or further clauses", join.this, "LATERAL")


def _beside(
    left: Scope,
    relation: Relation,
    alias: str,
    names: Sequence[str],
    kind: JoinKind,
    on: exp.Expr | None,
    pairs: Sequence[exp.Expr] = (),
) -> Scope:
    """The scope joined with a query that reads nothing of it, by the equality of its last columns with `pairs`."""
    every = columns(relation)
    own = every[: len(every) - len(pairs)]
    if names and len(names) != len(own):
        raise Unsupported("QRY009", "LATERAL with names for some of its columns")
    shown = list(names) or [column.name for column in own]
    items = [
        Named(f"{alias}.{name}", exp.column(column.name, quoted=True), column.type)
        for name, column in zip(shown, own, strict=True)
    ]
    hidden = [Named(f"{alias}.{c.name}", exp.column(c.name, quoted=True), c.type) for c in every[len(own) :]]
    right = Projection(relation, (*items, *hidden))
    source = ScopeSource(alias, tuple((name, f"{alias}.{name}") for name in shown))
    both = replace(left, relation=make_join(left.relation, right, "inner", None), sources=(*left.sources, source))
    wanted = [
        exp.EQ(this=exp.column(named.name, quoted=True), expression=value)
        for named, value in zip(hidden, pairs, strict=True)
    ]
    condition = exp.and_(*wanted, *([both.resolve(on)] if on is not None else [])) if wanted or on is not None else None
    return replace(both, relation=make_join(left.relation, right, kind, condition))


def _without_correlation(select: exp.Select, own: Scope, left: Scope) -> tuple[exp.Select, list[exp.Expr]]:
    """The query without its equalities with the left side, and the values there, to which its last columns are equal.

    Rows of one partition, by these columns as well, are all rows of it that the equalities choose, or none: values of
    one exact type that equal one value are one key. Source: Spark 3.5 `DecorrelateInnerQuery`, of `Window`.
    """
    inner, where, pairs = select.copy(), select.args.get("where"), list[exp.Expr]()
    kept, keys = list[exp.Expr](), list[exp.Expr]()
    for part in conjuncts(where.this) if where else []:
        if _is_of(part, own):
            kept.append(part.copy())
            continue
        sides = [(part.this, part.expression), (part.expression, part.this)] if isinstance(part, exp.EQ) else []
        if not (found := [(one, other) for one, other in sides if _is_of(one, own) and not _reads(other, own)]):
            raise Unsupported("QRY009", "LATERAL of windows over rows chosen by other than equalities", part)
        ((mine, theirs),) = found
        value = left.resolve(theirs)
        require_pure(value)
        if not is_one_key(infer(own.resolve(mine), own.known), infer(value, left.known)):
            raise Unsupported("QRY009", "LATERAL of windows by an equality of other than one exact type", part)
        keys.append(mine)
        pairs.append(value)
    inner.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
    for window in [window for item in inner.expressions for window in item.find_all(exp.Window)]:
        own_keys = window.args.get("partition_by") or []
        window.set("partition_by", [*own_keys, *(key.copy() for key in keys if key not in own_keys)])
    for number, key in enumerate(keys):
        inner.append("expressions", exp.alias_(key.copy(), f"lateral key {number}", quoted=True))
    return inner, pairs


def _is_of(part: exp.Expr, scope: Scope) -> bool:
    """Whether all columns of an expression are a scope's own."""
    try:
        scope.resolve(part)
    except UnknownName:
        return False
    return True


def _reads(part: exp.Expr, scope: Scope) -> bool:
    """Whether some column of an expression is one of a scope, which then hides those around it."""
    return any(_is_of(column, scope) for column in part.find_all(exp.Column))


def _with_one_row(left: Scope, select: exp.Select, alias: str, names: Sequence[str], ask: Ask) -> Scope:
    """The scope with the aggregates of a lateral query, each a scalar subquery."""
    scope, outputs = left, list[tuple[str, exp.Expr]]()
    for number, (own, value) in enumerate(_as_values(select)):
        scope, answer = ask(scope, value, f"_sml_l{len(left.sources)}_{number}")
        outputs.append((names[number] if number < len(names) else own, scope.resolve(answer)))
    if len({name.lower() for name, _ in outputs}) != len(outputs) or not all(name for name, _ in outputs):
        raise Unsupported("QRY009", "LATERAL of columns without a name, or with one name", select, "LATERAL")
    kept = [Named(c.name, exp.column(c.name, quoted=True), c.type) for c in columns(scope.relation)]
    items = [Named(f"{alias}.{name}", value, infer(value, scope.known)) for name, value in outputs]
    source = ScopeSource(alias, tuple((name, f"{alias}.{name}") for name, _ in outputs))
    return replace(left, relation=Projection(scope.relation, (*kept, *items)), sources=(*left.sources, source))


def _is_plain(query: exp.Expr) -> TypeGuard[exp.Select]:
    """Whether a query is a SELECT of rows, without groups, that `LateralQuery` may read."""
    if not isinstance(query, exp.Select) or any(v for part, v in query.args.items() if v and part not in _PARTS):
        return False
    return not any(item.find(exp.Window, exp.UDTF, exp.Query) or aggregate_calls(item) for item in query.expressions)


def _has_windows_alone(query: exp.Expr) -> TypeGuard[exp.Select]:
    """Whether a query is a SELECT of rows of tables with window functions, without groups and further clauses."""
    if not isinstance(query, exp.Select) or any(v for part, v in query.args.items() if v and part not in _PARTS):
        return False
    if not query.find(exp.Window) or not (query.args.get("from_") or query.args.get("from")):
        return False
    where = query.args.get("where")
    asked = [*query.expressions, *([where] if where is not None else [])]
    return not any(part.find(exp.UDTF, exp.Query) or aggregate_calls(part) for part in asked)


def _is_one_row(query: exp.Expr) -> TypeGuard[exp.Select]:
    """Whether a query is a SELECT of aggregates without GROUP BY."""
    if not isinstance(query, exp.Select) or any(v for part, v in query.args.items() if v and part not in _PARTS):
        return False
    is_cut = query.args.get("limit") is not None or query.args.get("order") is not None
    return not is_cut and bool(query.expressions) and all(aggregate_calls(item) for item in query.expressions)


def _as_values(query: exp.Select) -> list[tuple[str, exp.Subquery]]:
    """The columns of a query of one row, each as a scalar subquery under its name."""
    values = []
    for item in query.expressions:
        one = query.copy()
        one.set("expressions", [exp.alias_(item.unalias().copy(), "value")])
        values.append((item.alias, exp.Subquery(this=one)))
    return values
