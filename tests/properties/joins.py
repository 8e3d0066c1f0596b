"""Random joins of all kinds, and subqueries in WHERE that are joins in disguise."""

from __future__ import annotations

from collections.abc import Sequence

from tests.properties.expressions import Col, expression, filled, of, quoted
from tests.properties.groups import CALLS
from tests.properties.query import Builder, Built, Maker, Source, made

KINDS = ("join", "left join", "right join", "full join", "left semi join", "left anti join")
_KEYS = ("int", "int", "int", "string", "date", "boolean")


def equal(b: Builder, left: Sequence[Col], right: Sequence[Col]) -> str:
    """An equality of one type, of columns or of an expression; NULL-safe now and then."""
    shared = [type_ for type_ in _KEYS if of(left, type_) and of(right, type_)]
    type_ = b.one_of(shared)
    mine, theirs = b.one_of(of(left, type_)).name, b.one_of(of(right, type_)).name
    if type_ == "int" and b.sometimes(5):
        mine = f"({mine} + 1)"
    return f"{mine} {b.one_of(['=', '=', '=', '<=>'])} {theirs}"


def _condition(b: Builder, left: Source, right: Source) -> str:
    """One or two equalities, and what else must hold."""
    condition = equal(b, left.columns, right.columns)
    if b.sometimes(4):
        condition += f" and {equal(b, left.columns, right.columns)}"
    if b.sometimes(4):
        condition += f" and {compared(b, left, right)}"
    return condition


def compared(b: Builder, left: Source, right: Source) -> str:
    mine, theirs = (b.one_of(of(side.columns, "int")).name for side in (left, right))
    return f"{mine} {b.one_of(['<', '>', '<>'])} {theirs}"


def _select(b: Builder, columns: Sequence[Col], rest: str) -> Built:
    text, named = b.named(b.some(columns, 2))
    return Built(f"select {text} from {rest}", named)


def joined(b: Builder, size: int, kind: str) -> Built:
    left, right = b.two(size, *b.one_of([("l", "r"), ("a", "x"), ("o", "old")]))
    condition = (compared if b.sometimes(6) else _condition)(b, left, right)
    if kind in ("left semi join", "left anti join"):
        sql = f"select {quoted(left.alias)}.* from {left.sql} {kind} {right.sql} on {condition}"
        return Built(sql, left.query.columns, made(left, right))
    where = b.where([*left.columns, *right.columns], 5)
    if kind == "join" and b.sometimes(5):
        asked = b.source(0, "asked")
        one, two = (b.one_of(of(each, "int")).name for each in (left.columns, asked.columns))
        condition += f" and {one} {b.one_of(['in', 'not in'])} (select {two} from {asked.sql})"
    built = _select(b, [*left.columns, *right.columns], f"{left.sql} {kind} {right.sql} on {condition}{where}")
    return Built(built.sql, built.columns, made(left, right))


def self_joined(b: Builder, size: int, construct: str) -> Built:
    left = b.source(size, "l")
    right = left.under("r")
    kind = b.one_of(["join", "join", "left join", "full join"])
    rest = f"{left.sql} {kind} {right.sql} on {_condition(b, left, right)}"
    built = _select(b, [*left.columns, *right.columns], rest)
    return Built(built.sql, built.columns, made(left) | {kind})


def cross_join(b: Builder, size: int, construct: str) -> Built:
    left, right = b.two(size, "l", "r")
    both = [*left.columns, *right.columns]
    if construct == "comma join":
        rest = f"{left.sql}, {right.sql} where {_condition(b, left, right)}"
    else:
        rest = f"{left.sql} cross join {right.sql}{b.where(both)}"
    built = _select(b, both, rest)
    return Built(built.sql, built.columns, made(left, right))


def using(b: Builder, size: int, construct: str) -> Built:
    """Both sides under one name for a column, which the join merges."""
    left, right = b.two(size, "l", "r")
    sides = []
    for source, other in ((left, "m"), (right, "n")):
        key, value = (b.one_of(of(source.columns, "int")).name for _ in range(2))
        sides.append(f"(select {key} as k, {value} as {other} from {source.sql}) as s{other}")
    kind = b.one_of(["join", "left join", "right join", "full join"])
    rest = b.one_of([f"{kind} {sides[1]} using (k)", f"natural {kind} {sides[1]}"])
    sql = f"select {b.one_of(['k, m, n', '*'])} from {sides[0]} {rest}"
    return Built(sql, tuple(Col(name, "int") for name in "kmn"), made(left, right) | {kind})


