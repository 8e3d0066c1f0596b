"""A query as DuckDB's SQL with Spark's values. Owns the walk over its clauses, and what their names refer to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.nested_types import element_of
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_types import without_zone
from sqlmesh_like.duckdb.exact.conditions import require_as_in_spark
from sqlmesh_like.duckdb.exact.form_registry import FORMS
from sqlmesh_like.duckdb.exact.unproven import Unproven, names_columns, require_hashed, require_only
from sqlmesh_like.duckdb.exact.values import NULL, SHOWS_SIGN_OF_ZERO, Columns, common_of_union
from sqlmesh_like.names import Column, Schema

_GENERATORS = (exp.Explode, exp.Posexplode, exp.ExplodeOuter, exp.PosexplodeOuter)
Relations = Callable[[exp.Table], Schema]
"""Returns the columns of a table in a query."""


@dataclass(frozen=True)
class ExactQuery:
    """A query in DuckDB's dialect, and the columns that it yields with their Spark types.

    `shows_sign_of_zero`: it has the text of a double. It fails for zero here; in Spark it would show the sign.
    """

    sql: str
    columns: Schema
    shows_sign_of_zero: bool = False


def exact(query: exp.Query, relations: Relations) -> ExactQuery:
    """The query (changed in place) for DuckDB. Raises Unproven."""
    holder = exp.Subquery(this=query)
    columns = _Proof(relations).query(query, None)
    made = holder.this.transform(without_zone, copy=False)
    schema = tuple(Column(name, type_) for name, type_ in columns)
    return ExactQuery(
        duck_text(made, is_exact=True),
        schema,
        any(node._meta and SHOWS_SIGN_OF_ZERO in node._meta for node in made.walk()),
    )


@dataclass(frozen=True)
class _Scope:
    """The columns that names in one SELECT refer to."""

    select: exp.Select
    sources: Mapping[str, Columns]
    outer: _Scope | None

    def type_of(self, column: exp.Column) -> str:
        name, alias = column.name.lower(), column.table.lower()
        if alias in self.sources or not alias:
            wanted = [self.sources[alias]] if alias else list(self.sources.values())
            types = [type_ for columns in wanted for known, type_ in columns if known.lower() == name]
            if len(types) == 1:
                return types[0]
            if len(types) > 1:
                raise Unproven(f"the column {name} is of several tables")
        if self.outer is None:
            raise Unproven(f"no column {name}")
        require_as_in_spark(column, self.select)
        return self.outer.type_of(column)


class _Proof:
    """Types of a query, bottom up; forms that DuckDB needs written differently are replaced in place."""

    def __init__(self, relations: Relations) -> None:
        self._relations = relations
        self._ctes: dict[str, Columns] = {}

    def query(self, query: exp.Expr, outer: _Scope | None) -> Columns:
        if type(query) is exp.Subquery and not query.args.get("with_"):
            return self.query(query.this, outer)
        names = self._add_ctes(query)
        if type(query) is exp.Union:
            columns = self._union(query, outer)
        elif type(query) is exp.Select:
            columns = self._select(query, outer)
        else:
            raise Unproven(f"form {query.key.upper()}")
        for name in names:
            del self._ctes[name]
        return columns

    def _add_ctes(self, query: exp.Expr) -> list[str]:
        """Add the columns of a WITH clause; return its names, of which none may hide another."""
        clause = query.args.get("with_")
        if clause is None:
            return []
        require_only(clause, "expressions")
        for cte in clause.expressions:
            require_only(cte, "this", "alias")
            if names_columns(cte) or cte.alias.lower() in self._ctes:
                raise Unproven("a WITH clause that names columns or reuses a name")
            self._ctes[cte.alias.lower()] = self.query(cte.this, None)
        return [cte.alias.lower() for cte in clause.expressions]

    def _union(self, union: exp.Union, outer: _Scope | None) -> Columns:
        require_only(union, "this", "expression", "distinct", "with_")
        left, right = self.query(union.this, outer), self.query(union.expression, outer)
        if len(left) != len(right):
            raise Unproven("a union of other widths")
        entries = [(name, common_of_union(one, other)) for (name, one), (_, other) in zip(left, right, strict=True)]
        if union.args.get("distinct"):
            require_hashed(type_ for _, type_ in entries)
        return entries

    def _select(self, select: exp.Select, outer: _Scope | None) -> Columns:
        require_only(
            select, "with_", "expressions", "from_", "joins", "laterals", "where", "group", "having", "distinct"
        )
        sources: dict[str, Columns] = {}
        scope = _Scope(select, sources, outer)
        start = select.args.get("from_")
        if start is not None:
            self._add_source(start.this, sources, outer)
        for join in select.args.get("joins") or ():
            self._join(join, sources, scope)
        for view in select.args.get("laterals") or ():
            self._explode(view, sources, scope)
        for clause in ("where", "having"):
            if arguments := select.args.get(clause):
                _Types(self, scope).require_condition(arguments.this)
        if group := select.args.get("group"):
            require_only(group, "expressions")
            if any(not isinstance(item, exp.Column) for item in group.expressions):
                raise Unproven("GROUP BY other than columns")
            require_hashed(_Types(self, scope).of(item) for item in group.expressions)
        shown = [column for item in list(select.expressions) for column in self._items(item, scope)]
        if distinct := select.args.get("distinct"):
            require_only(distinct)
            require_hashed(type_ for _, type_ in shown)
        return shown

    def _add_source(self, source: exp.Expr, sources: dict[str, Columns], outer: _Scope | None) -> None:
        match source:
            case exp.Table():
                require_only(source, "this", "db", "alias")
                named = None if source.db else self._ctes.get(source.name.lower())
                columns: Columns = named or [(c.name, c.type or "") for c in self._relations(source)]
                alias = source.alias or source.name
            case exp.Subquery():
                require_only(source, "this", "alias")
                columns, alias = self.query(source.this, outer), source.alias
            case _:
                raise Unproven(f"form {source.key.upper()}")
        if alias.lower() in sources or names_columns(source):
            raise Unproven("names of columns beside a table")
        sources[alias.lower()] = columns

    def _join(self, join: exp.Join, sources: dict[str, Columns], scope: _Scope) -> None:
        require_only(join, "this", "on", "side", "kind")
        is_half = join.side.upper() == "LEFT" and join.kind.upper() in ("SEMI", "ANTI")
        if (not is_half and join.kind.upper() not in ("", "INNER", "CROSS", "OUTER")) or join.side.upper() not in (
            "", "LEFT", "RIGHT", "FULL",
        ):  # fmt: skip
            raise Unproven(f"{join.side} {join.kind} JOIN")
        seen = dict(sources)
        self._add_source(join.this, sources, scope.outer)
        if on := join.args.get("on"):
            _Types(self, scope).require_condition(on)
        if is_half:  # only the condition sees the right table
            for name in sources.keys() - seen.keys():
                del sources[name]

    def _explode(self, view: exp.Lateral, sources: dict[str, Columns], scope: _Scope) -> None:
        """A view of the elements of an array."""
        require_only(view, "this", "view", "alias", "outer")
        generator, alias = view.this, view.args.get("alias")
        if type(generator) not in _GENERATORS or not isinstance(alias, exp.TableAlias):
            raise Unproven(f"LATERAL VIEW of {generator.key.upper()}")
        array = _Types(self, scope).of(generator.this)
        if (element := element_of(array)) is None:
            raise Unproven(f"LATERAL VIEW of {array}")
        columns = ["int", element] if isinstance(generator, exp.Posexplode) else [element]
        names = [name.name for name in alias.columns]
        if len(names) != len(columns) or alias.name.lower() in sources:
            raise Unproven("a LATERAL VIEW without names of its own")
        sources[alias.name.lower()] = list(zip(names, columns, strict=True))

    def _items(self, item: exp.Expr, scope: _Scope) -> Columns:
        if isinstance(item, exp.Star):
            require_only(item)
            return [column for columns in scope.sources.values() for column in columns]
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            return scope.sources[item.table.lower()]
        value = item.this if isinstance(item, exp.Alias) else item
        return [(item.alias_or_name, _Types(self, scope).of(value))]


_PROVEN = "proven_type"
"""The note of a node that is as DuckDB is given it, with its type."""


@dataclass(frozen=True)
class _Types:
    """Types of the expressions of one SELECT. Each node is proven once: copies of what it became are proven, too."""

    proof: _Proof
    scope: _Scope
    variables: Mapping[str, str] = field(default_factory=dict)

    def of(self, node: exp.Expr) -> str:
        match node:
            case exp.Literal():
                return _literal(node)
            case exp.Boolean():
                return "boolean"
            case exp.Null():
                return NULL
        if node._meta and _PROVEN in node._meta:  # another proof would rewrite it once more
            return str(node._meta[_PROVEN])
        form = FORMS.get(type(node))
        if form is None or form.proof is None:
            name = node.name if isinstance(node, exp.Anonymous) else node.key
            raise Unproven(f"{'function' if isinstance(node, exp.Func) else 'form'} {name.upper()}")
        parent, part, index = node.parent, node.arg_key, node.index
        type_ = form.proof(node, self)
        made = parent.args[part] if parent is not None and part is not None else node
        (made if index is None else made[index]).meta[_PROVEN] = type_
        return type_

    def of_variable(self, name: str) -> str:
        """The type of an argument of a function around."""
        if (type_ := self.variables.get(name.lower())) is None:
            raise Unproven(f"the name {name}")
        return type_

    def within(self, variable: str, type_: str) -> _Types:
        """The types within a function of a variable of this type."""
        return replace(self, variables={**self.variables, variable.lower(): type_})

    def of_column(self, column: exp.Column) -> str:
        return self.scope.type_of(column)

    def of_query(self, query: exp.Expr) -> Columns:
        return self.proof.query(query, self.scope)

    def require_condition(self, condition: exp.Expr) -> None:
        if self.of(condition) not in ("boolean", NULL):
            raise Unproven("a condition that is not a boolean")


def _literal(node: exp.Literal) -> str:
    if node.is_string:
        return "string"
    if node.is_int:
        size = len(node.name)
        if size > 18:
            raise Unproven("a number of more than 18 digits")
        return "int" if size <= 9 else "bigint"
    whole, dot, fraction = node.name.partition(".")
    if not dot or not (whole + fraction).isdigit():
        raise Unproven("a number with an exponent")
    return f"decimal({max(len(whole.lstrip('0')) + len(fraction), 1)},{len(fraction)})"
