"""EXPLODE, POSEXPLODE, INLINE and STACK, in a SELECT list, as LATERAL VIEW or `lateral explode(…)`. Owns reading them.

Each becomes one `Explode` with a projection above it. The OUTER forms explode an array of one NULL instead of an empty
or NULL array. Source: Spark SQL reference, "LATERAL VIEW clause" and "Table-valued functions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Explode, Named, Projection, Relation, columns
from sqlmesh_like.analyze.binding.scope import Scope, ScopeSource, UnknownName, Unsupported, quoted_alias, require_pure
from sqlmesh_like.analyze.expressions import types
from sqlmesh_like.analyze.spark_types.nested_types import element_of, fields_of
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import Column

_IN_SELECT = "_sml_x"


def is_generator(node: exp.Expr) -> bool:
    """Whether a node is a table function that the algebra has a form for."""
    return isinstance(node, exp.Explode | exp.Inline | exp.Stack)


def selected_generator(item: exp.Expr) -> exp.Expr | None:
    """The generator in an item of a SELECT list; None if the item is not one."""
    inner = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
    return inner if is_generator(inner) else None


def in_select(items: Sequence[exp.Expr], scope: Scope) -> tuple[list[exp.Expr], Scope]:
    """The SELECT list with its generator, if there is one, replaced by columns that the scope now has."""
    generators = [item for item in items if selected_generator(item) is not None]
    if not generators:
        return list(items), scope
    if len(generators) > 1:
        raise Unsupported("QRY007", "two generators in one SELECT list", generators[1])
    (item,) = generators
    written = item.expressions if isinstance(item, exp.Aliases) else [item.args["alias"]] if item.alias else []
    generator = selected_generator(item)
    assert generator is not None
    made = _read_generator(scope, generator, [one.name for one in written], _IN_SELECT, is_outer=False)
    hidden = tuple((output, output) for _, output in made.outputs)
    shown = [quoted_alias(exp.column(output, table=_IN_SELECT, quoted=True), name) for name, output in made.outputs]
    wider = replace(scope, relation=made.relation, sources=(*scope.sources, ScopeSource(_IN_SELECT, hidden)))
    return [one for part in items for one in (shown if part is item else [part])], wider


def with_view(scope: Scope, view: exp.Lateral, number: int, *, is_outer: bool) -> Scope:
    """The scope with the columns of a LATERAL VIEW added; its own outputs must start with their source's alias."""
    if not is_generator(view.this):
        is_query = isinstance(view.this, exp.Query)
        rule, what = ("QRY009", "LATERAL of a query") if is_query else ("QRY007", view.this.sql(SPARK))
        if view.this.name.lower() == "json_tuple":
            what += ": get_json_object reads a field as a value of its row"
        raise Unsupported(rule, what, view, "LATERAL")
    alias = view.args.get("alias")
    name = (alias.name if alias else "").lower() or f"(view {number + 1})"
    if name in {source.alias for source in scope.sources}:
        raise Unsupported("QRY009", f"two items of FROM with the name {name!r}", view.this)
    written = [column.name for column in alias.columns] if alias else []
    made = _read_generator(scope, view.this, written, name, is_outer=is_outer)
    if {output.lower() for _, output in made.outputs} & set(scope.known):
        raise Unsupported("QRY009", "aliases and columns whose names cannot be distinguished", view.this)
    return replace(scope, relation=made.relation, sources=(*scope.sources, ScopeSource(name, made.outputs)))


@dataclass(frozen=True)
class _Made:
    """A relation with exploded columns, and the name and output of each of them."""

    relation: Relation
    outputs: tuple[tuple[str, str], ...]


def _read_generator(scope: Scope, generator: exp.Expr, written: list[str], prefix: str, *, is_outer: bool) -> _Made:
    if isinstance(generator, exp.Stack):
        generator = stack_as_inline(generator, lambda value: types.infer(scope.resolve(value), scope.known))
    array = scope.resolve(generator.this)
    require_pure(array)
    element = _element_type(generator, array, scope)
    is_outer = is_outer or isinstance(generator, exp.ExplodeOuter | exp.PosexplodeOuter)
    position, value = f"{prefix}.{_POSITION}", f"{prefix}.{_ELEMENT}"
    filled = exp.Case().when(_has_some(array), array.copy()).else_(exp.Array(expressions=[exp.Null()]))
    exploded = Explode(scope.relation, filled if is_outer else array, position, Column(value, element))
    made = [(name, expression, type_) for name, expression, type_ in _values(generator, element, value)]
    if isinstance(generator, exp.Posexplode):
        number: exp.Expr = exp.column(position, quoted=True)
        made.insert(0, ("pos", exp.Case().when(_has_some(array), number) if is_outer else number, "int"))
    names = written or [name for name, _, _ in made]
    if len(names) != len(made):
        raise UnknownName(f"{generator.sql(SPARK)} has {len(made)} columns and {len(names)} names", generator)
    if len({name.lower() for name in names}) != len(names):
        raise UnknownName(f"two columns of {generator.sql(SPARK)} have one name", generator)
    kept = [Named(c.name, exp.column(c.name, quoted=True), c.type) for c in columns(scope.relation)]
    added = [
        Named(f"{prefix}.{name}", expression, type_) for name, (_, expression, type_) in zip(names, made, strict=True)
    ]
    outputs = tuple((name, one.name) for name, one in zip(names, added, strict=True))
    return _Made(Projection(exploded, (*kept, *added)), outputs)