def three_tables(b: Builder, size: int, construct: str) -> Built:
    left, right = b.two(size, "l", "r")
    third = b.source(0, "z")
    kinds = [b.one_of(["join", "join", "left join"]) for _ in range(2)]
    both = [*left.columns, *right.columns]
    rest = f"{left.sql} {kinds[0]} {right.sql} on {_condition(b, left, right)}"
    rest += f" {kinds[1]} {third.sql} on {equal(b, both, third.columns)}"
    built = _select(b, [*both, *third.columns], rest)
    return Built(built.sql, built.columns, made(left, right, third) | set(kinds))


def grouped_join(b: Builder, size: int, construct: str) -> Built:
    """An aggregate right over a join."""
    left, right = b.two(size, "l", "r")
    kind = b.one_of(["join", "join", "left join", "full join"])
    both = [*left.columns, *right.columns]
    key = b.one_of(of(both, "int", "string"))
    template, type_ = b.one_of(CALLS)
    items = [key, Col(filled(b.draw, template, both), type_), Col("count(*)", "int")]
    text, named = b.named(items)
    rest = f"{left.sql} {kind} {right.sql} on {_condition(b, left, right)}"
    return Built(f"select {text} from {rest} group by {key.name}", named, made(left, right) | {kind})


def membership(b: Builder, size: int, kind: str) -> Built:
    outer, inner = b.two(size, "around", "inner1")
    match kind:
        case "in" | "not in":
            column = b.one_of(of(inner.columns, "int"))
            known = f" where {column.name} > {b.one_of(['-1', '0'])}" if kind == "not in" and b.sometimes(2) else ""
            if b.sometimes():
                known = f" where {_condition(b, inner, outer)}"
            item = column.name
            if known and b.sometimes(4):
                known = f" where {equal(b, inner.columns, outer.columns)} group by {b.one_of(inner.columns).name}"
                item = f"{b.one_of(['min', 'max'])}({item})"
            part = f"{b.one_of(of(outer.columns, 'int')).name} {kind} (select {item} from {inner.sql}{known})"
        case "scalar subquery":
            column = b.one_of(of(inner.columns, "int"))
            one = f"(select {b.one_of(['max', 'min', 'sum'])}({column.name}) from {inner.sql})"
            if b.sometimes():  # one row at most, which nothing proves
                one = f"(select distinct m from (select max({column.name}) as m from {inner.sql}) as o where m <> 1)"
            part = f"{b.one_of(of(outer.columns, 'int')).name} {b.one_of(['<', '=', '>='])} {one}"
        case _:
            alone = b.where(inner.columns, 2) + b.one_of(["", " order by 1 limit 2"])
            asked = alone if b.sometimes(4) else f" where {_condition(b, inner, outer)}"
            grouped = f" group by {b.one_of(inner.columns).name}" if b.sometimes(5) and "limit" not in asked else ""
            part = f"{kind} (select 1 from {inner.sql}{asked}{grouped})"
    extra = b.where(outer.columns, 3, " and")
    sql = f"select * from {outer.sql} where {part}{extra}"
    return Built(sql, outer.query.columns, made(outer, inner))


def tested(b: Builder, size: int, construct: str) -> Built:
    """EXISTS and IN as values: below OR and NOT, in CASE, in the SELECT list."""
    outer, inner = b.two(size, "around", "inner1")
    mine, theirs = (b.one_of(of(source.columns, "int")).name for source in (outer, inner))
    where = equal(b, inner.columns, outer.columns) + b.where(inner.columns, 2, " and")
    test = b.one_of([
        f"{mine} in (select {theirs} from {inner.sql})", f"{mine} not in (select {theirs} from {inner.sql})",
        f"exists (select 1 from {inner.sql} where {compared(b, inner, outer)})",
        f"exists (select 1 from {inner.sql} where {where})", f"exists (select 1 from {inner.sql})",
        f"{mine} in (select {theirs} from {inner.sql} where {where})",
    ])  # fmt: skip
    form = b.one_of(["{other} or {test}", "not ({other} and {test})", "case when {test} then {other} else {other} end"])
    condition = form.format(other=expression(b.draw, outer.columns, "boolean", 1), test=test)
    shown = b.one_of([f"case when {condition} then true when {test} then false end", test, f"not ({condition})"])
    if b.sometimes(3):
        counted = b.one_of([f"max({test})", f"bool_and({condition})", f"sum(cast({test} as int))"])
        key, seen = b.one_of(of(outer.columns)), Col(counted, "int" if "sum" in counted else "boolean")
        listed, named = b.named([key, seen, Col("count(*)", "int")])
        return Built(f"select {listed} from {outer.sql} group by {key.name}", named, made(outer, inner))
    if b.sometimes():
        listed, named = b.named([*b.some(outer.columns, 1, 2), Col(shown, "boolean")])
        return Built(f"select {listed} from {outer.sql}", named, made(outer, inner))
    return Built(f"select * from {outer.sql} where {condition}", outer.query.columns, made(outer, inner))


