"""Random expressions of one type over named columns, as Spark SQL that DuckDB computes alike.

`int` stands for any integer type here: SUM and COUNT give wider ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

OTHER = "other"
"""A type that may be shown and counted only: Spark's and DuckDB's differ, or it is a double."""


@dataclass(frozen=True)
class Col:
    """A column in scope, as it is written there. `copied`: an input's column, unchanged."""

    name: str
    type: str
    copied: bool = False


def of(columns: Sequence[Col], *types: str) -> list[Col]:
    """Those of some types (of none: all that may be computed on)."""
    return [column for column in columns if (column.type in types if types else column.type != OTHER)]


def quoted(name: str) -> str:
    return f"`{name}`"


def cased(draw: DrawFn, name: str) -> str:
    """A column in any case of its letters: Spark looks names up without case."""
    is_plain = name.isascii() and "." not in name
    return draw(st.sampled_from([name, name.upper(), name.lower()])) if is_plain else name


def expression(draw: DrawFn, columns: Sequence[Col], type_: str, depth: int = 2) -> str:
    """An expression of exactly this type."""
    own = [column.name for column in columns if column.type == type_]
    leaves = [*_LEAVES[type_], *own, *own, *own]
    if depth <= 0:
        return cased(draw, draw(st.sampled_from(leaves)))
    template = draw(st.sampled_from(["{leaf}", "{leaf}", *_FORMS[type_]]))
    return template.format_map(_Holes(draw, columns, type_, depth, leaves))


def filled(draw: DrawFn, template: str, columns: Sequence[Col], depth: int = 1) -> str:
    """A template with an expression in each `{type}` (`{decimal}` short, `{any}` and `{ordered}` of some
    type, `{col}` a column)."""
    return template.format_map(_Holes(draw, columns, "", depth, [column.name for column in columns]))


class _Holes(dict[str, str]):
    """Fills `{int}`, `{same}` … of a template, each time with another expression."""

    def __init__(self, draw: DrawFn, columns: Sequence[Col], type_: str, depth: int, leaves: Sequence[str]) -> None:
        super().__init__()
        self._parts = draw, columns, type_, depth, leaves

    def __missing__(self, name: str) -> str:
        draw, columns, type_, depth, leaves = self._parts
        if name in ("leaf", "col"):
            return cased(draw, draw(st.sampled_from(leaves)))
        wanted = {"same": type_, "decimal": "decimal(10,2)", "any": draw(_ANY_TYPE), "ordered": draw(_ORDERED)}.get(
            name, name
        )
        return expression(draw, columns, wanted, depth - 1)


_LEAVES: dict[str, tuple[str, ...]] = {
    "int": ("0", "1", "-1"),
    "decimal(10,2)": ("cast(1.5 as decimal(10,2))",),
    "string": ("'x'", "'X'", "''"),
    "date": ("date '2024-01-01'",),
    "boolean": ("true", "cast(null as boolean)"),
}
TYPES = tuple(_LEAVES)
_ANY_TYPE: SearchStrategy[str] = st.sampled_from(TYPES)
_ORDERED: SearchStrategy[str] = st.sampled_from([type_ for type_ in TYPES if type_ != "boolean"])
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
