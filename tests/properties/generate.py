"""Random schemas, row-wise queries and batches of changes. Everything generated is provably incremental.

Names are chosen to collide: with aliases that the compiler generates, with each other in another case, with keywords.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from sqlmesh_like.engine.duck import Rows, Snapshot
from sqlmesh_like.names import Column, Schema
from tests.properties.lake import T, U

Draw = Callable[..., object]
DEEP = os.environ.get("SML_DEEP") == "1"

NAMES = ("a", "x", "r", "n", "g", "f", "b", "groups", "old", "changed", "d", "o", "this", "e", "k", "select", "Ü 1")
VALUES: dict[str, Sequence[object]] = {
    "int": (None, -1, 0, 1, 2),
    "decimal(10,2)": (None, Decimal("0.00"), Decimal("-1.00"), Decimal("1.00"), Decimal("0.01"), Decimal("2.50")),
    "string": (None, "", "x", "X", "a,b", "N"),
    "date": (None, date(2024, 1, 1), date(2024, 2, 29), date(2023, 12, 31)),
    "boolean": (None, True, False),
}
KEYS = ("1", "2", "3", "4", "5", "N", "")


def examples(share: float) -> settings:
    """Settings with a share of the whole budget (shares add up to 1.8): 480 cases, or 7,500 where `SML_DEEP=1`."""
    total = 4_200 if DEEP else 270
    return settings(
        max_examples=max(1, round(total * share)), deadline=None, derandomize=not DEEP, database=None,
        phases=(Phase.generate, Phase.shrink) if DEEP else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@dataclass(frozen=True)
class Query:
    """A SELECT and its output columns."""

    sql: str
    columns: Schema


@st.composite
def schemas(draw: Draw) -> Schema:
    """Two integers, and one column of each other type, under colliding names."""
    names = draw(st.permutations(NAMES))
    types = ("int", "decimal(10,2)", "string", "date", "boolean", "int")
    return tuple(Column(name, type_) for name, type_ in zip(names, types, strict=False))


@st.composite
def paths(draw: Draw, schema: Schema, batches: int | None = None) -> list[Snapshot]:
    """States of both tables, each a batch of changes after the one before."""
    rows = st.tuples(*[st.sampled_from(VALUES[str(column.type)]) for column in schema])
    found: list[Snapshot] = [{T: draw(_start(rows)), U: draw(_start(rows))}]
    for _ in range(batches or draw(st.integers(3, 5))):
        last = found[-1]
        found.append({T: draw(_batch(last[T], rows)), U: draw(_batch(last[U], rows))})
    return found


def _start(rows: st.SearchStrategy[tuple[object, ...]]) -> st.SearchStrategy[Rows]:
    return st.dictionaries(st.sampled_from(KEYS), rows, max_size=4)


@st.composite
def _batch(draw: Draw, before: Rows, rows: st.SearchStrategy[tuple[object, ...]]) -> Rows:
    after = dict(before)
    kinds = ("put", "change", "delete", "rekey", "rewrite")
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=4)):
        key = draw(st.sampled_from(KEYS))
        row = after.get(key)
        if kind == "put" or (kind == "change" and row is None):
            after[key] = draw(rows)
        elif row is None:
            continue
        elif kind == "change":
            position = draw(st.integers(0, len(row) - 1))
            after[key] = (*row[:position], draw(rows)[position], *row[position + 1 :])
        elif kind == "delete":
            del after[key]
        elif kind == "rekey":
            after[draw(st.sampled_from(KEYS))] = after.pop(key)
        else:
            after[key] = (*row[:1], *row[1:])  # equal, but another object: written again unchanged
    return after


def quoted(name: str) -> str:
    return f"`{name}`"


def expression(draw: Draw, columns: Schema, type_: str, depth: int = 2) -> str:
    """An expression of exactly this Spark type over the columns."""
    own = [column.name for column in columns if column.type == type_]
    forms = list(_LEAVES[type_]) + [quoted(draw(_cased(name))) for name in own] * 3
    if depth <= 0:
        return draw(st.sampled_from(forms))
    template = draw(st.sampled_from(["{leaf}", "{leaf}", *_FORMS[type_]]))
    return template.format_map(_Holes(draw, columns, type_, depth, forms))


class _Holes(dict[str, str]):
    """Fills `{int}`, `{same}` … of a template, each time with another expression."""

    def __init__(self, draw: Draw, columns: Schema, type_: str, depth: int, leaves: Sequence[str]) -> None:
        super().__init__()
        self._parts = draw, columns, type_, depth, leaves

    def __missing__(self, name: str) -> str:
        draw, columns, type_, depth, leaves = self._parts
        if name == "leaf":
            return str(draw(st.sampled_from(leaves)))
        wanted = {"same": type_, "decimal": "decimal(10,2)"}.get(name, name)
        return expression(draw, columns, wanted, depth - 1)


def _cased(name: str) -> st.SearchStrategy[str]:
    return st.sampled_from([name, name.upper(), name.lower()] if name.isascii() else [name])


_LEAVES: dict[str, tuple[str, ...]] = {
    "int": ("0", "1", "-1"),
    "decimal(10,2)": ("cast(1.5 as decimal(10,2))",),
    "string": ("'x'", "'X'", "''"),
    "date": ("date '2024-01-01'",),
    "boolean": ("true", "cast(null as boolean)"),
}
_ANY = ("case when {boolean} then {same} else {same} end", "coalesce({same}, {same})", "if({boolean}, {same}, null)",
        "case {int} when 0 then {same} when 1 then {same} end")  # fmt: skip
_FORMS: dict[str, tuple[str, ...]] = {
    "int": (*_ANY, "({int} + {int})", "{int} - ({int} - {int})", "abs({int})", "length({string})", "{int} % 2",
            "year({date})", "- ({int})"),
    "decimal(10,2)": (*_ANY, "cast({decimal} * {int} as decimal(10,2))", "cast({int} as decimal(10,2))",
                      "abs({decimal})"),
    "string": (*_ANY, "upper({string})", "concat({string}, {string})", "cast({int} as string)",
               "substring({string}, 1, 1)", "date_format({date}, 'yyyy-MM')"),
    "date": (*_ANY, "date_add({date}, 1)", "to_date({date})"),
    "boolean": (*_ANY, "{int} > {int}", "{string} = {string}", "{decimal} <= {decimal}", "{string} is null",
                "{int} in (0, 1)", "{string} like 'x%'", "not ({boolean})", "({boolean} or {boolean})",
                "{boolean} and {boolean}", "{int} <=> {int}", "{date} between {date} and {date}"),
}  # fmt: skip


@st.composite
def row_queries(draw: Draw, schema: Schema, depth: int = 2) -> Query:
    """A projection, filter, CTE, derived table or UNION ALL, or the table itself."""
    kind = draw(st.sampled_from(["select", "select", "nested", "cte", "union", "twice"])) if depth else "select"
    if kind in ("select", "nested"):
        inner = draw(row_queries(schema, depth - 1)) if kind == "nested" else Query(draw(_table()), schema)
        source = f"({inner.sql}) as {draw(st.sampled_from(['x', 'a', 'q']))}" if kind == "nested" else inner.sql
        return draw(_select(source, inner.columns))
    if kind == "cte":
        inner = draw(row_queries(schema, depth - 1))
        outer = draw(_select("part", inner.columns))
        return Query(f"with part as ({inner.sql}) {outer.sql}", outer.columns)
    left = draw(_select(draw(_table()), schema, typed=True))
    if kind == "twice":
        names = ", ".join(quoted(column.name) for column in left.columns)
        return Query(f"with part as ({left.sql}) select {names} from part union all select * from part", left.columns)
    right = draw(_select(draw(_table()), schema, types=[str(column.type) for column in left.columns]))
    return Query(f"{left.sql} union all {right.sql}", left.columns)


def _table() -> st.SearchStrategy[str]:
    return st.sampled_from(["ods.t", "ods.t", "ods.u"])


@st.composite
def _select(
    draw: Draw, source: str, columns: Schema, types: Sequence[str] | None = None, *, typed: bool = False
) -> Query:
    where = f" where {expression(draw, columns, 'boolean')}" if draw(st.booleans()) else ""
    if types is None and not typed and draw(st.booleans()):
        return Query(f"select * from {source}{where}", columns)
    chosen = types or draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=2, max_size=5))
    names = draw(st.permutations(NAMES))[: len(chosen)]
    items = [f"{expression(draw, columns, type_)} as {quoted(name)}" for name, type_ in zip(names, chosen, strict=True)]
    output = tuple(Column(name, type_) for name, type_ in zip(names, chosen, strict=True))
    return Query(f"select {', '.join(items)} from {source}{where}", output)
