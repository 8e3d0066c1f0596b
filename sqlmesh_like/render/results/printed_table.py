"""Rows as a table in Markdown, as agate prints one. Owns widths, alignment and what is cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import islice

_CUT = "..."


def printed_table(
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    types: Sequence[str] | None,
    max_rows: int | None = None,
    max_columns: int | None = None,
    max_width: int | None = None,
    max_precision: int | None = None,
) -> str:
    """The table; `types` are agate's names of the columns' types, None: all are text. None as a limit means no limit.

    >>> print(printed_table(("id", "name"), [(1, "a"), (20, None)], ("Integer", "Text")))
    | id | name |
    | -- | ---- |
    |  1 | a    |
    | 20 |      |
    """
    listed = list(rows)
    shown = [row[:max_columns] for row in islice(listed, max_rows)]
    kinds = list(types or ["Text"] * len(names))[:max_columns]
    columns = [
        [
            _truncate_text(name, max_width),
            *(_truncate_text(text, max_width) for text in _texts(kind, values, max_precision)),
        ]
        for name, kind, values in zip(
            names, kinds, zip(*shown, strict=True) if shown else [()] * len(kinds), strict=False
        )
    ]
    if max_columns is not None and len(names) > max_columns:
        columns.append([_CUT] * (len(shown) + 1))
        kinds.append("Text")
    if len(shown) < len(listed):
        columns = [[*column, _CUT] for column in columns]
    widths = [max(map(len, column)) for column in columns]
    padded = [
        [text.ljust(width) if kind == "Text" else text.rjust(width) for text in column]
        for column, width, kind in zip(columns, widths, kinds, strict=True)
    ]
    lines = [f"| {' | '.join(cells)} |" for cells in zip(*padded, strict=True)]
    divider = f"| {' | '.join('-' * width for width in widths)} |"
    return "\n".join([*lines[:1], divider, *lines[1:]])


def _texts(kind: str, values: Sequence[object], max_precision: int | None) -> list[str]:
    if kind != "Number":
        return ["" if value is None else str(value) for value in values]
    numbers = [Decimal(str(value)) if value is not None else None for value in values]
    exponents = [number.normalize().as_tuple().exponent for number in numbers if number is not None]
    places = max((-exponent for exponent in exponents if isinstance(exponent, int)), default=0)
    kept = max(0, places if max_precision is None else min(places, max_precision))
    return ["" if n is None else f"{n:,.{kept}f}" + ("…" if kept < places else "") for n in numbers]


def _truncate_text(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: width - len(_CUT)] + _CUT
