"""Names in scope. Owns what a column of a SELECT refers to, and the two exceptions that end the reading of a query.

Resolution follows Spark: a column of the FROM clause wins over an alias of the SELECT list. Source: Spark SQL
reference, "Identifiers".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Named, Relation, columns
from sqlmesh_like.analyze.binding.expression_copies import replace_nodes
from sqlmesh_like.analyze.expressions.functions import first_impure
from sqlmesh_like.analyze.expressions.types import infer
from sqlmesh_like.analyze.functions.aggregates import is_mergeable
from sqlmesh_like.analyze.spark_types.nested_types import fields_of
from sqlmesh_like.dialects import SPARK, copy_notes
from sqlmesh_like.errors import nearest
from sqlmesh_like.names import is_hidden


class Unsupported(Exception):
    """A form that is not turned into algebra; the model is rebuilt in full for this reason."""

    def __init__(self, rule: str, message: str, node: exp.Expr | None = None, keyword: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.offset = offset_of(node) if node is not None else None
        self.keyword = keyword  # the construct starts at the last one before `offset`; trees do not record it


class UnknownName(Exception):
    """A mistake of the author's, such as a column that no relation in scope has."""

    def __init__(self, message: str, node: exp.Expr, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset_of(node)
        self.hint = hint


def offset_of(node: exp.Expr) -> int | None:
    """0-based offset of a construct's start in the SQL text; None for generated nodes."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts) if starts else None


def quoted_alias(expression: exp.Expr, name: str) -> exp.Alias:
    """`expression AS name`."""
    return exp.Alias(this=expression.copy(), alias=exp.to_identifier(name, quoted=True))


def with_names(query: exp.Expr) -> exp.Expr:
    """A copy of the query with names for columns without one, or with that of another: only their values count."""
    named = query.copy()
    select = named.this if isinstance(named, exp.Subquery) else named
    while isinstance(select, exp.SetOperation):  # the first of its queries names the columns
        select = select.this
    if isinstance(select, exp.Select):
        items, seen = list[exp.Expr](), set[str]()
        for number, item in enumerate(select.expressions):
            name = item.alias_or_name.lower() if isinstance(item, exp.Alias | exp.Column) else ""
            if isinstance(item, exp.Star) or name == "*" or (name and name not in seen):
                items.append(item)
            else:  # not `alias_`, which would give a subquery the alias of a derived table
                value = item.this if isinstance(item, exp.Alias) else item
                items.append(exp.Alias(this=value.copy(), alias=exp.to_identifier(f"value_{number}")))
            seen.add(name)
        select.set("expressions", items)
    return named


@dataclass(frozen=True)
class ScopeSource:
    """One item of FROM: its alias, and for each of its columns the name that it has in the scope's relation."""

    alias: str
    outputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Scope:
    """The columns that expressions of one SELECT can name.

    `merged` are the columns of USING, to which a bare name refers unambiguously.
    """

    relation: Relation
    sources: tuple[ScopeSource, ...]
    merged: tuple[tuple[str, str], ...] = ()

    @cached_property
    def known(self) -> dict[str, str | None]:
        """Types by name in the relation (lower case)."""
        return {column.name.lower(): column.type for column in columns(self.relation)}

    @cached_property
    def bare(self) -> set[str]:
        """Names (lower case) by which columns can be read without a qualifier."""
        return {name.lower() for source in self.sources for name, _ in source.outputs}

    @cached_property
    def _by_alias(self) -> dict[str, dict[str, list[str]]]:
        """Outputs by alias and name (lower case)."""
        names_by_alias: dict[str, dict[str, list[str]]] = {}
        for source in self.sources:
            names = names_by_alias.setdefault(source.alias, {})
            for name, output in source.outputs:
                names.setdefault(name.lower(), []).append(output)
        return names_by_alias

    def star(self, alias: str = "") -> Iterator[tuple[str, str]]:
        """Name and output of the columns of `*`, or of `alias.*`; those of USING come first, in `*` once.

        Source: Spark 3.5 `commonNaturalJoinProcessing`, and of `alias.*`, whose own columns of USING may be hidden,
        `UnresolvedStar.expand`.
        """
        merged = {name.lower(): output for name, output in self.merged}
        if alias and merged:
            own = next((source.outputs for source in self.sources if source.alias == alias), ())
            yield from sorted(own, key=lambda column: _place(column[0].lower(), merged))
            return
        if merged:
            yield from self.merged
        for source in self.sources:
            if alias in ("", source.alias) and not is_hidden(source.alias):
                yield from ((name, output) for name, output in source.outputs if name.lower() not in merged)

    def orders_star(self, alias: str) -> bool:
        """Whether the order of `alias.*` is known: with columns of several USING, some of them may be hidden."""
        merged = {name.lower() for name, _ in self.merged}
        own = [name for source in self.sources if source.alias == alias for name, _ in source.outputs]
        return len(self.sources) <= 2 or sum(name.lower() in merged for name in own) <= 1

    def resolve(self, expression: exp.Expr) -> exp.Expr:
        """The expression with each column as a bare name of the relation. Raises Unsupported and UnknownName."""
        if isinstance(expression, exp.Column) and not self._is_field(expression):
            return self._column(expression)  # the most frequent case, without the cost of a copy
        if query := expression.find(exp.Query):
            raise Unsupported("QRY005", "a subquery in an expression", query, "SELECT")

        return replace_nodes(expression, lambda node: self._column(node) if isinstance(node, exp.Column) else node)

    def resolve_item(self, item: exp.Alias, *, in_window: bool = False) -> Named:
        """An item over this scope. Raises Unsupported and UnknownName."""
        expression = self.resolve(item.this)
        require_pure(expression, in_window=in_window)
        return Named(item.alias, expression, infer(expression, self.known))

    def outputs_of(self, expression: exp.Expr) -> set[str]:
        """Outputs (lower case) that a resolved expression reads."""
        return {column.name.lower() for column in expression.find_all(exp.Column)}

    def require_alias(self, column: exp.Expr) -> None:
        """Raises UnknownName where a column or star is qualified by an alias that is not in FROM."""
        qualifier = column.text("table")
        if qualifier and qualifier.lower() not in self._by_alias:
            aliases = [source.alias for source in self.sources if source.alias]
            hint = nearest(qualifier, aliases) or f"known: {', '.join(aliases)}"
            raise UnknownName(f"unknown table or alias {qualifier!r} in {column.sql(SPARK)}", column, hint)

    def _column(self, column: exp.Column) -> exp.Expr:
        if isinstance(column.this, exp.Star):
            raise Unsupported("QRY009", f"{column.sql(SPARK)} inside an expression", column)
        if self._is_field(column):
            return self._field(column)
        self.require_alias(column)
        bare = exp.column(self._output(column), quoted=True)
        for part in column.walk():
            copy_notes(bare, part)
        return bare

    def _is_field(self, column: exp.Column) -> bool:
        """Whether the qualifier is a struct; as in Spark, a table of that name with such a column wins."""
        table = column.table.lower()
        if table in self._by_alias:
            return table in self.bare and column.name.lower() not in self._by_alias[table] and not column.db
        around = {part.name.lower() for part in column.parts[:-2]}
        return table in self.bare or not around.isdisjoint(self.bare | self._by_alias.keys())

    def _field(self, column: exp.Column) -> exp.Expr:
        """A field of a struct. Written with brackets: `x.p` could be taken for a column of a table named `x`."""
        parts = [part.name.lower() for part in column.parts]
        is_qualified = parts[0] in self._by_alias and parts[1] in self._by_alias[parts[0]]
        count = 2 if is_qualified else 1 if parts[0] in self.bare else len(parts) - 1
        names = zip(("this", "table", "db"), reversed(column.parts[:count]), strict=False)
        whole = exp.Column(**{name: part.copy() for name, part in names})
        holder = self._column(whole) if count <= 2 else None
        type_ = self.known.get(holder.name.lower()) if isinstance(holder, exp.Column) else None
        for part in column.parts[count:]:
            fields = {name.lower(): field_type for name, field_type in fields_of(type_).items()}
            if part.name.lower() not in fields:
                raise Unsupported("QRY009", f"the nested field {column.sql(SPARK)}", column)
            type_ = fields[part.name.lower()]
            holder = exp.Bracket(this=holder, expressions=[exp.Literal.string(part.name)])
        assert holder is not None, "a field has a column around it"
        return holder

    def _output(self, column: exp.Column) -> str:
        wanted, alias = column.name.lower(), column.table.lower()
        for name, output in self.merged if not alias else ():
            if name.lower() == wanted:
                return output
        outputs = [
            (source, output)
            for source, names in self._by_alias.items()
            if alias in ("", source)
            for output in names.get(wanted, ())
        ]
        if len(outputs) > 1:
            places = list(dict.fromkeys(f"{source}.{column.name}" for source, _ in outputs))
            hint = f"write {' or '.join(places)}"
            if not all(source for source, _ in outputs):
                hint = "an item of FROM has no name: give it an alias, and write that before the column"
            elif len(places) < len(outputs):
                hint = "two items of FROM have one name: give each an alias of its own"
            raise UnknownName(f"the column {column.name!r} is ambiguous", column, hint)
        if not outputs:
            known = [name for source in self.sources if alias in ("", source.alias) for name, _ in source.outputs]
            hint = nearest(column.name, known) or f"known: {', '.join(known)}"
            of = f" of {column.table!r}" if column.table and len(self.sources) > 1 else ""
            raise UnknownName(f"unknown column {column.name!r}{of}", column, hint)
        return outputs[0][1]


def _place(name: str, merged: Mapping[str, str]) -> int:
    """Where a column stands among those of USING; behind them if it is none of these."""
    return [*merged, name].index(name)


def require_pure(expression: exp.Expr, *, in_window: bool = False) -> None:
    """Raise Unsupported for an expression that is not pure, UnknownName for a misplaced aggregate in it."""
    impure = first_impure(expression, in_window=in_window)
    if impure is None:
        return
    node, verdict = impure
    if is_mergeable(node):
        raise UnknownName(f"the aggregate {node.sql(SPARK)} is not allowed here", node)
    rules = {"random": ("FUN002", "is not deterministic")}
    rule, what = rules.get(verdict, ("FUN001", "is not known to be a pure function of its row"))
    raise Unsupported(rule, f"{node.sql(SPARK)} {what}", node, node.sql(SPARK).split("(")[0])
