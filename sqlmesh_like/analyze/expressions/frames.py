"""Frames of windows over the type of their order. Owns which offsets Spark's analysis refuses.

Source: `WindowSpecDefinition.isValidFrameType`, `SpecifiedWindowFrame` and `WindowFrameCoercion` of Spark 3.5.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.expressions.expression_types import ExpressionTypes
from sqlmesh_like.analyze.spark_types.coercion import TIMES, interval_kind, is_interval, is_number
from sqlmesh_like.analyze.spark_types.refusal import Refusal

_WITHOUT_DISTANCE = ("string", "boolean", "binary")
_DAYS = ("int",)
"""What is added to a date: not even a smaller integer."""


def refused_frame(window: exp.Window, types: ExpressionTypes) -> Refusal | None:
    """Why the offsets of a RANGE frame do not fit its order; None where they do, or that is not known."""
    spec, order = window.args.get("spec"), window.args.get("order")
    if not isinstance(spec, exp.WindowSpec) or spec.text("kind").upper() != "RANGE" or order is None:
        return None
    ordered = types.of(order.expressions[0].this) if len(order.expressions) == 1 else None
    for side in ("start", "end"):
        offset = spec.args.get(side)
        type_ = types.of(offset) if isinstance(offset, exp.Expr) else None
        if ordered is not None and type_ is not None and not _fits(ordered, type_):
            return Refusal(f"a RANGE frame over {ordered} has no offset of {type_}")
    return None


def _fits(ordered: str, offset: str) -> bool:
    if ordered in _WITHOUT_DISTANCE:
        return False
    if ordered == "date":
        return offset in _DAYS or (is_interval(offset) and interval_kind(offset) == "months")
    return not (ordered in TIMES and is_number(offset))
