"""Random edits of real queries: of TPC-H, TPC-DS and the demos. Owns the kinds of edits, and what each does to a text.

Each kind changes the tree of a query, or says that it cannot. What an edit must do to a table is each test's matter.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import sqlglot
from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import scanned_columns, used_columns
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import SqlError
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.profile import load_target
from sqlmesh_like.render.renderer import render_project
from tests.tpc.plans import compiled_suite

Edit = Callable[[random.Random, exp.Query, CompiledModel], exp.Expr | None]
_DEMOS = Path(__file__).parents[2] / "demo"


@dataclass(frozen=True)
class EditedModel:
    """A model before and after edits of some kinds."""

    name: str
    kinds: tuple[str, ...]
    before: CompiledModel
    after: CompiledModel


def models() -> list[tuple[str, CompiledModel]]:
    """The models of both suites and of the demos that are maintained incrementally, by name."""
    suites = [(f"{suite} {name}", model) for suite in ("h", "ds") for name, model in compiled_suite(suite)]
    demos = [(f"{demo} {model.model.name}", model) for demo in ("retail", "estate") for model in _demo(demo)]
    every = [*suites, *demos]
    return [(name, model) for name, model in every if model.classification.strategy != "full_refresh"]


def _demo(name: str) -> Iterator[CompiledModel]:
    project = load_project(_DEMOS / name, {})
    rendered = render_project(project, load_target(project, _DEMOS / name, None, None, {}))
    compiler = Compiler()
    for model in rendered.models:
        compiled = compiler.compile(model)
        if compiled.facts.relation is not None:
            yield compiled


def edited(seed: int, models: list[tuple[str, CompiledModel]]) -> EditedModel:
    """The edit of a number: of one model, of one kind, or in a quarter of the cases of two."""
    rng = random.Random(seed)
    while True:
        name, model = rng.choice(models)
        kinds = tuple(dict.fromkeys(rng.choices(sorted([*KINDS, *_SOURCE, _REMOVED]), k=rng.choice([1, 1, 1, 2]))))
        before = _edited(rng, "left join", model) if _REMOVED in kinds else model
        after = None if before is None else model
        for kind in kinds:
            after = _edited(rng, kind, after) if after is not None and kind != _REMOVED else after
        if before is not None and after is not None:
            return EditedModel(name, kinds, before, after)


def _edited(rng: random.Random, kind: str, model: CompiledModel) -> CompiledModel | None:
    """The model after an edit of a kind; None if it cannot be edited so."""
    try:
        made = _after(rng, kind, model)
        _ = made and made.classification
    except SqlError:
        return None
    return made


def _after(rng: random.Random, kind: str, model: CompiledModel) -> CompiledModel | None:
    assert model.facts.relation is not None
    schemas: dict[str, Schema] = {**scanned_columns(model.facts.relation)}
    if kind in _SOURCE:
        name = rng.choice(sorted(schemas))
        unread = {c.name for c in schemas[name]} - set(used_columns(model.facts.relation)[name])
        schemas[name] = _SOURCE[kind](schemas[name], unread)
        return Compiler(schemas).compile(model.model)
    tree = sqlglot.parse_one(model.model.sql, dialect=SPARK)
    assert isinstance(tree, exp.Query)
    new = KINDS[kind](rng, tree, model)
    if new is None:
        return None
    return Compiler(schemas).compile(replace(model.model, sql=new.sql(SPARK), raw_sql=new.sql(SPARK)))


def _with_column(schema: Schema, unread: set[str]) -> Schema:
    return (*schema, Column("sml_new_column", "string"))


def _with_wider_column(schema: Schema, unread: set[str]) -> Schema:
    """A column that the query does not read is wider."""
    return tuple(replace(c, type="bigint") if c.name in unread and c.type == "int" else c for c in schema)


def _last_select(query: exp.Query) -> exp.Select | None:
    return query if isinstance(query, exp.Select) and not query.is_star else None


def _removed(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    select = _last_select(query)
    if select is None or len(select.expressions) < 2:
        return None
    read = {
        column.name
        for clause in ("order", "having")
        if (node := select.args.get(clause))
        for column in node.find_all(exp.Column)
    }
    free = [item for item in select.expressions if item.alias_or_name not in read]
    if not free:
        return None
    rng.choice(free).pop()
    return select


def _renamed(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    select = _last_select(query)
    if select is None or select.args.get("order") or select.args.get("having"):
        return None
    item = rng.choice(select.expressions)
    item.replace(exp.alias_(item.unalias().copy(), f"{item.alias_or_name}_2"))
    return select


def _reordered(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    select = _last_select(query)
    if select is None or len(select.expressions) < 2:
        return None
    select.set("expressions", [*select.expressions[1:], select.expressions[0]])
    return select


def _retyped(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    """A column of the result becomes wider."""
    select, wider = _last_select(query), {"int": "bigint", "bigint": "decimal(20,0)", "date": "timestamp"}
    names = {column.name for column in model.facts.schema or () if column.type in wider}
    types = {column.name: column.type or "" for column in model.facts.schema or ()}
    items = [item for item in select.expressions if item.alias_or_name in names] if select is not None else []
    if not items:
        return None
    item = rng.choice(items)
    name = item.alias_or_name
    item.replace(exp.alias_(exp.cast(item.unalias().copy(), wider[types[name]], dialect=SPARK), name))
    return select


def _column_added(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    """A column over the same inputs; where rows are grouped, an aggregate."""
    select = _last_select(query)
    if select is None or select.args.get("distinct"):
        return None
    calls = [call for item in select.expressions for call in item.find_all(exp.AggFunc)]
    inside = [column.copy() for call in calls for column in call.find_all(exp.Column)]
    if select.args.get("group") or calls:
        made: list[exp.Expr] = [exp.Count(this=exp.Star()), *[exp.Max(this=each) for each in inside]]
        made += [exp.Count(this=each.copy()) for each in inside]
    else:
        where = select.args.get("where")
        places = [*select.expressions, *([where] if where is not None else [])]
        made = [
            c.copy() for place in places for c in place.find_all(exp.Column) if c.find_ancestor(exp.Select) is select
        ]
    if not made:
        return None
    select.append("expressions", exp.alias_(rng.choice(made), "added"))
    return select


def _narrowed(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    """One more condition on a column that some WHERE reads."""
    wheres = [w for w in query.find_all(exp.Where) if isinstance(w.parent, exp.Select)]
    if not wheres:
        return None
    where = rng.choice(wheres)
    columns = [c for c in where.find_all(exp.Column) if c.find_ancestor(exp.Select) is where.parent]
    if not columns:
        return None
    condition = exp.Not(this=exp.Is(this=rng.choice(columns).copy(), expression=exp.Null()))
    where.set("this", exp.And(this=exp.Paren(this=where.this), expression=condition))
    return query


def _constant(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    """Another constant in a comparison of WHERE."""
    compared = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.EQ, exp.In)
    numbers = [
        literal for where in query.find_all(exp.Where) for literal in where.find_all(exp.Literal)
        if isinstance(literal.parent, compared) and not literal.is_string and literal.name.isdigit()
    ]  # fmt: skip
    if not numbers:
        return None
    number = rng.choice(numbers)
    number.replace(
        exp.Literal.number(int(number.name) + rng.choice([-1, 1, 2])) if int(number.name) else exp.Literal.number(1)
    )
    return query


def _widened(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    """A condition of a filter is removed, not of a join."""
    parts = [
        part for where in query.find_all(exp.Where) if isinstance(where.parent, exp.Select)
        for part in where.this.flatten() if isinstance(where.this, exp.And)
        if len({c.name for c in part.find_all(exp.Column)}) == 1 and not part.find(exp.Query)
    ]  # fmt: skip
    if not parts:
        return None
    part = rng.choice(parts)
    where = part.find_ancestor(exp.Where)
    assert where is not None
    where.set("this", exp.and_(*[each.copy() for each in where.this.flatten() if each is not part]))
    return query


def _branch(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    """A UNION ALL gets one more branch, or loses the last one."""
    unions = [
        u for u in query.find_all(exp.Union) if not u.args.get("distinct") and not isinstance(u.parent, exp.Union)
    ]
    unions = [u for u in unions if not u.args.get("with_") and not u.args.get("order")]
    if not unions:
        return None
    union = rng.choice(unions)
    if rng.random() < 0.5 and isinstance(union.this, exp.Union):
        new: exp.Expr = union.this.copy()
    else:
        new = exp.union(union.copy(), union.expression.copy(), distinct=False)
    if union is query:
        return new
    union.replace(new)
    return query


def _left_join(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    """A left join on a key, from which a column is added."""
    select = _last_select(query)
    if select is None or select.args.get("group") or select.args.get("distinct") or list(select.find_all(exp.AggFunc)):
        return None
    if select.args.get("limit") or select.args.get("order") or select.args.get("with_"):
        return None
    ref = rng.choice(model.facts.inputs)
    own = [c for c in model.facts.schema or () if c.type in ("int", "bigint")]
    table = [c for c in ref.declared if c.type in ("int", "bigint")]
    if not own or not table:
        return None
    one, other = rng.choice(own), table[0]
    return sqlglot.parse_one(
        f"select q.*, j.{ref.declared[-1].name} as joined from ({select.sql(SPARK)}) q"
        f" left join {ref.table.schema}.{ref.table.identifier} j on q.{one.name} = j.{other.name}", dialect=SPARK,
    )  # fmt: skip


def _joins_turned(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    """The tables of inner joins, in another order; their conditions become those of WHERE."""
    selects = [select for select in query.find_all(exp.Select) if _has_inner_joins(select)]
    if not selects:
        return None
    select = rng.choice(selects)
    first, joins = select.args["from_"], select.args["joins"]
    conditions = [join.args["on"].copy() for join in joins if join.args.get("on")]
    tables = [first.this.copy(), *[join.this.copy() for join in joins]]
    turned = [*tables[1:], tables[0]] if rng.random() < 0.5 else tables[::-1]
    first.set("this", turned[0])
    select.set("joins", [exp.Join(this=table, kind="CROSS") for table in turned[1:]])
    return select.where(*conditions, copy=False) and query


def _has_inner_joins(select: exp.Select) -> bool:
    joins = select.args.get("joins") or []
    return bool(joins) and not select.is_star and all(
        not join.side and join.kind in ("", "INNER", "CROSS") and not join.args.get("using")
        and not join.args.get("method") and isinstance(join.this, exp.Table | exp.Subquery)
        for join in joins
    )  # fmt: skip


def _same(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    """The same query in other words: operands turned, a subquery around it, or other names of CTEs."""
    way = rng.choice(["turned", "around", "conditions"])
    if way == "around":
        return sqlglot.parse_one(f"select * from ({query.sql(SPARK)}) as around_it", dialect=SPARK)
    for where in query.find_all(exp.Where):
        if way == "turned":
            for node in list(where.find_all(exp.EQ)):
                node.replace(exp.EQ(this=node.expression.copy(), expression=node.this.copy()))
        elif isinstance(where.this, exp.And):
            where.set("this", exp.and_(*[part.copy() for part in where.this.flatten()][::-1]))
    return query


def _unread(rng: random.Random, query: exp.Query, model: CompiledModel) -> exp.Expr | None:
    """An edit above which no column is read, as that of a macro or of a view would be."""
    tables = [t for t in query.find_all(exp.Table) if t.db]
    if not tables:
        return None
    table = rng.choice(tables)
    own = exp.table_(table.this.copy(), db=table.args["db"].copy())
    inner = exp.select("*", "1 as unread").from_(own).subquery(table.alias or table.name)
    inner.set("joins", table.args.get("joins"))
    table.replace(inner)
    return query


KINDS: dict[str, Edit] = {
    "column removed": _removed, "column renamed": _renamed, "columns reordered": _reordered, "column wider": _retyped,
    "column added": _column_added, "filter narrowed": _narrowed, "constant": _constant, "filter widened": _widened,
    "branch": _branch, "left join": _left_join, "joins turned": _joins_turned, "same": _same, "unread column": _unread,
}  # fmt: skip
"""What an edit does, by its kind. `column added` is an aggregate where rows are grouped."""
_REMOVED = "left join removed"
"""The kind of the edit whose query before has a left join that the one after lacks."""
_SOURCE = {"source column": _with_column, "source type": _with_wider_column}
"""What happens to the columns of an input, by the kind of the edit."""
