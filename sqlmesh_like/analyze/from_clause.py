"""FROM and its joins, and subqueries in WHERE that are joins in disguise. Owns turning them into `Join`.

Where more than one item stands in FROM, each column is renamed to `alias.column`, so that names stay unique.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze import types
from sqlmesh_like.analyze.relation import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Named,
    Pair,
    Project,
    Relation,
    Scan,
    columns,
)
from sqlmesh_like.analyze.scope import Scope, Source, UnknownName, Unsupported, require_pure
from sqlmesh_like.analyze.types import is_one_key
from sqlmesh_like.names import Schema


@dataclass(frozen=True)
class InputSchema:
    """What a table name in the SQL stands for. `schema` None: its columns are not known yet."""

    input_id: str
    schema: Schema | None


Lookup = Callable[[exp.Table], InputSchema | Relation | None]
Read = Callable[[exp.Expr, Lookup, Mapping[str, Relation]], Relation]

_JOIN_PARTS = {"this", "on", "using", "side", "kind", "method"}
_TABLE_PARTS = {"this", "db", "catalog", "alias"}


@dataclass(frozen=True)
class FromReader:
    """Reads the FROM clause of one SELECT. `read` reads nested queries, `ctes` are those visible here."""

    lookup: Lookup
    ctes: Mapping[str, Relation]
    read: Read

    def scope(self, select: exp.Select) -> Scope:
        """The scope of a SELECT: its FROM items joined from left to right."""
        from_ = select.args.get("from_") or select.args.get("from")
        if from_ is None:
            raise Unsupported("QRY008", "a SELECT without FROM", select)
        joins = [*(from_.this.args.get("joins") or []), *(select.args.get("joins") or [])]
        first = from_.this.copy() if from_.this.args.get("joins") else from_.this
        first.set("joins", None)
        alias, relation = self._item(first)
        if not joins:
            return Scope(relation, (Source(alias, tuple((c.name, c.name) for c in columns(relation))),))
        scope = _qualified(alias, relation)
        for join in joins:
            scope = self._joined(scope, join)
        return scope

    def filtered(self, scope: Scope, condition: exp.Expr) -> Scope:
        """The scope's rows for which a WHERE holds; EXISTS and IN of a query become semi and anti joins."""
        plain: list[exp.Expr] = []
        for number, part in enumerate(_conjuncts(condition)):
            joined = self._membership(scope, part, number)
            if joined is not None:
                scope = replace(scope, relation=joined)
                continue
            scope, part = self._with_scalars(scope, part, number)
            resolved = scope.resolve(part)
            require_pure(resolved)
            plain.append(resolved)
        return replace(scope, relation=Filter(scope.relation, exp.and_(*plain))) if plain else scope

    def _item(self, item: exp.Expr) -> tuple[str, Relation]:
        if isinstance(item, exp.Table) and any(v for part, v in item.args.items() if part not in _TABLE_PARTS):
            raise Unsupported("QRY009", "a table modifier or a nested join in FROM", item)
        if item.args.get("alias") and item.args["alias"].columns:
            raise Unsupported("QRY009", "an alias with a column list in FROM", item)
        match item:
            case exp.Table() if not item.db and item.name.lower() in self.ctes:
                relation = self.ctes[item.name.lower()]
            case exp.Table():
                relation = self._table(item)
            case exp.Subquery():
                relation = self.read(item, self.lookup, self.ctes)
            case _:
                raise Unsupported("QRY009", f"{item.key.upper()} in FROM", item)
        return (item.alias or item.name).lower(), relation

    def _table(self, table: exp.Table) -> Relation:
        found = self.lookup(table)
        if found is None:
            raise Unsupported("QRY008", f"{table.sql('spark')} is no ref() or source()", table)
        if not isinstance(found, InputSchema):
            return found
        if found.schema is None:
            raise Unsupported("INP001", f"the columns of {found.input_id} are not known before it is built", table)
        return Scan(found.input_id, found.schema)

    def _joined(self, left: Scope, join: exp.Join) -> Scope:
        kind = _kind(join)
        alias, relation = self._item(join.this)
        if alias in {source.alias for source in left.sources}:
            # Spark lets them be, as long as no column is read by such a name.
            raise Unsupported("QRY009", f"two items of FROM with the name {alias!r}", join)
        right = _qualified(alias, relation)
        _require_apart(left, right, join)
        both = Scope(_side_by_side(left.relation, right.relation), (*left.sources, *right.sources), left.merged)
        condition, merged = _condition(join, left, right, both)
        if condition is not None:
            require_pure(condition)
        joined = make_join(left.relation, right.relation, kind, condition)
        if kind in ("semi", "anti"):
            return replace(left, relation=joined)
        again = {name.lower() for name, _ in merged}
        # As in Spark, `*` starts with the columns of the last USING.
        return Scope(joined, both.sources, (*merged, *(m for m in left.merged if m[0].lower() not in again)))

    def _membership(self, scope: Scope, part: exp.Expr, number: int) -> Relation | None:
        """The semi or anti join that a conjunct of WHERE is; None for any other condition."""
        inner, negated = (part.this, True) if isinstance(part, exp.Not) else (part, False)
        while isinstance(inner, exp.Paren):
            inner = inner.this
        kind: JoinKind = "anti" if negated else "semi"
        if isinstance(inner, exp.Exists):
            return self._exists(scope, inner, kind, f"_sml_e{number}")
        if isinstance(inner, exp.In) and inner.args.get("query") is not None:
            if negated:
                raise Unsupported("QRY011", "NOT IN of a query", inner)
            return self._in(scope, inner, f"_sml_e{number}")
        return None

    def _exists(self, outer: Scope, exists: exp.Exists, kind: JoinKind, alias: str) -> Relation:
        query = exists.this.this if isinstance(exists.this, exp.Subquery) else exists.this
        allowed = {"expressions", "from_", "from", "where", "joins", "kind"}
        if not isinstance(query, exp.Select) or any(v for p, v in query.args.items() if v and p not in allowed):
            raise Unsupported("QRY005", "EXISTS of a query with more than FROM and WHERE", exists, "EXISTS")
        inner = self.scope(query)
        renamed = _renamed(inner, alias)
        _require_row_by_row(query, renamed, outer, exists)
        where = query.args.get("where")
        local: list[exp.Expr] = []
        across: list[exp.Expr] = []
        for part in _conjuncts(where.this) if where else []:
            resolved = _resolved_inside_out(part, renamed, outer)
            require_pure(resolved)
            is_local = outer.outputs_of(resolved) <= set(renamed.known)
            (local if is_local else across).append(resolved)
        right = Filter(renamed.relation, exp.and_(*local)) if local else renamed.relation
        return make_join(outer.relation, right, kind, exp.and_(*across) if across else None)

    def _in(self, outer: Scope, membership: exp.In, alias: str) -> Relation:
        relation = self._uncorrelated(membership.args["query"])
        if len(columns(relation)) != 1 or isinstance(membership.this, exp.Tuple):
            raise Unsupported("QRY005", "IN of a query with several columns", membership)
        only = columns(relation)[0]
        name = f"{alias}.{only.name}"
        right = Project(relation, (Named(name, exp.column(only.name, quoted=True), only.type),))
        value = outer.resolve(membership.this)
        require_pure(value)
        condition = exp.EQ(this=value, expression=exp.column(name, quoted=True))
        return make_join(outer.relation, right, "semi", condition)

    def _with_scalars(self, scope: Scope, part: exp.Expr, number: int) -> tuple[Scope, exp.Expr]:
        """Scalar subqueries as cross joins with their one row. Only an aggregate without GROUP BY has one for sure."""
        copy = part.copy()
        outermost = [q for q in copy.find_all(exp.Subquery) if q.find_ancestor(exp.Query) is None]
        for position, query in enumerate(outermost):
            if isinstance(query.parent, exp.In):
                raise Unsupported("QRY005", "IN of a query inside another condition", query)
            relation = self._uncorrelated(query)
            if not isinstance(relation, Aggregate) or relation.keys or len(relation.items) != 1:
                raise Unsupported("QRY005", "a subquery that is not known to have exactly one row", query)
            name = f"_sml_s{number}_{position}"
            item = relation.items[0]
            one = Project(relation, (Named(name, exp.column(item.name, quoted=True), item.type),))
            joined = make_join(scope.relation, one, "inner", None)
            scope = replace(scope, relation=joined, sources=(*scope.sources, Source(name, ((name, name),))))
            query.replace(exp.column(name, table=name, quoted=True))
        return scope, copy

    def _uncorrelated(self, query: exp.Expr) -> Relation:
        try:
            return self.read(_with_names(query), self.lookup, self.ctes)
        except UnknownName:
            # Its names may be those of the query around it: that is not looked up here.
            raise Unsupported("QRY005", "a correlated subquery", query) from None


