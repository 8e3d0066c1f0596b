"""SEQUENCE of whole numbers and of dates: which are proven, and how DuckDB is given them.

Spark's step is +1 or -1 where none is written, by which end is higher: ours goes up, and fails where that is wrong. A
step of months is added to the first date, not to the one before it, so that the 31st comes back after February.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.dialects import duck_template
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only
from sqlmesh_like.duckdb.exact.values import Types, cast_of, only_where

_NUMBERS = "generate_series(low, high, {step})"
_DAYS = "list_transform(generate_series(0, high - low, {step}), LAMBDA _sml_i : low + CAST(_sml_i AS INT))"
_MONTHS = (
    "list_filter(list_transform(generate_series(0, datediff('month', low, high), {step}),"
    " LAMBDA _sml_i : CAST(low + to_months(CAST(_sml_i AS INT)) AS DATE)), LAMBDA _sml_d : _sml_d <= high)"
)


def sequence_elements(node: exp.GenerateSeries, types: Types) -> str:
    """The type of the elements; the sequence is replaced by DuckDB's list of them. Raises Unproven."""
    require_only(node, "start", "end", "step")
    known = {types.of(node.args["start"]), types.of(node.args["end"])}
    element = known.pop() if len(known) == 1 else ""
    template, step = _template(node.args.get("step"), element)
    low, high = (cast_of(node.args[end].copy(), element) for end in ("start", "end"))
    is_up = exp.or_(exp.Is(this=low.copy(), expression=exp.null()), exp.LTE(this=low.copy(), expression=high.copy()))
    bound = only_where(exp.Paren(this=is_up), high, high.copy(), element)
    made = duck_template(template.format(step=step), low=low, high=bound)
    node.replace(cast_of(made, f"array<{element}>"))
    return element


def _template(step: exp.Expr | None, element: str) -> tuple[str, int]:
    if element in ("int", "bigint"):
        return _NUMBERS, 1 if step is None else _count(step)
    if element != "date":
        raise Unproven("SEQUENCE of other than whole numbers or dates of one type")
    if step is None:
        return _DAYS, 1
    unit = step.text("unit").upper().removesuffix("S") if isinstance(step, exp.Interval) else ""
    sizes = {"DAY": (_DAYS, 1), "WEEK": (_DAYS, 7), "MONTH": (_MONTHS, 1), "YEAR": (_MONTHS, 12)}
    if unit not in sizes:
        raise Unproven("SEQUENCE of dates by other than days or months")
    template, size = sizes[unit]
    return template, size * _count(step.this)


def _count(number: exp.Expr) -> int:
    number = number.this if isinstance(number, exp.Cast) else number
    if not isinstance(number, exp.Literal) or not number.name.isdigit() or not 0 < int(number.name) < 10**6:
        raise Unproven("SEQUENCE by other than a positive number as written")
    return int(number.name)
