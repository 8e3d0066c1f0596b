"""FROM and its joins. Owns turning them into `Join`; `subqueries` does so for WHERE and the SELECT list.

If FROM has more than one item, each column is renamed to `alias.column`, so that names stay unique.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import dropwhile

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Join,
    JoinKind,
    Named,
    OneRow,
    Projection,
    Relation,
    Scan,
    columns,
)
from sqlmesh_like.analyze.binding.constant_rows import is_range, numbers, read_values
from sqlmesh_like.analyze.binding.generators import with_view
from sqlmesh_like.analyze.binding.joining import conjuncts, make_join, with_position
from sqlmesh_like.analyze.binding.pivots import apply_pivot
from sqlmesh_like.analyze.binding.scope import Scope, ScopeSource, UnknownName, Unsupported, require_pure, with_names
from sqlmesh_like.analyze.binding.subqueries.lateral_queries import join_lateral
from sqlmesh_like.analyze.expressions.types import infer
from sqlmesh_like.dialects import SPARK, is_comma
from sqlmesh_like.names import Schema


@dataclass(frozen=True)
class InputSchema:
    """The input that a table name in the SQL refers to. `schema` is None if its columns are not known yet."""

    input_id: str
    schema: Schema | None


Lookup = Callable[[exp.Table], InputSchema | Relation | None]
Read = Callable[[exp.Expr, Lookup, Mapping[str, Relation]], Relation]
Ask = Callable[["FromReader", Scope, exp.Expr, str], tuple[Scope, exp.Expr]]

_JOIN_PARTS = {"this", "on", "using", "side", "kind", "method"}
_TABLE_PARTS = {"this", "db", "catalog", "alias"}


@dataclass(frozen=True)
class FromReader:
    """Reads the FROM clause of one SELECT. `read` reads nested queries, `ctes` are those visible here.

    `ask` joins one side of a join with what a condition asks of subqueries.
    """

    lookup: Lookup
    ctes: Mapping[str, Relation]
    read: Read
    ask: Ask

    def scope(self, select: exp.Select) -> Scope:
        """The scope of a SELECT: its FROM items joined from left to right, commas as well.

        Source: Spark's `AstBuilder.visitFromClause`; JOIN goes first under `spark.sql.ansi.relationPrecedence` alone.
        """
        from_ = select.args.get("from_") or select.args.get("from")
        if from_ is None:
            return Scope(OneRow(), ())
        joins = [*(from_.this.args.get("joins") or []), *(select.args.get("joins") or [])]
        first = from_.this.copy() if from_.this.args.get("joins") else from_.this
        first.set("joins", None)
        if (join := using_behind_comma(joins)) is not None:
            raise Unsupported("QRY009", "a USING JOIN behind a comma", join, "JOIN")
        if (nested := self._nested_joins(first)) is not None and not select.args.get("laterals"):
            for join in joins:
                nested = self._read_join(nested, join)
            return nested
        alias, relation = self._item(first)
        views = select.args.get("laterals") or []
        if pivot := next((each for item in (from_.this, *joins) if (each := _pivot_of(item)) is not None), None):
            if joins or views:
                # Spark pivots all that FROM joins.
                raise Unsupported("QRY009", "PIVOT of a join", pivot, "PIVOT")
            relation = apply_pivot(relation, alias, pivot)
            alias = (pivot.alias or alias).lower()
        if not joins and not views:
            return Scope(relation, (ScopeSource(alias, tuple((c.name, c.name) for c in columns(relation))),))
        scope = _item_scope(alias, relation)
        for join in joins:
            is_lateral = isinstance(join.this, exp.Lateral)
            scope = self._join_lateral(scope, join) if is_lateral else self._read_join(scope, join)
        for number, view in enumerate(views):
            scope = with_view(scope, view, number, is_outer=bool(view.args.get("outer")))
        return scope

    def _nested_joins(self, item: exp.Expr) -> Scope | None:
        """The scope of joins in parentheses, whose names stay what they are without an alias; None for another item.

        With an alias they are one table, whose columns are those of `*`.
        """
        table = item.this if isinstance(item, exp.Subquery) else None
        while isinstance(table, exp.Subquery) and not table.alias and not table.args.get("joins"):
            table = table.this
        if not isinstance(table, exp.Table | exp.Subquery) or not (joins := table.args.get("joins")):
            return None
        if _pivot_of(item) is not None or any(isinstance(join.this, exp.Lateral) for join in joins):
            raise Unsupported("QRY009", "a table modifier or a nested join in FROM", item)
        first = table.copy()
        first.set("joins", None)
        inner = self.scope(exp.Select(from_=exp.From(this=first), joins=[join.copy() for join in joins]))
        if not item.args.get("alias"):
            return inner
        names = [name.name for name in item.args["alias"].columns]
        return _item_scope(item.alias.lower(), _as_table(inner, names, item))

    def _item(self, item: exp.Expr) -> tuple[str, Relation]:
        if _pivot_of(item) is not None:
            item = item.copy()
            item.set("pivots", None)
        if isinstance(item, exp.Table) and any(v for part, v in item.args.items() if part not in _TABLE_PARTS):
            raise Unsupported("QRY009", "a table modifier or a nested join in FROM", item)
        names = [each.name for each in item.args["alias"].columns] if item.args.get("alias") else []
        match item:
            case exp.Table() if not item.db and item.name.lower() in self.ctes:
                relation = self.ctes[item.name.lower()]
            case exp.Table() if is_range(item):
                relation = numbers(item.this)
            case exp.Table():
                relation = self._table(item)
            case exp.Subquery():
                relation = self.read(with_names(item) if names else item, self.lookup, self.ctes)
            case exp.Values():
                relation = read_values(item)
            case _:
                raise Unsupported("QRY009", f"{item.key.upper()} in FROM", item)
        return (item.alias or item.name).lower(), with_columns(relation, names, item) if names else relation

    def _table(self, table: exp.Table) -> Relation:
        relation = self.lookup(table)
        if relation is None:
            raise Unsupported("QRY008", f"{table.sql(SPARK)} is not a ref() or source()", table)
        if not isinstance(relation, InputSchema):
            return relation
        if relation.schema is None:
            raise Unsupported("INP001", f"the columns of {relation.input_id} are not known before it is built", table)
        return Scan(relation.input_id, relation.schema)

    def _read_join(self, left: Scope, join: exp.Join) -> Scope:
        right = self._nested_joins(join.this)
        if right is None:
            right = _item_scope(*self._item(join.this))
        if str(join.args.get("method") or "").upper() == "NATURAL":
            join = _by_shared_names(join, left, right)
        kind = _kind(join)
        if shared := {source.alias for source in left.sources} & {source.alias for source in right.sources}:
            # By the name Spark tells qualified columns apart; those of items without one are never qualified.
            if right.merged or (any(shared) and (join.args.get("using") or left.merged)):
                raise Unsupported("QRY009", f"two items of FROM with the name {max(shared)!r}", join)
            right = _apart(right, len(left.sources))
        if right.merged and (join.args.get("using") or left.merged):
            raise Unsupported("QRY009", "USING in a nested join beside another one", join, "JOIN")
        _require_apart(left, right, join)
        left, right, join = self._with_answers(left, right, join)
        side_by_side = Join(left.relation, right.relation, "inner", None, ())  # only to resolve names
        both = Scope(side_by_side, (*left.sources, *right.sources), (*left.merged, *right.merged))
        condition, merged = _condition(join, left, right, both)
        if condition is not None:
            require_pure(condition)
        joined = with_position(
            make_join(left.relation, right.relation, kind, condition), join.this, "JOIN" if _has_keyword(join) else ""
        )
        if kind in ("semi", "anti"):
            return replace(left, relation=joined)
        again = {name.lower() for name, _ in merged}
        if kind == "full":
            joined, merged = _with_merged(joined, right, merged)
        merged = (*merged, *right.merged)
        # As in Spark, `*` starts with the columns of the last USING.
        return Scope(joined, both.sources, (*merged, *(m for m in left.merged if m[0].lower() not in again)))

    def _read_query(self, query: exp.Expr) -> Relation:
        return self.read(with_names(query), self.lookup, self.ctes)

    def _join_lateral(self, left: Scope, join: exp.Join) -> Scope:
        """`JOIN LATERAL`: the rows of a query or a table function for each row to the left."""
        if not isinstance(join.this.this, exp.Query):
            return _join_view(left, join)
        return join_lateral(left, join, _kind(join), self.scope, partial(self.ask, self), self._read_query)

    def _with_answers(self, left: Scope, right: Scope, join: exp.Join) -> tuple[Scope, Scope, exp.Join]:
        """The sides of a join with what its ON asks of subqueries, and the join over the answers.

        A condition that reads one side asks about a row of that side alone, whatever the kind of the join.
        """
        on = join.args.get("on")
        if on is None or on.find(exp.Query) is None:
            return left, right, join
        parts: list[exp.Expr] = []
        for number, part in enumerate(conjuncts(on)):
            if part.find(exp.Query):
                name = f"_sml_o{len(left.sources)}_{number}"
                try:
                    left, part = self.ask(self, left, part, name)
                except UnknownName:
                    right, part = self._ask_right_side(right, part, name)
            parts.append(part)
        answered = join.copy()
        answered.set("on", exp.and_(*parts))
        return left, right, answered

    def _ask_right_side(self, right: Scope, part: exp.Expr, name: str) -> tuple[Scope, exp.Expr]:
        try:
            return self.ask(self, right, part, name)
        except UnknownName:
            query = part.find(exp.Query)
            raise Unsupported("QRY005", "a subquery of both sides of a join", query, "SELECT") from None


def _pivot_of(item: exp.Expr) -> exp.Pivot | None:
    """The PIVOT or UNPIVOT behind an item of FROM or a join. Raises Unsupported for several."""
    table = item.this if isinstance(item, exp.Join) else item
    pivots = table.args.get("pivots") or []
    if len(pivots) > 1:
        raise Unsupported("QRY009", "several PIVOT", pivots[1], "PIVOT")
    return pivots[0] if pivots else None


def with_columns(relation: Relation, names: Sequence[str], node: exp.Expr) -> Relation:
    """The relation with other names for all of its columns. Raises UnknownName where it has more or fewer."""
    own = columns(relation)
    if len(own) != len(names):
        raise UnknownName(f"the list names {len(names)} columns of {len(own)}", node, "name each column once")
    if len({name.lower() for name in names}) != len(names):
        raise Unsupported("QRY009", "a column list with one name twice", node)
    renamed = (
        Named(name, exp.column(each.name, quoted=True), each.type) for name, each in zip(names, own, strict=True)
    )
    return Projection(relation, tuple(renamed))


def _as_table(scope: Scope, names: Sequence[str], node: exp.Expr) -> Relation:
    """The columns of `*` under these names, or under their own."""
    shown = list(scope.star())
    if len(names or shown) != len(shown):
        raise UnknownName(f"the list names {len(names)} columns of {len(shown)}", node, "name each column once")
    own = names or [name for name, _ in shown]
    if len({name.lower() for name in own}) != len(own):
        raise Unsupported("QRY009", "a nested join with two columns of one name", node)
    items = [Named(name, exp.column(output, quoted=True), scope.known[output.lower()])
             for name, (_, output) in zip(own, shown, strict=True)]  # fmt: skip
    return Projection(scope.relation, tuple(items))


def _by_shared_names(join: exp.Join, left: Scope, right: Scope) -> exp.Join:
    """A NATURAL JOIN by USING of the names that both sides have, in the order of the left side.

    Without one it has no condition, as in Spark (`commonNaturalJoinProcessing`).
    """
    names = {name.lower() for name, _ in right.star()}
    shared = dict.fromkeys(name for name, _ in left.star() if name.lower() in names)
    using = join.copy()
    using.set("method", None)
    if not shared:
        return using
    using.set("using", [exp.to_identifier(name, quoted=True) for name in shared])
    return using


def using_behind_comma(joins: Sequence[exp.Join]) -> exp.Join | None:
    """The first USING JOIN behind a comma: of two columns of that name to its left, Spark takes the first one.

    >>> import sqlglot
    >>> query = sqlglot.parse_one("select 1 from a, b join c using (x)", dialect=SPARK)
    >>> using_behind_comma(query.args["joins"]).alias_or_name
    'c'
    """
    behind = dropwhile(lambda join: not is_comma(join), joins)
    return next((join for join in behind if join.args.get("using")), None)


def _has_keyword(join: exp.Join) -> bool:
    """Whether a join is written with keywords rather than a comma."""
    return any(join.args.get(part) for part in ("method", "side", "kind", "on", "using"))


def _join_view(left: Scope, join: exp.Join) -> Scope:
    """`JOIN LATERAL explode(…)`: the rows of the table function for each row to the left."""
    kind, on = _kind(join), join.args.get("on")
    is_always = on is None or (isinstance(on, exp.Boolean) and on.this)
    if kind not in ("inner", "left") or not is_always or join.args.get("using"):
        raise Unsupported("QRY007", "a lateral join with a condition", join.this, "LATERAL")
    return with_view(left, join.this, len(left.sources), is_outer=kind == "left")


def _apart(scope: Scope, number: int) -> Scope:
    """The scope with a number in the names that it has in its relation; those in the query stay.

    Spark allows two items of FROM under one name, and none of the columns that both have.
    """
    given = columns(scope.relation)
    items = [Named(f"{number}.{each.name}", exp.column(each.name, quoted=True), each.type) for each in given]
    sources = [
        replace(source, outputs=tuple((name, f"{number}.{output}") for name, output in source.outputs))
        for source in scope.sources
    ]
    return Scope(Projection(scope.relation, tuple(items)), tuple(sources))


def _require_apart(left: Scope, right: Scope, join: exp.Join) -> None:
    """Raise Unsupported if a name would be ambiguous here that is not in Spark."""
    if set(left.known) & set(right.known):
        raise Unsupported("QRY009", "aliases and columns whose names cannot be distinguished", join)
    using = {name.name.lower() for name in join.args.get("using") or []}
    if shared := {name.lower() for name, _ in left.merged} & right.bare - using:
        raise Unsupported("QRY009", f"the column {min(shared)!r} of USING and another one of that name", join)


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
    parts, merged = [], []
    for name in using:
        mine, theirs = (side.resolve(exp.Column(this=name.copy())) for side in (left, right))
        parts.append(exp.EQ(this=mine, expression=theirs))
        merged.append((name.name, theirs.name if _kind(join) == "right" else mine.name))
    return exp.and_(*parts), tuple(merged)


def _with_merged(
    joined: Relation, right: Scope, merged: Sequence[tuple[str, str]]
) -> tuple[Relation, tuple[tuple[str, str], ...]]:
    """A full join with the columns that USING merges: the value of the left side, else of the right one."""
    types = {column.name.lower(): column.type for column in columns(joined)}
    kept = [Named(column.name, exp.column(column.name, quoted=True), column.type) for column in columns(joined)]
    added, names = [], []
    for name, mine in merged:
        theirs = right.resolve(exp.column(name, quoted=True))
        value = exp.Coalesce(this=exp.column(mine, quoted=True), expressions=[theirs])
        added.append(Named(f"{mine}.{theirs.name}", value, infer(value, types)))
        names.append((name, added[-1].name))
    return Projection(joined, (*kept, *added)), tuple(names)


def _item_scope(alias: str, relation: Relation) -> Scope:
    outputs = tuple((column.name, f"{alias}.{column.name}") for column in columns(relation))
    items = tuple(
        Named(output, exp.column(column.name, quoted=True), column.type)
        for (_, output), column in zip(outputs, columns(relation), strict=True)
    )
    return Scope(Projection(relation, items), (ScopeSource(alias, outputs),))