def _require_row_by_row(query: exp.Select, inner: Scope, outer: Scope, exists: exp.Exists) -> None:
    """EXISTS looks at rows only if the SELECT list makes none and drops none: an aggregate is a row in any case."""
    for item in query.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            continue
        if item.find(exp.AggFunc):
            raise Unsupported("QRY005", "EXISTS of an aggregate, which is always true", exists, "EXISTS")
        require_pure(_resolved_inside_out(item, inner, outer))


def _require_apart(left: Scope, right: Scope, join: exp.Join) -> None:
    """Raises Unsupported where a bare name would mean more here than in Spark."""
    if set(left.known) & set(right.known):
        raise Unsupported("QRY009", "aliases and columns whose names cannot be told apart", join)
    using = {name.name.lower() for name in join.args.get("using") or []}
    if found := {name.lower() for name, _ in left.merged} & right.bare - using:
        raise Unsupported("QRY009", f"the column {min(found)!r} of USING and another one of that name", join)


def _with_names(query: exp.Expr) -> exp.Expr:
    """The query with names for columns that have none: where only the value counts, SQL asks for no alias."""
    named = query.copy()
    select = named.this if isinstance(named, exp.Subquery) else named
    if isinstance(select, exp.Select):
        items = [
            item if isinstance(item, exp.Alias | exp.Column | exp.Star) else exp.alias_(item.copy(), f"value_{number}")
            for number, item in enumerate(select.expressions)
        ]
        select.set("expressions", items)
    return named