def stack_as_inline(stack: exp.Stack, type_of: Callable[[exp.Expr], str | None] | None = None) -> exp.Inline:
    """STACK as INLINE of an array of structs with the fields `col0`, `col1` …, one for each row.

    Without types NULL has none. Raises Unsupported.

    >>> import sqlglot
    >>> stack = sqlglot.parse_one("stack(2, a, 1, b, null)", dialect="spark")
    >>> stack_as_inline(stack, lambda value: None if value.find(exp.Null) else "int").sql("spark")
    'INLINE(ARRAY(STRUCT(a AS col0, 1 AS col1), STRUCT(b AS col0, CAST(NULL AS INT) AS col1)))'
    """
    count = int(stack.this.name) if isinstance(stack.this, exp.Literal) and stack.this.name.isdigit() else 0
    if not 0 < count <= len(stack.expressions):
        raise Unsupported("QRY007", stack.sql(SPARK), stack, "LATERAL")
    width = -(-len(stack.expressions) // count)
    filled = [*stack.expressions, *(exp.Null() for _ in range(count * width - len(stack.expressions)))]
    rows = [filled[row * width : (row + 1) * width] for row in range(count)]
    structs = []
    made = [
        [value.copy() for value in column] if type_of is None else _of_one_type(column, type_of, stack)
        for column in zip(*rows, strict=True)
    ]
    for row in zip(*made, strict=True):
        fields = [exp.PropertyEQ(this=exp.to_identifier(f"col{n}"), expression=value) for n, value in enumerate(row)]
        structs.append(exp.Struct(expressions=fields))
    return exp.Inline(this=exp.Array(expressions=structs))


def _of_one_type(
    values: Sequence[exp.Expr], type_of: Callable[[exp.Expr], str | None], stack: exp.Stack
) -> list[exp.Expr]:
    """Copies of the values of a column of STACK, a NULL with the type of the others."""
    known = {type_of(value) for value in values if not isinstance(value, exp.Null)}
    type_ = known.pop() if len(known) == 1 else None
    if type_ is None:
        raise Unsupported("TYP001", f"a column of {stack.sql(SPARK)} has no one proven type", stack)
    return [
        exp.cast(exp.Null(), type_, dialect="spark") if isinstance(value, exp.Null) else value.copy()
        for value in values
    ]


# Reserved names, so that no column of the array's relation hides the generated ones.
_POSITION, _ELEMENT = "_sml_position", "_sml_element"


def _element_type(generator: exp.Expr, array: exp.Expr, scope: Scope) -> str:
    """The type of the elements. A map would be exploded into two columns, so the type must be proven."""
    type_ = types.infer(array, scope.known)
    if type_ is None:
        raise Unsupported("TYP001", f"the type of {generator.this.sql(SPARK)} is not proven", generator)
    element = element_of(type_)
    if element is None:
        rule = "TYP002" if type_.startswith("map<") else "TYP001"
        raise Unsupported(rule, f"{generator.sql(SPARK)} of the type {type_}", generator)
    return element


def _values(generator: exp.Expr, element: str, value: str) -> list[tuple[str, exp.Expr, str | None]]:
    column = exp.column(value, quoted=True)
    if not isinstance(generator, exp.Inline):
        return [("col", column, element)]
    fields = fields_of(element)
    if not fields:
        raise Unsupported("TYP001", f"{generator.sql(SPARK)} of elements of the type {element}", generator)
    return [
        (name, exp.Bracket(this=column.copy(), expressions=[exp.Literal.string(name)]), type_)
        for name, type_ in fields.items()
    ]


def _has_some(array: exp.Expr) -> exp.Expr:
    return exp.GT(this=exp.ArraySize(this=array.copy()), expression=exp.Literal.number(0))
