"""Random queries that go on: joins and set operations in a row, subqueries in subqueries, a CTE in several places.

Also ranks of which others than the first are kept, the last row before a value, and sets of keys that are conditions.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.properties.expressions import Col, expression, of
from tests.properties.joins import KINDS, compared, equal
from tests.properties.query import Builder, Built, Maker, Source, made


def _met(b: Builder, seen: Sequence[Col], other: Source) -> str:
    """A condition of a further join: equalities with what is joined so far, conditions of one side, OR, ranges."""
    ints = of(seen, "int")
    mine, second = (b.one_of(ints).name for _ in range(2))
    theirs, fourth = (b.one_of(of(other.columns, "int")).name for _ in range(2))
    condition = b.one_of([
        equal(b, seen, other.columns), equal(b, seen, other.columns), f"coalesce({mine}, {second}) = {theirs}",
        f"{mine} <=> {theirs} and {second} <=> {fourth}", f"{mine} = {theirs} or {second} = {fourth}",
        f"{theirs} between {mine} and {second}", f"case when {mine} > 0 then {mine} else {second} end = {theirs}",
    ])  # fmt: skip
    if b.sometimes(4):
        side = b.one_of([seen, other.columns])
        condition = f"({condition}) and {expression(b.draw, side, 'boolean', 1)}"
    return condition


def joined_in_a_row(b: Builder, size: int, construct: str) -> Built:
    """Tables joined one after the other, now and then two of them in parentheses."""
    first = b.source(size, "j0")
    seen, rest, sources = list(first.columns), first.sql, [first]
    for number in range(1, b.one_of([3, 3, 4])):
        kind = b.one_of([*KINDS, "left join", "full join"])
        other = b.source(0, f"j{number}")
        shown, text = list(other.columns), other.sql
        if b.sometimes(4):
            inner = b.source(0, f"k{number}")
            kind_within = b.one_of(["join", "left join", "full join"])
            text = f"({other.sql} {kind_within} {inner.sql} on {_met(b, other.columns, inner)})"
            shown += inner.columns
            sources.append(inner)
        sources.append(other)
        rest += f" {kind} {text} on {_met(b, seen, other)}"
        seen += shown if "semi" not in kind and "anti" not in kind else []
    where = b.where(seen, 4)
    if b.sometimes(4):
        key = b.one_of(of(seen))
        items = [key, Col("count(*)", "int"), Col(f"count({b.one_of(of(seen)).name})", "int")]
        listed, named = b.named(items)
        return Built(f"select {listed} from {rest}{where} group by {key.name}", named, made(*sources))
    listed, named = b.named(b.some(seen, 2))
    distinct = "distinct " if b.sometimes(5) and len(of(named)) == len(named) else ""
    return Built(f"select {distinct}{listed} from {rest}{where}", named, made(*sources))


_OPERATIONS = ("union all", "union", "intersect", "except", "intersect all", "except all")


def combined_in_a_row(b: Builder, size: int, construct: str) -> Built:
    """Three or four queries, some of them in parentheses: INTERSECT goes before the others."""
    sources = [b.source(size if number == 0 else 0, f"s{number}") for number in range(b.one_of([3, 3, 4]))]
    is_two = all(of(source.columns, "string") for source in sources) and b.sometimes(2)
    texts = []
    for source in sources:
        items = [b.one_of(of(source.columns, type_)).name for type_ in (["int", "string"] if is_two else ["int"])]
        listed = ", ".join(f"{item} as c{number}" for number, item in enumerate(items))
        texts.append(f"select {listed} from {source.sql}{b.where(source.columns, 5)}")
    sql = texts[0]
    for number, text in enumerate(texts[1:]):
        operation = b.one_of(_OPERATIONS)
        if number == 0 and b.sometimes(3):
            sql, text = text, f"({sql} {operation} {text})"
        sql = f"{sql} {operation if not text.startswith('(') else b.one_of(_OPERATIONS)} {text}"
    columns = (Col("c0", "int"), Col("c1", "string")) if is_two else (Col("c0", "int"),)
    return Built(sql, columns, made(*sources))


def asked_within(b: Builder, size: int, construct: str) -> Built:
    """A subquery whose rows are chosen by another one, or that is a set operation, or of several columns."""
    outer, inner = b.two(size, "around", "inner1")
    third = b.source(0, "inner2")
    mine, second = (b.one_of(of(outer.columns, "int")).name for _ in range(2))
    theirs, fourth = (b.one_of(of(inner.columns, "int")).name for _ in range(2))
    last = b.one_of(of(third.columns, "int")).name
    word = b.one_of(["exists", "not exists"])
    member = b.one_of(["in", "not in"])
    within = b.one_of([
        f"{word} (select 1 from {third.sql} where {equal(b, third.columns, inner.columns)})",
        f"{theirs} {member} (select {last} from {third.sql})",
        f"{theirs} {b.one_of(['<', '=', '>='])} (select max({last}) from {third.sql})",
    ])  # fmt: skip
    operation = b.one_of(_OPERATIONS)
    condition = b.one_of([
        f"{b.one_of(['exists', 'not exists'])} (select 1 from {inner.sql} where "
        f"{equal(b, inner.columns, outer.columns)} and {within})",
        f"{mine} {b.one_of(['in', 'not in'])} (select {fourth} from {inner.sql} where {within})",
        f"{mine} {member} (select {theirs} from {inner.sql} {operation} select {last} from {third.sql})",
        f"({mine}, {second}) {member} (select {theirs}, {fourth} from {inner.sql})",
        f"{mine} {member} (select {theirs} from {inner.sql} group by {theirs} having count(*) > 1)",
        f"{mine} {member} (select {theirs} from {inner.sql} where {compared(b, inner, outer)})",
    ])  # fmt: skip
    extra = b.where(outer.columns, 4, b.one_of([" and", " or"]))
    return Built(f"select * from {outer.sql} where {condition}{extra}", outer.query.columns, made(outer, inner, third))


def read_in_places(b: Builder, size: int, construct: str) -> Built:
    """A CTE in FROM, as groups that are joined with it, and in a subquery."""
    inner = b.query(size)
    one, two = (b.one_of(of(inner.columns, "int")).name for _ in range(2))
    left = Source("part as l", "l", inner)
    groups = f"(select {two} as k, count(*) as n, max({one}) as m from part group by {two}) as g"
    kind = b.one_of(["join", "left join", "full join", "left anti join"])
    mine = b.one_of(of(left.columns, "int")).name
    where = b.one_of([
        "", f" where {mine} {b.one_of(['<', '>='])} (select {b.one_of(['max', 'min', 'count'])}({one}) from part)",
        f" where {mine} {b.one_of(['in', 'not in'])} (select {two} from part)",
        f" where {b.one_of(['exists', 'not exists'])} (select 1 from part as p where p.{two} > {mine})",
    ])  # fmt: skip
    counted = [] if "anti" in kind else [Col("g.n", "int"), Col("g.m", "int")]
    listed, named = b.named([*b.some(left.columns, 1, 3), *counted])
    rest = f"{left.sql} {kind} {groups} on {mine} {b.one_of(['=', '<=>'])} g.k{where}"
    return Built(f"with part as ({inner.sql}) select {listed} from {rest}", named, made(inner) | {kind})


_PLACES = ("= 2", "between 2 and 3", "> 1", "in (1, 3)", "<= 2 and {x} > 0", "= 1 or {x} is null", "< {x}")


def placed(b: Builder, size: int, construct: str) -> Built:
    """Rows of each group by their place, not only the first ones."""
    source = b.source(size, "w")
    key, other = (b.one_of(of(source.columns)).name for _ in range(2))
    order = f"order by {other}{b.one_of(['', ' desc', ' desc nulls first', ' asc nulls last'])}"
    word = b.one_of(["row_number", "rank", "dense_rank"])
    place = f"{word}() over (partition by {key} {order})"
    listed, named = b.named(b.some(source.columns, 1, 3))
    condition = b.one_of(_PLACES).format(x=b.one_of(of(named, "int")).name)
    shown = ", ".join([*(column.name for column in named), "place1"])
    inner = f"select {listed}, {place} as place1 from {source.sql}{b.where(source.columns, 5)}"
    return Built(
        f"select {shown} from ({inner}) as q where place1 {condition}", (*named, Col("place1", "int")), made(source)
    )


def last_before(b: Builder, size: int, construct: str) -> Built:
    """For each row the last one of another table before it, by a join with a range that is grouped or ranked."""
    left, right = b.two(size, "l", "r")
    mine, theirs = (b.one_of(of(side.columns, "int")).name for side in (left, right))
    value = b.one_of(of(right.columns, "int")).name
    on = f"{equal(b, left.columns, right.columns)} and {theirs} <= {mine}"
    kind = b.one_of(["join", "left join"])
    kept = b.some(left.columns, 1, 2)
    if b.sometimes(2):
        listed, named = b.named([*kept, Col(f"max_by({value}, {theirs})", "int"), Col("count(*)", "int")])
        keys = ", ".join(column.name for column in kept)
        sql = f"select {listed} from {left.sql} {kind} {right.sql} on {on} group by {keys}"
        return Built(sql, named, made(left, right) | {kind})
    listed, named = b.named([*kept, Col(value, "int")])
    keys = ", ".join(dict.fromkeys(column.name for column in [*kept, *of(left.columns, "int")]))
    place = f"row_number() over (partition by {keys} order by {theirs} desc, {value})"
    inner = f"select {listed}, {place} as place1 from {left.sql} {kind} {right.sql} on {on}"
    shown = ", ".join(column.name for column in named)
    return Built(f"select {shown} from ({inner}) as q where place1 = 1", named, made(left, right) | {kind})


_SETS = ("cube({k}, {c}, {o})", "rollup(({k}, {c}), {o})", "{o}, rollup({k}, {c})", "rollup({k}), cube({c})",
         "grouping sets (({k}, {c}), ({o}), ({c}, {o}), ())", "grouping sets (rollup({k}, {c}), {o})")  # fmt: skip


def by_sets_of_conditions(b: Builder, size: int, construct: str) -> Built:
    """Sets of keys among which are conditions, with aggregates that are merged and others, of the keys too."""
    source = b.source(size, "g")
    keys = of(source.columns)
    key = b.one_of(keys)
    others = [column for column in keys if column != key]
    if len(others) < 2:
        others = [Col(f"({key.name} is null)", "boolean")] * 2
    read, other = others[0], others[1]
    conditions = [f"{read.name} is null", f"{read.name} = {read.name}", f"not {read.name} is null"]
    condition = Col(b.one_of(conditions), "boolean")
    sets = b.one_of(_SETS).format(k=key.name, c=condition.name, o=other.name)
    counted = b.one_of(keys).name
    call = Col(b.one_of([f"count(distinct {counted})", f"count({key.name})", f"count({counted})"]), "int")
    listed, named = b.named([key, condition, call, Col("count(*)", "int")])
    sql = f"select {listed} from {source.sql}{b.where(source.columns, 4)} group by {sets}"
    return Built(sql, tuple(Col(column.name, column.type) for column in named), made(source))


MAKERS: dict[str, Maker] = {
    "joins in a row": joined_in_a_row,
    "set operations in a row": combined_in_a_row,
    "subquery in a subquery": asked_within,
    "CTE in several places": read_in_places,
    "place of a window": placed,
    "last row before": last_before,
    "sets of conditions": by_sets_of_conditions,
}
