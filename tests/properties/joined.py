"""Random queries over three small tables that are joined, grouped and nested, as text built of known columns.

Each query says which constructs it has, so that a test can count whether all of them were tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import strategies as st

from sqlmesh_like.compiler import CompiledModel, Compiler
from sqlmesh_like.engine.duck import DuckLake, Rows, Snapshot
from sqlmesh_like.names import Schema, TableName
from sqlmesh_like.project.spec import ModelConfig
from sqlmesh_like.render.rendered import InputRef, RenderedModel, SourceMap
from tests.properties.lake import compare, schema

Draw = Callable[..., object]

TABLES = ("a", "b", "c")
IDS = {table: f"source.shop.{table}" for table in TABLES}
SCHEMA = schema(k="int", v="int", s="string")
SCHEMAS: dict[str, Schema] = dict.fromkeys(IDS.values(), SCHEMA)
_KEYS = ("1", "2", "3", "4", "5")
_ROWS = st.tuples(
    st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, -1, 0, 1, 2]), st.sampled_from([None, "", "x", "y"])
)


@dataclass(frozen=True)
class Built:
    """A query without a name of its own, its columns by kind, and the constructs that it has."""

    sql: str
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    constructs: frozenset[str] = field(default=frozenset())

    @property
    def columns(self) -> tuple[str, ...]:
        return self.numbers + self.texts

    def having(self, *constructs: str) -> frozenset[str]:
        return self.constructs | set(constructs)


def compiled(sql: str, partition_by: Sequence[str] = ()) -> CompiledModel:
    refs = tuple(InputRef(IDS[t], TableName("ods", t), "source") for t in TABLES if f"ods.{t}" in sql)
    model = RenderedModel(
        "model.shop.m", "m", "models/m.sql", sql, sql, ModelConfig(partition_by=tuple(partition_by)),
        TableName("dws", "m"), refs, SourceMap(sql, sql),
    )  # fmt: skip
    return Compiler(SCHEMAS).compile(model)


def follow(plan: CompiledModel, path: Sequence[Snapshot]) -> int:
    """Maintain the table along the path, equal to a recompute after each batch; how many batches changed it."""
    with closing(DuckLake(SCHEMAS)) as lake:
        lake.build(plan, path[0])
        compare(lake, plan, path[:1])
        moved = 0
        for number, (before, after) in enumerate(pairwise(path), 2):
            rows = sorted(lake.rows(), key=repr)
            lake.apply(plan, before, after)
            compare(lake, plan, path[:number])
            moved += rows != sorted(lake.rows(), key=repr)
        return moved


@st.composite
def paths(draw: Draw) -> list[Snapshot]:
    """States of the three tables; a batch changes several at once, few rows each."""
    start = st.dictionaries(st.sampled_from(_KEYS), _ROWS, min_size=2, max_size=5)
    found: list[Snapshot] = [{IDS[table]: draw(start) for table in TABLES}]
    for _ in range(draw(st.integers(3, 5))):
        found.append({IDS[table]: _after(draw, found[-1][IDS[table]]) for table in TABLES})
    return found


def _after(draw: Draw, before: Rows) -> Rows:
    after = dict(before)
    for kind in draw(st.lists(st.sampled_from(["put", "put", "delete", "rekey", "rewrite"]), max_size=3)):
        key = draw(st.sampled_from(_KEYS))
        if kind == "put":
            after[key] = draw(_ROWS)
        elif key in after and kind == "rekey":
            after[draw(st.sampled_from(_KEYS))] = after.pop(key)
        elif key in after:
            row = after.pop(key)
            if kind == "rewrite":
                after[key] = (*row[:1], *row[1:])  # equal, but another object: written again unchanged
    return after


def one_of(draw: Draw, options: Sequence[str]) -> str:
    return str(draw(st.sampled_from(list(options))))


@st.composite
def queries(draw: Draw, depth: int = 2, wanted: str = "") -> Built:
    """A query of up to `depth` operators over each other; the top one has the wanted construct, if there is one."""
    if depth == 0:
        return Built(f"select * from ods.{one_of(draw, TABLES)}", ("k", "v"), ("s",))
    construct = wanted or one_of(draw, CONSTRUCTS)
    return _MAKERS[construct](draw, depth - 1, construct)


def _source(draw: Draw, depth: int, alias: str) -> tuple[str, Built]:
    """A FROM item with its alias."""
    inner = _nested(draw, int(str(draw(st.integers(0, depth)))))
    table = inner.sql.removeprefix("select * from ") if inner.sql.startswith("select * from ods.") else ""
    return (f"{table} as {alias}" if table in {f"ods.{t}" for t in TABLES} else f"({inner.sql}) as {alias}"), inner


def _nested(draw: Draw, depth: int, wanted: str = "") -> Built:
    inner = draw(queries(depth, wanted))
    assert isinstance(inner, Built)
    return inner


def _number(draw: Draw, alias: str, built: Built) -> str:
    return f"{alias}.{one_of(draw, built.numbers)}"


def _joined(draw: Draw, depth: int, wanted: str) -> Built:
    (left, one), (right, two) = _source(draw, depth, "l"), _source(draw, depth, "r")
    if wanted == "self-join":
        right, two = f"{left.removesuffix(' as l')} as r", one
    kind = wanted if wanted in _JOINS else one_of(draw, ["join", "left join", "full join"])
    equal = f"{_number(draw, 'l', one)} {one_of(draw, ['=', '=', '=', '<=>'])} {_number(draw, 'r', two)}"
    if one.texts and two.texts and draw(st.integers(0, 3)) == 0:
        equal += f" and l.{one.texts[0]} = r.{two.texts[0]}"
    residual = f" and {_number(draw, 'l', one)} {one_of(draw, ['<', '>', '<>'])} {_number(draw, 'r', two)}"
    equal += residual if draw(st.integers(0, 3)) == 0 else ""
    made = (
        one.constructs
        | two.constructs
        | {kind, "self-join" if left.split(" as ")[0] == right.split(" as ")[0] else kind}
    )
    shared = [name for name in one.numbers if name in two.numbers]
    if kind == "using":
        name = one_of(draw, shared) if shared else ""
        kind = one_of(draw, ["join", "left join"])
        if not name:
            return _shown(draw, f"{left} {kind} {right} on {equal}", one, two, made - {"using"}, wanted)
        p, q = [other for other in ("p", "q", "m") if other != name][:2]
        shown = f"{name}, l.{one.columns[0]} as {p}, r.{two.columns[0]} as {q}"
        sql = f"select {shown} from {left} {kind} {right} using ({name})"
        return Built(sql, (name, p, q), (), made)
    if kind in ("left semi join", "left anti join"):
        return Built(f"select l.* from {left} {kind} {right} on {equal}", one.numbers, one.texts, made)
    if kind in ("cross join", ","):
        where = f" where {equal}" if kind == "," or draw(st.booleans()) else ""
        joint = f"{left}{kind} {right}" if kind == "," else f"{left} {kind} {right}"
        return _shown(draw, f"{joint}{where}", one, two, made, wanted)
    further = ""
    if wanted == "three tables":
        table = one_of(draw, TABLES)
        further = f" {one_of(draw, ['join', 'left join'])} ods.{table} as z on z.k = {_number(draw, 'r', two)}"
        made |= {"three tables"}
    return _shown(draw, f"{left} {kind} {right} on {equal}{further}", one, two, made, wanted)


def _shown(draw: Draw, source: str, one: Built, two: Built, made: frozenset[str], wanted: str) -> Built:
    """A projection of a join, or an aggregate right over it."""
    if wanted == "aggregate over join":
        key, number = _number(draw, "l", one), _number(draw, "r", two)
        call = one_of(draw, [f"sum({number})", f"min({number})", f"max({number})", f"count({number})",
                             f"count(distinct {number})"])  # fmt: skip
        sql = f"select {key} as p, {call} as q, count(*) as n from {source} group by {key}"
        return Built(sql, ("p", "q", "n"), (), made | {wanted})
    items = [f"{_number(draw, 'l', one)} as p", f"{_number(draw, 'r', two)} as q"]
    texts = [
        f"{alias}.{built.texts[0]} as {name}"
        for alias, built, name in (("l", one, "t"), ("r", two, "u"))
        if built.texts
    ]
    names = tuple(text.split(" as ")[1] for text in texts)
    return Built(f"select {', '.join([*items, *texts])} from {source}", ("p", "q"), names, made)


def _membership(draw: Draw, depth: int, kind: str) -> Built:
    (outer, one), (inner, two) = _source(draw, depth, "o"), _source(draw, depth, "i")
    made = one.constructs | two.constructs
    number = one_of(draw, two.numbers)
    if kind == "in":
        part = f"{_number(draw, 'o', one)} in (select i.{number} from {inner})"
    elif kind.startswith("correlated"):
        return _correlated(draw, (outer, one), (inner, two), kind)
    elif kind == "scalar":
        part = f"{_number(draw, 'o', one)} {one_of(draw, ['<', '=', '>='])} (select max(i.{number}) from {inner})"
    else:
        residual = f" and i.{number} > {_number(draw, 'o', one)}" if draw(st.booleans()) else ""
        equal = f"{_number(draw, 'i', two)} {one_of(draw, ['=', '<=>'])} {_number(draw, 'o', one)}{residual}"
        part = f"{kind} (select 1 from {inner} where {equal})"
    extra = f" and {_number(draw, 'o', one)} >= 0" if draw(st.booleans()) else ""
    return Built(f"select * from {outer} where {part}{extra}", one.numbers, one.texts, made | {kind})


def _correlated(draw: Draw, outer: tuple[str, Built], inner: tuple[str, Built], kind: str) -> Built:
    """A scalar subquery of the rows that are equal in one column, in the SELECT list or in WHERE."""
    (source, one), (table, two) = outer, inner
    number = one_of(draw, two.numbers)
    call = one_of(draw, [f"max(i.{number})", f"coalesce(sum(i.{number}), 5)", "count(*)", f"count(i.{number}) + 1",
                         f"count(distinct i.{number})"])  # fmt: skip
    tie = f"{_number(draw, 'i', two)} {one_of(draw, ['=', '<=>'])} {_number(draw, 'o', one)}"
    guard = one_of(draw, ["", f" and {_number(draw, 'o', one)} >= 0", f" and i.{number} <> 1"])
    query = f"(select {call} from {table} where {tie}{guard})"
    made = one.constructs | two.constructs | {kind}
    if kind == "correlated in where":
        test = one_of(draw, [f"{_number(draw, 'o', one)} <= {query}", f"{query} = 0", f"{query} is null"])
        return Built(f"select * from {source} where {test}", one.numbers, one.texts, made)
    return Built(f"select {one.numbers[0]} as p, {query} as q from {source}", ("p", "q"), (), made)


def _grouped(draw: Draw, depth: int, wanted: str) -> Built:
    source, inner = _source(draw, depth, "g")
    if wanted == "aggregate over aggregate":
        inner = _nested(draw, depth + 1, "group by")
        source = f"({inner.sql}) as g"
    number, key = one_of(draw, inner.numbers), one_of(draw, inner.columns)
    calls = ["count(*)", f"sum({number})", f"min({number})", f"max({number})", f"count(distinct {number})",
             f"coalesce(sum({number}), 0) + count(*)"]  # fmt: skip
    call, made = one_of(draw, calls), inner.having("group by")
    made |= {wanted}
    if wanted == "scalar aggregate":
        having = " having count(*) > 1" if draw(st.integers(0, 3)) == 0 else ""
        return Built(
            f"select {call} as p, count(*) as q from {source}{having}", ("p", "q"), (), made | {"scalar aggregate"}
        )
    having = ""
    if wanted == "having":
        having = f" having {call} {one_of(draw, ['> 0', 'is null', '>= 2', '<> 1'])}"
    is_text = key in inner.texts
    if wanted == "grouping sets":
        return _by_sets(draw, source, inner, key, call)
    items = f"{key} as {'t' if is_text else 'p'}, {call} as q, count({number}) as n"
    sql = f"select {items} from {source} group by {key}{having}"
    return Built(sql, ("q", "n") if is_text else ("p", "q", "n"), ("t",) if is_text else (), made)


def _by_sets(draw: Draw, source: str, inner: Built, key: str, call: str) -> Built:
    other = one_of(draw, [name for name in inner.columns if name != key] or ["upper('x')"])
    form = one_of(draw, ["rollup({k}, {o})", "cube({o}, {k})", "{k}, rollup({o})", "grouping sets (({k}, {o}), {k})",
                         "grouping sets (({o}), ({k}), ({o}), ())", "rollup({k})"])  # fmt: skip
    having = one_of(draw, ["", f" having {call} > 0", f" having grouping({key}) = 0"])
    name = "t" if key in inner.texts else "p"
    shown = f"{key} as {name}, {call} as q, grouping({key}) as g, sum({inner.numbers[0]}) as n"
    sql = f"select {shown} from {source} group by {form.format(k=key, o=other)}{having}"
    numbers = ("q", "n") if name == "t" else ("p", "q", "n")
    return Built(sql, numbers, ("t",) if name == "t" else (), inner.having("grouping sets"))


def _windowed(draw: Draw, depth: int, kind: str) -> Built:
    source, inner = _source(draw, depth, "w")
    key, order, other = (one_of(draw, inner.columns) for _ in range(3))
    number = one_of(draw, inner.numbers)
    call = one_of(draw, ["row_number() over ({o})", "rank() over ({o})", "sum({n}) over ({p})", "count(*) over ({o})",
                         "max({n}) over ({p}, {x})", "lag({n}) over ({o})",
                         "case when row_number() over ({o}) = 1 then {n} end"])  # fmt: skip
    split = f"partition by {key}"
    filled = call.format(o=f"{split} order by {order}", p=split, n=number, x=other)
    shown = ", ".join(inner.columns)
    if kind == "window":
        more = f", dense_rank() over ({split} order by {number}) as rk" if draw(st.booleans()) else ""
        texts = "".join(f", {name}" for name in inner.texts)
        sql = f"select {number} as m{texts}, {filled} as win{more} from {source}"
        return Built(sql, ("m", "win"), inner.texts, inner.having(kind))
    place = f"row_number() over ({split} order by {order}{one_of(draw, ['', ' desc'])})"
    if kind == "qualify":
        sql = f"select {shown} from {source} qualify {place} <= {one_of(draw, '12')}"
        return Built(sql, inner.numbers, inner.texts, inner.having(kind))
    sql = f"select {shown} from (select {shown}, {place} as nr from {source}) as ranked where nr = 1"
    return Built(sql, inner.numbers, inner.texts, inner.having(kind))


def _set_operation(draw: Draw, depth: int, word: str) -> Built:
    parts, made = [], frozenset({word})
    for alias in ("x", "y"):
        source, inner = _source(draw, depth, alias)
        number = one_of(draw, inner.numbers)
        parts.append(f"select cast({number} as bigint) as p from {source}")
        made |= inner.constructs
    return Built(f"{parts[0]} {word} {parts[1]}", ("p",), (), made)


def _exploded(draw: Draw, depth: int, construct: str) -> Built:
    """The elements of an array of numbers, as LATERAL VIEW or in the SELECT list; often there is none."""
    source, inner = _source(draw, depth, "x")
    one, two = (_number(draw, "x", inner) for _ in range(2))
    array = one_of(draw, [f"array({one}, {two})", f"case when {one} > 0 then array({two}, {two} + 1) end"])
    if construct == "lateral view":
        outer = one_of(draw, ["", "outer "])
        shown = f"select {one} as m, xv.xp as p, xe as q from {source}"
        made = f"{shown} lateral view {outer}posexplode({array}) {one_of(draw, ['xv', 'XV'])} as xp, xe"
        return Built(made, ("m", "p", "q"), (), inner.having(construct))
    function = one_of(draw, ["explode", "explode_outer"])
    return Built(f"select {one} as m, {function}({array}) as q from {source}", ("m", "q"), (), inner.having(construct))


def _distinct(draw: Draw, depth: int, construct: str) -> Built:
    source, inner = _source(draw, depth, "d")
    names = draw(st.lists(st.sampled_from(inner.columns), min_size=1, max_size=2, unique=True))
    assert isinstance(names, list)
    numbers = tuple(name for name in inner.numbers if name in names)
    if not numbers:
        names, numbers = [*names, inner.numbers[0]], inner.numbers[:1]
    texts = tuple(name for name in inner.texts if name in names)
    return Built(f"select distinct {', '.join(names)} from {source}", numbers, texts, inner.having(construct))


def _filtered(draw: Draw, depth: int, construct: str) -> Built:
    source, inner = _source(draw, depth, "f")
    number = one_of(draw, inner.numbers)
    where = one_of(draw, [f"{number} > 0", f"{number} is null", f"{number} is not null", f"{number} in (0, 1)"])
    return Built(f"select * from {source} where {where}", inner.numbers, inner.texts, inner.having(construct))


def _twice(draw: Draw, depth: int, construct: str) -> Built:
    """A CTE that two sides of a join read."""
    inner = _nested(draw, max(depth, 1))
    one, two = (one_of(draw, inner.numbers) for _ in range(2))
    kind = one_of(draw, ["join", "left join", "full join"])
    outer = f"select l.{one} as p, r.{two} as q from part as l {kind} part as r on l.{one} = r.{two}"
    sql = f"with part as ({inner.sql}) {outer}"
    return Built(sql, ("p", "q"), (), inner.having(construct, kind))


_JOINS = (
    "join",
    "left join",
    "right join",
    "full join",
    "left semi join",
    "left anti join",
    "cross join",
    ",",
    "using",
)
_MAKERS: dict[str, Callable[[Draw, int, str], Built]] = {
    **dict.fromkeys((*_JOINS, "self-join", "three tables", "aggregate over join"), _joined),
    **dict.fromkeys(
        ("exists", "not exists", "in", "scalar", "correlated in where", "correlated in select"), _membership
    ),
    **dict.fromkeys(("group by", "having", "scalar aggregate", "aggregate over aggregate", "grouping sets"), _grouped),
    **dict.fromkeys(("window", "qualify", "top-n"), _windowed),
    **dict.fromkeys(("union", "union all", "intersect", "except"), _set_operation),
    **dict.fromkeys(("lateral view", "explode"), _exploded),
    "distinct": _distinct,
    "filter": _filtered,
    "CTE used twice": _twice,
}
CONSTRUCTS = tuple(_MAKERS)