def correlated(b: Builder, size: int, construct: str) -> Built:
    """A scalar subquery over the rows that are equal in one column, or less, in the SELECT list or in WHERE."""
    outer, inner = b.two(size, "around", "inner1")
    column = b.one_of(of(inner.columns, "int")).name
    call = b.one_of([f"max({column})", f"coalesce(sum({column}), 5)", "count(*)", f"count({column}) + 1",
                     f"count(distinct {column})"])  # fmt: skip
    mine = b.one_of(of(outer.columns, "int")).name
    guard = b.one_of(["", f" and {mine} >= 0", f" and {column} <> 1"])
    where = f"{equal(b, inner.columns, outer.columns)}{guard}"
    if construct == "correlated by less":
        where = f"{compared(b, inner, outer)}{guard}{b.one_of(['', f' and {where}'])}"
    if b.sometimes(3):  # what both branches of an OR ask for
        where = " or ".join(f"({where}{b.where(inner.columns, 1, ' and')})" for _ in range(2))
    one = f"(select {call} from {inner.sql} where {where})"
    if construct == "correlated in where" or (construct == "correlated by less" and b.sometimes()):
        test = b.one_of([f"{mine} <= {one}", f"{one} = 0", f"{one} is null"])
        return Built(f"select * from {outer.sql} where {test}", outer.query.columns, made(outer, inner))
    listed, named = b.named([*b.some(outer.columns, 1, 3), Col(one, "int")])
    return Built(f"select {listed} from {outer.sql}", named, made(outer, inner))


def lateral(b: Builder, size: int, construct: str) -> Built:
    """A query to the right that reads the left: its rows, the first of them, aggregates of them, or a value."""
    outer, inner = b.two(size, "around", "inner1")
    mine, theirs = (b.one_of(of(source.columns, "int")).name for source in (outer, inner))
    where = b.one_of([_condition, compared])(b, inner, outer) + b.where(inner.columns, 4, " and")
    last = b.one_of(inner.columns).name
    first = f" order by {last} {b.one_of(['', 'desc '])}limit {b.one_of([1, 2])}"
    form = b.one_of(["rows", "rows", "first", "first", "one", "value", "window", "window"])
    if form == "window":
        where = f"{theirs} = {mine}" + b.where(inner.columns, 4, " and")
    item = {
        "one": b.one_of([f"max({theirs})", "count(*)", f"coalesce(sum({theirs}), 0) + 1"]),
        "value": f"{mine} + 1",
        "window": b.one_of(
            [
                f"rank() over (order by {last})",
                f"sum({theirs}) over (partition by {last})",
                f"count(*) over (partition by {theirs} order by {last} desc)",
                "count(*) over ()",
            ]
        ),
    }
    text = f"select {item.get(form, theirs)} as seen"
    if form != "value":
        text += f" from {inner.sql}{first if form == 'first' else f' where {where}'}"
    join = b.one_of([", lateral", " join lateral", " left join lateral"])
    on = " on true" if "left" in join else ""
    listed, named = b.named([*b.some(outer.columns, 1, 3), Col("beside.seen", "int")])
    return Built(f"select {listed} from {outer.sql}{join} ({text}) as beside{on}", named, made(outer, inner))


def with_constants(b: Builder, size: int, construct: str) -> Built:
    """A join with rows that stand in the query."""
    source = b.source(size, "l")
    rows = b.one_of([
        "(values (0), (1), (null)) as k(n)", "(select 1 as n) as k", "range(-1, 3) as k(n)",
        "(select explode(sequence(0, 2)) as n) as k", "(select 0 as n union all select 2) as k",
    ])  # fmt: skip
    kind = b.one_of(["join", "left join", "right join", "full join"])
    sides = [source.sql, rows] if b.sometimes(2) else [rows, source.sql]
    on = f"k.n {b.one_of(['=', '=', '<=>', '<'])} {b.one_of(of(source.columns, 'int')).name}"
    built = _select(b, [*source.columns, Col("k.n", "int")], f"{sides[0]} {kind} {sides[1]} on {on}")
    return Built(built.sql, built.columns, made(source) | {kind})


MAKERS: dict[str, Maker] = {
    "lateral": lateral,
    "constant rows": with_constants,
    **dict.fromkeys(KINDS, joined),
    **dict.fromkeys(("cross join", "comma join"), cross_join),
    "self-join": self_joined,
    "using": using,
    "three tables": three_tables,
    "aggregate over join": grouped_join,
    **dict.fromkeys(("exists", "not exists", "in", "not in", "scalar subquery"), membership),
    "tested": tested,
    **dict.fromkeys(("correlated in where", "correlated in select", "correlated by less"), correlated),
}
