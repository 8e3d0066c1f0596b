"""Random ORDER BY … LIMIT over other queries: in the same SELECT, around one, or by what is not returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.properties.expressions import Col, expression, of
from tests.properties.query import Builder, Built, Maker, Source, made

_COUNTS = ("1", "2", "3", "5", "2 offset 1", "3 offset 2")
_UNTIED = ("distinct", "group by", "union")
"""Queries that have columns by which no two rows are tied: their rows are those of the query as it is written."""
_WAYS = ("", "", " desc", " asc nulls last", " desc nulls first")


def limited(b: Builder, size: int, construct: str) -> Built:
    b = replace(b, makers={name: maker for name, maker in b.makers.items() if name not in MAKERS})
    form = b.one_of(["same select", "same select", "untied", "hidden", "around"])
    if form == "hidden":
        return _by_hidden(b, size)
    inner = b.query(size + 1, b.one_of(_UNTIED) if form == "untied" else "")
    terms = _terms(b, inner.columns, is_whole=form == "untied")
    text = f"select * from ({inner.sql}) as q" if form == "around" else inner.sql
    return Built(f"{text} {terms}", inner.columns, made(inner))


def _by_hidden(b: Builder, size: int) -> Built:
    """The order is by columns and expressions of which the query shows only some, or none."""
    source = b.source(size, "p")
    listed, named = b.named(b.some(source.columns, 1, 3))
    by = [b.one_of([b.one_of(of(source.columns)).name, f"({expression(b.draw, source.columns, 'int', 1)})"])]
    if b.sometimes(2):
        by.append(b.one_of(of(named)).name)
    order = f"order by {', '.join(term + b.one_of(_WAYS) for term in by)} limit {b.one_of(_COUNTS)}"
    return Built(f"select {listed} from {source.sql}{b.where(source.columns)} {order}", named, made(source))


def _terms(b: Builder, columns: Sequence[Col], *, is_whole: bool) -> str:
    known = of(columns)
    some = b.shuffled(known) if is_whole else [b.one_of(known) for _ in range(b.one_of([1, 1, 2]))]
    chosen = list(dict.fromkeys(some))
    terms = [str(columns.index(c) + 1) if b.sometimes(4) else c.name for c in chosen]
    return f"order by {', '.join(term + b.one_of(_WAYS) for term in terms)} limit {b.one_of(_COUNTS)}"


def below(b: Builder, size: int, construct: str) -> Built:
    """A LIMIT in a query around it."""
    inner = limited(b, size, construct)
    first = Source(f"({inner.sql}) as p", "p", inner)
    other = b.source(0, "o")
    one, two = (b.one_of(of(source.columns, "int")).name for source in (first, other))
    form = b.one_of(["filter", "group", "join", "in", "union"])
    if form == "in":
        word = b.one_of(["in", "not in"])
        sql = f"select * from {other.sql} where {two} {word} (select {one} from {first.sql})"
        return Built(sql, other.query.columns, made(first, other))
    if form == "filter":
        return Built(f"select * from {first.sql}{b.where(first.columns, 1)}", inner.columns, made(first))
    if form == "union":
        sql = f"select {one} as m from {first.sql} union all select {two} from {other.sql}"
        return Built(sql, (Col("m", "int"),), made(first, other))
    if form == "group":
        key = b.one_of(of(first.columns))
        listed, named = b.named([key, Col("count(*)", "int"), Col(f"max({one})", "int")])
        return Built(f"select {listed} from {first.sql} group by {key.name}", named, made(first))
    listed, named = b.named(b.some([*first.columns, *other.columns], 1, 3))
    kind = b.one_of(["join", "left join", "right join", "full join"])
    return Built(f"select {listed} from {first.sql} {kind} {other.sql} on {one} = {two}", named, made(first, other))


MAKERS: dict[str, Maker] = {"limit": limited, "limit below": below}
