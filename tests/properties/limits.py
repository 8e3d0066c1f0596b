"""Random ORDER BY … LIMIT over other queries: in the same SELECT, around one, or by what is not returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.properties.expressions import Col, expression, of
from tests.properties.query import Builder, Built, Maker, made

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
    order = f"order by {', '.join(term + b.one_of(_WAYS) for term in by)} limit {b.one_of('1235')}"
    return Built(f"select {listed} from {source.sql}{b.where(source.columns)} {order}", named, made(source))


def _terms(b: Builder, columns: Sequence[Col], *, is_whole: bool) -> str:
    known = of(columns)
    some = b.shuffled(known) if is_whole else [b.one_of(known) for _ in range(b.one_of([1, 1, 2]))]
    chosen = list(dict.fromkeys(some))
    terms = [str(columns.index(c) + 1) if b.sometimes(4) else c.name for c in chosen]
    return f"order by {', '.join(term + b.one_of(_WAYS) for term in terms)} limit {b.one_of('1235')}"


MAKERS: dict[str, Maker] = {"limit": limited}
