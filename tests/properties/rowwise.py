"""Random projections, filters, CTEs, derived tables and set operations."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.properties.expressions import OTHER, TYPES, Col, expression, filled, of
from tests.properties.query import Builder, Built, Maker, Source, made


def projected(b: Builder, size: int, construct: str) -> Built:
    source = b.source(size, "p")
    types = ["int", *b.draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))]
    listed, named = b.named([*b.computed(source.columns, types), *b.some(source.columns, 1, 2)[:1]])
    if b.sometimes():  # an alias to the left, which is no column of FROM
        value = b.computed(source.columns, ["int"])[0].name
        listed += f", {value} as lateral1, lateral1 - 1 as lateral2"
        named = (*named, Col("lateral1", "int"), Col("lateral2", "int"))
    return Built(f"select {listed} from {source.sql}{b.where(source.columns)}", named, made(source))


def filtered(b: Builder, size: int, construct: str) -> Built:
    source = b.source(size, b.one_of(["f", "x", "a"]))
    condition = expression(b.draw, source.columns, "boolean")
    if b.sometimes(2):
        condition = f"{b.one_of(of(source.columns)).name} {b.one_of(['is null', 'is not null'])}"
    return Built(f"select * from {source.sql} where {condition}", source.query.columns, made(source))


_CLOCK = ("{date} <= current_date", "{date} > date_sub(current_date, 1)", "({date} = current_date or {int} > 0)",
          "not ({date} < current_date()) and {boolean}", "{date} between date_sub(current_date, 2) and current_date",
          "coalesce({date}, current_date) <= current_date")  # fmt: skip


def by_clock(b: Builder, size: int, construct: str) -> Built:
    """A filter that rows cross as time goes by."""
    source = b.source(size, "f")
    condition = filled(b.draw, b.one_of(_CLOCK), source.columns)
    return Built(f"select * from {source.sql} where {condition}", source.query.columns, made(source))


def derived(b: Builder, size: int, construct: str) -> Built:
    inner = b.query(size)
    columns = [Col(c.name, c.type, c.copied) for c in inner.columns]
    alias = "q"
    if b.sometimes():
        columns = [Col(f"c{number}", c.type, c.copied) for number, c in enumerate(columns)]
        alias = f"q({', '.join(c.name for c in columns)})"
    listed, named = b.named(b.some(columns))
    return Built(f"select {listed} from ({inner.sql}) as {alias}{b.where(columns)}", named, made(inner))


def common(b: Builder, size: int, construct: str) -> Built:
    """A CTE that is read once."""
    inner = b.query(size)
    listed, named = b.named(b.some(inner.columns))
    return Built(f"with part as ({inner.sql}) select {listed} from part{b.where(inner.columns)}", named, made(inner))


def twice(b: Builder, size: int, construct: str) -> Built:
    """A CTE that is read twice."""
    inner = b.query(size)
    left, right = (Source(f"part as {alias}", alias, inner) for alias in "lr")
    if b.sometimes():
        text = ", ".join(column.name for column in inner.columns)
        outer, columns = f"select {text} from part union all select * from part", inner.columns
        if any(column.type == "other" for column in columns):
            only = of(columns, "int")[0]
            outer = f"select cast({only.name} as bigint) as p from part union all select 1 from part where false"
            outer, columns = outer.replace("select 1 ", "select cast(1 as bigint) "), (Col("p", "int"),)
        return Built(f"with part as ({inner.sql}) {outer}", columns, made(inner))
    one, two = (b.one_of(of(source.columns, "int")).name for source in (left, right))
    kind = b.one_of(["join", "left join", "full join"])
    listed, named = b.named(b.some([*left.columns, *right.columns]))
    outer = f"select {listed} from {left.sql} {kind} {right.sql} on {one} = {two}"
    return Built(f"with part as ({inner.sql}) {outer}", named, made(inner) | {kind})


def combined(b: Builder, size: int, word: str) -> Built:
    """A set operation of two queries with columns of the same types, or of types that have a common one."""
    left, right = b.two(size, "x", "y")
    possible = [(one, other) for one, other in _TYPES_OF_SETS if _has(left, one) and _has(right, other)]
    types = [("int", "int"), *b.draw(st.lists(st.sampled_from(possible), max_size=2))]
    pairs = [(_one(b, left, one), _one(b, right, other)) for one, other in types]
    texts = []
    named = [b.named(items) for items in zip(*pairs, strict=True)]
    for source, (listed, _) in zip((left, right), named, strict=True):
        texts.append(f"select {listed} from {source.sql}{b.where(source.columns, 4)}")
    columns = tuple(
        replace(column, type=_TYPES_OF_SETS[pair], copied=column.copied and pair[0] == pair[1])
        for column, pair in zip(named[0][1], types, strict=True)
    )
    return Built(f"{texts[0]} {word} {texts[1]}", columns, made(left, right))


_TYPES_OF_SETS = {
    ("int", "int"): "int", ("string", "string"): "string", ("date", "date"): "date", ("boolean", "boolean"): "boolean",
    ("int", "string"): "string", ("string", "date"): "string", ("decimal(10,2)", "int"): OTHER,
    ("string", ""): "string", ("", "date"): "date", ("", "int"): "int",
}  # fmt: skip
"""Types of two sides, and what they become; nothing stands for NULL."""


def _has(source: Source, type_: str) -> bool:
    return not type_ or bool(of(source.columns, type_))


def _one(b: Builder, source: Source, type_: str) -> Col:
    return b.one_of(of(source.columns, type_)) if type_ else Col("null", type_)


def exploded(b: Builder, size: int, construct: str) -> Built:
    """The elements of an array of integers, by a LATERAL VIEW or in the SELECT list; often there is none."""
    source = b.source(size, "x")
    one, two = (b.one_of(of(source.columns, "int")).name for _ in range(2))
    array = b.one_of([f"array({one}, {two})", f"case when {one} > 0 then array({two}, {two} + 1) end"])
    if construct == "explode":
        element = Col(f"{b.one_of(['explode', 'explode_outer'])}({array})", "int")
        listed, named = b.named([*b.some(source.columns, 1, 3), element])
        return Built(f"select {listed} from {source.sql}{b.where(source.columns)}", named, made(source))
    listed, named = b.named([*b.some(source.columns, 1, 2), Col("view1.place", "int"), Col("element", "int")])
    view = (
        f"lateral view {b.one_of(['', 'outer '])}posexplode({array}) {b.one_of(['view1', 'VIEW1'])} as place, element"
    )
    return Built(f"select {listed} from {source.sql} {view}{b.where(source.columns)}", named, made(source))


_OF_PARTS = (
    ("struct1.p", "int"), ("struct1.q", "string"), ("struct1.r.s", "int"), ("list1[0]", "int"), ("size(list1)", "int"),
    ("element_at(texts1, 1)", "string"), ("size(filter(list1, v -> v > 0))", "int"),
    ("transform(list1, v -> v + 1)[1]", "int"), ("coalesce(struct1.q, texts1[0])", "string"),
    ("sort_array(list1)[1]", "int"), ("array_sort(list1)[0]", "int"), ("struct1 is null", "boolean"),
)  # fmt: skip
_OF_GROUPS = (
    ("max_by(struct1, {int})", "struct1", (("struct1.p", "int"), ("struct1.q", "string"))),
    ("collect_list({int})", "list1", (("list1[0]", "int"), ("size(list1)", "int"))),
    ("collect_set({string})", "texts1", (("texts1[0]", "string"), ("size(texts1)", "int"))),
    ("max_by(list1, {int})", "list1", (("list1[0]", "int"), ("size(list1)", "int"))),
    ("first(texts1)", "texts1", (("texts1[0]", "string"),)),
)


def with_parts(b: Builder, size: int, construct: str) -> Built:
    """Parts of structs and arrays that a query below makes of rows, or chooses or collects in groups."""
    source = b.source(size, "s")
    one, two = (b.one_of(of(source.columns, "int")).name for _ in range(2))
    text = expression(b.draw, source.columns, "string", 1)
    listed, named = b.named(b.some(source.columns, 1, 2))
    made_of = f"struct({one} as p, {text} as q, struct({two} as s) as r)"
    made_of = b.one_of([made_of, f"case when {one} > 0 then {made_of} end"])
    inner = (
        f"select {listed}, {made_of} as struct1, {b.one_of([f'array({one}, {two}, null)', f'array({two})'])} as list1,"
        f" split({text}, ',') as texts1 from {source.sql}{b.where(source.columns, 4)}"
    )
    parts: list[tuple[str, str]] = [b.one_of(_OF_PARTS) for _ in range(b.one_of([1, 2]))]
    kept = named
    if b.sometimes():
        call, name, parts_of = b.one_of(_OF_GROUPS)
        key = b.one_of(named)
        inner = (
            f"select {key.name}, {filled(b.draw, call, named, 1)} as {name} from ({inner}) as s1 group by {key.name}"
        )
        kept, parts = (key,), list(parts_of)
    shown, columns = b.named([*kept, *(Col(part, type_) for part, type_ in parts), Col("1", "int")])
    return Built(f"select {shown} from ({inner}) as s2", columns, made(source))


def unpivoted(b: Builder, size: int, construct: str) -> Built:
    """The values of two columns as rows, with or without those that are NULL."""
    source = b.source(size, "x")
    listed, named = b.named(b.some(source.columns, 1, 2))
    one, two = (b.one_of(of(source.columns, "int")).name for _ in range(2))
    inner = f"select {listed}, {one} as first, {two} as second from {source.sql}{b.where(source.columns)}"
    nulls = b.one_of(["", "include nulls ", "exclude nulls "])
    rows = f"({inner}) as u unpivot {nulls}(number for place in (first, second as other))"
    if construct == "stack":
        rows = f"({inner}) as u lateral view stack(3, 'first', first, 'second', second, null) s as place, number"
        text = ", ".join(column.name for column in named)
        columns = (*named, Col("place", "string"), Col("number", "int"))
        return Built(f"select {text}, place, number from {rows}", columns, made(source))
    return Built(f"select * from {rows}", (*named, Col("place", "string"), Col("number", "int")), made(source))


MAKERS: dict[str, Maker] = {
    **dict.fromkeys(("unpivot", "stack"), unpivoted),
    "nested values": with_parts,
    "projection": projected,
    "filter": filtered,
    "clock filter": by_clock,
    "derived table": derived,
    "CTE": common,
    "CTE used twice": twice,
    **dict.fromkeys(("union all", "union", "intersect", "except", "intersect all", "except all"), combined),
    **dict.fromkeys(("lateral view", "explode"), exploded),
}