def make_join(left: Relation, right: Relation, kind: JoinKind, condition: exp.Expr | None) -> Join:
    """A join with the equalities between the two sides told apart.

    Only equalities of one proven type: `int = string` holds for values that are different as keys.
    """
    mine = {column.name.lower(): column.type for column in columns(left)}
    theirs = {column.name.lower(): column.type for column in columns(right)}
    pairs: list[Pair] = []
    for part in _conjuncts(condition) if condition is not None else []:
        if not isinstance(part, exp.EQ | exp.NullSafeEQ):
            continue
        for one, other in ((part.this, part.expression), (part.expression, part.this)):
            is_apart = _reads_only(one, set(mine)) and _reads_only(other, set(theirs))
            if is_apart and is_one_key(types.infer(one, mine), types.infer(other, theirs)):
                pairs.append(Pair(one, other, isinstance(part, exp.NullSafeEQ)))
                break
    return Join(left, right, kind, condition, tuple(pairs))


def _reads_only(expression: exp.Expr, names: set[str]) -> bool:
    found = {column.name.lower() for column in expression.find_all(exp.Column)}
    return bool(found) and found <= names


def _kind(join: exp.Join) -> JoinKind:
    for part, value in join.args.items():
        if value and part not in _JOIN_PARTS:
            raise Unsupported("QRY009", f"a JOIN with {part.upper()}", join, "JOIN")
    words = [str(join.args.get(part) or "").upper() for part in ("method", "side", "kind")]
    if words[0]:
        raise Unsupported("QRY009", f"a {words[0]} JOIN", join, words[0])
    kinds: dict[tuple[str, str], JoinKind] = {
        ("", ""): "inner", ("", "INNER"): "inner", ("", "CROSS"): "inner", ("LEFT", ""): "left",
        ("LEFT", "OUTER"): "left", ("RIGHT", ""): "right", ("RIGHT", "OUTER"): "right", ("FULL", ""): "full",
        ("FULL", "OUTER"): "full", ("LEFT", "SEMI"): "semi", ("", "SEMI"): "semi", ("LEFT", "ANTI"): "anti",
        ("", "ANTI"): "anti",
    }  # fmt: skip
    kind = kinds.get((words[1], words[2]))
    if kind is None:
        raise Unsupported("QRY009", f"a {' '.join(words).strip()} JOIN", join, words[1] or words[2])
    return kind


def _condition(
    join: exp.Join, left: Scope, right: Scope, both: Scope
) -> tuple[exp.Expr | None, tuple[tuple[str, str], ...]]:
    """The join's condition over both sides, and the columns that USING merges."""
    using = join.args.get("using")
    if not using:
        on = join.args.get("on")
        return (both.resolve(on) if on is not None else None), ()
    if _kind(join) in ("full", "right"):
        raise Unsupported("QRY009", "USING of a right or full join", join, str(join.side))
    parts, merged = [], []
    for name in using:
        mine, theirs = left.resolve(exp.column(name.name)), right.resolve(exp.column(name.name))
        parts.append(exp.EQ(this=mine, expression=theirs))
        merged.append((name.name, mine.name))
    return exp.and_(*parts), tuple(merged)


def _side_by_side(left: Relation, right: Relation) -> Relation:
    """A relation with the columns of both, to resolve names in; it is not kept."""
    return Join(left, right, "inner", None, ())


def _qualified(alias: str, relation: Relation) -> Scope:
    outputs = tuple((column.name, f"{alias}.{column.name}") for column in columns(relation))
    items = tuple(
        Named(output, exp.column(column.name, quoted=True), column.type)
        for (_, output), column in zip(outputs, columns(relation), strict=True)
    )
    return Scope(Project(relation, items), (Source(alias, outputs),))


def _renamed(scope: Scope, prefix: str) -> Scope:
    """The scope with outputs that cannot be those of a query around it."""
    schema = columns(scope.relation)
    items = tuple(Named(f"{prefix}.{c.name}", exp.column(c.name, quoted=True), c.type) for c in schema)
    sources = tuple(
        Source(source.alias, tuple((name, f"{prefix}.{output}") for name, output in source.outputs))
        for source in scope.sources
    )
    merged = tuple((name, f"{prefix}.{output}") for name, output in scope.merged)
    return Scope(Project(scope.relation, items), sources, merged)


def _resolved_inside_out(part: exp.Expr, inner: Scope, outer: Scope) -> exp.Expr:
    """A condition of a correlated query: each column is looked up inside first, then around."""
    if found := part.find(exp.Query):
        raise Unsupported("QRY005", "a subquery in a correlated subquery", found, "SELECT")

    def resolve(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        try:
            return inner.resolve(node)
        except UnknownName as unknown:
            if "ambiguous" in unknown.message:
                raise
            return outer.resolve(node)

    return part.copy().transform(resolve, copy=False)


def _conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    if isinstance(condition, exp.Paren):
        return _conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return [*_conjuncts(condition.this), *_conjuncts(condition.expression)]
    return [condition]
