"""Whether two texts of one query mean the same to Spark. Owns asking it, and what is told where they do not."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from pyspark.sql import DataFrame

_MOST_SHOWN = 160


def other_meaning(written: DataFrame, compiled: DataFrame) -> str | None:
    """How the second of two texts is another query than the first; None where both yield the same rows.

    Both must read the same temporary views. Analyzed plans are compared without names and ids; where they differ, the
    optimized ones, which have one form for what is spelt in two ways. Neither query is run.
    """
    if written._jdf.schema().catalogString() != compiled._jdf.schema().catalogString():
        return f"{_types(written)}, not {_types(compiled)}"
    if _without_ctes(written).sameResult(_without_ctes(compiled)):
        return None
    plans = [frame._jdf.queryExecution().optimizedPlan() for frame in (written, compiled)]
    return None if plans[0].sameResult(plans[1]) else _first_difference(*plans)


def _without_ctes(frame: DataFrame) -> Any:
    """The analyzed plan with CTEs in the places where they are read: each text numbers them anew."""
    jvm: Any = frame.sparkSession._jvm
    inline = jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE(True)
    return inline.apply(frame._jdf.queryExecution().analyzed())


def _first_difference(*plans: Any) -> str:
    lines = (str(plan.canonicalized().toString()).splitlines() for plan in plans)
    for left, right in zip_longest(*lines, fillvalue=""):
        if left != right:
            return f"{_plan_line(left)}, not {_plan_line(right)}"
    return "another plan"


def _plan_line(line: str) -> str:
    """A line of a plan without the lines that draw its tree."""
    text = line.lstrip(" :+-!'")
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _types(frame: DataFrame) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields)
